// SPDX-License-Identifier: MIT
#include "target/elf/elf_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/label.h"

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

void function_entry__set_name(struct function_entry *entry, const char *raw_name)
{
	entry->function.raw_name = raw_name;
	entry->function.name =
		elf_demangle__is_mangled(raw_name) || !label__is_clean(raw_name) ? NULL : raw_name;
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

/* Whoever made the file may have thought of the terminal. */
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
