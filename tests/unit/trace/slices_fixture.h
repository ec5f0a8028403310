/* SPDX-License-Identifier: MIT */
/* Slices of one function, written and read back. */
#ifndef MTBPF_TESTS_SLICES_FIXTURE_H
#define MTBPF_TESTS_SLICES_FIXTURE_H

#include "trace_fixture.h"

static const struct function main_function = {.name = "main", .module = "prog", .vaddr = 0x10};

/* Instead of user/target's, which needs an ELF file. */
bool function__source(const struct function *function, struct source_place *place)
{
	*place = (struct source_place){"/src/main.c", 12};
	return function == &main_function;
}

static inline struct call *add_call(struct output *output, uint32_t depth, uint64_t start,
				    uint64_t end)
{
	struct call *call = VEC_PUSH(&output->tree.calls);

	*call = (struct call){.start_ns = BASE + start,
			      .end_ns = BASE + end,
			      .depth = depth,
			      .function = &main_function};
	return call;
}

static inline struct fxt_reader *write_tree(struct output *output)
{
	trace_writer__thread(output->writer, &output->tree);
	return close_and_read(output);
}

#endif
