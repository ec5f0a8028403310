// SPDX-License-Identifier: MIT
#include "capture/recording/drops.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "capture/recording/recording.h"

static const struct {
	const char *name, *one, *many, *why;
} drops[DROPS] = {
	[DROP_TRIGGERS] = {"triggers", "trigger", "triggers", "the kernel's buffer was full"},
	[DROP_BUSY] = {"busy", "trigger", "triggers", "the snapshot before was still taken"},
	[DROP_UNMEASURED] = {"unmeasured", "hit", "hits",
			     "not measured: too many calls in each other, or no memory"},
	[DROP_MISSED] = {"missed", "hit", "hits", "the kernel did not run the trigger"},
	[DROP_THROTTLED] = {"throttled", "pause", "pauses",
			    "the kernel throttled the samples (a lower -sample-rate)"},
	[DROP_THREADS] = {"threads", "thread", "threads", "not recorded: there were too many"},
	[DROP_MAPPINGS] = {"mappings", "mapping", "mappings",
			   "not recorded: code in them shows as gaps"},
	[DROP_RECORDS] = {"records", "record", "records",
			  "of mappings and threads: code of those is not known"},
	[DROP_TRACE] = {"trace", "stretch", "stretches",
			"of a thread's trace, by the kernel's or the CPU's word"},
	[DROP_DISK] = {"disk", "thread", "threads", "not to its end: the disk took no more"},
	[DROP_LEFT_OUT] = {"left_out", "byte", "bytes",
			   "of trace, the oldest: to decode them takes more than -max-memory"},
};

const char *drop__name(enum drop drop)
{
	return drops[drop].name;
}

const char *drop__format(char buf[static DROP_TEXT_SIZE], enum drop drop, uint64_t n)
{
	const char *what = n == 1 ? drops[drop].one : drops[drop].many;
	const char *colon = strncmp(drops[drop].why, "of ", 3) ? ": " : " ";

	snprintf(buf, DROP_TEXT_SIZE, "%" PRIu64 " %s%s%s", n, what, colon, drops[drop].why);
	return buf;
}

uint64_t recording__drops(const struct recording *rec, uint64_t counts[static DROPS])
{
	uint64_t sum = 0;

	memcpy(counts, rec->drops, sizeof(rec->drops));
	for (size_t i = 0; i < rec->losses.n; i++) {
		counts[DROP_RECORDS] += rec->losses.v[i].records;
		counts[DROP_TRACE] += rec->losses.v[i].aux_flags != 0;
	}
	for (int i = 0; i < DROPS; i++)
		sum += counts[i];
	return sum;
}
