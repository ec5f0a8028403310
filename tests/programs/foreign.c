// SPDX-License-Identifier: MIT
/* A program built for magic-trace: it calls a function of that name where a trace is to stop. */
#include "sample.h"

void magic_trace_stop_indicator(void);
TRACED void magic_trace_stop_indicator(void)
{
}

TRACED void one_iter(void)
{
	sample__pause(50000);
}

int main(int argc, char **argv)
{
	static const struct sample scale = {.slow_every = 1, .table_size = 1, .pause_ns = 1000000};
	struct sample options;

	sample__init(&options, argv, &scale, &scale);
	sample__announce();
	while (sample__next(&options)) {
		one_iter();
		magic_trace_stop_indicator();
	}
	return 0;
}
