// SPDX-License-Identifier: MIT
/* Streams of the unit tests' code. */
#include "decode_fixture.h"

#include "seeds.h"

/* The PSB+ that the target writes itself. */
#define PSB_PLUS_MAX 64

static void write_seed(const char *name, struct traced *t)
{
	uint8_t seed[3 + CODE_SIZE + 8192] = {0};
	const uint8_t *pt = t->out.bytes.v, *end = pt + t->out.bytes.n, *psbend;
	size_t n = 3 + CODE_SIZE - 1;

	/* Tracing is off at the first PSB, and the code is all of it but the last NOP. */
	seed[0] = 1;
	seed[1] = (CODE_SIZE - 1) & 0xff;
	seed[2] = (CODE_SIZE - 1) >> 8;
	fill_code(seed + 3);
	psbend = memmem(pt, PSB_PLUS_MAX, "\x02\x23", 2);
	assert_non_null(psbend);
	assert_true((size_t)(end - psbend - 2) <= sizeof(seed) - n);
	memcpy(seed + n, psbend + 2, (size_t)(end - psbend - 2));
	n += (size_t)(end - psbend - 2);
	seed__write("decode", name, seed, n);
}

void seeds__decode(void)
{
	static const struct {
		const char *name;
		uint32_t psb_period;
		uint64_t tsc_interval;
		bool compress;
		unsigned int runs;
	} kinds[] = {
		{"plain", NO_PSB, NO_TSC, true, 2}, {"full", NO_PSB, 10, false, 3},
		{"psbs", 64, 10, true, 6},	    {"many-psbs", 1, 1, true, 4},
		{"long", 256, NO_TSC, true, 40},
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct traced t;

		traced__init(&t, kinds[i].psb_period, kinds[i].tsc_interval, kinds[i].compress);
		traced__run(&t, kinds[i].runs);
		write_seed(kinds[i].name, &t);
		traced__fini(&t);
	}
}
