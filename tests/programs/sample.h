/* SPDX-License-Identifier: MIT */
/* What the sample programs share: options, the end by signal, and what lies between two iterations.
 */
#ifndef SAMPLE_H
#define SAMPLE_H

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/*
 * A function that a reader of the trace should see under its own name: never inlined, cloned or
 * specialised (no NAME.isra.0), as if it came from another source file.
 */
#ifdef __clang__
#define TRACED __attribute__((noinline))
#else
#define TRACED __attribute__((noipa))
#endif

/* Iterations that -times remembers. */
#define SAMPLE_TIMES 65536

/* The options. A program has one of these for each scale; sample__init() starts from one of them.
 */
struct sample {
	uint64_t iterations; /* -n; 0: for ever */
	uint64_t slow_every; /* -slow-every: one iteration in this many is slow */
	uint64_t table_size; /* -table-size: entries that a slow iteration has to walk */
	uint64_t batch;	     /* requests in an ordinary iteration */
	uint64_t pause_ns;   /* -pause: asleep after each iteration, outside it */
	uint64_t tick_ns;    /* between two timer signals or two short-lived threads */
	uint64_t threads;    /* -threads */
	bool exit_early;     /* -exit: exit instead of crashing */
	bool times;	     /* -times: print how long the iterations took */

	uint64_t done;
	uint64_t began_ns;
	uint64_t *took_ns; /* SAMPLE_TIMES of them, with -times */
};

static volatile sig_atomic_t sample_stop;

static inline void sample__on_stop(int signo)
{
	(void)signo;
	sample_stop = 1;
}

static inline uint64_t sample__now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The same numbers in each run. state must not be 0. */
static inline uint64_t sample__random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static inline void sample__die(const char *name, const char *what)
{
	fprintf(stderr, "%s: bad option or value: %s\n", name, what);
	fprintf(stderr,
		"usage: %s [-scale native|small] [-n N] [-slow-every N] [-table-size N]\n"
		"          [-pause TIME] [-threads N] [-exit] [-times]\n",
		name);
	exit(2);
}

/* A count, or a time in ns, us, ms or s. */
static inline uint64_t sample__number(const char *name, const char *text, bool is_time)
{
	static const struct {
		const char *suffix;
		uint64_t ns;
	} units[] = {{"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}};
	char *end;
	uint64_t value;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || end == text || *text == '-')
		sample__die(name, text);
	if (!*end && (!is_time || !value))
		return value;
	for (size_t i = 0; is_time && i < sizeof(units) / sizeof(units[0]); i++)
		if (!strcmp(end, units[i].suffix))
			return value * units[i].ns;
	sample__die(name, text);
	return 0;
}

static inline uint64_t *sample__number_option(struct sample *s, const char *option)
{
	if (!strcmp(option, "-n"))
		return &s->iterations;
	if (!strcmp(option, "-slow-every"))
		return &s->slow_every;
	if (!strcmp(option, "-table-size"))
		return &s->table_size;
	if (!strcmp(option, "-pause"))
		return &s->pause_ns;
	if (!strcmp(option, "-threads"))
		return &s->threads;
	return NULL;
}

static inline bool *sample__flag_option(struct sample *s, const char *option)
{
	if (!strcmp(option, "-exit"))
		return &s->exit_early;
	if (!strcmp(option, "-times"))
		return &s->times;
	return NULL;
}

/* The scale comes first wherever it stands: it sets what the other options then change. */
static inline const struct sample *sample__scale(char **argv, const struct sample *native,
						 const struct sample *small)
{
	const struct sample *scale = native;

	for (char **arg = argv + 1; *arg; arg++) {
		if (strcmp(*arg, "-scale"))
			continue;
		if (!arg[1] || (strcmp(arg[1], "small") && strcmp(arg[1], "native")))
			sample__die(argv[0], "-scale");
		scale = strcmp(arg[1], "small") ? native : small;
	}
	return scale;
}

static inline void sample__parse(struct sample *s, char **argv)
{
	for (char **arg = argv + 1; *arg; arg++) {
		uint64_t *number = sample__number_option(s, *arg);
		bool *flag = sample__flag_option(s, *arg);

		if (flag) {
			*flag = true;
			continue;
		}
		if ((!number && strcmp(*arg, "-scale")) || !arg[1])
			sample__die(argv[0], *arg);
		arg++;
		if (number)
			*number = sample__number(argv[0], *arg, number == &s->pause_ns);
	}
	if (!s->slow_every || !s->table_size || !s->threads || s->threads > 256)
		sample__die(argv[0], "a count that is 0 or too large");
}

/* Reads the options, or exits with 2; then SIGTERM and SIGINT end the program in good order. */
static inline void sample__init(struct sample *s, char **argv, const struct sample *native,
				const struct sample *small)
{
	struct sigaction stop;

	*s = *sample__scale(argv, native, small);
	s->threads = s->threads ? s->threads : 1;
	sample__parse(s, argv);
	if (s->times) {
		s->took_ns = (uint64_t *)calloc(SAMPLE_TIMES, sizeof(*s->took_ns));
		s->times = s->took_ns != NULL;
	}
	memset(&stop, 0, sizeof(stop));
	stop.sa_handler = sample__on_stop;
	sigaction(SIGTERM, &stop, NULL);
	sigaction(SIGINT, &stop, NULL);
}

/* Says that the program is ready; nothing is printed after it (but -times, at the end). */
static inline void sample__announce(void)
{
	printf("pid %d\n", (int)getpid());
	fflush(stdout);
}

static inline void sample__pause(uint64_t ns)
{
	struct timespec pause;

	pause.tv_sec = (time_t)(ns / 1000000000u);
	pause.tv_nsec = (long)(ns % 1000000000u);
	if (ns)
		nanosleep(&pause, NULL);
}

/* True while another iteration is to run. Call it once before each. */
static inline bool sample__next(struct sample *s)
{
	if (s->done) {
		if (s->times && s->done <= SAMPLE_TIMES)
			s->took_ns[s->done - 1] = sample__now_ns() - s->began_ns;
		sample__pause(s->pause_ns);
	}
	if (sample_stop || (s->iterations && s->done == s->iterations))
		return false;
	s->done++;
	if (s->times)
		s->began_ns = sample__now_ns();
	return true;
}

static inline int sample__by_time(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Prints the times, where they were asked for, and releases them. */
static inline void sample__fini(struct sample *s)
{
	uint64_t n = s->done < SAMPLE_TIMES ? s->done : SAMPLE_TIMES, slow = 0;

	if (s->times && n) {
		qsort(s->took_ns, n, sizeof(*s->took_ns), sample__by_time);
		while (slow < n && s->took_ns[n - 1 - slow] > 10 * s->took_ns[n / 2])
			slow++;
		printf("iterations %llu: median %.1f us, %llu over 10x that, longest %.1f us\n",
		       (unsigned long long)n, (double)s->took_ns[n / 2] / 1e3,
		       (unsigned long long)slow, (double)s->took_ns[n - 1] / 1e3);
	}
	free(s->took_ns);
	s->took_ns = NULL;
}

#endif
