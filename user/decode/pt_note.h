/* SPDX-License-Identifier: MIT */
/*
 * Intel PT packets that do not tell branches: values that a program writes (PTWRITE), power events,
 * and the events that interrupted a thread (Intel SDM vol. 3, "PTWRITE", "Power Event Tracing",
 * "Event Trace").
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
	PT_NOTE_PWRX,	 /* C-state exit: bits 0-3 deepest state, 4-7 last, 8-11 wake reason */
	PT_NOTE_PFA,	 /* the address of a page fault, whose PT_NOTE_CFE follows */
	PT_NOTE_VMXQ,	 /* a VM exit's qualification; its PT_NOTE_CFE follows */
	PT_NOTE_VMXR,	 /* a VM exit's reason; its PT_NOTE_CFE follows */
	PT_NOTE_CFE,	 /* control flow changed: bits 0-4 enum cfe_type, 8-15 vector */
	PT_NOTE_KINDS,
};

/* The type in a CFE packet. */
enum cfe_type {
	CFE_INTR = 1, /* interrupt, exception or software interrupt: it has a vector */
	CFE_IRET,
	CFE_SMI,
	CFE_RSM, /* back from an SMI */
	CFE_SIPI,
	CFE_INIT,
	CFE_VMENTRY,
	CFE_VMEXIT,
	CFE_VMEXIT_INTR, /* VM exit because of an interrupt, which has a vector */
	CFE_SHUTDOWN,
	CFE_UINTR = 12, /* user interrupt */
	CFE_UIRET,
	CFE_TYPES,
};

/*
 * Eight bits name the event that took a thread out of its code. 0: unknown. Below CFE_TYPES an enum
 * cfe_type; from PT_EVENT_EXCEPTION on the exceptions, and from PT_EVENT_SYSTEM on Linux' own
 * interrupts.
 */
#define PT_EVENT_EXCEPTION  32 /* + vector, 0 to 31 */
#define PT_EVENT_PAGE_FAULT (PT_EVENT_EXCEPTION + 14)
#define PT_EVENT_SYSTEM	    64 /* + vector - 0xe0 */
#define PT_EVENT_END	    96

/*
 * The event of a PT_NOTE_CFE's value; 0 for IRET, RSM and UIRET, which end one, for int 0x80, and
 * for unknown types.
 */
uint8_t pt_event__of(uint64_t cfe);
/* "[page fault]", "[timer interrupt]", "[VM exit]"; NULL for 0. */
const char *pt_event__name(uint8_t event);
#define PT_EVENT_TEXT_SIZE 80
/* Like pt_event__name(), with the address of a page fault: "[page fault 0x7f00]". Returns text. */
char *pt_event__format(uint8_t event, uint64_t address, char text[static PT_EVENT_TEXT_SIZE]);
/* Returns the event that such a text names; 0: none. */
uint8_t pt_event__parse(const char *text);

struct pt_note {
	uint64_t time_ns;
	uint64_t ip; /* of the instruction; 0: not told */
	uint64_t value;
	pid_t pid, tid;	  /* 0: a note of the CPU, while no known thread ran */
	int cpu;	  /* the ring's CPU; valid only if it is a CPU's ring */
	uint8_t kind;	  /* enum pt_note_kind */
	uint64_t address; /* PT_NOTE_CFE: of a page fault; 0: not told */
	const char *in;	  /* name of the function at ip; NULL: unknown */
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
/* "ptwrite", "power", "event". */
const char *pt_note__category(enum pt_note_kind kind);

#define PT_NOTE_TEXT_SIZE 80
/* Formats the note with its value: "ptwrite 0x2a", "[page fault 0x7f00]". Returns text. */
const char *pt_note__format(const struct pt_note *event, char text[static PT_NOTE_TEXT_SIZE]);

#endif
