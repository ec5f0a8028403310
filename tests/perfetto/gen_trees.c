// SPDX-License-Identifier: MIT
/*
 * Writes made-up call trees twice: as a trace file, for Perfetto to read, and as the text that
 * reading it should give.
 *
 *   gen_trees SCENARIO CALLS TRACE [TEXT [UNWINDS]]
 *
 * UNWINDS are lines "start from-name to-start to-name end", in the order of their begins.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/branch.h"
#include "mtbpf_shared.h"
#include "trace/text.h"
#include "trace/trace_writer.h"
#include "util/cleanup.h"
#include "util/clock.h"

#define BASE_NS	  1000000000000000
#define FIRST_TID 2000
/* What trace_writer.c gives to the first process's hits, for all to see in the file. */
#define FIRST_HIT_TID 0x7fff0000
#define N_HITS	      500
#define LONG_NAME     65536

struct scenario {
	const char *name;
	unsigned int threads, functions, max_depth;
	unsigned int push_percent;   /* of the steps on the way down; the others return */
	unsigned int same_percent;   /* of the steps take no time */
	unsigned int unwind_percent; /* of the returns leave several calls at once */
	bool weird;
};

static const struct scenario scenarios[] = {
	{"random", 4, 2000, 60, 50, 60, 0, false}, /* many events at one time */
	{"calm", 4, 2000, 30, 50, 0, 0, false},
	{"deep", 4, 100, 700, 70, 50, 0, false},      /* deeper than the importer takes */
	{"names", 4, 40000, 40, 50, 30, 0, false},    /* more than the string table holds */
	{"threads", 300, 2000, 20, 50, 50, 0, false}, /* more than the thread table holds */
	{"weird", 2, 16, 20, 50, 50, 0, true},
	{"unwinds", 4, 2000, 30, 50, 60, 10, false},
};

static char long_name[LONG_NAME + 1];
static const char *const weird_names[] = {
	"",
	"\n",
	"two\nlines\tand tabs",
	"\x1b[31mred\x1b[0m",
	"\xff\xfe\x80",
	"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x90\xab",
	"cut \xe2\x82",
	"overlong \xc0\xaf, surrogate \xed\xa0\x80",
	"c1 \xc2\x9b"
	"31m",
	"del \x7f",
	"'quoted' \"twice\" \\ back",
	"std::map<std::string, int>::operator[](std::string&&)",
	" blanks around ",
	"%s%n%d",
	"</script>",
	long_name,
};

/* The real one needs an ELF file; here every other function has debug info. */
bool function__source(const struct function *function, struct source_place *place)
{
	*place = (struct source_place){"/src/generated.c", (unsigned int)function->vaddr / 64};
	return function->vaddr % 128 == 0;
}

/* Numerical Recipes' LCG: the same trees everywhere. */
static unsigned int random_below(unsigned int bound)
{
	static uint64_t state = 1;

	state = state * 6364136223846793005 + 1442695040888963407;
	return (unsigned int)((state >> 33) % bound);
}

static const char *function_name(const struct scenario *scenario, unsigned int i)
{
	char *name = NULL;

	if (scenario->weird)
		return strdup(weird_names[i]);
	if (asprintf(&name, "function_%u(int, char const*)", i) < 0)
		return NULL;
	return name;
}

static struct function *make_functions(const struct scenario *scenario)
{
	struct function *functions = calloc(scenario->functions, sizeof(*functions));

	for (unsigned int i = 0; functions && i < scenario->functions; i++) {
		functions[i].name = function_name(scenario, i);
		functions[i].module = i % 3 ? "main" : "libfoo.so.1";
		functions[i].vaddr = 64 * i;
		functions[i].size = 64;
	}
	return functions;
}

static void free_functions(struct function *functions, unsigned int n)
{
	for (unsigned int i = 0; functions && i < n; i++)
		free((char *)(uintptr_t)functions[i].name);
	free(functions);
}

static void fill_call(struct call *call, const struct function *function)
{
	static const uint8_t kinds[] = {CALL_SIGNAL, CALL_SYSCALL, CALL_UNTRACED, CALL_GAP,
					CALL_INLINED};
	static const struct inlined inlined = {.call = {"main.c", 7}};

	call->kind = random_below(20) ? CALL_FUNCTION : kinds[random_below(5)];
	call->reason = call->kind == CALL_GAP ? GAP_OVERFLOW : GAP_NONE;
	call->flags = (uint8_t)(random_below(10) ? 0 : 1 << random_below(4));
	if (call->kind != CALL_FUNCTION && call->kind != CALL_SIGNAL && call->kind != CALL_INLINED)
		return;
	call->function = function;
	call->entry_ip = 0x400000 + function->vaddr;
	if (call->kind == CALL_INLINED) {
		call->inlined = &inlined;
		return;
	}
	call->call_ip = 0x400000 + random_below(2000) * 16;
	call->self_insns = random_below(1000);
}

