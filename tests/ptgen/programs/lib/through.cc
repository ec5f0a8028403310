// SPDX-License-Identifier: MIT
#include "through.h"

namespace
{

volatile unsigned cleaned;

struct cleaner {
	~cleaner()
	{
		cleaned = cleaned + 1;
	}
};

} // namespace

void through_library(void (*back)(unsigned), unsigned depth)
{
	cleaner c;

	if (depth)
		through_library(back, depth - 1);
	else
		back(depth);
	__asm__ volatile(""); /* no tail call */
}
