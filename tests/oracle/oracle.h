/* SPDX-License-Identifier: MIT */
/* Branches as libipt's block decoder sees them: what ours are compared with. */
#ifndef MTBPF_TESTS_ORACLE_H
#define MTBPF_TESTS_ORACLE_H

#include "decode/decode.h"

/*
 * As decode__run() with all_branches. It goes on behind an error at the next PSB only, and tells
 * times from where libipt has read on to. -EINVAL where libipt refuses the stream's description.
 */
int oracle__run(const struct decode_request *request);

#endif
