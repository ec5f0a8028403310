// SPDX-License-Identifier: MIT
/*
 * What the flight recorder of -source sample costs the target: iterations a second of CPU time, of
 * a loop of 10 us each, 18 calls deep, with the recorder on and off in turns, so that what else
 * happens on the machine happens to both. With the trigger's probe on each iteration, and without.
 */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../live/own_code.h"
#include "deep.h"
#include "perf_peer.h"
#include "capture/perf/event_place.h"
#include "capture/sample/sample_cost.h"
#include "capture/sample/sample_ring.h"
#include "trigger/recorder.h"
#include "trigger/probe_site.h"
#include "trigger/trigger.h"

#define ROUNDS	 11
#define ROUND_MS 50
/* The time limit of the whole run: a bench never hangs. */
#define LIMIT_S 600
/* About 10 us each: 10^5 iterations a second. */
#define WORK 40000

struct shared {
	atomic_uint_fast64_t iterations;
};

/* What -also probes: called once an iteration. */
__attribute__((noipa)) static void beside(void)
{
	__asm__ volatile("" : : : "rbx");
}

__attribute__((noipa)) static uint64_t iterate(uint64_t x)
{
	/* Something in rbx, so that it starts with a push of it. */
	__asm__ volatile("" : "+r"(x) : : "rbx");
	beside();
	for (int i = 0; i < WORK; i++)
		__asm__ volatile("" : "+r"(x));
	return x;
}

static void work(void *ctx)
{
	struct shared *shared = ctx;

	for (uint64_t x = 1;; x = iterate(x))
		atomic_fetch_add_explicit(&shared->iterations, 1, memory_order_relaxed);
}

static pid_t start_target(struct shared *shared)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	deep__run(DEEP, work, shared);
	exit(1);
}

