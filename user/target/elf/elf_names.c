// SPDX-License-Identifier: MIT
#include <ctype.h>
#include <inttypes.h>
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target/elf/elf_image.h"
#include "target/elf/elf_internal.h"
#include "util/cleanup.h"
#include "util/names.h"

/*
 * Names of functions in ocamlopt's code (asmcomp/compilenv.ml: make_symbol; asmcomp/emitaux.ml:
 * emit_symbol): "caml", the unit, "__" or (since 5.1) ".", the function, "_" and a distinguishing
 * number. Other characters than letters, digits and "_" are "$" and two hex digits. Units of a
 * library are "Library__Unit".
 */

bool ocaml_name__is_mangled(const char *raw_name)
{
	return !strncmp(raw_name, "caml", 4) && isupper((unsigned char)raw_name[4]);
}

/* The length without "_12". */
static size_t without_number(const char *text, size_t len)
{
	size_t n = len;

	while (n && isdigit((unsigned char)text[n - 1]))
		n--;
	return n > 1 && n < len && text[n - 1] == '_' ? n - 1 : len;
}

/* The character that "$40" encodes; 0 if the digits are invalid or it cannot be printed. */
static char unescape(const char *text, size_t len)
{
	static const char digits[] = "0123456789abcdef";
	const char *high, *low;
	long c;

	if (len < 3 || text[0] != '$')
		return 0;
	high = memchr(digits, text[1], strlen(digits));
	low = memchr(digits, text[2], strlen(digits));
	c = high && low ? (high - digits) << 4 | (low - digits) : 0;
	return c > ' ' && c < 0x7f ? (char)c : 0;
}

/* "camlStdlib__List__iter_507" is "Stdlib.List.iter". NULL: no memory. */
static char *demangle_ocaml(const char *raw_name)
{
	static const char code[] = "_code";
	const char *text = raw_name + 4, *dot = strchr(text, '.');
	size_t len = strlen(text), n, c = sizeof(code) - 1, out = 0;
	char *name, letter;

	/* flambda appends "_1_2_code" to tell a closure's code from the closure. */
	if (len > c && !memcmp(text + len - c, code, c)) {
		n = without_number(text, len - c);
		len = n < len - c ? n : len;
	}
	len = without_number(text, len);
	name = malloc(len + 1);
	if (!name)
		return NULL;
	for (size_t i = 0; i < len;) {
		/* After a ".", "__" is part of the function's own name. */
		bool may_separate = out && (!dot || text + i < dot);

		if (may_separate && i + 2 < len && text[i] == '_' && text[i + 1] == '_') {
			name[out++] = '.';
			i += 2;
		} else if ((letter = unescape(text + i, len - i))) {
			name[out++] = letter;
			i += 3;
		} else {
			name[out++] = text[i++];
		}
	}
	name[out] = '\0';
	return name;
}

/*
 * A mangled name can refer back to its own parts, so that a hostile one of a hundred bytes expands
 * to 2^40 characters. The demanglers' callback forms can be aborted: they hold no memory while they
 * print (rust-demangle.c: only that of a punycode name).
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

/* True if elf_demangle() knows the kind of mangling. */
static bool is_mangled(const char *raw_name)
{
	if (raw_name[0] == 'c')
		return ocaml_name__is_mangled(raw_name);
	return raw_name[0] == '_' && (raw_name[1] == 'Z' || raw_name[1] == 'R');
}

