// SPDX-License-Identifier: MIT
/*
 * A tight loop of conditional branches that no predictor would like, and a call now and then. It
 * includes nothing: the tests also compile it.
 */
static volatile unsigned long sink;

static __attribute__((noipa)) void store(unsigned long value)
{
	sink = value;
}

int main(void)
{
	unsigned long random = 0x9e3779b97f4a7c15, n = 0;

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
