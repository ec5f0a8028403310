/* SPDX-License-Identifier: MIT */
/* A line of what `perf script` prints, taken apart. */
#ifndef MTBPF_PERF_PERF_LINE_H
#define MTBPF_PERF_PERF_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "target/symbols/named_image.h"

enum perf_line_kind {
	PERF_LINE_BRANCH, /* its places are still to be read */
	PERF_LINE_ERROR,  /* "instruction trace error ..." */
	PERF_LINE_OTHER,  /* another event, a comment, anything */
};

/* Text within the line. */
struct perf_span {
	const char *text;
	size_t len;
};

struct perf_line {
	uint64_t time_ns;
	pid_t pid, tid; /* pid: that of the thread where the line has none */
	struct perf_span comm, flags;
	uint64_t from; /* of a branch: its address, and what stands behind that */
	struct perf_span rest;
	bool has_time;	/* of an error: those of old versions have none */
	int type, code; /* of an error: perf's numbers */
};

/* Takes the line apart, which has no newline in it, as far as the first address. */
enum perf_line_kind perf_line__parse(struct perf_line *line, const char *text, size_t len);

/*
 * What `text` says of the address before it: "symbol+0x12 (module)", each part or none. The parts
 * to *place, whose ip the caller sets; where it ends is returned: at an arrow, or what follows.
 */
size_t perf_place__parse(struct named_place *place, const char *text, size_t len);

/* The arrow and the address behind it, which follow `from`'s place. False: there are none. */
bool perf_line__parse_target(struct perf_span *rest, uint64_t *to);

/* What may follow the places. */
struct perf_extra {
	uint32_t n_insns; /* since the last branch that says so; 0: not known */
	uint8_t insn_len; /* of the branch's instruction; 0: not known */
};

void perf_extra__parse(struct perf_extra *extra, const char *text, size_t len);

#endif
