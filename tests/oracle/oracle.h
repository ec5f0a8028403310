/* SPDX-License-Identifier: MIT */
/* Branches as libipt's block decoder sees them: what ours are compared with. */
#ifndef MTBPF_TESTS_ORACLE_H
#define MTBPF_TESTS_ORACLE_H

#include "decode/decode.h"

/* The range that the stream was recorded in: filters of the trace are not in a recording. */
struct oracle_filter {
	uint64_t start, end; /* end 0: none */
};
extern struct oracle_filter oracle__filter;

/*
 * As decode__run() with all_branches. It goes on behind an error at the next PSB only, and tells
 * times from where libipt has read on to. -EINVAL where libipt refuses the stream's description.
 */
int oracle__run(const struct decode_request *request);

#endif
