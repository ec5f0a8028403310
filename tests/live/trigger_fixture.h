/* SPDX-License-Identifier: MIT */
/* The trigger attached to a child of the test: what the live tests of the trigger share. */
#ifndef MTBPF_TESTS_TRIGGER_FIXTURE_H
#define MTBPF_TESTS_TRIGGER_FIXTURE_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>
#include <cmocka.h>

#include "own_code.h"
#include "probed_child.h"
#include "trigger/probe_site.h"
#include "trigger/trigger.h"
#include "trigger/trigger_internal.h"

#define MS 1000000ull
/* Neither a slow call nor a busy machine's fast one comes near. */
#define THRESH_NS (200 * MS)
/* Of a test program: one that hangs is killed, and its children with it, before tests/run kills it.
 * Most of the time they wait for the kernel to let go of probes: 75 s on a machine that does
 * nothing else. */
#define LIMIT_S 500

/* Of the group of tests that runs: set by run_with_both(). */
static enum trigger_latch latch;
static const char *skip_reason;

struct fixture {
	struct probed_child child;
	struct trigger *trigger;
	int entry, on_return;
};

static inline int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	if (!fixture || probed_child__start(&fixture->child))
		return -1;
	fixture->entry = fixture->on_return = -1;
	*state = fixture;
	return 0;
}

static inline void close_event(int *event)
{
	if (*event >= 0)
		close(*event);
	*event = -1;
}

static inline void remove_probes(struct fixture *fixture)
{
	trigger__free(fixture->trigger);
	fixture->trigger = NULL;
	close_event(&fixture->entry);
	close_event(&fixture->on_return);
}

static inline int tear_down(void **state)
{
	struct fixture *fixture = *state;

	remove_probes(fixture);
	probed_child__stop(&fixture->child);
	free(fixture);
	return 0;
}

/* Where one of our functions in assembly returns, behind its entry: none is longer. */
static inline uint32_t exit_of(const void *function)
{
	struct exit_part part = {function, 1, (uintptr_t)function};
	struct exit_sites sites;

	/* A conditional jump seems to leave what is not all of it. */
	while (part.len < 64 && (exit_sites__find(&part, NULL, NULL, &sites) || sites.condition[0]))
		part.len++;
	assert_int_equal(sites.n, 1);
	return (uint32_t)sites.at[0];
}

/* Loads and attaches to `function` of the child; not armed. The config's tgid may be left 0. */
static inline void attach_to(struct fixture *fixture, struct trigger_config config,
			     const void *function)
{
	pid_t pid = fixture->child.pid;
	uintptr_t address = (uintptr_t)function;

	if (skip_reason) {
		print_message("# skip: %s\n", skip_reason);
		skip();
	}
	config.tgid = config.tgid ? config.tgid : pid;
	config.probe_at_entry = true;
	fixture->trigger = trigger__new_with_latch(&config, latch);
	assert_non_null(fixture->trigger);
	fixture->entry = own_code__probe(pid, address, false);
	assert_true(fixture->entry >= 0);
	if (trigger__needs_return(&config)) {
		fixture->on_return =
			config.returns_by_insn
				? own_code__probe(pid, address + exit_of(function), false)
				: own_code__probe(pid, address, true);
		assert_true(fixture->on_return >= 0);
	}
	assert_int_equal(trigger__attach(fixture->trigger, fixture->entry, fixture->on_return), 0);
}

static inline int run(const struct fixture *fixture, enum job job, int arg)
{
	return probed_child__run(&fixture->child, job, arg);
}

static inline void arm(const struct fixture *fixture)
{
	assert_int_equal(trigger__arm(fixture->trigger), 0);
}

static inline bool is_readable(int fd)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};

	return poll(&pfd, 1, 0) == 1;
}

static inline struct mt_hit expect_hit(const struct fixture *fixture)
{
	struct mt_hit hit;

	assert_true(is_readable(trigger__fd(fixture->trigger)));
	assert_int_equal(trigger__next(fixture->trigger, &hit), 1);
	assert_int_equal(hit.tgid, fixture->child.pid);
	return hit;
}

static inline void expect_no_hit(const struct fixture *fixture)
{
	struct mt_hit hit;

	assert_false(is_readable(trigger__fd(fixture->trigger)));
	assert_int_equal(trigger__next(fixture->trigger, &hit), 0);
}

/* How often the gate let the event happen. */
static inline uint64_t count_of(int event)
{
	uint64_t count;

	assert_int_equal(read(event, &count, sizeof(count)), sizeof(count));
	return count;
}

static inline struct mt_stats stats_of(const struct fixture *fixture)
{
	struct mt_stats stats;

	assert_int_equal(trigger__stats(fixture->trigger, &stats), 0);
	return stats;
}

static inline uint64_t histogram_sum(const struct mt_stats *stats)
{
	uint64_t sum = 0;

	for (int i = 0; i < MT_HIST_BUCKETS; i++)
		sum += stats->hist[i];
	return sum;
}

static inline uint8_t child_byte(const struct fixture *fixture, const void *address)
{
	char path[64];
	uint8_t byte;
	FILE *mem;

	snprintf(path, sizeof(path), "/proc/%d/mem", fixture->child.pid);
	mem = fopen(path, "re");
	assert_non_null(mem);
	assert_int_equal(fseek(mem, (long)address, SEEK_SET), 0);
	assert_int_equal(fread(&byte, 1, 1, mem), 1);
	fclose(mem);
	return byte;
}

static inline const char *why_not_here(void)
{
	const struct trigger_config config = {.tgid = getpid()};
	struct trigger *trigger;
	int event;

	if (geteuid())
		return "needs root for uprobes and BPF";
	event = own_code__probe(getpid(), (uintptr_t)hit_me, false);
	if (event < 0)
		return "no uprobe events here";
	close(event);
	trigger = trigger__new_with_latch(&config, latch);
	if (!trigger)
		return latch == TRIGGER_LATCH_TASK_STORAGE ? "no BPF task storage here"
							   : "no BPF here";
	trigger__free(trigger);
	return NULL;
}

#define LIVE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

/* Runs the tests with task storage, then with the LRU hash. Returns the exit status. */
static inline int run_with_both(int (*run_group)(const char *name))
{
	int failed;

	alarm(LIMIT_S);
	latch = TRIGGER_LATCH_TASK_STORAGE;
	skip_reason = why_not_here();
	failed = run_group("task storage");
	latch = TRIGGER_LATCH_LRU_HASH;
	skip_reason = why_not_here();
	failed += run_group("LRU hash");
	return failed ? 1 : 0;
}

#endif
