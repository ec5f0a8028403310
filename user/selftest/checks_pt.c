// SPDX-License-Identifier: MIT
/* Intel PT: options that change what the CPU or the kernel does, each a recording of its own. */
#include "selftest/checks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/pt/pmu.h"
#include "check/check.h"
#include "decode/pt_note.h"
#include "util/cleanup.h"
#include "util/fs.h"
#include "util/units.h"

struct variant {
	const char *name, *recording;
	const char *const options[6];
	unsigned int programs;
	const char *needs;    /* a check of `mtbpf check`, or NULL */
	const char *cap;      /* a capability of the PMU in sysfs that must not be 0, or NULL */
	const char *overhead; /* the name of a second check, of PROGRAM_BUSY's cost; or NULL */
	const char *cores;    /* runs on CPUs of this type, if the machine has any */
	bool is_of_cgroup;
	bool has_perf_trace; /* `perf trace` counts system calls meanwhile */
	bool is_untimed;     /* no packets tell the time between two system calls */
	bool is_frozen_late; /* frozen from user space: any number of branches may follow the hit */
	bool is_of_plain;    /* runs only where all CPUs are of one type, on the last CPU */
	void (*judge)(const struct checks *test, const struct variant *variant,
		      const struct trial *trial);
	struct loss loss;
};

/* Sums up the judgements of all programs that ran. 0 or -errno. */
static int judge_all(const struct trial *trial, struct judged_calls *sum)
{
	struct judged_calls judged;
	int err = 0;

	*sum = JUDGED_NONE;
	for (int program = 0; program < PROGRAMS && !err; program++) {
		if (!(trial->programs & 1u << program))
			continue;
		err = judge__calls(&trial->decoded, trial->iteration, (enum program)program,
				   trial->hit->time_ns, &judged);
		judged_calls__add(sum, &judged);
	}
	return err;
}

/*
 * Judges what every variant must have: the calls, their times, and an end near the hit. `is_also`
 * is true if the trace also has what only this variant needs, and `also` says that in words.
 */
static void judge_with(const struct checks *test, const struct variant *variant,
		       const struct trial *trial, const char *also, bool is_also)
{
	const struct decoded *decoded = &trial->decoded;
	char times[64] = "";
	struct judged_calls sum;
	uint64_t error_ns;
	bool is_right;

	is_right = !judge_all(trial, &sum) && sum.noted && sum.right == sum.noted && !sum.unnoted;
	error_ns = checks__time_error(test, &sum);
	if (!variant->is_untimed) {
		is_right = is_right && error_ns <= checks__most_error(test);
		snprintf(times, sizeof(times), ", times at most %s off", DURATION(error_ns));
	}
	if (decoded->behind_hit < 0 ||
	    (!variant->is_frozen_late && decoded->behind_hit_ns > MOST_AFTER_HIT_NS))
		is_right = false;
	checks__tell(test, variant->name, verdict_of(is_right && is_also), &variant->loss,
		     "%u of %u calls at the right depth%s, %" PRId64
		     " branches in %s after the hit%s",
		     sum.right, sum.noted, times, decoded->behind_hit,
		     DURATION(decoded->behind_hit_ns), also);
}

static void judge_variant(const struct checks *test, const struct variant *variant,
			  const struct trial *trial)
{
	judge_with(test, variant, trial, "", true);
}

#define SMALL_RING (32 * 1024)

static void judge_small_ring(const struct checks *test, const struct variant *variant,
			     const struct trial *trial)
{
	size_t most = 0;
	bool is_full;

	for (size_t i = 0; i < trial->rec.aux.n; i++)
		if (trial->rec.aux.v[i].size > most)
			most = trial->rec.aux.v[i].size;
	is_full = most >= SMALL_RING;
	judge_with(test, variant, trial,
		   is_full ? "; the ring has wrapped" : "; the ring has not wrapped", is_full);
}

static void judge_any_thread(const struct checks *test, const struct variant *variant,
			     const struct trial *trial)
{
	bool is_other = trial->hit->tid != trial->first;

	judge_with(test, variant, trial,
		   is_other ? "; another thread hit" : "; the hit is of the wrong thread",
		   is_other);
}

