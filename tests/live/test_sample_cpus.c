// SPDX-License-Identifier: MIT
/*
 * Clocks run on the CPUs that the target may use, and follow it when these change. They find it on
 * a CPU, too, where its getting that was not seen.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <bpf/bpf.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sample_by_cpu.h"
#include "recorder.skel.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/fs.h"

static void move_to(pid_t pid, int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	assert_int_equal(sched_setaffinity(pid, sizeof(one), &one), 0);
}

static pid_t start_target(int cpu)
{
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (volatile uint64_t x = 0;; x++)
			;
	}
	assert_true(pid > 0);
	move_to(pid, cpu);
	return pid;
}

/* Nanoseconds that its clock has run on that CPU; 0: it has none there. */
static uint64_t clock_ns(const struct source *s, int cpu)
{
	for (size_t i = 0; i < s->followed.rings.n; i++) {
		uint64_t ns = 0;

		if (s->followed.rings.v[i]->place.cpu == cpu &&
		    read(ring_at(s, i)->events[SAMPLE_EVENT_CLOCK], &ns, sizeof(ns)) == sizeof(ns))
			return ns;
	}
	return 0;
}

/* The source looks once a second. */
static void look(struct source *s)
{
	uint64_t until = clock__now_ns() + 1100000000;

	do {
		usleep(50000);
		assert_int_equal(source_sample.state(s), SOURCE_RUNNING);
	} while (clock__now_ns() < until);
}

static bool ticks_on(const struct source *s, int cpu)
{
	uint64_t before = clock_ns(s, cpu);

	usleep(20000);
	return clock_ns(s, cpu) > before;
}

static void test_clocks_follow_the_affinity(void **state)
{
	pid_t pid;
	struct recorder *recorder;
	struct source *source;

	if (geteuid() || sysconf(_SC_NPROCESSORS_ONLN) < 2)
		skip();
	pid = start_target(0);
	recorder = recorder__new(&(struct recorder_config){.tgid = pid, .log_size = LOG_SIZE});
	assert_non_null(recorder);
	recorder__begin(recorder);
	source = start_samples(recorder, pid, 100);
	assert_true(ticks_on(source, 0));
	assert_int_equal(source->followed.rings.n, 1);

	move_to(pid, 1);
	look(source);
	assert_true(ticks_on(source, 1));
	assert_false(ticks_on(source, 0));

	move_to(pid, 0);
	look(source);
	assert_true(ticks_on(source, 0));
	assert_false(ticks_on(source, 1));

	source_sample.close(source);
	recorder__free(recorder);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* The recorder's map of that name, mapped where it can be. Others on the machine have such maps,
 * too. */
static int find_map(const char *name, size_t size, void **mapped)
{
	int found = -1;

	for (int fd = 3; fd < 1024 && found < 0; fd++) {
		struct bpf_map_info info = {0};
		uint32_t len = sizeof(info);
		char path[64], kind[64] = "";

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		if (readlink(path, kind, sizeof(kind) - 1) > 0 && strstr(kind, "bpf-map") &&
		    !bpf_obj_get_info_by_fd(fd, &info, &len) && !strcmp(info.name, name))
			found = fd;
	}
	assert_true(found >= 0);
	if (mapped) {
		*mapped = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, found, 0);
		assert_true(*mapped != MAP_FAILED);
	}
	return found;
}

struct first {
	uint64_t after_ns, ns;
	uint32_t tid, kind; /* of the thread's first record after that; 0: there is none */
};

static int take_first(void *ctx, const struct mt_record *record)
{
	struct first *first = ctx;

	if (record->tid != first->tid || record->time_ns <= first->after_ns || first->kind ||
	    record->kind == MT_RECORD_INTERRUPTS)
		return 0;
	first->kind = record->kind;
	first->ns = record->arg;
	return 0;
}

/* As bpf/recorder.bpf.c has it. */
struct throttled {
	uint64_t since_ns, cfs_rq, self_time;
};

#define THROTTLED_NS 50000000

/* How often the thread has left a CPU. */
static uint64_t count_switches(pid_t tid)
{
	_cleanup_free_ char *text = NULL;
	unsigned long long own, forced;
	const char *at;
	char path[64];
	size_t len;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)tid);
	assert_int_equal(fs__read(path, &text, &len), 0);
	at = strstr(text, "voluntary_ctxt_switches:");
	assert_non_null(at);
	assert_int_equal(sscanf(at,
				"voluntary_ctxt_switches: %llu nonvoluntary_ctxt_switches: %llu",
				&own, &forced),
			 2);
	return own + forced;
}

static bool comes_on(const struct mt_cpu *cpu, uint32_t tid)
{
	for (int i = 0; i < 10000; i++) {
		if (__atomic_load_n(&cpu->in_tid, __ATOMIC_ACQUIRE) == tid)
			return true;
		usleep(200);
	}
	return false;
}

/* Where others use the CPU as well, the thread may leave it while this test looks. */
#define TRIES 200

/*
 * As if a switch had been hidden from all programs: it is written that nobody has the CPU, and that
 * the thread that does run there has waited for it, since its quota was used up.
 */
static void test_a_thread_is_found_on_its_cpu(void **state)
{
	typedef __typeof__(*((struct recorder_bpf *)0)->bss) bss_t;
	struct recorder *recorder;
	struct source *source;
	struct mt_cpu *cpus;
	struct throttled throttled = {.cfs_rq = 1};
	struct first first = {0};
	uint64_t since_ns, switches;
	bool stays = false;
	uint32_t tid;
	bss_t *bss;
	int map;

	if (geteuid())
		skip();
	tid = (uint32_t)start_target(0);
	/* On CPU 0 this test would run only while the target does not. */
	if (sysconf(_SC_NPROCESSORS_ONLN) > 1)
		move_to(getpid(), 1);
	recorder =
		recorder__new(&(struct recorder_config){.tgid = (pid_t)tid, .log_size = LOG_SIZE});
	assert_non_null(recorder);
	map = find_map("throttled", 0, NULL);
	find_map("recorder.bss", sizeof(*bss), (void **)&bss);
	find_map("cpus", sizeof(*cpus), (void **)&cpus);
	source = start_samples(recorder, (pid_t)tid, 2000);
	for (int i = 0; i < TRIES && !stays; i++) {
		recorder__begin(recorder);
		assert_true(comes_on(&cpus[0], tid));
		switches = count_switches((pid_t)tid);
		first = (struct first){.after_ns = clock__now_ns(), .tid = tid};
		throttled.since_ns = first.after_ns - THROTTLED_NS;
		assert_int_equal(bpf_map_update_elem(map, &tid, &throttled, BPF_ANY), 0);
		bss->n_throttled = 1;
		if (cpus[0].in_tid != tid)
			continue;
		cpus[0].in_tid = 0;
		assert_true(comes_on(&cpus[0], tid));
		/* If so, it was the clock that has found the thread, not a switch. */
		stays = count_switches((pid_t)tid) == switches;
		assert_int_equal(recorder__take(recorder, &since_ns, take_first, &first), 0);
	}
	assert_true(stays);
	assert_int_equal(first.kind, MT_RECORD_THROTTLED);
	assert_true(first.ns >= THROTTLED_NS);

	source_sample.close(source);
	recorder__free(recorder);
	kill((pid_t)tid, SIGKILL);
	waitpid((pid_t)tid, NULL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_clocks_follow_the_affinity),
		cmocka_unit_test(test_a_thread_is_found_on_its_cpu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
