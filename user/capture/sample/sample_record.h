/* SPDX-License-Identifier: MIT */
/* The records of a sampling ring, into a recording. */
#ifndef MTBPF_CAPTURE_SAMPLE_SAMPLE_RECORD_H
#define MTBPF_CAPTURE_SAMPLE_SAMPLE_RECORD_H

#include <linux/perf_event.h>
#include <stddef.h>
#include <stdint.h>

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

/* No CPU notes more. */
#define NOTED_CALLS_MAX 32

/*
 * Joins the calls that a CPU has noted (COUNTING_CALLS) with what frame pointers show.
 * ips[0 .. n_ips) is where it ran, and the return addresses that frame pointers led to. Becomes
 * where it ran; the call instructions that were noted, of `calls`, the latest first; and, from
 * where frame pointers lead on behind the last of these, the return addresses there. So a function
 * without a frame pointer does not hide its caller, and more calls than the CPU has room for are no
 * loss where there are frame pointers. Returns the new n_ips, `room` at most; *n_calls of them,
 * behind the first, are call instructions: 0 where none was noted.
 */
uint32_t noted_calls__join(const struct perf_branch_entry *calls, size_t n, uint64_t *ips,
			   uint32_t n_ips, uint32_t room, uint32_t *n_calls);

#endif