static void judge_kernel(const struct checks *test, const struct variant *variant,
			 const struct trial *trial)
{
	unsigned int counted = trial->iteration->kernels_syscalls;
	struct judged_calls judged;
	char also[200], perfs[100] = "";
	bool is_right;

	if (judge__calls(&trial->decoded, trial->iteration, PROGRAM_SYSCALLS, trial->hit->time_ns,
			 &judged))
		judged.in_kernel = 0;
	is_right = judged.in_kernel == N_SYSCALLS && (!counted || counted == N_SYSCALLS);
	if (trial->perf_syscalls.iterations)
		is_right = checks__judge_perf_trace(trial, perfs) && is_right;
	snprintf(also, sizeof(also),
		 "; the kernel's getppid() %u times, its tracepoint counts %u%s%s",
		 judged.in_kernel, counted, perfs[0] ? ", " : "", perfs);
	judge_with(test, variant, trial, also, is_right);
}

static void judge_events(const struct checks *test, const struct variant *variant,
			 const struct trial *trial)
{
	struct judged_calls sum;
	char also[80], others[32] = "";

	if (judge_all(trial, &sum))
		sum = JUDGED_NONE;
	if (sum.unnoted_events)
		snprintf(others, sizeof(others), ", and %u others", sum.unnoted_events);
	snprintf(also, sizeof(also), "; %u of %u %s%s", sum.events, sum.noted_events,
		 trial->programs & 1u << PROGRAM_PTWRITE ? "values"
							 : "exceptions with vector and address",
		 others);
	judge_with(test, variant, trial, also,
		   sum.noted_events && sum.events == sum.noted_events && !sum.unnoted_events);
}

/*
 * Shows the number of power events, and does not judge it: programs do not decide when a CPU saves
 * power.
 */
static void judge_power(const struct checks *test, const struct variant *variant,
			const struct trial *trial)
{
	unsigned int n = 0;
	char also[40];

	for (size_t i = 0; i < trial->decoded.events.n; i++) {
		uint8_t kind = trial->decoded.events.v[i].kind;

		n += kind >= PT_NOTE_MWAIT && kind <= PT_NOTE_PWRX;
	}
	snprintf(also, sizeof(also), "; %u power events", n);
	judge_with(test, variant, trial, also, true);
}

/* Shows the cost of recording; no limit is right for every target. */
static void judge_overhead(const struct checks *test, const struct variant *variant,
			   const struct trial *trial)
{
	static const struct loss loss = {"what recording costs is not known here",
					 "watch the target's latency while you record"};
	uint64_t recorded_ns = trial->iteration->busy_ns, plain_ns = trial->log->plain_busy_ns;
	uint64_t traced_ns = judge__busy_ns(&trial->decoded);
	size_t bytes = recording__traced_bytes(&trial->rec);
	bool is_known = recorded_ns && plain_ns && traced_ns && bytes;

	checks__tell(test, variant->overhead, verdict_of(is_known), &loss,
		     "a loop of calls takes %.2f times as long when recorded; %.1f MB of trace per "
		     "second",
		     plain_ns ? (double)recorded_ns / (double)plain_ns : 0,
		     traced_ns ? (double)bytes / 1e6 / ((double)traced_ns / 1e9) : 0);
}

#define SNAPSHOTS 20

static void judge_snapshots(const struct checks *test, const struct variant *variant,
			    const struct trial *trial)
{
	const struct decoded *decoded = &trial->decoded;
	unsigned int n = 0;
	bool has_gaps = false;

	for (size_t i = 0; i < decoded->hits.n; i++)
		n += decoded->hits.v[i].n_args > 0;
	for (int reason = 0; reason < GAP_REASONS; reason++)
		if (reason != GAP_BETWEEN && decoded->totals.gaps[reason])
			has_gaps = true;
	checks__tell(test, variant->name, verdict_of(n == SNAPSHOTS && !has_gaps), &variant->loss,
		     "%u of %u snapshots, %s gaps in them", n, SNAPSHOTS,
		     has_gaps ? "with" : "without");
}

#define FREEZE(method, is_late)                                                                    \
	{                                                                                          \
		.name = "freeze: " method, .recording = "pt-" method,                              \
		.options = {"-freeze", method}, .programs = 1u << PROGRAM_CALLS,                   \
		.needs = "freeze_" method, .judge = judge_variant, .is_frozen_late = is_late,      \
		.loss = {"recordings with this -freeze are wrong", "use another one"},             \
	}