/* From the call that runs, which is one of those that end, to one that it had been called by. */
static bool add_unwind(struct call_tree *tree, const uint32_t *open, uint32_t depth,
		       uint32_t to_depth, uint64_t now_ns)
{
	struct unwind *last = tree->unwinds.n ? &tree->unwinds.v[tree->unwinds.n - 1] : NULL;
	uint32_t from = open[depth - 1], to = open[to_depth - 1];
	struct unwind *unwind;

	/* Where one has landed that goes on, or a new one. */
	if (last && last->to == from) {
		last->to = to;
		last->end_ns = now_ns;
		return true;
	}
	unwind = VEC_PUSH(&tree->unwinds);
	if (!unwind)
		return false;
	*unwind = (struct unwind){.start_ns = tree->calls.v[from].start_ns,
				  .end_ns = now_ns,
				  .from = from,
				  .to = to,
				  .left_by = LEFT_BY_THROW};
	return true;
}

/* The depth that is left. */
static uint32_t leave(const struct scenario *scenario, struct call_tree *tree, const uint32_t *open,
		      uint32_t depth, uint64_t now_ns)
{
	bool is_unwind = depth > 1 && random_below(100) < scenario->unwind_percent;
	uint32_t left = is_unwind ? 1 + random_below(depth - 1) : depth - 1;

	if (is_unwind && !add_unwind(tree, open, depth, left, now_ns))
		exit(1);
	while (depth > left) {
		struct call *call = &tree->calls.v[open[--depth]];

		call->end_ns = now_ns;
		if (!is_unwind)
			continue;
		call->flags |= CALL_CUT_SHORT;
		call->left_by = LEFT_BY_THROW;
	}
	return left;
}

static int compare_unwinds(const void *a, const void *b)
{
	const struct unwind *x = a, *y = b;

	return (x->from > y->from) - (x->from < y->from);
}

/* A random walk of calls and returns: its calls come in pre-order by themselves. */
static bool make_tree(const struct scenario *scenario, const struct function *functions,
		      size_t n_calls, struct call_tree *tree)
{
	_cleanup_free_ uint32_t *open = calloc(scenario->max_depth + 1, sizeof(*open));
	const unsigned int percent[] = {100 - scenario->push_percent, scenario->push_percent};
	uint64_t now_ns = BASE_NS;
	uint32_t depth = 0;
	bool down = true;

	while (open && (tree->calls.n < n_calls || depth)) {
		bool push;

		if (!depth || depth == scenario->max_depth)
			down = !depth;
		push = tree->calls.n < n_calls && depth < scenario->max_depth &&
		       random_below(100) < percent[down];
		if (random_below(100) >= scenario->same_percent)
			now_ns += 1 + random_below(50);
		if (push) {
			struct call *call = VEC_PUSH(&tree->calls);

			if (!call)
				return false;
			*call = (struct call){.start_ns = now_ns, .depth = depth};
			call->parent = depth ? open[depth - 1] : CALL_NO_PARENT;
			fill_call(call, &functions[random_below(scenario->functions)]);
			open[depth++] = (uint32_t)tree->calls.n - 1;
		} else if (depth) {
			depth = leave(scenario, tree, open, depth, now_ns);
		}
	}
	if (tree->unwinds.n)
		qsort(tree->unwinds.v, tree->unwinds.n, sizeof(*tree->unwinds.v), compare_unwinds);
	return open;
}

static pid_t pid_of(unsigned int thread)
{
	return 1000 + (pid_t)(thread % 2);
}

/* Hits of the first process; between its trees, so that the thread table is asked in turns. */
static void write_hit(struct trace_writer *writer, const struct function *function, unsigned int i)
{
	struct hit_mark hit = {
		.time_ns = BASE_NS + 1000 * (i + 1),
		.value_ns = 600,
		.sequence = i + 1,
		.reason = MT_HIT_DELAY,
		.pid = pid_of(0),
		.tid = FIRST_TID,
		.ip = 0x400000 + function->vaddr,
		.function = function,
	};

	trace_writer__hit(writer, &hit);
}

