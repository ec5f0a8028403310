/* SPDX-License-Identifier: MIT */
/* The functions of a running process by name: what a trigger is chosen from. */
#ifndef MTBPF_TARGET_SYMBOLS_SYMBOLS_H
#define MTBPF_TARGET_SYMBOLS_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "target/elf/elf_image.h"
#include "target/process.h"

/* An ELF file mapped executable by the process. */
struct module {
	struct mapping mapping; /* the first executable one; path is owned by the process */
	struct elf_image *image;
	uint64_t bias;	    /* run-time address = vaddr + bias */
	bool is_executable; /* the program itself, not a library */
};

struct symbols {
	struct module *modules;
	size_t n;
	pid_t pid;   /* 0: a program that does not run yet */
	char *label; /* for messages: "process 4242 (svc)", or the program's path */
	char *path;  /* symbols__open_file(): the module's mapping.path */
};

/*
 * Opens every ELF file the process maps executable, the vdso too. A file that cannot be opened is
 * left out (log__debug says why). 0 or -errno.
 */
int symbols__open(struct symbols *symbols, const struct process *process);
/*
 * Like symbols__open(), for a program that does not run yet (`run`): the one executable file. bias
 * is 0. 0, or -errno after one line and a hint on stderr.
 */
int symbols__open_file(struct symbols *symbols, const char *path);
void symbols__close(struct symbols *symbols);

struct symbol_match {
	const struct module *module;
	const struct function *function;
	uint64_t offset; /* of the instruction that is meant, in the function */
};

/*
 * Finds the one function that the user means by `name`: its raw or demangled name, exactly; or, for
 * C++ and Rust, the demangled name without its parameters or Rust hash; otherwise a clone of it
 * ("name.constprop.0", "name.isra.0"). The executable is searched before libraries: a match there
 * hides matches elsewhere. "libfoo.so:name" (base name, or a prefix up to '.') names the module.
 * "0x1234" is the function whose code begins at that vaddr, as candidates are listed, to tell two
 * static functions of one name apart. "name+0x10" is an instruction in it; "addr:0x1234" is the
 * instruction there, in the executable, otherwise in the process as it runs. "symbol:name" equals
 * "name". 0, or after one line and a hint on stderr: -ENOENT (with the nearest name), -ENOTUNIQ
 * (with the first candidates), -ENODATA: the process lacks symbols; -EINVAL: invalid selector, or
 * an offset beyond the function's end.
 */
int symbols__find(const struct symbols *symbols, const char *name, struct symbol_match *match);

/*
 * True if a name matches this function by the rules above, without looking for a better match
 * elsewhere. A glob matches all such functions, and their clones too.
 */
bool function__is_meant(const struct function *function, const char *name);

/*
 * Like symbols__find(), but a glob means all functions that match it: calls fn for each
 * until it returns non-zero, and returns that.
 */
int symbols__each_meant(const struct symbols *symbols, const char *name,
			int (*fn)(void *ctx, const struct symbol_match *match), void *ctx);

/* The base name of the module's file. */
const char *module__name(const struct module *module);

/*
 * Calls fn for every function of exactly this raw name, the executable's and the libraries', until
 * it returns non-zero. Returns that value. Demangles nothing.
 */
int symbols__each_of_name(const struct symbols *symbols, const char *raw_name,
			  int (*fn)(void *ctx, const struct symbol_match *match), void *ctx);

/* True if a function has this raw name. */
bool symbols__have(const struct symbols *symbols, const char *raw_name);

/* True if the text has the form of a source line selector: "line:svc.c:123". */
bool line__is_selector(const char *text);
/*
 * Calls fn for the line's code in each function that has some, until it returns non-zero, and
 * returns that; or returns -errno after a line and a hint.
 */
int symbols__each_of_line(const struct symbols *symbols, const char *text,
			  int (*fn)(void *ctx, const struct symbol_match *match), void *ctx);

/*
 * Calls fn for every function whose raw or demangled name matches the glob (fnmatch(3)), once per
 * address, in order of module and address, until it returns non-zero. Returns that value.
 */
int symbols__each(const struct symbols *symbols, const char *glob,
		  int (*fn)(void *ctx, const struct symbol_match *match), void *ctx);

#endif
