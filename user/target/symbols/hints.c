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

#include "target/elf/debug_file.h"
#include "target/symbols/live_image.h"
#include "target/symbols/query.h"
#include "target/usdt.h"
#include "util/cleanup.h"
#include "util/fs.h"
#include "util/log.h"
#include "util/names.h"

/* Limits for a hostile database. A desktop has 4000 lists, of 30 MB in all. */
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

/* True if `line` is a whole line of the text: a path. */
static bool has_line(const char *text, const char *line)
{
	size_t len = strlen(line);

	for (const char *p = text; (p = strstr(p, line)); p += len)
		if ((p == text || p[-1] == '\n') && (p[len] == '\n' || !p[len]))
			return true;
	return false;
}

int deb_package__owning(const char *root, const char *path, char name[static DEB_PACKAGE_SIZE])
{
	char folder[PATH_MAX], other[PATH_MAX];
	const struct dirent *entry;
	size_t left = MAX_BYTES, n = 0;
	int err = -ENOENT;
	DIR *dir;

	if (path[0] != '/' || strlen(path) + 8 > PATH_MAX || strchr(path, '\n'))
		return -ENOENT;
	/* If /bin is a link to /usr/bin, a package may list one path while the kernel shows the
	 * other. */
	if (!strncmp(path, "/usr/", 5))
		snprintf(other, sizeof(other), "%s", path + 4);
	else
		snprintf(other, sizeof(other), "/usr%s", path);
	snprintf(folder, sizeof(folder), "%s/var/lib/dpkg/info", root);
	dir = opendir(folder);
	for (; dir && err && n < MAX_FILES && left && (entry = readdir(dir)); n++) {
		_cleanup_close_ int fd = -1;
		_cleanup_free_ char *text = NULL;
		struct stat st;
		size_t len;

		if (!take_name(entry->d_name, name))
			continue;
		fd = openat(dirfd(dir), entry->d_name,
			    O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
		if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size > (off_t)left ||
		    fs__read_fd(fd, left, &text, &len))
			continue;
		left -= len;
		if (has_line(text, path) || has_line(text, other))
			err = 0;
	}
	if (dir)
		closedir(dir);
	return err;
}

#define MAX_PATTERNS 4

