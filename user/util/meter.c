// SPDX-License-Identifier: MIT
#include "util/meter.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#include "util/clock.h"
#include "util/log.h"
#include "util/units.h"

/* Intervals of the moving bar, and of plain lines. */
#define BAR_EVERY_MS  150
#define LINE_EVERY_MS 3000

#define BAR_WIDTH 24
#define NS_PER_S  1000000000ull

/* "12.0 MiB", "1234 calls" */
static const char *format_amount(char buf[static UNITS_TEXT_SIZE], enum meter_unit unit, uint64_t n)
{
	static const char *const names[] = {[METER_CALLS] = "calls",
					    [METER_SAMPLES] = "samples",
					    [METER_BRANCHES] = "branches",
					    [METER_CAPTURES] = "captures"};

	if (unit == METER_BYTES)
		return units__format_size(buf, n);
	snprintf(buf, UNITS_TEXT_SIZE, "%" PRIu64 " %s", n, names[unit]);
	return buf;
}

const char *meter__format(char buf[static METER_TEXT_SIZE], const struct meter_work *work,
			  uint64_t done, uint64_t elapsed_ns, bool with_bar)
{
	static const char bar[] = "########################";
	char amount[UNITS_TEXT_SIZE], total[UNITS_TEXT_SIZE];
	int n = snprintf(buf, METER_TEXT_SIZE, "%s ", work->what);
	double share, pace;
	uint64_t left = 0;

	_Static_assert(sizeof(bar) == BAR_WIDTH + 1, "a full bar");

	/* The expected total may turn out too small. */
	if (work->total && done > work->total)
		done = work->total;
	format_amount(amount, work->unit, done);
	if (!work->total) {
		snprintf(buf + n, METER_TEXT_SIZE - (size_t)n, "%s", amount);
		return buf;
	}
	share = (double)done / (double)work->total;
	n += snprintf(buf + n, METER_TEXT_SIZE - (size_t)n, "%3.0f %% ", 100 * share);
	if (with_bar)
		n += snprintf(buf + n, METER_TEXT_SIZE - (size_t)n, "[%-*.*s]", BAR_WIDTH,
			      (int)(share * BAR_WIDTH), bar);
	n += snprintf(buf + n, METER_TEXT_SIZE - (size_t)n, " ");
	/* "100 of 2000 calls", "1.0 MiB of 2.0 MiB" */
	if (work->unit != METER_BYTES)
		snprintf(amount, sizeof(amount), "%" PRIu64, done);
	n += snprintf(buf + n, METER_TEXT_SIZE - (size_t)n, "%s of %s", amount,
		      format_amount(total, work->unit, work->total));
	/* Extrapolates the pace so far. Below a second nothing is shown. */
	pace = elapsed_ns ? (double)done / (double)elapsed_ns : 0;
	if (pace > 0)
		left = (uint64_t)((double)(work->total - done) / pace / (double)NS_PER_S);
	if (left)
		snprintf(buf + n, METER_TEXT_SIZE - (size_t)n, ", %" PRIu64 " s left", left);
	return buf;
}

/* Locked. */
static void show(struct meter *meter)
{
	bool is_alive = log__has_line();
	char text[METER_TEXT_SIZE];

	meter__format(text, &meter->work, atomic_load_explicit(&meter->done, memory_order_relaxed),
		      clock__now_ns() - meter->began_ns, is_alive);
	if (is_alive)
		log__line(text);
	else
		log__info("%s", text);
}

static void *look(void *ctx)
{
	struct meter *meter = ctx;
	uint64_t next_ns = clock__now_ns();

	pthread_mutex_lock(&meter->lock);
	while (!meter->stop) {
		struct timespec until;

		next_ns += meter->every_ms * 1000000ull;
		until = (struct timespec){(time_t)(next_ns / NS_PER_S), (long)(next_ns % NS_PER_S)};
		while (!meter->stop && clock__now_ns() < next_ns)
			pthread_cond_timedwait(&meter->changed, &meter->lock, &until);
		if (!meter->stop)
			show(meter);
	}
	pthread_mutex_unlock(&meter->lock);
	return NULL;
}

void meter__begin_every(struct meter *meter, const struct meter_work *work, unsigned int ms)
{
	pthread_condattr_t attr;
	sigset_t all, old;

	*meter = (struct meter){.work = *work, .began_ns = clock__now_ns(), .every_ms = ms};
	pthread_mutex_init(&meter->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&meter->changed, &attr);
	pthread_condattr_destroy(&attr);
	if (log__level() <= LOG_QUIET)
		return;
	/* Signals are for the threads that were there before. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	meter->has_thread = !pthread_create(&meter->thread, NULL, look, meter);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

void meter__begin(struct meter *meter, const struct meter_work *work)
{
	meter__begin_every(meter, work, log__has_line() ? BAR_EVERY_MS : LINE_EVERY_MS);
}

void meter__begin_file(struct meter *meter, const char *what, int fd)
{
	struct meter_work work = {what, METER_BYTES, 0};
	struct stat st;

	if (!fstat(fd, &st))
		work.total = (uint64_t)st.st_size;
	meter__begin(meter, &work);
}

void meter__next(struct meter *meter, const struct meter_work *work)
{
	if (!meter)
		return;
	pthread_mutex_lock(&meter->lock);
	meter->work = *work;
	meter->began_ns = clock__now_ns();
	atomic_store(&meter->done, 0);
	pthread_mutex_unlock(&meter->lock);
}

void meter__end(struct meter *meter)
{
	pthread_mutex_lock(&meter->lock);
	meter->stop = true;
	pthread_cond_signal(&meter->changed);
	pthread_mutex_unlock(&meter->lock);
	if (meter->has_thread)
		pthread_join(meter->thread, NULL);
	pthread_cond_destroy(&meter->changed);
	pthread_mutex_destroy(&meter->lock);
	log__end_line();
}
