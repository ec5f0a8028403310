/* SPDX-License-Identifier: MIT */
#ifndef MTBPF_UTIL_OPTIONS_INTERNAL_H
#define MTBPF_UTIL_OPTIONS_INTERNAL_H

#include "util/options.h"

/* What messages and help call its argument. */
const char *option__arg_name(const struct option_spec *spec);

#endif