struct runtime {
	const char *language;
	/* Patterns (fnmatch(3)) of the base names of the program's file, and of its library. */
	const char *programs[MAX_PATTERNS], *library;
	const char *symbol;  /* shows that a program of another name is this runtime */
	const char *names;   /* how its functions get names in stacks; NULL: they cannot */
	const char *usdt;    /* the probe that each call hits, if the interpreter has it */
	const char *if_usdt; /* what `usdt` requires, as appended to the hint; or NULL */
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

/* The module that has the interpreter; NULL: it is not in this process. */
static const struct module *find_module(const struct symbols *symbols,
					const struct runtime *runtime)
{
	for (size_t i = 0; i < symbols->n; i++) {
		const struct module *module = &symbols->modules[i];
		const char *name = module__name(module);

		if (!module->is_executable && !fnmatch(runtime->library, name, 0))
			return module;
		if (module->is_executable &&
		    ARRAY_FIND(runtime->programs, e, *e && !fnmatch(*e, name, 0)))
			return module;
	}
	for (size_t i = 0; i < symbols->n; i++) {
		struct elf_image *image = symbols->modules[i].image;
		size_t n = symbols->modules[i].is_executable ? elf_image__function_count(image) : 0;

		for (size_t k = 0; k < n; k++)
			if (!strcmp(elf_image__raw_name(image, k), runtime->symbol))
				return &symbols->modules[i];
	}
	return NULL;
}

static int is_there(void *ctx, const struct usdt_match *match)
{
	return 1;
}

static void hint(const struct symbols *symbols, const struct runtime *runtime,
		 const struct module *module)
{
	const char *name = module__name(module), *version = name + strcspn(name, "0123456789");
	size_t len = strspn(version, "0123456789");
	char selector[128];

	/* A program may be linked with an interpreter that it never starts. */
	log__hint("%s %s %s, whose functions are not in a symbol table: only native functions "
		  "can be triggers",
		  name, module->is_executable ? "runs" : "may run", runtime->language);
	/* "3.11" of "libpython3.11.so.1.0". */
	if (len && version[len] == '.')
		len += 1 + strspn(version + len + 1, "0123456789");
	else
		len = 0;
	if (symbols->pid && perf_map__exists(symbols->pid))
		log__hint(
			"stacks and the report show its functions, with the names of its perf map");
	else if (runtime->names)
		log__hint("to see its functions in stacks and in the report, %s%s%.*s",
			  runtime->names, len ? "; this is " : "", (int)len, version);
	else
		log__hint(
			"it does not publish its functions: stacks show those of the interpreter");
	if (!runtime->usdt)
		return;
	snprintf(selector, sizeof(selector), USDT_PREFIX "%s", runtime->usdt);
	if (symbols__each_usdt(symbols, selector, is_there, NULL))
		log__hint("-symbol %s is hit by each call of any of them%s", selector,
			  runtime->if_usdt ? runtime->if_usdt : "");
}

/*
 * Prints hints for each interpreter that is there. *is_program: the program itself is one, not only
 * a library.
 */
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

static void offer_module(struct suggestion *suggestion, const struct module *module)
{
	const char *part = suggestion->query->name;
	size_t n = elf_image__function_count(module->image), part_len = strlen(part);

	for (size_t i = 0; i < n; i++) {
		const char *raw_name = elf_image__raw_name(module->image, i);
		char *name = elf_image__short_name(raw_name);
		size_t len = name ? strlen(name) : 0;

		if (!suggestion->qualified && len > part_len + 2 &&
		    !strcmp(name + len - part_len, part) &&
		    !memcmp(name + len - part_len - 2, "::", 2)) {
			suggestion->qualified = name;
			continue;
		}
		nearest__offer(&suggestion->nearest, name ? name : raw_name);
		if (name && suggestion->nearest.best == name) {
			free(suggestion->owned);
			suggestion->owned = name;
		} else {
			free(name);
		}
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
	return FIND_IN(symbols->modules, symbols->n, module,
		       query__covers(query, tier, module) &&
			       elf_image__function_count(module->image));
}

/* The file does not run yet, so its libraries are unknown. */
static void hint_at_attach(void)
{
	log__hint("for a function of a library, start the program first, then use 'mtbpf attach'");
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
		log__hint("'debuginfod-find debuginfo %s' fetches the debug symbols, if the "
			  "server has them",
			  id);
}

void symbols__hint_missing(const struct symbols *symbols)
{
	bool is_program;

	hint_each(symbols, &is_program);
	for (size_t i = 0; i < symbols->n && !is_program; i++)
		if (symbols->modules[i].is_executable &&
		    elf_image__lacks_symbols(symbols->modules[i].image))
			hint_at_debug_symbols(symbols, &symbols->modules[i]);
	for (size_t i = 0; i < symbols->n && symbols->pid; i++)
		if (symbols->modules[i].is_executable &&
		    elf_image__lacks_symbols(symbols->modules[i].image))
			log__hint("system calls need no symbols: -symbol syscall:fsync; for a "
				  "server, -requests");
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
	else if (best && symbols->pid)
		log__hint("did you mean '%s'? 'mtbpf list -pid %d' lists all functions", best,
			  (int)symbols->pid);
	else if (best)
		log__hint("did you mean '%s'? 'nm -C %s' lists all functions", best,
			  symbols->label);
	else if (symbols->pid)
		log__hint("'mtbpf list -pid %d' lists all functions", (int)symbols->pid);
	else
		hint_at_attach();
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

int symbols__refuse_ambiguous(const struct symbols *symbols, const struct query *query,
			      const match_vec *found)
{
	const struct symbol_match *first = &found->v[0];

	if (!query->line && query__asks(query)) {
		log__error("'?' lets you pick one of %zu functions of %s, but this is not a "
			   "terminal",
			   found->n, symbols->label);
		if (symbols->pid)
			log__hint("'mtbpf list -pid %d' lists the functions", (int)symbols->pid);
		else
			log__hint("'nm -C %s' lists the functions", symbols->label);
		return -ENOTUNIQ;
	}
	if (query->line) {
		log__error("'%s' is in %zu functions of %s", query->text, found->n, symbols->label);
		log__hint("the compiler put it into several; name one by its address:");
	} else {
		log__error("'%s' names %zu functions in %s", query->text, found->n, symbols->label);
		log__hint("name one as '%s:0x%" PRIx64
			  "' (file and address), or by its full name if that is unique:",
			  module__name(first->module), first->function->vaddr);
	}
	for (size_t i = 0; i < found->n && i < MAX_LISTED; i++) {
		const struct symbol_match *match = &found->v[i];
		const struct function *function = match->function;
		/*
		 * The selector addr: takes addresses of the program as linked, and of libraries as
		 * they are in the running process.
		 */
		uint64_t bias = match->module->is_executable ? 0 : match->module->bias;

		if (query->line)
			log__hint("  addr:0x%" PRIx64 " in %s",
				  function->vaddr + match->offset + bias, function->name);
		else
			log__hint("  0x%" PRIx64 " %s %s", function->vaddr, function->name,
				  module__name(match->module));
	}
	if (found->n > MAX_LISTED)
		log__hint("  and %zu more", found->n - MAX_LISTED);
	if (!query->line)
		symbols__hint_scripts(symbols);
	return -ENOTUNIQ;
}

int symbols__refuse_unknown(const struct symbols *symbols, const struct query *query)
{
	if (!has_functions(symbols, query, TIER_EXECUTABLE) &&
	    !has_functions(symbols, query, TIER_LIBRARIES)) {
		log__error("%s is stripped: no function can be found by its name", symbols->label);
		if (!symbols->pid)
			hint_at_attach();
		symbols__hint_missing(symbols);
		return -ENODATA;
	}
	return FIND_IN(symbols->modules, symbols->n, module,
		       !query->module_len || query__covers(query, TIER_NAMED, module))
		       ? refuse_missing(symbols, query)
		       : refuse_module(symbols, query);
}
