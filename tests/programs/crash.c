// SPDX-License-Identifier: MIT
/*
 * Applies patches to a few records, and ends while it is traced: after -n iterations, or after
 * SIGUSR1, a patch points nowhere and write_field() faults; with -exit the program exits with
 * status 7 instead, from as deep.
 */
#include <signal.h>

#include "sample.h"

enum { RECORDS = 8, FIELDS = 4, EXIT_STATUS = 7 };

struct patch {
	uint64_t *field;
	uint64_t value;
};

struct database {
	uint64_t fields[RECORDS][FIELDS];
	struct patch patches[RECORDS];
	bool exit_early;
};

TRACED void write_field(uint64_t *field, uint64_t value)
{
	*field = value;
}

TRACED void apply_patch(struct database *db, const struct patch *patch)
{
	if (!patch->field && db->exit_early)
		exit(EXIT_STATUS);
	write_field(patch->field, patch->value);
}

TRACED void make_patches(struct database *db, uint64_t iteration, bool last)
{
	for (uint64_t i = 0; i < RECORDS; i++) {
		db->patches[i].field = &db->fields[i][iteration % FIELDS];
		db->patches[i].value = iteration * 31 + i;
	}
	if (last)
		db->patches[RECORDS / 2].field = NULL;
}

TRACED void one_iter(struct database *db, uint64_t iteration, bool last)
{
	make_patches(db, iteration, last);
	for (int i = 0; i < RECORDS; i++)
		apply_patch(db, &db->patches[i]);
}

static volatile sig_atomic_t is_told_to_end;

static void on_usr1(int signal)
{
	(void)signal;
	is_told_to_end = 1;
}

int main(int argc, char **argv)
{
	static const struct sample native = {
		.iterations = 2000, .slow_every = 1, .table_size = 1, .pause_ns = 1000000};
	static const struct sample small = {.iterations = 50, .slow_every = 1, .table_size = 1};
	struct database db = {0};
	struct sample options;

	sample__init(&options, argv, &native, &small);
	db.exit_early = options.exit_early;
	signal(SIGUSR1, on_usr1);
	sample__announce();
	while (sample__next(&options))
		one_iter(&db, options.done, is_told_to_end || options.done == options.iterations);
	return 0;
}
