/* SPDX-License-Identifier: MIT */
/*
 * The slices of a trace file: the arguments shown when a slice is clicked, and the writer that
 * encodes them once per kind of slice.
 */
#ifndef MTBPF_TRACE_SLICE_H
#define MTBPF_TRACE_SLICE_H

#include <stdbool.h>
#include <stdint.h>

#include "stack/call_tree.h"
#include "trace/fxt.h"
#include "util/units.h"

#define SLICE_BY_SIZE 320
/* In the text about a goroutine, this precedes its function. */
#define SLICE_BY_IN	 ", in "
#define SLICE_BY_NOWHERE "code that is not known"
/* The most threads or goroutines named as the cause of a call. */
#define SLICE_BY_MAX 5
extern const struct slice_by_key {
	const char *who, *ns;
} slice_by_keys[SLICE_BY_MAX];

/* The arguments that tell a call's flags. */
#define SLICE_FLAGS 6
extern const struct slice_flag {
	const char *key;
	enum call_flags flag;
} slice_flags[SLICE_FLAGS];

/* Arguments of one event. They point into what they were made from. */
struct slice_args {
	unsigned int n;
	struct fxt_arg v[FXT_MAX_ARGS];
};

/* The values of the argument "counted" of hits, by enum counted; or NULL. */
extern const char *const counted_texts[COUNTED_ALL];

/* The texts that mtbpf itself adds to a hit. All others are values of -print. */
enum hit_text { HIT_TEXT_TIME, HIT_TEXT_TRACE_ID, HIT_TEXT_COUNTED, HIT_TEXTS };
extern const char *const hit_text_keys[HIT_TEXTS];

/* The key of a hit's value, by the hit's reason; the last entry has a NULL key. */
extern const struct slice_value_key {
	const char *key;
	uint32_t reason; /* MT_HIT_* */
} slice_value_keys[];

/*
 * Slices of one kind differ only in their times and numbers. `rest` packs the call's own fields on
 * which a template depends.
 */
struct slice_kind {
	const struct function *function;
	const struct source_place *called; /* NULL: unknown */
	uint32_t rest;
};

/*
 * Makes the arguments of a hit: its delay or duration, the threshold, the time, sequence number,
 * thread and address, and the values that were read at the hit. `moment` must live as long as args.
 */
void slice_args__of_hit(struct slice_args *args, const struct hit_mark *hit,
			char moment[static UNITS_MOMENT_SIZE]);

/*
 * The maximum of templates (their indices have 16 bits), and the number of places for their hashes
 * (a power of two).
 */
#define SLICE_TEMPLATES 32768
#define SLICE_PLACES	65536

struct slice_template {
	struct slice_kind kind;
	bool has_address, has_call_ip, has_insns; /* the numbers that its slices have */
	struct fxt_template fxt;
};

/* Zero-initialised but for `fxt`, which belongs to the trace writer. */
struct slice_writer {
	struct fxt *fxt;
	/* Indices of templates, by hash of the kind, counted from 1; 0: empty. */
	uint16_t places[SLICE_PLACES];
	uint16_t n_templates;
	struct slice_template templates[SLICE_TEMPLATES];
};

/*
 * Writes the tree's call, made at that site (NULL: unknown): in one record, or, if end_ns is 0,
 * only its begin, and the caller calls fxt__end(). Sites must outlive the writer, which compares
 * them.
 */
void slice_writer__write(struct slice_writer *writer, const struct call_tree *tree,
			 const struct call *call, const struct call_site *site, uint64_t time_ns,
			 uint64_t end_ns);

#endif
