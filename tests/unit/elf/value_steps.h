/* SPDX-License-Identifier: MIT */
/* The steps of a value: "->name", ".name", "[i]". */
#ifndef MTBPF_TESTS_VALUE_STEPS_H
#define MTBPF_TESTS_VALUE_STEPS_H

#include "target/elf/arguments.h"

#define ARROW(text)                                                                                \
	{                                                                                          \
		.kind = STEP_ARROW, .name = text                                                   \
	}
#define DOT(text)                                                                                  \
	{                                                                                          \
		.kind = STEP_DOT, .name = text                                                     \
	}
#define AT(i)                                                                                      \
	{                                                                                          \
		.kind = STEP_INDEX, .number = (i)                                                  \
	}

#endif
