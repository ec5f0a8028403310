// SPDX-License-Identifier: MIT
#include "target/elf/elf_internal.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

/*
 * A mangled name can refer back to its own parts, so that a hostile one of a hundred bytes stands
 * for 2^40 characters. The callback forms of the demanglers are used since they can be left: they
 * hold no memory while they print (rust-demangle.c: only that of a punycode name).
 */
#define LONGEST 8192

struct output {
	char text[LONGEST];
	size_t len;
	jmp_buf too_long;
};

static void append(const char *text, size_t len, void *opaque)
{
	struct output *out = opaque;

	if (!len)
		return;
	if (len >= LONGEST - out->len)
		longjmp(out->too_long, 1);
	memcpy(out->text + out->len, text, len);
	out->len += len;
}

bool elf_demangle__is_mangled(const char *raw_name)
{
	if (raw_name[0] == 'c')
		return ocaml_name__is_mangled(raw_name);
	return raw_name[0] == '_' && (raw_name[1] == 'Z' || raw_name[1] == 'R');
}

char *elf_demangle(const char *raw_name, bool with_parameters)
{
	const int options = DMGL_ANSI | (with_parameters ? DMGL_PARAMS : 0);
	struct output out;

	if (!elf_demangle__is_mangled(raw_name))
		return NULL;
	if (raw_name[0] == 'c')
		return ocaml_name__demangle(raw_name);
	out.len = 0;
	if (setjmp(out.too_long))
		return NULL;
	/* Rust's legacy names are valid C++ names too, so Rust is asked first. */
	if (!rust_demangle_callback(raw_name, options, append, &out)) {
		out.len = 0;
		if (!cplus_demangle_v3_callback(raw_name, options, append, &out))
			return NULL;
	}
	return strndup(out.text, out.len);
}

char *elf_image__short_name(const char *raw_name)
{
	return elf_demangle(raw_name, false);
}
