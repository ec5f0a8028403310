/* SPDX-License-Identifier: MIT */
/*
 * What Intel PT tells beside branches: values that a program writes (PTWRITE), and what a CPU does
 * to save power (Intel SDM vol. 3, "PTWRITE", "Power Event Tracing").
 */
#ifndef MTBPF_DECODE_PT_NOTE_H
#define MTBPF_DECODE_PT_NOTE_H

#include <stdint.h>
#include <sys/types.h>

#include "decode/branch.h"

enum pt_note_kind {
	PT_NOTE_NONE,
	PT_NOTE_PTWRITE, /* value: what the instruction wrote */
	PT_NOTE_MWAIT,	 /* value: its hints, and above 32 bits its extensions */
	PT_NOTE_PWRE,	 /* a C-state is entered: bits 0-3 sub-state, 4-7 state, 8 by hardware */
	PT_NOTE_EXSTOP,	 /* the CPU stopped executing; no value */
	PT_NOTE_PWRX,	 /* back: bits 0-3 deepest state, 4-7 last one, 8-11 wake reason */
};

struct pt_note {
	uint64_t time_ns;
	uint64_t ip; /* of the instruction; 0: not told */
	uint64_t value;
	pid_t pid, tid; /* 0: of the CPU, while no thread ran that is known */
	int cpu;	/* of a CPU's ring */
	uint8_t kind;	/* enum pt_note_kind */
};

/* An ENTRY_NOTE among a thread's branches. */
static inline struct pt_note branch__note(const struct branch *b, pid_t pid, pid_t tid)
{
	return (struct pt_note){.time_ns = b->time_ns,
				.ip = b->from,
				.value = b->to,
				.pid = pid,
				.tid = tid,
				.cpu = b->cpu,
				.kind = b->reason};
}

/* "ptwrite", as perf calls them. */
const char *pt_note__name(enum pt_note_kind kind);

#define PT_NOTE_TEXT_SIZE 80
/* With its value, for people: "ptwrite 0x2a". Returns text. */
const char *pt_note__format(const struct pt_note *event, char text[static PT_NOTE_TEXT_SIZE]);

#endif
