// SPDX-License-Identifier: MIT
/*
 * Control flow that is hard on a call stack: tail calls, direct and through pointers; jump tables;
 * calls through the PLT (bound lazily, and without a PLT); recursion, mutual recursion; a library
 * that calls back; rep-prefixed instructions; a path that gcc moves to NAME.cold. That path, a
 * corrupted index that is sorted anew, is the slow iteration.
 */
#include "sample.h"
#include <dlfcn.h>

enum { KEYS = 8, OPERATIONS = 7, RELOAD_EVERY = 4, COPY_BYTES = 48 };

struct machine;
typedef uint64_t (*finish_fn)(struct machine *m, uint64_t value);

struct machine {
	struct sample options;
	uint64_t random;
	uint64_t sum;
	uint64_t index_mark; /* INDEX_GOOD, or the index must be rebuilt */
	uint64_t *index;     /* table_size keys */
	const finish_fn *finish;
	char from[COPY_BYTES], to[COPY_BYTES];
};

#define INDEX_GOOD 0x1dec5u

/* Called through the GOT, without a PLT entry between. */
extern size_t strcspn(const char *, const char *) __attribute__((noplt));

TRACED uint64_t finish_add(struct machine *m, uint64_t value)
{
	return m->sum + value;
}

TRACED uint64_t finish_xor(struct machine *m, uint64_t value)
{
	return m->sum ^ value;
}

static const finish_fn finishes[] = {finish_add, finish_xor};

/* Three tail calls: two direct jumps, then one through a pointer. */
TRACED uint64_t stage_three(struct machine *m, uint64_t value)
{
	return m->finish[value & 1](m, value * 5);
}

TRACED uint64_t stage_two(struct machine *m, uint64_t value)
{
	return stage_three(m, value + 7);
}

TRACED uint64_t op_chain(struct machine *m)
{
	return stage_two(m, sample__random(&m->random) & 0xff);
}

TRACED uint64_t op_indirect(struct machine *m)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < 4; i++)
		sum += m->finish[i & 1](m, i);
	return sum;
}

TRACED uint64_t op_plt(struct machine *m)
{
	char text[] = "1234,56";

	text[0] = (char)('1' + m->random % 9);
	return strtoul(text, NULL, 10) + strcspn(text, ",");
}

/* Sum over a binary tree that is stored as a heap. */
TRACED uint64_t tree_sum(uint64_t node, uint64_t size)
{
	if (node >= size)
		return 0;
	return node + tree_sum(2 * node + 1, size) + tree_sum(2 * node + 2, size);
}

TRACED uint64_t count_odd(uint64_t n);

TRACED uint64_t count_even(uint64_t n)
{
	return n ? 1 + count_odd(n - 1) : 0;
}

TRACED uint64_t count_odd(uint64_t n)
{
	return n ? 3 + count_even(n - 1) : 0;
}

TRACED uint64_t op_recurse(struct machine *m)
{
	return tree_sum(0, 15) + count_even(m->random % 16);
}

TRACED int compare_keys(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

TRACED void fill_keys(struct machine *m, uint64_t *keys, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		keys[i] = sample__random(&m->random);
}

TRACED uint64_t op_sort(struct machine *m)
{
	uint64_t keys[KEYS];

	fill_keys(m, keys, KEYS);
	qsort(keys, KEYS, sizeof(keys[0]), compare_keys);
	return keys[0];
}

/* One instruction each, however many bytes they move. */
TRACED uint64_t op_copy(struct machine *m)
{
	void *to = m->to, *from = m->from;
	size_t bytes = sizeof(m->to), words = sizeof(m->from) / 8;

	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
	to = m->from;
	__asm__ volatile("rep stosq" : "+D"(to), "+c"(words) : "a"(m->random) : "memory");
	return (uint64_t)m->to[3];
}

TRACED uint64_t op_move(struct machine *m)
{
	size_t bytes = 8 + m->random % 24;

	memmove(m->to + 8, m->to, bytes);
	memset(m->from, (int)bytes, bytes);
	return bytes;
}

/* A jump table whose cases are tail calls. */
TRACED uint64_t dispatch(struct machine *m, uint64_t operation)
{
	switch (operation % OPERATIONS) {
	case 0:
		return op_chain(m);
	case 1:
		return op_indirect(m);
	case 2:
		return op_plt(m);
	case 3:
		return op_recurse(m);
	case 4:
		return op_sort(m);
	case 5:
		return op_copy(m);
	default:
		return op_move(m);
	}
}

__attribute__((cold)) TRACED void rebuild_index(struct machine *m)
{
	fill_keys(m, m->index, m->options.table_size);
	qsort(m->index, m->options.table_size, sizeof(m->index[0]), compare_keys);
	m->index_mark = INDEX_GOOD;
}

__attribute__((cold)) TRACED void reload_plugin(struct machine *m)
{
	void *plugin = dlopen("libscale.so", RTLD_LAZY | RTLD_LOCAL);
	long (*scale_value)(const char *);

	if (!plugin)
		return;
	scale_value = (long (*)(const char *))dlsym(plugin, "scale_value");
	if (scale_value)
		m->sum += (uint64_t)scale_value("14");
	dlclose(plugin);
}

TRACED void use_index(struct machine *m)
{
	if (__builtin_expect(m->index_mark != INDEX_GOOD, 0)) {
		m->sum ^= m->index_mark;
		rebuild_index(m);
		if (m->options.done % (RELOAD_EVERY * m->options.slow_every) == 0)
			reload_plugin(m);
	}
	m->sum += m->index[m->random % m->options.table_size];
}

TRACED void one_iter(struct machine *m)
{
	for (uint64_t i = 0; i < m->options.batch; i++)
		m->sum += dispatch(m, m->options.done + i);
	if (m->options.done % m->options.slow_every == 0)
		m->index_mark = m->options.done;
	use_index(m);
}

int main(int argc, char **argv)
{
	static const struct sample native = {
		.slow_every = 1000, .table_size = 200000, .batch = 400, .pause_ns = 1000000};
	static const struct sample small = {.slow_every = 25, .table_size = 50, .batch = 2};
	struct machine m = {.random = 88172645463325252u, .finish = finishes, .index_mark = 1};

	sample__init(&m.options, argv, &native, &small);
	m.index = calloc(m.options.table_size, sizeof(m.index[0]));
	if (!m.index)
		abort();
	rebuild_index(&m);
	sample__announce();
	while (sample__next(&m.options))
		one_iter(&m);
	sample__fini(&m.options);
	free(m.index);
	return 0;
}
