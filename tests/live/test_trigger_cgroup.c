// SPDX-License-Identifier: MIT
/* Of a cgroup's trigger: whose hits count, where everybody hits the probe. */
#include "trigger_fixture.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "target/cgroup.h"
#include "util/fs.h"

/* Two children of the same program: one in a cgroup (below another), one not. */
struct pair {
	struct fixture in, out;
	struct cgroup cgroup, below;
	const char *skip;
};

static void make_cgroup(struct pair *p, struct cgroup *cgroup, const char *parent)
{
	char *mountinfo, name[PATH_MAX], path[PATH_MAX];
	size_t len;

	snprintf(name, sizeof(name), "%s/mtbpf-test-%d", parent, getpid());
	if (fs__read("/proc/self/mountinfo", &mountinfo, &len))
		return;
	if (cgroup__locate(mountinfo, name + (*parent ? 0 : 1), path))
		p->skip = "no cgroup v2 hierarchy is mounted";
	else if (mkdir(path, 0755))
		p->skip = "no cgroup can be made here";
	else if (cgroup__open(cgroup, path))
		p->skip = "the new cgroup cannot be opened";
	free(mountinfo);
}

static void move_to(const struct cgroup *cgroup, pid_t pid)
{
	char path[PATH_MAX + 32], text[16];
	int len = snprintf(text, sizeof(text), "%d", pid);

	snprintf(path, sizeof(path), "%s/cgroup.procs", cgroup->path);
	assert_int_equal(fs__write(path, text, (size_t)len), 0);
}

static int set_up_pair(void **state)
{
	struct pair *p = calloc(1, sizeof(*p));

	*state = p;
	p->cgroup.fd = p->below.fd = -1;
	p->in.entry = p->out.entry = p->in.on_return = p->out.on_return = -1;
	if (geteuid())
		p->skip = "needs root";
	if (!p->skip)
		make_cgroup(p, &p->cgroup, "");
	if (!p->skip)
		make_cgroup(p, &p->below, p->cgroup.path);
	return probed_child__start(&p->in.child) || probed_child__start(&p->out.child);
}

static void remove_cgroup(struct cgroup *cgroup)
{
	if (cgroup->fd < 0)
		return;
	for (int i = 0; i < 100 && cgroup__populated(cgroup); i++)
		usleep(10000);
	cgroup__close(cgroup);
	assert_int_equal(rmdir(cgroup->path), 0);
}

static int tear_down_pair(void **state)
{
	struct pair *p = *state;

	remove_probes(&p->in);
	probed_child__stop(&p->in.child);
	probed_child__stop(&p->out.child);
	remove_cgroup(&p->below);
	remove_cgroup(&p->cgroup);
	free(p);
	return 0;
}

/* For everybody, with the trigger for the upper cgroup alone. */
static void attach_to_cgroup(struct pair *p, struct trigger_config config)
{
	const char *skip_because = p->skip ? p->skip : skip_reason;

	if (skip_because) {
		print_message("# skip: %s\n", skip_because);
		skip();
	}
	config.of_cgroup = true;
	config.cgroup_fd = p->cgroup.fd;
	p->in.trigger = trigger__new_with_latch(&config, latch);
	assert_non_null(p->in.trigger);
	p->in.entry = own_code__probe(-1, (uintptr_t)hit_me, false);
	assert_true(p->in.entry >= 0);
	assert_int_equal(trigger__attach(p->in.trigger, p->in.entry, -1), 0);
}

static void test_hits_in_it_and_below_it_count(void **state)
{
	struct pair *p = *state;

	attach_to_cgroup(p, (struct trigger_config){0});
	arm(&p->in);
	run(&p->in, HIT, 3);
	run(&p->out, HIT, 3);
	expect_no_hit(&p->in);
	assert_int_equal(stats_of(&p->in).hits, 0);

	move_to(&p->cgroup, p->in.child.pid);
	run(&p->out, HIT, 3);
	expect_no_hit(&p->in);
	run(&p->in, HIT, 5);
	expect_hit(&p->in);
	assert_int_equal(stats_of(&p->in).hits, 5);

	move_to(&p->below, p->in.child.pid);
	arm(&p->in);
	run(&p->out, HIT, 3);
	run(&p->in, HIT, 4);
	expect_hit(&p->in);
	assert_int_equal(stats_of(&p->in).hits, 9);
}

static void test_a_slow_call_of_another_is_not_caught(void **state)
{
	struct pair *p = *state;

	attach_to_cgroup(p, (struct trigger_config){.delay_thresh_ns = THRESH_NS});
	move_to(&p->below, p->in.child.pid);
	arm(&p->in);
	run(&p->in, HIT, 10);
	run(&p->out, HIT, 1);
	run(&p->out, HIT_LATE, SLOW_MS);
	expect_no_hit(&p->in);
	/* Its own threads are of the cgroup, too. */
	assert_true(run(&p->in, HIT_THREADS, SLOW_MS) > 0);
	assert_true(expect_hit(&p->in).value_ns >= SLOW_MS * MS);
}

#define PAIR(test) cmocka_unit_test_setup_teardown(test, set_up_pair, tear_down_pair)

static int run_group(const char *name)
{
	const struct CMUnitTest tests[] = {
		PAIR(test_hits_in_it_and_below_it_count),
		PAIR(test_a_slow_call_of_another_is_not_caught),
	};

	return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

int main(void)
{
	return run_with_both(run_group);
}