static void die(const char *what)
{
	fprintf(stderr, "bench_sample: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t cpu_ns(pid_t pid)
{
	struct timespec now;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &now))
		die("the target's CPU time");
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* What is on. */
struct mode {
	const char *name;
	unsigned int hz; /* 0: no recorder */
	bool probe;
	bool log; /* of each hit of the probe, as the source has it */
	enum {
		BY_RECORDER,
		BY_BARE_TIMER, /* the clock's interrupts, and nobody who takes a sample */
		BY_PERF,       /* a peer: perf record -e cpu-clock -g */
	} by;
	enum { NO_ALSO, ALSO_RETURN_PROBE, ALSO_RET_INSNS } also; /* how its return is probed */
	const struct mode *base;				  /* which it is compared with */
};

static const struct mode nothing = {.name = "nothing"};
static const struct mode probe_alone = {.name = "the trigger's probe", .probe = true};
static const struct mode probe_logged = {
	.name = "probe, its hits logged", .probe = true, .log = true, .base = &probe_alone};

/* Each at each of the rates: rows of a table in docs/user/sources.md. */
static const unsigned int rates[] = {1000, 4000, 10000};
#define RATES (sizeof(rates) / sizeof(rates[0]))

static const struct mode rows[] = {
	{.name = "the bare timer, nobody takes a stack", .by = BY_BARE_TIMER, .base = &nothing},
	{.name = "the recorder", .base = &nothing},
	{.name = "recorder and trigger, against the trigger's probe alone",
	 .probe = true,
	 .log = true,
	 .base = &probe_alone},
	{.name = "`perf record -e cpu-clock -g`, for comparison", .by = BY_PERF, .base = &nothing},
};

static const struct mode also_return_probe = {.name = "-also, a call: return probe",
					      .probe = true,
					      .log = true,
					      .also = ALSO_RETURN_PROBE,
					      .base = &probe_logged};
static const struct mode also_ret_insns = {.name = "-also, a call: at its ret",
					   .probe = true,
					   .log = true,
					   .also = ALSO_RET_INSNS,
					   .base = &probe_logged};

/* The probe with its program, as attach sets it: no call is ever slow enough. */
struct armed {
	struct trigger *trigger;
	struct recorder *recorder;
	struct trigger_event events[3]; /* of the trigger, and of what -also probes */
	size_t n;
};

/* Behind its entry; it has one return. */
static uint32_t exit_of(const void *function)
{
	struct exit_sites sites;

	for (size_t len = 1; len < 64; len++) {
		struct exit_part entry = {function, len, (uintptr_t)function};

		if (!exit_sites__find(&entry, NULL, NULL, &sites))
			return (uint32_t)sites.at[0];
	}
	errno = ENOENT;
	die("where a function returns");
	return 0;
}

static void probe(struct armed *armed, pid_t pid, uintptr_t at, struct trigger_event event,
		  bool on_return)
{
	event.fd = own_code__probe(pid, at, on_return);
	if (event.fd < 0)
		die("a probe");
	armed->events[armed->n++] = event;
}

static void probe_also(struct armed *armed, pid_t pid, bool by_insn)
{
	uintptr_t at = (uintptr_t)beside;

	probe(armed, pid, at, (struct trigger_event){.is_also = true}, false);
	probe(armed, pid, by_insn ? at + exit_of(beside) : at,
	      (struct trigger_event){.is_also = true, .kind = TRIGGER_RETURN}, !by_insn);
}

static struct armed arm(const struct mode *mode, pid_t pid)
{
	struct trigger_config config = {.tgid = pid,
					.delay_thresh_ns = 3600000000000ull,
					.sampling = mode->log,
					.also = mode->also,
					.also_at_entry = true,
					.also_by_insn = mode->also == ALSO_RET_INSNS};
	struct armed armed = {0};

	if (mode->hz && mode->by == BY_RECORDER)
		armed.recorder =
			recorder__new(&(struct recorder_config){.tgid = pid, .log_size = 4 << 20});
	if (!mode->probe)
		return armed;
	armed.trigger = trigger__new(&config);
	probe(&armed, pid, (uintptr_t)iterate, (struct trigger_event){0}, false);
	if (mode->also)
		probe_also(&armed, pid, config.also_by_insn);
	if (!armed.trigger || trigger__attach_all(armed.trigger, armed.events, armed.n) ||
	    trigger__arm(armed.trigger))
		die("the trigger");
	return armed;
}

static void disarm(struct armed *armed)
{
	trigger__free(armed->trigger);
	recorder__free(armed->recorder);
	while (armed->n)
		close(armed->events[--armed->n].fd);
}

/* As the recorder's, without a ring. */
static void open_bare(struct sample_ring *ring, pid_t pid, uint64_t period_ns)
{
	struct event_place place = event_place__of_thread(pid);
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .config = PERF_COUNT_SW_CPU_CLOCK,
				       .sample_period = period_ns};

	*ring = (struct sample_ring){.branches = -1, .of.sideband.event = -1};
	memset(ring->events, -1, sizeof(ring->events));
	ring->events[0] = event_place__open(&place, &attr, -1);
	if (ring->events[0] < 0)
		die("the clock's event");
}

static void open_recorder(struct sample_ring *ring, const struct mode *mode, pid_t pid, int gate)
{
	struct event_place place = event_place__of_thread(pid);
	struct sample_ring_config config = {
		.period_ns = 1000000000 / mode->hz, .size = 4 << 20, .gate = gate};

	if (mode->by == BY_BARE_TIMER)
		open_bare(ring, pid, config.period_ns);
	else if (sample_ring__open(ring, &place, &config) || sample_ring__enable(ring))
		die("the recorder");
}

/* Nanoseconds of CPU time an iteration. */
static double measure(const struct mode *mode, pid_t pid, struct shared *shared)
{
	struct armed armed = arm(mode, pid);
	int gate = armed.trigger && mode->hz ? trigger__sample_gate(armed.trigger) : -1;
	bool records = mode->hz && mode->by != BY_PERF;
	struct sample_ring ring;
	uint64_t ns, n;

	if (records)
		open_recorder(&ring, mode, pid, gate);
	if (mode->by == BY_PERF)
		perf_peer__say("enable");
	ns = cpu_ns(pid);
	n = atomic_load(&shared->iterations);
	usleep(ROUND_MS * 1000);
	n = atomic_load(&shared->iterations) - n;
	ns = cpu_ns(pid) - ns;
	if (mode->by == BY_PERF)
		perf_peer__say("disable");
	if (records)
		sample_ring__close(&ring);
	disarm(&armed);
	return n ? (double)ns / (double)n : 0;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values)
{
	qsort(values, ROUNDS, sizeof(*values), compare);
	return values[ROUNDS / 2];
}

