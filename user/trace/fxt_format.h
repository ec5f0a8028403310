/* SPDX-License-Identifier: MIT */
/*
 * Numbers of Fuchsia's trace format (docs/reference/tracing/trace-format.md). A record is a row of
 * little-endian 64-bit words; the first holds the type in bits 0..3 and the size in words in 4..15.
 */
#ifndef MTBPF_TRACE_FXT_FORMAT_H
#define MTBPF_TRACE_FXT_FORMAT_H

/* "Magic number record". */
#define FXT_MAGIC 0x0016547846040010
/* A record counts its arguments in 4 bits. */
#define FXT_MAX_ARGS 15

enum fxt_record_type {
	FXT_RECORD_INITIALIZATION = 1,
	FXT_RECORD_STRING = 2,
	FXT_RECORD_THREAD = 3,
	FXT_RECORD_EVENT = 4,
	FXT_RECORD_KERNEL_OBJECT = 7,
	FXT_RECORD_LARGE = 15,
};

enum fxt_event_type {
	FXT_EVENT_INSTANT = 0,
	FXT_EVENT_COUNTER = 1,
	FXT_EVENT_BEGIN = 2,
	FXT_EVENT_END = 3,
	FXT_EVENT_COMPLETE = 4,
	FXT_EVENT_ASYNC_BEGIN = 5,
	FXT_EVENT_ASYNC_INSTANT = 6,
	FXT_EVENT_ASYNC_END = 7,
	FXT_EVENT_FLOW_BEGIN = 8,
	FXT_EVENT_FLOW_STEP = 9,
	FXT_EVENT_FLOW_END = 10,
};

enum fxt_arg_type {
	FXT_ARG_NULL = 0,
	FXT_ARG_I32 = 1,
	FXT_ARG_U32 = 2,
	FXT_ARG_I64 = 3,
	FXT_ARG_U64 = 4,
	FXT_ARG_DOUBLE = 5,
	FXT_ARG_STRING = 6,
	FXT_ARG_POINTER = 7,
	FXT_ARG_KOID = 8,
	FXT_ARG_BOOL = 9,
};

/* zircon/types.h: ZX_OBJ_TYPE_*. */
enum fxt_object_type {
	FXT_OBJECT_PROCESS = 1,
	FXT_OBJECT_THREAD = 2,
};

/* Counters per thread: each counts from the start of the trace, and its id is the thread. */
#define FAULT_COUNTER	    "page faults"
#define FAULT_COUNTER_MAJOR "major page faults"
#define MOVE_COUNTER	    "moves between CPUs"
#define INTERRUPT_COUNTER   "interrupts (ns)"
#define FAULT_COUNTER_OF    "thread"

#endif
