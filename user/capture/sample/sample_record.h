/* SPDX-License-Identifier: MIT */
/* The records of a sampling ring, into a recording. */
#ifndef MTBPF_CAPTURE_SAMPLE_SAMPLE_RECORD_H
#define MTBPF_CAPTURE_SAMPLE_SAMPLE_RECORD_H

#include "capture/recording/recording.h"

/* Which events' records they are. */
struct sample_record_ids {
	/* PERF_SAMPLE_IDENTIFIER of the events that sample at switches and page faults. */
	uint64_t switches, minor_faults, major_faults;
	uint64_t calls;	   /* of the one whose samples have the calls that the CPU noted; 0: none */
	uint64_t until_ns; /* later ones are left out, and counted */
	size_t late;	   /* samples left out */
};

/* One record, of `size` bytes; others than samples, switches and throttling are nothing. 0 or
 * -ENOMEM. */
int sample_record__add(struct sample_record_ids *ids, struct recording *rec, const void *record,
		       size_t size);

#endif
