// SPDX-License-Identifier: MIT
#include "mistakes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target/elf/elf_image.h"

void mistakes__init(struct mistakes *m)
{
	const char *from = getenv("VERBOSE");

	*m = (struct mistakes){.from = from ? strtol(from, NULL, 10) : -1,
			       .of_all = getenv("OF_ALL")};
}

/* What is on its way to a function in another library has a frame, and that function's name. */
static bool is_bound_later(const struct function *function)
{
	return function->kind == FUNCTION_PLT ||
	       !strncmp(function->name, "_dl_runtime_resolve", 19);
}

/* The same where the dynamic linker's resolver has no name: it is none that is called by one. */
static bool may_be_bound_later(const struct function *truth, const struct function *decoded)
{
	const char *const linker = "ld-";

	return truth->kind == FUNCTION_UNKNOWN && !strncmp(truth->module, linker, strlen(linker)) &&
	       decoded &&
	       (decoded->kind == FUNCTION_SYMBOL ||
		strncmp(decoded->module, linker, strlen(linker)) != 0);
}

bool is_same_function(const struct function *truth, const struct function *decoded)
{
	return !truth || truth == decoded || is_bound_later(truth) ||
	       may_be_bound_later(truth, decoded);
}

static bool is_told(const struct mistakes *m)
{
	return m->from >= 0 && m->segment >= (uint32_t)m->from;
}

void mistakes__begin(struct mistakes *m, int tid, uint32_t segment)
{
	if (m->n_wrong && is_told(m))
		fprintf(stderr,
			"tid %d, segment %" PRIu32
			": %zu of %zu wrong: %zu lack frames, %zu have more, %zu have others\n\n",
			m->tid, m->segment, m->n_wrong, m->n, m->n_missing, m->n_extra,
			m->n_wrong - m->n_missing - m->n_extra);
	*m = (struct mistakes){
		.from = m->from, .of_all = m->of_all, .tid = tid, .segment = segment};
}

static const char *name_of(struct true_frames frames, size_t i)
{
	if (i >= frames.n)
		return "-";
	return frames.v[i] ? frames.v[i]->name : "?";
}

static void print(const struct mistakes *m, struct true_frames truth, struct true_frames decoded,
		  bool is_call, uint64_t to)
{
	size_t n = truth.n > decoded.n ? truth.n : decoded.n;

	fprintf(stderr, "tid %d, segment %" PRIu32 ", %s %zu, to %#" PRIx64 ":\n", m->tid,
		m->segment, is_call ? "call" : "return", m->n, to);
	for (size_t i = 0; i < n; i++)
		fprintf(stderr, "  %c %-40.40s %.40s\n",
			i < truth.n && i < decoded.n && is_same_function(truth.v[i], decoded.v[i])
				? ' '
				: '!',
			name_of(truth, i), name_of(decoded, i));
}

void mistakes__add(struct mistakes *m, struct true_frames truth, struct true_frames decoded,
		   bool is_call, uint64_t to)
{
	size_t shorter = truth.n < decoded.n ? truth.n : decoded.n, below = 0, above = 0;

	m->n++;
	while (below < shorter && is_same_function(truth.v[below], decoded.v[below]))
		below++;
	if (below == truth.n && below == decoded.n)
		return;
	while (below + above < shorter &&
	       is_same_function(truth.v[truth.n - 1 - above], decoded.v[decoded.n - 1 - above]))
		above++;
	m->n_missing += below + above == decoded.n;
	m->n_extra += below + above == truth.n;
	if (!m->n_wrong++ && is_told(m))
		print(m, truth, decoded, is_call, to);
}
