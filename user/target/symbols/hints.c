// SPDX-License-Identifier: MIT
#include "target/symbols/hints.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "target/symbols/live_image.h"
#include "target/symbols/query.h"
#include "target/usdt.h"
#include "util/cleanup.h"
#include "util/fs.h"
#include "util/log.h"
#include "util/names.h"

/* A desktop has 4000 lists, of 30 MB in all. */
#define MAX_FILES 40000
#define MAX_BYTES (128u << 20)

/* Takes the package from "nginx.list", "libc6:amd64.list". False for other files. */
static bool take_name(const char *file, char name[static DEB_PACKAGE_SIZE])
{
	size_t len = strspn(file, "abcdefghijklmnopqrstuvwxyz0123456789+.-");
	const char *end = file + strlen(file);

	if (end - file < 6 || strcmp(end - 5, ".list"))
		return false;
	if (file + len == end)
		len -= 5;
	else if (file[len] != ':')
		return false;
	snprintf(name, DEB_PACKAGE_SIZE, "%.*s", (int)len, file);
	return len && len < DEB_PACKAGE_SIZE;
}

/* A line is a path. */
static bool has_line(const char *text, const char *line)
{
	size_t len = strlen(line);

	for (const char *p = text; (p = strstr(p, line)); p += len)
		if ((p == text || p[-1] == '\n') && (p[len] == '\n' || !p[len]))
			return true;
	return false;
}

/* If /bin is a link to /usr/bin, a package may list one path while the kernel shows the other. */
static bool lists(const char *text, const char *path)
{
	char merged[PATH_MAX];

	if (has_line(text, path))
		return true;
	if (!strncmp(path, "/usr/", 5))
		return has_line(text, path + 4);
	snprintf(merged, sizeof(merged), "/usr%s", path);
	return has_line(text, merged);
}

/* The bytes read are subtracted from *left. */
static bool is_listed(int dir, const char *file, const char *path, size_t *left)
{
	_cleanup_close_ int fd = openat(dir, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	_cleanup_free_ char *text = NULL;
	struct stat st;
	size_t len;

	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size > (off_t)*left ||
	    fs__read_fd(fd, *left, &text, &len))
		return false;
	*left -= len;
	return lists(text, path);
}

static int search(DIR *dir, const char *path, char name[static DEB_PACKAGE_SIZE])
{
	const struct dirent *entry;
	size_t left = MAX_BYTES;

	for (size_t n = 0; n < MAX_FILES && left && (entry = readdir(dir)); n++)
		if (take_name(entry->d_name, name) &&
		    is_listed(dirfd(dir), entry->d_name, path, &left))
			return 0;
	return -ENOENT;
}

int deb_package__owning(const char *root, const char *path, char name[static DEB_PACKAGE_SIZE])
{
	char folder[PATH_MAX];
	DIR *dir;
	int err;

	if (path[0] != '/' || strlen(path) + 8 > PATH_MAX || strchr(path, '\n'))
		return -ENOENT;
	snprintf(folder, sizeof(folder), "%s/var/lib/dpkg/info", root);
	dir = opendir(folder);
	if (!dir)
		return -ENOENT;
	err = search(dir, path, name);
	closedir(dir);
	return err;
}

#define MAX_PATTERNS 4

struct runtime {
	const char *language;
	/* Base names of the program's file, and of libraries; then a version may follow. */
	const char *programs[MAX_PATTERNS], *library;
	const char *symbol;  /* of a program that has another name */
	const char *names;   /* how its functions get names in stacks; NULL: they cannot */
	const char *usdt;    /* the probe that each call hits, if it was built with it */
	const char *if_usdt; /* an additional requirement, or NULL */
};

static const struct runtime runtimes[] = {
	{.language = "Python",
	 .programs = {"python", "python[23]", "python[23].*"},
	 .library = "libpython[23]*.so*",
	 .symbol = "Py_BytesMain",
	 .names = "start it with 'python3 -X perf', or with PYTHONPERFSUPPORT=1 (Python 3.12 or "
		  "later)",
	 .usdt = "python:function__entry"},
	{.language = "JavaScript",
	 .programs = {"node", "nodejs"},
	 .library = "libnode.so*",
	 .symbol = "_ZN4node5StartEiPPc",
	 .names = "start it with 'node --perf-basic-prof --interpreted-frames-native-stack'"},
	{.language = "Java",
	 .programs = {"java"},
	 .library = "libjvm.so",
	 .symbol = "JNI_CreateJavaVM",
	 .names = "start it with -XX:+PreserveFramePointer, and run 'jcmd PID Compiler.perfmap' "
		  "(JDK 17 or later) before the capture"},
	{.language = "Ruby",
	 .programs = {"ruby", "ruby[0-9]*"},
	 .library = "libruby*.so*",
	 .symbol = "ruby_run_node",
	 .names = "start it with 'ruby --yjit-perf' (Ruby 3.3 or later, built with YJIT)",
	 .usdt = "ruby:method__entry"},
	{.language = "PHP",
	 .programs = {"php", "php[0-9]*", "php-fpm*", "php-cgi*"},
	 .library = "libphp*.so*",
	 .symbol = "php_execute_script",
	 .names = "set opcache.jit_debug=0x10 (PHP 8.0 or later): that names what its JIT compiles",
	 .usdt = "php:function__entry",
	 .if_usdt = " (start it with USE_ZEND_DTRACE=1)"},
	{.language = "Erlang",
	 .programs = {"beam.smp", "beam"},
	 .library = "libbeam*.so*",
	 .symbol = "erl_start",
	 .names = "start it with 'erl +JPperf true' (Erlang/OTP 24 or later)"},
	{.language = "Perl",
	 .programs = {"perl", "perl[0-9]*"},
	 .library = "libperl.so*",
	 .symbol = "perl_run",
	 .usdt = "perl:sub__entry"},
};

