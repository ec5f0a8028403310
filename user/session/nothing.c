// SPDX-License-Identifier: MIT
#include "session/nothing.h"

#include <errno.h>
#include <stdio.h>

#include "target/process.h"
#include "util/log.h"
#include "util/units.h"

/* So many periods without a stack: it hardly ran. Fewer tell nothing. */
#define PERIODS_MANY 100

/*
 * A thread that runs for less than a period, and does not go to sleep, is on no stack: samples do
 * not tell that nothing ran.
 */
char *nothing__format(char text[static NOTHING_TEXT_SIZE], const struct recording *rec, pid_t pid)
{
	char who[32] = "any of the processes", took[UNITS_TEXT_SIZE];

	if (pid)
		snprintf(who, sizeof(who), "process %d", pid);
	if (rec->sample_period_ns)
		snprintf(text, NOTHING_TEXT_SIZE,
			 "nothing was recorded: no stack of %s came in the %s that it was sampled",
			 who, units__format_duration(took, rec->sampled_ns));
	else if (pid)
		snprintf(text, NOTHING_TEXT_SIZE, "nothing was recorded: %s ran no instruction",
			 who);
	else
		snprintf(text, NOTHING_TEXT_SIZE,
			 "nothing was recorded: none of the processes ran an instruction");
	return text;
}

static void hint_at_sleep(pid_t pid)
{
	if (pid && process__stopped(pid))
		log__hint("it is stopped: 'kill -CONT %d' lets it run", pid);
	else if (pid)
		log__hint("was it asleep all the time? record again while it works");
	else
		log__hint("were they asleep all the time? record again while they work");
}

int nothing__refuse(const struct recording *rec, pid_t pid)
{
	char text[NOTHING_TEXT_SIZE], period[UNITS_TEXT_SIZE];
	bool is_short =
		rec->sample_period_ns && rec->sampled_ns < PERIODS_MANY * rec->sample_period_ns;

	log__error("%s", nothing__format(text, rec, pid));
	if (is_short && !(pid && process__stopped(pid)))
		log__hint("a stack is taken each %s that a thread runs, and where it goes to "
			  "sleep: let it be recorded for longer, or raise -sample-rate",
			  units__format_duration(period, rec->sample_period_ns));
	else
		hint_at_sleep(pid);
	return -ENOMSG;
}
