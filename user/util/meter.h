/* SPDX-License-Identifier: MIT */
/*
 * Progress of long work: a bar on a terminal, otherwise a line every few seconds. The worker only
 * counts; a thread of the meter reads the count at intervals. Work that ends within the first
 * interval is not shown.
 */
#ifndef MTBPF_UTIL_METER_H
#define MTBPF_UTIL_METER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum meter_unit {
	METER_BYTES,
	METER_CALLS,
	METER_SAMPLES,
	METER_BRANCHES,
	METER_CAPTURES,
};

/* The current work. */
struct meter_work {
	const char *what; /* "decoding"; lives as long as the meter */
	enum meter_unit unit;
	uint64_t total; /* 0: not known before the end */
};

struct meter {
	atomic_uint_fast64_t done;
	struct meter_work work;
	uint64_t began_ns;
	unsigned int every_ms; /* interval at which progress is shown */
	bool has_thread, stop;
	pthread_t thread;
	pthread_mutex_t lock; /* of work, began_ns, stop */
	pthread_cond_t changed;
};

/*
 * At LOG_QUIET, or if its thread cannot be started, the meter only counts. Messages (log.h) may be
 * printed meanwhile; stdout should not be written.
 */
void meter__begin(struct meter *meter, const struct meter_work *work);
/* Like meter__begin(), with an explicit interval. */
void meter__begin_every(struct meter *meter, const struct meter_work *work, unsigned int ms);
/* The total is the file's size, or unknown for a pipe. */
void meter__begin_file(struct meter *meter, const char *what, int fd);
/* Starts the next work from 0. NULL is fine. */
void meter__next(struct meter *meter, const struct meter_work *work);
/* Leaves nothing on the terminal. */
void meter__end(struct meter *meter);

/* Any thread may call it. NULL is fine. */
static inline void meter__add(struct meter *meter, uint64_t n)
{
	if (meter)
		atomic_fetch_add_explicit(&meter->done, n, memory_order_relaxed);
}

#define METER_TEXT_SIZE 160
/*
 * Formats progress after elapsed_ns: "decoding 43 % 12.0 MiB of 28.0 MiB, 2 s left"; with a bar,
 * for terminals: "decoding 43 % [######## ] 12.0 MiB of 28.0 MiB, 2 s left". Returns buf.
 */
const char *meter__format(char buf[static METER_TEXT_SIZE], const struct meter_work *work,
			  uint64_t done, uint64_t elapsed_ns, bool with_bar);

#endif