static bool is_program_of(const struct runtime *runtime, const char *name)
{
	for (size_t i = 0; i < MAX_PATTERNS && runtime->programs[i]; i++)
		if (!fnmatch(runtime->programs[i], name, 0))
			return true;
	return false;
}

static bool has_symbol(struct elf_image *image, const char *raw_name)
{
	size_t n = elf_image__function_count(image);

	for (size_t i = 0; i < n; i++)
		if (!strcmp(elf_image__raw_name(image, i), raw_name))
			return true;
	return false;
}

/* The file that it is in; NULL: it is not in this process. */
static const struct module *find_module(const struct symbols *symbols,
					const struct runtime *runtime)
{
	for (size_t i = 0; i < symbols->n; i++) {
		const struct module *module = &symbols->modules[i];

		if (module->is_executable ? is_program_of(runtime, module__name(module))
					  : !fnmatch(runtime->library, module__name(module), 0))
			return module;
	}
	for (size_t i = 0; i < symbols->n; i++)
		if (symbols->modules[i].is_executable &&
		    has_symbol(symbols->modules[i].image, runtime->symbol))
			return &symbols->modules[i];
	return NULL;
}

static int is_there(void *ctx, const struct usdt_match *match)
{
	return 1;
}

static void hint_usdt(const struct symbols *symbols, const struct runtime *runtime)
{
	char selector[128];

	if (!runtime->usdt)
		return;
	snprintf(selector, sizeof(selector), USDT_PREFIX "%s", runtime->usdt);
	if (symbols__each_usdt(symbols, selector, is_there, NULL))
		log__hint("-symbol %s is hit by each call of any of them%s", selector,
			  runtime->if_usdt ? runtime->if_usdt : "");
}

/* "3.11" of "libpython3.11.so.1.0". */
static size_t find_version(const char *name, const char **version)
{
	size_t len;

	*version = name + strcspn(name, "0123456789");
	len = strspn(*version, "0123456789");
	if (!len || (*version)[len] != '.')
		return 0;
	len++;
	return len + strspn(*version + len, "0123456789");
}

static void hint_names(const struct symbols *symbols, const struct runtime *runtime,
		       const struct module *module)
{
	const char *version;
	size_t len = find_version(module__name(module), &version);

	if (symbols->pid && perf_map__exists(symbols->pid))
		log__hint(
			"stacks and the report show its functions, with the names of its perf map");
	else if (runtime->names)
		log__hint("to see its functions in stacks and in the report, %s%s%.*s",
			  runtime->names, len ? "; this is " : "", (int)len, version);
	else
		log__hint(
			"it does not publish its functions: stacks show those of the interpreter");
}

static void hint(const struct symbols *symbols, const struct runtime *runtime,
		 const struct module *module)
{
	/* A program may be linked with an interpreter that it never starts. */
	log__hint("%s %s %s, whose functions are not in a symbol table: only native functions "
		  "can be triggers",
		  module__name(module), module->is_executable ? "runs" : "may run",
		  runtime->language);
	hint_names(symbols, runtime, module);
	hint_usdt(symbols, runtime);
}

/* Says so for each that is there. *is_program: the program itself is one, not only a library. */
static bool hint_each(const struct symbols *symbols, bool *is_program)
{
	bool is_any = false;

	*is_program = false;
	for (size_t i = 0; i < sizeof(runtimes) / sizeof(runtimes[0]); i++) {
		const struct module *module = find_module(symbols, &runtimes[i]);

		if (!module)
			continue;
		hint(symbols, &runtimes[i], module);
		is_any = true;
		*is_program |= module->is_executable;
	}
	return is_any;
}

bool symbols__hint_scripts(const struct symbols *symbols)
{
	bool is_program;

	return hint_each(symbols, &is_program);
}

