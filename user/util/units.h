/* SPDX-License-Identifier: MIT */
/* Durations, sizes and thresholds as people type and read them. */
#ifndef MTBPF_UTIL_UNITS_H
#define MTBPF_UTIL_UNITS_H

#include <stddef.h>
#include <stdint.h>

/*
 * "10ms", "1.5s", "250us", "800ns" to nanoseconds, rounded to the nearest. A unit is required,
 * because leaving it out is the commonest mistake. -EINVAL: not a number, no unit, an unknown unit,
 * negative; -ERANGE: 2^63 or more, so that a signed 64-bit holds every result.
 */
int units__parse_duration(const char *text, uint64_t *ns);

/* "4096", "256K", "4M", "1G" (powers of 1024; "KB" and "KiB" too) to bytes. Errors as above. */
int units__parse_size(const char *text, uint64_t *bytes);

/* "1%", "0.5 %" to millionths of the whole. Errors as above; -ERANGE above 100 %. */
int units__parse_percent(const char *text, uint64_t *ppm);

#define UNITS_TEXT_SIZE 24
/* "823 ns", "12.3 us", "4.56 ms", "1.20 s": three significant digits. Returns buf. */
const char *units__format_duration(char buf[static UNITS_TEXT_SIZE], uint64_t ns);
/* "512 B", "4.0 KiB", "1.2 MiB". Returns buf. */
const char *units__format_size(char buf[static UNITS_TEXT_SIZE], uint64_t bytes);
/* The same texts, which live until the end of the block. */
#define DURATION(ns) units__format_duration((char[UNITS_TEXT_SIZE]){0}, ns)
#define BYTES(n)     units__format_size((char[UNITS_TEXT_SIZE]){0}, n)

#define UNITS_MOMENT_SIZE sizeof("2026-11-21T10:00:00.123Z")
/* Milliseconds since 1970 as "2026-11-21T10:00:00.123Z", in UTC. Returns buf. */
const char *units__format_moment(char buf[static UNITS_MOMENT_SIZE], uint64_t unix_ms);
/* The same text, which lives until the end of the block. */
#define MOMENT(unix_ms) units__format_moment((char[UNITS_MOMENT_SIZE]){0}, unix_ms)
/* Parses a text that begins with such a moment. 0 or -EINVAL. */
int units__parse_moment(const char *text, uint64_t *unix_ms);

/* A threshold as people type it: "10ms", or "p99.9" for slower than 99.9 % of all. */

struct threshold {
	uint64_t ns;
	double percent; /* the percentile that is the threshold, if ns is 0; otherwise 0 */
};

/*
 * Percentiles are above 0 and at most 99.9999; more would take 10^8 hits to know. -EINVAL: neither
 * a time nor a percentile; -ERANGE: too large.
 */
int threshold__parse(const char *text, struct threshold *threshold);

/* False if neither a time nor a percentile is set. */
static inline int threshold__is_set(const struct threshold *t)
{
	return t->ns || t->percent > 0;
}

/* The number of values needed for a percentile: ten must be above it. */
uint64_t threshold__needed(double percent);

#define THRESHOLD_TEXT_SIZE 24
/* "p99.9" */
const char *threshold__format_percent(char buf[static THRESHOLD_TEXT_SIZE], double percent);

#endif
