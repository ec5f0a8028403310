// SPDX-License-Identifier: MIT
#include "decode/tsc.h"

#define TSC_BITS 56

uint64_t tsc__extend(uint64_t tsc, uint64_t reference)
{
	uint64_t span = 1ull << TSC_BITS;
	uint64_t full = (reference & ~(span - 1)) | (tsc & (span - 1));

	if (full > reference && full - reference > span / 2 && full >= span)
		full -= span;
	else if (full < reference && reference - full > span / 2)
		full += span;
	return full;
}
