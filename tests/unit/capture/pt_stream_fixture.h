/* SPDX-License-Identifier: MIT */
/* A stream of packets, and the bytes that it has written. */
#ifndef MTBPF_TESTS_PT_STREAM_FIXTURE_H
#define MTBPF_TESTS_PT_STREAM_FIXTURE_H

#include "pt_fixture.h"

#include <stdlib.h>

struct fixture {
	struct pt_stream stream;
	struct pt_bytes out;
};

static inline int set_up(void **state)
{
	*state = calloc(1, sizeof(struct fixture));
	return *state ? 0 : -1;
}

static inline int tear_down(void **state)
{
	struct fixture *f = *state;

	VEC_FINI(&f->out.bytes);
	free(f);
	return 0;
}

#endif
