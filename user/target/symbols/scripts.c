// SPDX-License-Identifier: MIT
#include "target/symbols/scripts.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "target/symbols/perf_map.h"
#include "target/symbols/symbols_usdt.h"
#include "util/log.h"

#define MAX_PATTERNS 4

struct runtime {
	const char *language;
	/* Base names of the program's file, and of libraries; then a version may follow. */
	const char *programs[MAX_PATTERNS], *library;
	const char *symbol;  /* of a program that has another name */
	const char *names;   /* how its functions get names in stacks; NULL: they cannot */
	const char *usdt;    /* the probe that each call hits, if it was built with it */
	const char *if_usdt; /* what else that needs; NULL: nothing */
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
	{.language = "Perl",
	 .programs = {"perl", "perl[0-9]*"},
	 .library = "libperl.so*",
	 .symbol = "perl_run",
	 .usdt = "perl:sub__entry"},
};

static bool is_library_of(const struct runtime *runtime, const char *name)
{
	return !fnmatch(runtime->library, name, 0);
}

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
					  : is_library_of(runtime, module__name(module)))
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
	log__hint("%s runs %s, whose functions are not in a symbol table: only native functions "
		  "can be triggers",
		  module__name(module), runtime->language);
	hint_names(symbols, runtime, module);
	hint_usdt(symbols, runtime);
}

bool symbols__hint_scripts(const struct symbols *symbols)
{
	bool is_any = false;

	for (size_t i = 0; i < sizeof(runtimes) / sizeof(runtimes[0]); i++) {
		const struct module *module = find_module(symbols, &runtimes[i]);

		if (module)
			hint(symbols, &runtimes[i], module);
		is_any |= module != NULL;
	}
	return is_any;
}
