// SPDX-License-Identifier: MIT
/*
 * Decodes recordings with the oracle and with ours, in one go and cut at every PSB, and compares
 * every branch. Prints the first that differs. The exit code is 0 where none does.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "each_branch.h"
#include "oracle/oracle.h"

#define BATCH 1024

struct comparison {
	FILE *oracle; /* its branches, from a process of its own: they need not fit in memory */
	struct branch batch[BATCH];
	size_t n, at;
	uint64_t compared;
	bool differs;
};

static int write_branch(void *ctx, const struct branch *b)
{
	return fwrite(b, sizeof(*b), 1, ctx) == 1 ? 0 : -1;
}

TAKE_EACH(write_branches, write_branch)

static const struct branch *next_of_oracle(struct comparison *c)
{
	if (c->at == c->n) {
		c->n = fread(c->batch, sizeof(c->batch[0]), BATCH, c->oracle);
		c->at = 0;
	}
	return c->at < c->n ? &c->batch[c->at++] : NULL;
}

static void print(const char *who, const struct branch *b)
{
	if (!b) {
		printf("  %s: nothing\n", who);
		return;
	}
	printf("  %s: %s %" PRIx64 " -> %" PRIx64 " len %u, %u insns, at %" PRIu64 "\n", who,
	       branch_kind__name((enum branch_kind)b->kind), b->from, b->to, b->len, b->n_insns,
	       b->time_ns);
}

static bool same(const struct branch *a, const struct branch *b)
{
	return a->kind == b->kind && a->from == b->from && a->to == b->to && a->len == b->len &&
	       a->n_insns == b->n_insns && a->reason == b->reason;
}

/* libipt forgets where the branch right before an overflow went: its instructions are the gap's. */
static bool forgets(const struct branch *theirs, const struct branch *ours)
{
	return theirs->kind == BRANCH_GAP && theirs->reason == GAP_OVERFLOW &&
	       ours->kind <= BRANCH_COND && ours->n_insns == theirs->n_insns;
}

static int compare_branch(void *ctx, const struct branch *b)
{
	struct comparison *c = ctx;
	const struct branch *theirs = next_of_oracle(c);

	if (theirs && forgets(theirs, b)) {
		c->batch[--c->at].n_insns = 0;
		return 0;
	}
	if (theirs && same(theirs, b)) {
		c->compared++;
		return 0;
	}
	printf("branch %" PRIu64 "\n", c->compared);
	print("oracle", theirs);
	print("ours", b);
	c->differs = true;
	return -1;
}

TAKE_EACH(compare_branches, compare_branch)

static int run(int (*decode)(const struct decode_request *), const struct recording *rec,
	       const struct rec_aux *aux, branches_fn take, void *ctx, unsigned int jobs)
{
	struct images *images = images__new(rec);
	struct code_map *map = code_map__new();
	struct decode_totals totals = {0};
	int err = decode(&(struct decode_request){.rec = rec,
						  .aux = aux,
						  .images = images,
						  .map = map,
						  .take = take,
						  .ctx = ctx,
						  .totals = &totals,
						  .all_branches = true,
						  .jobs = jobs,
						  .region_size = jobs > 1 ? 1 : 0});

	code_map__free(map);
	images__free(images);
	return err;
}

static FILE *start_oracle(const struct recording *rec, const struct rec_aux *aux, pid_t *pid)
{
	int ends[2];

	if (pipe(ends))
		return NULL;
	*pid = fork();
	if (*pid == 0) {
		FILE *out = fdopen(ends[1], "w");

		close(ends[0]);
		run(oracle__run, rec, aux, write_branches, out, 1);
		fclose(out);
		_exit(0);
	}
	close(ends[1]);
	return fdopen(ends[0], "r");
}

static bool compare_thread(const struct recording *rec, const struct rec_aux *aux,
			   unsigned int jobs, uint64_t *total)
{
	static struct comparison c;
	pid_t pid;

	c = (struct comparison){.oracle = start_oracle(rec, aux, &pid)};
	if (!c.oracle)
		return false;
	run(decode__run, rec, aux, compare_branches, &c, jobs);
	if (!c.differs && next_of_oracle(&c)) {
		c.differs = true;
		printf("branch %" PRIu64 "\n", c.compared);
		print("oracle", &c.batch[c.at - 1]);
		print("ours", NULL);
	}
	fclose(c.oracle);
	waitpid(pid, NULL, 0);
	*total += c.compared;
	if (c.differs)
		printf("thread %d, %u jobs: differs\n", aux->tid, jobs);
	return !c.differs;
}

int main(int argc, char **argv)
{
	bool same_all = argc > 1;

	for (int i = 1; i < argc; i++) {
		struct recording rec;
		uint64_t total = 0;

		recording__init(&rec);
		if (recording__read(&rec, argv[i]))
			return 2;
		for (size_t k = 0; k < rec.aux.n; k++)
			for (unsigned int jobs = 1; jobs <= 3; jobs += 2)
				same_all &= compare_thread(&rec, &rec.aux.v[k], jobs, &total);
		printf("%s: %" PRIu64 " branches are the same\n", argv[i], total);
		same_all &= total > 0;
		recording__fini(&rec);
	}
	return same_all ? 0 : 1;
}
