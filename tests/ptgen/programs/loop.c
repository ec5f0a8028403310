// SPDX-License-Identifier: MIT
/* A tight loop of conditional branches that no predictor would like, and a call now and then. */
#include <stdint.h>

static volatile uint64_t sink;

static __attribute__((noipa)) void store(uint64_t value)
{
	sink = value;
}

int main(void)
{
	uint64_t random = 0x9e3779b97f4a7c15, n = 0;

	for (;;) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		if (random & 1)
			n += 3;
		else
			__asm__ volatile("" : "+r"(n));
		if (random & 6)
			n ^= random;
		else
			store(n);
	}
}
