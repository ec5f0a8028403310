/* SPDX-License-Identifier: MIT */
#ifndef MTBPF_CLI_OPTIONS_INTERNAL_H
#define MTBPF_CLI_OPTIONS_INTERNAL_H

#include "cli/options.h"

/* What messages and help call its argument. */
const char *option__arg_name(const struct option_spec *spec);

#endif
