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

/* flambda appends "_1_2_code" to tell a closure's code from the closure. */
static size_t without_stamp(const char *text, size_t len)
{
	static const char code[] = "_code";
	size_t c = sizeof(code) - 1, n;

	if (len > c && !memcmp(text + len - c, code, c)) {
		n = without_number(text, len - c);
		if (n < len - c)
			return without_number(text, n);
	}
	return without_number(text, len);
}

static int hex_digit(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* The character that "$40" encodes; 0 if the digits are invalid or it cannot be printed. */
static char unescape(const char *text, size_t len)
{
	int high, low, c;

	if (len < 3 || text[0] != '$')
		return 0;
	high = hex_digit(text[1]);
	low = hex_digit(text[2]);
	c = high < 0 || low < 0 ? 0 : high << 4 | low;
	return c > ' ' && c < 0x7f ? (char)c : 0;
}

/* "camlStdlib__List__iter_507" is "Stdlib.List.iter". NULL: no memory. */
static char *demangle_ocaml(const char *raw_name)
{
	const char *text = raw_name + 4, *dot = strchr(text, '.');
	size_t len = without_stamp(text, strlen(text)), out = 0;
	char *name = malloc(len + 1), c;

	if (!name)
		return NULL;
	for (size_t i = 0; i < len;) {
		/* Behind a ".", "__" is part of the function's own name. */
		bool may_separate = out && (!dot || text + i < dot);

		if (may_separate && i + 2 < len && text[i] == '_' && text[i + 1] == '_') {
			name[out++] = '.';
			i += 2;
		} else if ((c = unescape(text + i, len - i))) {
			name[out++] = c;
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

/* A stub's raw name is its function's, "@plt" appended, which no demangler understands. */
static const char *demangle_stub(struct function *f)
{
	_cleanup_free_ char *target = strdup(f->raw_name);
	_cleanup_free_ char *readable = NULL, *text = NULL;
	int n;

	if (!target)
		return NULL;
	target[strlen(target) - strlen("@plt")] = '\0';
	readable = elf_demangle(target, true);
	n = readable ? asprintf(&text, "%s@plt", readable) : -1;
	if (n < 0) {
		text = NULL;
		return NULL;
	}
	return elf_image__keep(f->image, text, (size_t)n);
}

static const char *name_mangled(struct function *f)
{
	_cleanup_free_ char *readable = NULL;
	const char *name = NULL;

	if (f->kind == FUNCTION_PLT) {
		name = demangle_stub(f);
	} else {
		readable = elf_demangle(f->raw_name, true);
		if (readable)
			name = elf_image__keep(f->image, readable, strlen(readable));
	}
	return name ? name : f->raw_name;
}

/* The file's author may have put control characters into names. */
static const char *clean(struct function *f, const char *name)
{
	char buf[LABEL_SIZE];
	size_t len;
	const char *text = label__clean(buf, name, &len);

	if (text == name)
		return name;
	text = elf_image__keep(f->image, text, len);
	return text ? text : f->module;
}

void function_entry__make_readable(struct function_entry *entry)
{
	struct function *f = &entry->function;
	const char *name;

	if (f->name)
		return;
	name = clean(f, f->kind == FUNCTION_UNKNOWN ? name_hole(entry) : name_mangled(f));
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

/* Finds the language of code without symbols: compilers leave traces that strip keeps. */

static bool holds(const struct elf_image *image, const char *section, const char *text)
{
	GElf_Shdr shdr;
	Elf_Scn *scn = elf_image__section(image, section, &shdr);
	const Elf_Data *data = scn ? elf_section__data(scn, 1) : NULL;

	return data && memmem(data->d_buf, data->d_size, text, strlen(text));
}

/*
 * rustc names itself in newer versions; in all of them, what may panic in the standard library has
 * its place in the source.
 */
static bool look_for_rust(const struct elf_image *image)
{
	return holds(image, ".comment", "rustc version") ||
	       holds(image, ".rodata", "library/std/src/");
}

bool elf_image__holds_rust(struct elf_image *image)
{
	bool found;

	if (!image->elf)
		return false;
	pthread_mutex_lock(&image->lock);
	if (image->rust == RUST_NOT_ASKED)
		image->rust = look_for_rust(image) ? RUST_FOUND : RUST_NONE;
	found = image->rust == RUST_FOUND;
	pthread_mutex_unlock(&image->lock);
	return found;
}