static void print_hits(FILE *text, const char *name)
{
	for (unsigned int i = 0; i < N_HITS; i++)
		fprintf(text, "%d 0 %u %u hit %s\n", FIRST_HIT_TID, 1000 * (i + 1) - 600,
			1000 * (i + 1), name);
}

static void print_unwinds(FILE *out, const struct call_tree *tree)
{
	for (size_t i = 0; i < tree->unwinds.n; i++) {
		const struct unwind *unwind = &tree->unwinds.v[i];
		const struct call *from = &tree->calls.v[unwind->from];
		const struct call *to = &tree->calls.v[unwind->to];

		fprintf(out, "%" PRIu64 " %s %" PRIu64 " %s %" PRIu64 "\n",
			unwind->start_ns - BASE_NS, call__name(from), to->start_ns - BASE_NS,
			call__name(to), unwind->end_ns - BASE_NS);
	}
}

struct expectation {
	FILE *text, *unwinds; /* NULL: not wanted */
};

static int write_trees(const struct scenario *scenario, const struct function *functions,
		       size_t n_calls, struct trace_writer *writer,
		       const struct expectation *expected)
{
	uint64_t spent_ns = 0;
	unsigned int n_hits = 0;

	for (unsigned int t = 0; t < scenario->threads; t++) {
		char comm[32];
		struct call_tree tree = {.pid = pid_of(t), .tid = FIRST_TID + (pid_t)t};
		uint64_t start_ns;

		snprintf(comm, sizeof(comm), "worker %u", t);
		memcpy(tree.comm, comm, sizeof(tree.comm));
		if (!make_tree(scenario, functions, n_calls / scenario->threads, &tree))
			return -1;
		start_ns = clock__now_ns();
		trace_writer__thread(writer, &tree);
		spent_ns += clock__now_ns() - start_ns;
		for (; n_hits < N_HITS * (t + 1) / scenario->threads; n_hits++)
			write_hit(writer, &functions[scenario->functions - 2], n_hits);
		if (expected->text && trace_text__tree(expected->text, &tree, BASE_NS))
			return -1;
		if (expected->unwinds)
			print_unwinds(expected->unwinds, &tree);
		VEC_FINI(&tree.calls);
		VEC_FINI(&tree.unwinds);
	}
	if (expected->text)
		print_hits(expected->text, functions[scenario->functions - 2].name);
	printf("%.2f M slices/s\n", 1e3 * (double)n_calls / (double)spent_ns);
	return 0;
}

static int generate(const struct scenario *scenario, size_t n_calls, const char *path,
		    const struct expectation *expected)
{
	struct trace_options options = {.base_ns = BASE_NS};
	struct trace_writer *writer = trace_writer__open(path, &options);
	struct function *functions = make_functions(scenario);
	struct trace_totals totals = {0};
	int err = -1;

	if (writer && functions) {
		trace_writer__process(writer, pid_of(0), "gen \"one\"");
		trace_writer__process(writer, pid_of(1), "gen two");
		err = write_trees(scenario, functions, n_calls, writer, expected);
	}
	if (writer)
		err |= trace_writer__close(writer, &totals);
	printf("%" PRIu64 " slices, %" PRIu64 " too deep, %" PRIu64 " bytes, %.1f a slice\n",
	       totals.slices, totals.too_deep, totals.bytes,
	       (double)totals.bytes / (double)(totals.slices ? totals.slices : 1));
	free_functions(functions, scenario->functions);
	return err;
}

int main(int argc, char **argv)
{
	_cleanup_fclose_ FILE *text = argc > 4 ? fopen(argv[4], "w") : NULL;
	_cleanup_fclose_ FILE *unwinds = argc > 5 ? fopen(argv[5], "w") : NULL;
	const struct expectation expected = {text, unwinds};

	memset(long_name, 'x', LONG_NAME);
	for (size_t i = 0; argc > 3 && i < sizeof(scenarios) / sizeof(scenarios[0]); i++) {
		if (!strcmp(argv[1], scenarios[i].name))
			return generate(&scenarios[i], strtoul(argv[2], NULL, 10), argv[3],
					&expected) != 0;
	}
	fprintf(stderr, "usage: gen_trees SCENARIO CALLS TRACE [TEXT [UNWINDS]]\n");
	return 2;
}