#define TIMER(level)                                                                               \
	{                                                                                          \
		.name = "timer: " level, .recording = "pt-" level,                                 \
		.options = {"-timer-resolution", level, "-skip", "3"},                             \
		.programs = 1u << PROGRAM_CALLS | 1u << PROGRAM_BUSY,                              \
		.overhead = "overhead: " level, .judge = judge_variant,                            \
		.loss = {"recordings with this -timer-resolution are wrong", "use another one"},   \
	}
#define CORES_LOSS                                                                                 \
	{                                                                                          \
		"recordings of what runs on these cores are wrong",                                \
			"bind the target to other cores: taskset"                                  \
	}
#define CORES(type)                                                                                \
	{                                                                                          \
		.name = "cores: " type, .recording = "pt-" type, .programs = 1u << PROGRAM_CALLS,  \
		.cores = type, .judge = judge_variant, .loss = CORES_LOSS,                         \
	}

static const struct variant variants[] = {
	FREEZE("pause", false),
	FREEZE("refresh", false),
	FREEZE("disable", true),
	TIMER("low"),
	TIMER("normal"),
	TIMER("high"),
	{.name = "returns compressed",
	 .recording = "pt-retcomp",
	 .options = {"-timer-resolution", "custom:noretcomp=0"},
	 .programs = 1u << PROGRAM_CALLS | 1u << PROGRAM_RECURSION,
	 .is_untimed = true,
	 .judge = judge_variant,
	 .loss = {"recordings with compressed returns are wrong", "use -timer-resolution high"}},
	{.name = "returns in full",
	 .recording = "pt-noretcomp",
	 .options = {"-timer-resolution", "custom:noretcomp"},
	 .programs = 1u << PROGRAM_CALLS | 1u << PROGRAM_RECURSION,
	 .is_untimed = true,
	 .judge = judge_variant,
	 .loss = {"recordings with noretcomp or -timer-resolution high are wrong",
		  "use -timer-resolution normal"}},
	{.name = "small ring",
	 .recording = "pt-small",
	 .options = {"-snapshot-size", "32K", "-skip", "10"},
	 .programs = 1u << PROGRAM_CALLS | 1u << PROGRAM_BUSY,
	 .judge = judge_small_ring,
	 .loss = {"recordings whose ring has wrapped are wrong", "use a larger -snapshot-size"}},
	{.name = "20 snapshots",
	 .recording = "pt-snapshots",
	 .options = {"-multi-snapshot", "20"},
	 .programs = 1u << PROGRAM_CALLS,
	 .judge = judge_snapshots,
	 .loss = {"several captures in one trace are wrong", "do not use -multi-snapshot"}},
	{.name = "any thread",
	 .recording = "pt-any",
	 .programs = 1u << PROGRAM_CALLS | 1u << PROGRAM_ANY_THREAD,
	 .options = {"-multi-thread"},
	 .judge = judge_any_thread,
	 .loss = {"a hit of another thread than the first, or the trace of that thread, is lost",
		  "trigger in the first thread only"}},
	{.name = "cgroup",
	 .recording = "pt-cgroup",
	 .programs = 1u << PROGRAM_CALLS | 1u << PROGRAM_THREADS | 1u << PROGRAM_ANY_THREAD,
	 .is_of_cgroup = true,
	 .judge = judge_any_thread,
	 .loss = {"-cgroup, with one trace per CPU, does not work", "use -pid or -name"}},
	{.name = "kernel",
	 .recording = "pt-kernel",
	 .options = {"-trace-include-kernel"},
	 .programs = 1u << PROGRAM_CALLS | 1u << PROGRAM_SYSCALLS,
	 .needs = "kernel_code",
	 .has_perf_trace = true,
	 .judge = judge_kernel,
	 .loss = {"-trace-include-kernel is wrong",
		  "do not use it; 'perf trace' tells system calls"}},
	{.name = "events",
	 .recording = "pt-events",
	 .programs = 1u << PROGRAM_FAULTS | 1u << PROGRAM_TRAPS,
	 .cap = "event_trace",
	 .judge = judge_events,
	 .loss = {"[page fault 0x...], [int3] and the like are missing or wrong (Event Trace)",
		  "take such slices for [untraced]; calls are right if 'traps' is ok"}},
	{.name = "ptwrite",
	 .recording = "pt-ptwrite",
	 .programs = 1u << PROGRAM_PTWRITE,
	 .cap = "ptwrite",
	 .judge = judge_events,
	 .loss = {"values that programs write with PTWRITE are missing or wrong",
		  "do not trust them; calls are right if 'calls' is ok"}},
	{.name = "power",
	 .recording = "pt-power",
	 .options = {"-trace-power"},
	 .programs = 1u << PROGRAM_CALLS,
	 .cap = "power_event_trace",
	 .judge = judge_power,
	 .loss = {"recordings with -trace-power are wrong", "do not use it"}},
	{.name = "cores: all",
	 .recording = "pt-cores",
	 .programs = 1u << PROGRAM_CALLS,
	 .is_of_plain = true,
	 .judge = judge_variant,
	 .loss = CORES_LOSS},
	CORES("cpu_core"),
	CORES("cpu_atom"),
	CORES("cpu_lowpower"),
};

