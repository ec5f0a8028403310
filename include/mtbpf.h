/* SPDX-License-Identifier: MIT */
/*
 * Lets a program tell mtbpf where to take a snapshot. For C and C++ (11 and up) on x86-64 Linux
 * with GCC or Clang. No library has to be linked. On other machines the calls do nothing.
 *
 *	#include <mtbpf.h>
 *
 *	for (;;) {
 *		struct request *r = next();
 *
 *		mtbpf_mark_start();
 *		handle(r);
 *		mtbpf_take_snapshot_with_arg(r->id);
 *	}
 *
 *	mtbpf attach -pid PID                         the next call triggers
 *	mtbpf attach -pid PID -duration-thresh 5ms    the next call 5 ms or more after its mark
 *
 * A call costs one or two nanoseconds while mtbpf is not attached, and a probe's hit (below a
 * microsecond) while it is. All functions may be called from any thread and from signal handlers;
 * they cannot fail.
 */
#ifndef MTBPF_H
#define MTBPF_H

#include <stdint.h>

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__)

#if defined(__clang__) || __GNUC__ < 8
#define MTBPF_ONE_STUB_ __attribute__((noinline))
#else
#define MTBPF_ONE_STUB_ __attribute__((noinline, noclone, noipa))
#endif
/* GCC puts a canary into naked functions too (-fstack-protector-all). */
#if defined(__clang__) || __GNUC__ >= 11
#define MTBPF_NO_PROLOGUE_ __attribute__((naked, no_instrument_function, no_stack_protector))
#else
#define MTBPF_NO_PROLOGUE_                                                                         \
	__attribute__((naked, no_instrument_function, optimize("no-stack-protector")))
#endif
/* Shared by all files of a program or library, even with -fvisibility=hidden. */
#define MTBPF_SHARED_ __attribute__((weak, used, visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The function that mtbpf probes; programs do not call it. The probe reads its parameters:
 * argument, mark, number of arguments. If the thread has a trace id, the number is 4, the id
 * follows in two halves, and has_arg tells whether arg is used. Linux 6.18 replaces the first nop
 * by a call at the first hit; every kernel emulates the second nop, but single-steps most other
 * instructions. The function does not cross a page and does not have a prologue with any flags;
 * with -fcf-protection it begins with an endbr64.
 */
MTBPF_SHARED_ MTBPF_ONE_STUB_ void mtbpf_hit(uint64_t arg, uint64_t mark_ns, uint64_t n_args,
					     uint64_t trace_high, uint64_t trace_low,
					     uint64_t has_arg);
MTBPF_SHARED_ MTBPF_ONE_STUB_ MTBPF_NO_PROLOGUE_ __attribute__((aligned(16))) void
mtbpf_hit(uint64_t arg __attribute__((unused)), uint64_t mark_ns __attribute__((unused)),
	  uint64_t n_args __attribute__((unused)), uint64_t trace_high __attribute__((unused)),
	  uint64_t trace_low __attribute__((unused)), uint64_t has_arg __attribute__((unused)))
{
	__asm__ volatile(".byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n\tnop\n\tret" ::: "memory");
}

/* Time of this thread's last mtbpf_mark_start(), CLOCK_MONOTONIC in ns; 0: none. */
extern __thread uint64_t mtbpf_mark_ns;
MTBPF_SHARED_ __thread uint64_t mtbpf_mark_ns = 0;
/* This thread's trace id as a big-endian number in two halves; 0 and 0: none. */
extern __thread uint64_t mtbpf_trace_id_[2];
MTBPF_SHARED_ __thread uint64_t mtbpf_trace_id_[2] = {0, 0};

/* clock_gettime(2), which <time.h> does not declare everywhere (-std=c99). */
extern int mtbpf_clock_gettime_(int clock, int64_t *seconds_and_ns) __asm__("clock_gettime");

static __inline__ __attribute__((unused)) uint64_t mtbpf_now_ns_(void)
{
	int64_t time[2] = {0, 0};

	mtbpf_clock_gettime_(1 /* CLOCK_MONOTONIC: the clock that BPF programs read */, time);
	return (uint64_t)time[0] * 1000000000u + (uint64_t)time[1];
}

#ifdef __cplusplus
}
#endif

static __inline__ __attribute__((unused)) void mtbpf_snapshot_(uint64_t x, uint64_t has_arg)
{
	uint64_t high = mtbpf_trace_id_[0], low = mtbpf_trace_id_[1];

	mtbpf_hit(x, mtbpf_mark_ns, high | low ? 4 : has_arg, high, low, has_arg);
}

/*
 * Sets the trace id of this thread: 16 bytes, as in OpenTelemetry's trace context and W3C's
 * traceparent. The trace and the report show it at this thread's hits. NULL or zeroes remove it.
 */
static __inline__ __attribute__((unused)) void mtbpf_set_trace_id(const void *id)
{
	const unsigned char *bytes = (const unsigned char *)id;
	int i;

	mtbpf_trace_id_[0] = mtbpf_trace_id_[1] = 0;
	for (i = 0; bytes && i < 16; i++)
		mtbpf_trace_id_[i / 8] = mtbpf_trace_id_[i / 8] << 8 | bytes[i];
}

/*
 * Requests a snapshot: `mtbpf attach`, `run` and `record` without -symbol trigger here. Its only
 * effect on the program is that the compiler does not move memory accesses across it.
 */
static __inline__ __attribute__((unused)) void mtbpf_take_snapshot(void)
{
	mtbpf_snapshot_(0, 0);
}

/*
 * Like mtbpf_take_snapshot(), with a number of the program's choice (a request id, a length, ...).
 * The trace and the report show it at the hit.
 */
static __inline__ __attribute__((unused)) void mtbpf_take_snapshot_with_arg(uint64_t x)
{
	mtbpf_snapshot_(x, 1);
}

/*
 * Starts the time that -duration-thresh and mtbpf_min_duration() measure, for this thread; replaces
 * an earlier mark. Reads the clock, which takes 25 to 80 ns. All files of a program or library
 * share the mark; a library loaded with dlopen(3) may have marks of its own.
 */
static __inline__ __attribute__((unused)) void mtbpf_mark_start(void)
{
	mtbpf_mark_ns = mtbpf_now_ns_();
}

/*
 * Returns 1 if this thread's last mtbpf_mark_start() was at least `ns` nanoseconds ago, otherwise
 * 0. With this threshold in the program, faster iterations do not hit a probe.
 *
 *	if (mtbpf_min_duration(5 * 1000 * 1000))
 *		mtbpf_take_snapshot();
 */
static __inline__ __attribute__((unused, warn_unused_result)) int mtbpf_min_duration(uint64_t ns)
{
	return mtbpf_mark_ns && mtbpf_now_ns_() - mtbpf_mark_ns >= ns;
}

#undef MTBPF_ONE_STUB_
#undef MTBPF_NO_PROLOGUE_
#undef MTBPF_SHARED_

#else /* mtbpf does not run on this machine: the calls do nothing */

static __inline void mtbpf_take_snapshot(void)
{
}

static __inline void mtbpf_take_snapshot_with_arg(uint64_t x)
{
	(void)x;
}

static __inline void mtbpf_set_trace_id(const void *id)
{
	(void)id;
}

static __inline void mtbpf_mark_start(void)
{
}

static __inline int mtbpf_min_duration(uint64_t ns)
{
	(void)ns;
	return 0;
}

#endif
#endif
