// SPDX-License-Identifier: MIT
#include "target/trace_places.h"

#include <string.h>

#include "target/symbols/symbols.h"
#include "util/log.h"

/* mtbpf.h's comes first: a program that sets it does so for mtbpf. */
static const struct {
	const char *name;
	enum mt_trace_kind kind;
} variables[] = {
	{"mtbpf_trace_id_", MT_TRACE_HALVES},
	{"otel_thread_ctx_v1", MT_TRACE_RECORD},
};

/* A TLS module ID above this is taken for damage; real programs have some dozens of modules. */
#define MODULES_MAX 4096

struct search {
	struct mt_trace_places *places;
	size_t n;
	pid_t pid;	/* 0: it does not run yet */
	bool has_glibc; /* the trigger can read glibc's vector of TLS blocks (DTV) */
};

/* `at` has a module's number and the offset in its block, as struct tls_index. */
static bool set_module(const struct search *s, struct mt_trace_place *place, const uint64_t at[2])
{
	if (!s->has_glibc || !at[0] || at[0] > MODULES_MAX)
		return false;
	place->module = (uint32_t)at[0];
	place->offset = at[1];
	return true;
}

/*
 * Reads what the dynamic linker wrote. A descriptor's argument is the distance from the thread
 * pointer, which is negative, or the address of the file's number and the offset (glibc,
 * sysdeps/x86/dl-tlsdesc.h: struct tlsdesc_dynamic_arg begins with tls_index).
 */
static bool read_note(const struct search *s, const struct module *module,
		      const struct elf_tls *tls, struct mt_trace_place *place)
{
	uint64_t words[2];

	if (!s->pid || process__read_memory(s->pid, module->bias + tls->note_vaddr, words,
					    sizeof(words)) != sizeof(words))
		return false;
	switch (tls->note) {
	case ELF_TLS_DISTANCE:
		place->offset = words[0];
		return (int64_t)words[0] < 0;
	case ELF_TLS_MODULE:
		if (tls->is_own)
			words[1] = tls->offset;
		return set_module(s, place, words);
	case ELF_TLS_DESCRIPTOR:
		place->offset = words[1];
		if ((int64_t)words[1] < 0)
			return true;
		return words[1] &&
		       process__read_memory(s->pid, words[1], words, sizeof(words)) ==
			       sizeof(words) &&
		       set_module(s, place, words);
	default:
		return false;
	}
}

/* Adds the place of the variable in the module, if it has one, once. */
static void find(struct search *s, const struct module *module, const char *name,
		 enum mt_trace_kind kind)
{
	struct mt_trace_place place = {.kind = kind};
	struct elf_tls tls = {0};

	if (!elf_image__find_tls(module->image, name, &tls))
		return;
	if (module->is_executable)
		place.offset = (uint64_t)tls.in_program;
	else if (!elf_image__find_tls_note(module->image, name, &tls) ||
		 !read_note(s, module, &tls, &place))
		return;
	for (size_t i = 0; i < s->n; i++)
		if (!memcmp(&s->places->v[i], &place, sizeof(place)))
			return;
	s->places->v[s->n++] = place;
}

static void find_all(struct search *s, const struct symbols *symbols)
{
	for (size_t i = 0; i < symbols->n; i++)
		s->has_glibc |= !strcmp(module__name(&symbols->modules[i]), "libc.so.6");
	for (size_t v = 0; v < sizeof(variables) / sizeof(variables[0]); v++)
		for (size_t i = 0; i < symbols->n && s->n < MT_TRACE_PLACES; i++)
			find(s, &symbols->modules[i], variables[v].name, variables[v].kind);
}

bool trace_places__find(struct mt_trace_places *places, const struct process *process)
{
	LOG_SILENTLY;
	struct search s = {.places = places, .pid = process->pid};
	struct symbols symbols;

	*places = (struct mt_trace_places){0};
	if (process->is_kernel_thread || symbols__open(&symbols, process))
		return false;
	find_all(&s, &symbols);
	symbols__close(&symbols);
	return s.n;
}

bool trace_places__find_in_file(struct mt_trace_places *places, const char *path)
{
	LOG_SILENTLY;
	struct search s = {.places = places};
	struct symbols symbols;

	*places = (struct mt_trace_places){0};
	if (symbols__open_file(&symbols, path))
		return false;
	find_all(&s, &symbols);
	symbols__close(&symbols);
	return s.n;
}