#define MAX_LISTED 5

/* The search for a name that the user may have meant instead. */
struct suggestion {
	const struct query *query;
	struct nearest nearest;
	char *owned;	 /* what nearest.best points to, if that is not an image's */
	char *qualified; /* "ns::name" for "name" */
};

static bool ends_with_part(const char *name, const char *part)
{
	size_t len = strlen(name), part_len = strlen(part);

	return len > part_len + 2 && !strcmp(name + len - part_len, part) &&
	       !memcmp(name + len - part_len - 2, "::", 2);
}

/* Takes the name over. */
static void offer_mangled(struct suggestion *suggestion, char *name)
{
	if (!suggestion->qualified && ends_with_part(name, suggestion->query->name)) {
		suggestion->qualified = name;
		return;
	}
	nearest__offer(&suggestion->nearest, name);
	if (suggestion->nearest.best == name) {
		free(suggestion->owned);
		suggestion->owned = name;
	} else {
		free(name);
	}
}

static void offer_module(struct suggestion *suggestion, const struct module *module)
{
	size_t n = elf_image__function_count(module->image);

	for (size_t i = 0; i < n; i++) {
		const char *raw_name = elf_image__raw_name(module->image, i);
		char *short_name = elf_image__short_name(raw_name);

		if (short_name)
			offer_mangled(suggestion, short_name);
		else
			nearest__offer(&suggestion->nearest, raw_name);
	}
}

/* The best suggestion of one tier, or NULL. */
static const char *suggest(struct suggestion *suggestion, const struct symbols *symbols,
			   enum tier tier)
{
	for (size_t i = 0; i < symbols->n; i++)
		if (query__covers(suggestion->query, tier, &symbols->modules[i]))
			offer_module(suggestion, &symbols->modules[i]);
	if (suggestion->qualified)
		return suggestion->qualified;
	return nearest__result(&suggestion->nearest);
}

static bool has_functions(const struct symbols *symbols, const struct query *query, enum tier tier)
{
	for (size_t i = 0; i < symbols->n; i++)
		if (query__covers(query, tier, &symbols->modules[i]) &&
		    elf_image__function_count(symbols->modules[i].image))
			return true;
	return false;
}

/* The file does not run yet, so its libraries are unknown. */
static void hint_at_attach(void)
{
	log__hint("if it is a library's, start the program first, then 'mtbpf attach'");
}

static void hint_at(const struct symbols *symbols, const char *suggestion)
{
	if (suggestion && symbols->pid)
		log__hint("did you mean '%s'? 'mtbpf list -pid %d' shows them all", suggestion,
			  (int)symbols->pid);
	else if (suggestion)
		log__hint("did you mean '%s'? 'nm -C %s' shows them all", suggestion,
			  symbols->label);
	else if (symbols->pid)
		log__hint("'mtbpf list -pid %d' shows them all", (int)symbols->pid);
	else
		hint_at_attach();
}

/* Says which package has the symbols that were stripped from the file. */
static void hint_at_debug_symbols(const struct symbols *symbols, const struct module *module)
{
	const char *id = elf_image__build_id(module->image), *urls = getenv("DEBUGINFOD_URLS");
	char package[DEB_PACKAGE_SIZE], root[32] = "";

	if (symbols->pid)
		snprintf(root, sizeof(root), "/proc/%d/root", (int)symbols->pid);
	log__hint("%s is stripped, and its debug symbols are not installed (%s%s)",
		  module__name(module), *id ? "build id " : "it lacks a build ID", id);
	if (!deb_package__owning(root, module->mapping.path, package))
		log__hint("the file belongs to the package %s: install %s-dbgsym (or -dbg), if "
			  "that is published",
			  package, package);
	else
		log__hint("install them (-dbgsym, -dbg, -debuginfo), or a file that is not "
			  "stripped");
	if (*id && urls && *urls)
		log__hint("'debuginfod-find debuginfo %s' fetches them, if its server has them",
			  id);
}

/* For a running program without symbols. */
static void hint_at_system_calls(const struct symbols *symbols)
{
	for (size_t i = 0; i < symbols->n; i++)
		if (symbols->pid && symbols->modules[i].is_executable &&
		    elf_image__lacks_symbols(symbols->modules[i].image))
			log__hint("system calls need no symbols: -symbol syscall:fsync; for a "
				  "server, -requests");
}

void symbols__hint_missing(const struct symbols *symbols)
{
	bool is_program;

	hint_each(symbols, &is_program);
	for (size_t i = 0; i < symbols->n && !is_program; i++)
		if (symbols->modules[i].is_executable &&
		    elf_image__lacks_symbols(symbols->modules[i].image))
			hint_at_debug_symbols(symbols, &symbols->modules[i]);
	hint_at_system_calls(symbols);
}

