/* SPDX-License-Identifier: MIT */
/* The checks of a selftest: what is recorded for each, and what its trace must show. */
#ifndef MTBPF_SELFTEST_CHECKS_H
#define MTBPF_SELFTEST_CHECKS_H

#include "selftest/checks_common.h"

/* Makes all checks of one source that the options ask for. */
void checks__run(struct checks *checks, enum selftest_source source);

#endif