int checks__find_cpu(const char *sysfs, const char *type)
{
	_cleanup_free_ char *text = NULL;
	char path[PATH_MAX], *end;
	size_t len;
	long cpu;

	snprintf(path, sizeof(path), "%s/devices/%s/cpus", sysfs, type);
	if (fs__read(path, &text, &len))
		return -1;
	cpu = strtol(text, &end, 10);
	return end == text || cpu < 0 || cpu > INT_MAX ? -1 : (int)cpu;
}

/* The CPU that the variant wants, from 1 on; 0: any; -1: this machine has no such CPU. */
static int choose_cpu(const struct variant *variant)
{
	int cpu;

	if (variant->cores) {
		cpu = checks__find_cpu("/sys", variant->cores);
		return cpu < 0 ? -1 : cpu + 1;
	}
	/*
	 * sysfs shows the capabilities of the CPU that booted, which is a cpu_core if the machine
	 * is hybrid.
	 */
	if (variant->cap)
		return checks__find_cpu("/sys", "cpu_core") + 1;
	if (!variant->is_of_plain)
		return 0;
	/* Hybrid machines have a check of each type instead. */
	if (checks__find_cpu("/sys", "cpu_core") >= 0)
		return -1;
	return (int)sysconf(_SC_NPROCESSORS_ONLN);
}

static bool is_possible(const struct checks *test, const struct variant *variant)
{
	struct check_result result;
	uint32_t cap = 0;

	if (variant->needs && check__one(variant->needs, &result) &&
	    result.state == CHECK_MISSING) {
		checks__tell(test, variant->name, SELFTEST_SKIPPED, &checks_no_loss, "%s",
			     result.reason);
		return false;
	}
	if (variant->cap && (pt_pmu__read_cap(variant->cap, &cap) || !cap)) {
		checks__tell(test, variant->name, SELFTEST_SKIPPED, &checks_no_loss,
			     "this CPU's Intel PT lacks this feature: caps/%s", variant->cap);
		return false;
	}
	return true;
}

static void test_variant(struct checks *test, const struct variant *variant)
{
	bool is_replayed = test->options->replay;
	int cpu = is_replayed ? 0 : choose_cpu(variant);
	struct trial trial = {.options = variant->options,
			      .programs = variant->programs,
			      .is_of_cgroup = variant->is_of_cgroup,
			      .has_perf_trace = variant->has_perf_trace,
			      .cpu = cpu};

	test->recording = variant->recording;
	if (cpu < 0 || !checks__has(test, variant->recording))
		return;
	if (!checks__wants(test, variant->recording) && !checks__wants(test, variant->name) &&
	    !(variant->overhead && checks__wants(test, variant->overhead)))
		return;
	if (!is_replayed && !is_possible(test, variant))
		return;
	if (checks__record(test, &trial, variant->name)) {
		variant->judge(test, variant, &trial);
		if (variant->overhead)
			judge_overhead(test, variant, &trial);
	}
	checks__end(test, &trial);
}

void checks__run_pt(struct checks *test)
{
	for (size_t i = 0; i < sizeof(variants) / sizeof(variants[0]); i++)
		test_variant(test, &variants[i]);
}
