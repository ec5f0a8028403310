/* SPDX-License-Identifier: MIT */
/* What a capture knows that it has missed: counted by kind, kept with the recording, said. */
#ifndef MTBPF_CAPTURE_RECORDING_DROPS_H
#define MTBPF_CAPTURE_RECORDING_DROPS_H

#include <stdint.h>

enum drop {
	DROP_TRIGGERS,	 /* passed the threshold, but the trigger's ring buffer was full */
	DROP_BUSY,	 /* passed it while the snapshot before was taken */
	DROP_UNMEASURED, /* hits whose delay or duration is not known: no room for it */
	DROP_MISSED,	 /* times that the kernel did not run a program of the trigger */
	DROP_THROTTLED,	 /* times that the kernel paused sampling */
	DROP_THREADS,	 /* that are not recorded */
	DROP_MAPPINGS,	 /* likewise */
	DROP_RECORDS,	 /* of mappings and threads, in the kernel's buffers */
	DROP_TRACE,	 /* stretches of a thread's trace */
	DROP_DISK,	 /* threads of which the disk did not take all of the trace */
	DROP_LEFT_OUT,	 /* bytes of trace that there is no memory to decode; never kept */
	DROPS
};

/* In meta.json: "triggers". */
const char *drop__name(enum drop drop);

#define DROP_TEXT_SIZE 128
/* "3 triggers: the kernel's buffer was full". Returns buf. */
const char *drop__format(char buf[static DROP_TEXT_SIZE], enum drop drop, uint64_t n);

struct recording;
/* All of a recording, those included that its losses tell. The sum. */
uint64_t recording__drops(const struct recording *rec, uint64_t counts[static DROPS]);

#endif