static int refuse_missing(const struct symbols *symbols, const struct query *query)
{
	struct suggestion suggestion = {.query = query, .nearest.word = query->name};
	const char *best;

	log__error("no function '%s' in %s", query->text, symbols->label);
	if (query->module_len) {
		best = suggest(&suggestion, symbols, TIER_NAMED);
	} else {
		best = suggest(&suggestion, symbols, TIER_EXECUTABLE);
		if (!best)
			best = suggest(&suggestion, symbols, TIER_LIBRARIES);
	}
	if (!best && !query->module_len && !has_functions(symbols, query, TIER_EXECUTABLE))
		log__hint("only functions of its libraries have names; use addr:0x401234 for an "
			  "instruction of the program");
	else
		hint_at(symbols, best);
	if (!query->module_len)
		symbols__hint_missing(symbols);
	free(suggestion.owned);
	free(suggestion.qualified);
	return -ENOENT;
}

static int refuse_module(const struct symbols *symbols, const struct query *query)
{
	_cleanup_free_ char *word = strndup(query->module, query->module_len);
	struct nearest nearest = {.word = word ? word : ""};
	const char *best;

	log__error("no module '%.*s' in %s", (int)query->module_len, query->module, symbols->label);
	for (size_t i = 0; i < symbols->n; i++)
		nearest__offer(&nearest, module__name(&symbols->modules[i]));
	best = nearest__result(&nearest);
	if (best)
		log__hint("did you mean '%s:%s'?", best, query->name);
	else
		log__hint("module names are those of /proc/PID/maps without folders");
	return -ENOENT;
}

/* addr: takes the program's own addresses as they are linked, and any as they are now. */
static uint64_t address_of(const struct symbol_match *match)
{
	uint64_t vaddr = match->function->vaddr + match->offset;

	return match->module->is_executable ? vaddr : vaddr + match->module->bias;
}

static int refuse_line_of_many(const struct symbols *symbols, const struct query *query,
			       const match_vec *found)
{
	log__error("'%s' is in %zu functions of %s", query->text, found->n, symbols->label);
	log__hint("the compiler put it into several; name one by its address:");
	for (size_t i = 0; i < found->n && i < MAX_LISTED; i++)
		log__hint("  addr:0x%" PRIx64 " in %s", address_of(&found->v[i]),
			  found->v[i].function->name);
	if (found->n > MAX_LISTED)
		log__hint("  and %zu more", found->n - MAX_LISTED);
	return -ENOTUNIQ;
}

static int refuse_to_ask(const struct symbols *symbols, const match_vec *found)
{
	log__error("'?' lets you pick one of %zu functions of %s, but this is not a terminal",
		   found->n, symbols->label);
	if (symbols->pid)
		log__hint("'mtbpf list -pid %d' shows them", (int)symbols->pid);
	else
		log__hint("'nm -C %s' shows them", symbols->label);
	return -ENOTUNIQ;
}

int symbols__refuse_ambiguous(const struct symbols *symbols, const struct query *query,
			      const match_vec *found)
{
	const struct symbol_match *first = &found->v[0];

	if (query->line)
		return refuse_line_of_many(symbols, query, found);
	if (query__asks(query))
		return refuse_to_ask(symbols, found);
	log__error("'%s' names %zu functions in %s", query->text, found->n, symbols->label);
	log__hint("name one as '%s:0x%" PRIx64 "', or by its full name if that is unique:",
		  module__name(first->module), first->function->vaddr);
	for (size_t i = 0; i < found->n && i < MAX_LISTED; i++)
		log__hint("  0x%" PRIx64 " %s %s", found->v[i].function->vaddr,
			  found->v[i].function->name, module__name(found->v[i].module));
	if (found->n > MAX_LISTED)
		log__hint("  and %zu more", found->n - MAX_LISTED);
	symbols__hint_scripts(symbols);
	return -ENOTUNIQ;
}

static bool has_module(const struct symbols *symbols, const struct query *query)
{
	for (size_t i = 0; i < symbols->n; i++)
		if (query__covers(query, TIER_NAMED, &symbols->modules[i]))
			return true;
	return false;
}

static int refuse_nameless(const struct symbols *symbols)
{
	log__error("%s is stripped: its functions cannot be named", symbols->label);
	if (!symbols->pid)
		hint_at_attach();
	symbols__hint_missing(symbols);
	return -ENODATA;
}

int symbols__refuse_unknown(const struct symbols *symbols, const struct query *query)
{
	if (!has_functions(symbols, query, TIER_EXECUTABLE) &&
	    !has_functions(symbols, query, TIER_LIBRARIES))
		return refuse_nameless(symbols);
	if (query->module_len && !has_module(symbols, query))
		return refuse_module(symbols, query);
	return refuse_missing(symbols, query);
}