/* Base, mode, mode, base: what the machine's mood does meanwhile cancels. Percent of the base. */
static double run(const struct mode *mode, pid_t pid, struct shared *shared)
{
	double ratios[ROUNDS], values[ROUNDS], more;

	for (size_t i = 0; i < ROUNDS; i++) {
		double base = measure(mode->base, pid, shared);

		values[i] = (measure(mode, pid, shared) + measure(mode, pid, shared)) / 2;
		base = (base + measure(mode->base, pid, shared)) / 2;
		ratios[i] = base > 0 ? values[i] / base : 1;
	}
	more = 100 * (median(ratios) - 1);
	fprintf(stderr, "%-56s %5u Hz %9.1f ns an iteration  %6.2f %% more than %s\n", mode->name,
		mode->hz, median(values), more, mode->base->name);
	return more;
}

/* What the recorder costs, as a share of what perf's costs: of the rows of these numbers. */
enum { ROW_RECORDER = 1, ROW_PERF = 3, ROWS = 4 };
_Static_assert(sizeof(rows) / sizeof(rows[0]) == ROWS, "a number for each");

static void print_ratios(double more[ROWS][RATES])
{
	printf("| the recorder : `perf record` |");
	for (size_t r = 0; r < RATES; r++) {
		if (more[ROW_PERF][r] > 0)
			printf(" %.2f |", more[ROW_RECORDER][r] / more[ROW_PERF][r]);
		else
			printf(" - |"); /* there is none, or it is less than the noise */
	}
	putchar('\n');
}

static void print_rows(pid_t pid, struct shared *shared)
{
	double more[ROWS][RATES] = {0};

	puts("\n| more CPU time | 1 kHz | 4 kHz | 10 kHz |\n|---|---|---|---|");
	for (size_t i = 0; i < ROWS; i++) {
		printf("| %s |", rows[i].name);
		for (size_t r = 0; r < RATES; r++) {
			struct mode mode = rows[i];

			mode.hz = rates[r];
			if (mode.by == BY_PERF && !perf_peer__start(pid, mode.hz)) {
				printf(" no perf |");
				continue;
			}
			more[i][r] = run(&mode, pid, shared);
			printf(" %.1f %% |", more[i][r]);
			perf_peer__end();
		}
		putchar('\n');
		fflush(stdout);
	}
	print_ratios(more);
}

/* As attach chooses it: whether that is kept. */
static void print_kept(pid_t pid, struct shared *shared, const char *limit, uint64_t ppm)
{
	struct mode mode = {.name = "the recorder, -max-overhead", .base = &nothing};
	struct sample_cost cost;
	struct sample_load load;

	if (sample_cost__measure(0, false, NULL, &cost) || sample_load__measure(pid, 200, &load))
		die("what a sample costs");
	mode.hz = sample_cost__rate(&cost, &load, ppm);
	printf("-max-overhead %s: a stack costs %.1f us, a context switch %.1f us: %u Hz, ", limit,
	       (double)cost.sample_ns / 1e3, (double)cost.switch_ns / 1e3, mode.hz);
	fflush(stdout);
	printf("which cost %.2f %%\n", run(&mode, pid, shared));
}

/* With an argument only the table, or only what -max-overhead keeps, or only -also. */
static bool wants(int argc, char **argv, const char *part)
{
	return argc < 2 || !strcmp(argv[1], part);
}

int main(int argc, char **argv)
{
	struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid;

	if (geteuid()) {
		fprintf(stderr, "bench_sample: needs root\n");
		return 1;
	}
	alarm(LIMIT_S);
	pid = shared == MAP_FAILED ? -1 : start_target(shared);
	if (pid < 0)
		die("the target");
	if (wants(argc, argv, "table"))
		print_rows(pid, shared);
	if (wants(argc, argv, "limit")) {
		print_kept(pid, shared, "1%", 10000);
		print_kept(pid, shared, "3%", 30000);
	}
	if (wants(argc, argv, "also")) {
		run(&probe_logged, pid, shared);
		run(&also_return_probe, pid, shared);
		run(&also_ret_insns, pid, shared);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return 0;
}
