// SPDX-License-Identifier: MIT
/* The library that nofp's calls go through, without frame pointers as distributions have them. */
#include "../sample.h"

uint64_t relay_outer(uint64_t (*function)(uint64_t), uint64_t value);
uint64_t relay_inner(uint64_t (*function)(uint64_t), uint64_t value);

/* Exported, so that the call goes through the PLT. */
TRACED uint64_t relay_inner(uint64_t (*function)(uint64_t), uint64_t value)
{
	return function(value + 1) * 3;
}

TRACED uint64_t relay_outer(uint64_t (*function)(uint64_t), uint64_t value)
{
	volatile uint64_t scratch[40];

	scratch[value % 40] = value;
	return relay_inner(function, scratch[value % 40]) + scratch[value % 40];
}