char *elf_demangle(const char *raw_name, bool with_parameters)
{
	const int options = DMGL_ANSI | (with_parameters ? DMGL_PARAMS : 0);
	struct output out;

	if (!is_mangled(raw_name))
		return NULL;
	if (raw_name[0] == 'c')
		return demangle_ocaml(raw_name);
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

struct elf_string {
	struct elf_string *next;
	char text[];
};

char *elf_image__keep(struct elf_image *image, const char *text, size_t len)
{
	struct elf_string *string = malloc(sizeof(*string) + len + 1);

	if (!string)
		return NULL;
	memcpy(string->text, text, len);
	string->text[len] = '\0';
	string->next = image->strings;
	image->strings = string;
	return string->text;
}

void elf_image__free_strings(struct elf_image *image)
{
	while (image->strings) {
		struct elf_string *next = image->strings->next;

		free(image->strings);
		image->strings = next;
	}
}

struct function_entry *function_entry__add(function_entry_vec *list, struct elf_image *image,
					   uint64_t vaddr, uint64_t size, const char *raw_name)
{
	struct function_entry *entry = VEC_PUSH(list);

	if (!entry)
		return NULL;
	*entry = (struct function_entry){
		.function = {
			.image = image, .module = image->module, .vaddr = vaddr, .size = size}};
	if (raw_name)
		function_entry__set_name(entry, raw_name);
	return entry;
}

void function_entry__set_name(struct function_entry *entry, const char *raw_name)
{
	entry->function.raw_name = raw_name;
	entry->function.name = is_mangled(raw_name) || !label__is_clean(raw_name) ? NULL : raw_name;
}

/* "[libc.so.6+0x12345]"; "[vdso+0x780]", whose module has its own brackets */
static const char *name_hole(struct function_entry *entry)
{
	struct function *f = &entry->function;
	_cleanup_free_ char *text = NULL;
	size_t len = strlen(f->module);
	bool has_brackets = len > 2 && f->module[0] == '[' && f->module[len - 1] == ']';
	int n = asprintf(&text, "[%.*s+0x%" PRIx64 "]", (int)(has_brackets ? len - 2 : len),
			 f->module + has_brackets, f->vaddr);

	if (n < 0) {
		text = NULL;
		f->raw_name = f->module;
		return f->module;
	}
	f->raw_name = elf_image__keep(f->image, text, (size_t)n);
	if (!f->raw_name)
		f->raw_name = f->module;
	return f->raw_name;
}

static const char *name_mangled(struct function *f)
{
	/* A stub's raw name is its function's, "@plt" appended, which no demangler understands. */
	const char *suffix = f->kind == FUNCTION_PLT ? "@plt" : "", *name = NULL;
	_cleanup_free_ char *target = strndup(f->raw_name, strlen(f->raw_name) - strlen(suffix));
	_cleanup_free_ char *readable = target ? elf_demangle(target, true) : NULL, *text = NULL;
	int n = readable ? asprintf(&text, "%s%s", readable, suffix) : -1;

	if (n < 0)
		text = NULL;
	else
		name = elf_image__keep(f->image, text, (size_t)n);
	return name ? name : f->raw_name;
}

void function_entry__make_readable(struct function_entry *entry)
{
	struct function *f = &entry->function;
	char buf[LABEL_SIZE];
	const char *name, *text;
	size_t len;

	if (f->name)
		return;
	name = f->kind == FUNCTION_UNKNOWN ? name_hole(entry) : name_mangled(f);
	/* The file's author may have put control characters into names. */
	text = label__clean(buf, name, &len);
	if (text != name) {
		name = elf_image__keep(f->image, text, len);
		if (!name)
			name = f->module;
	}
	__atomic_store_n(&f->name, name, __ATOMIC_RELEASE);
}

const struct function *function_entry__named(struct function_entry *entry)
{
	struct function *f = &entry->function;

	if (__atomic_load_n(&f->name, __ATOMIC_ACQUIRE))
		return f;
	pthread_mutex_lock(&f->image->lock);
	function_entry__make_readable(entry);
	pthread_mutex_unlock(&f->image->lock);
	return f;
}

static bool holds(const struct elf_image *image, const char *section, const char *text)
{
	GElf_Shdr shdr;
	Elf_Scn *scn = elf_image__section(image, section, &shdr);
	const Elf_Data *data = scn ? elf_section__data(scn, 1) : NULL;

	return data && memmem(data->d_buf, data->d_size, text, strlen(text));
}

/*
 * Compilers leave traces that strip keeps: newer versions of rustc their name, and all versions the
 * source paths of code of the standard library that may panic.
 */
bool elf_image__holds_rust(struct elf_image *image)
{
	bool found;

	if (!image->elf)
		return false;
	pthread_mutex_lock(&image->lock);
	if (image->rust == RUST_NOT_ASKED)
		image->rust = holds(image, ".comment", "rustc version") ||
					      holds(image, ".rodata", "library/std/src/")
				      ? RUST_FOUND
				      : RUST_NONE;
	found = image->rust == RUST_FOUND;
	pthread_mutex_unlock(&image->lock);
	return found;
}
