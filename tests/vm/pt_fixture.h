/* SPDX-License-Identifier: MIT */
/* A child that calls a function when told to, and Intel PT events on it. */
#ifndef MTBPF_TESTS_PT_FIXTURE_H
#define MTBPF_TESTS_PT_FIXTURE_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../live/own_code.h"
#include "util/fs.h"

#define DATA_PAGES 8
#define BASE_SIZE  ((DATA_PAGES + 1) * 4096)
#define AUX_SIZE   (256 * 1024)
/* include/uapi/linux/perf_event.h: aux_action, which lies where older headers have __reserved_3. */
#define AUX_START_PAUSED 1
#define AUX_PAUSE	 2

struct fixture {
	pid_t child;
	int go, done; /* pipes */
	int pt, probe, program;
	uint8_t *base, *aux;
};

/* What the child does when told to; another result than 0 ends it. */
static int work(void);

static inline void child__main(int go, int done)
{
	char byte;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(go, &byte, 1) == 1)
		if (work() || write(done, &byte, 1) != 1)
			break;
	_exit(0);
}

static inline int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	int go[2], done[2];

	if (!f || pipe(go) || pipe(done))
		return -1;
	*f = (struct fixture){.go = go[1], .done = done[0], .pt = -1, .probe = -1, .program = -1};
	f->child = fork();
	if (!f->child) {
		close(go[1]);
		child__main(go[0], done[1]);
	}
	close(go[0]);
	close(done[1]);
	*state = f;
	return f->child < 0 ? -1 : 0;
}

static inline int tear_down(void **state)
{
	struct fixture *f = *state;

	if (f->aux)
		munmap(f->aux, AUX_SIZE);
	if (f->base)
		munmap(f->base, BASE_SIZE);
	close(f->probe);
	close(f->pt);
	close(f->program);
	close(f->go);
	close(f->done);
	kill(f->child, SIGKILL);
	waitpid(f->child, NULL, 0);
	free(f);
	return 0;
}

/* Lets the child work once. Its death shows here. */
static inline void run_child(struct fixture *f)
{
	char byte = 'x';

	assert_int_equal(write(f->go, &byte, 1), 1);
	assert_int_equal(read(f->done, &byte, 1), 1);
}

/* 0 where it cannot be read. */
static inline uint64_t read_number(const char *path)
{
	char *text = NULL;
	size_t len;
	uint64_t value;

	if (fs__read(path, &text, &len))
		return 0;
	value = strtoull(text, NULL, 0);
	free(text);
	return value;
}

static inline int open_event(struct perf_event_attr *attr, pid_t pid, int group)
{
	int fd;

	attr->size = sizeof(*attr);
	fd = (int)syscall(SYS_perf_event_open, attr, pid, -1, group, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* A descriptor or -errno, as all of these. */
static inline int open_pt(struct fixture *f, int group, bool disabled, uint16_t aux_action)
{
	struct perf_event_attr attr = {
		.type = (uint32_t)read_number("/sys/bus/event_source/devices/intel_pt/type"),
		.config = 1 | 1 << 10 | 1 << 13, /* pt, tsc, branch */
		.disabled = disabled,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.__reserved_3 = aux_action,
	};

	return open_event(&attr, f->child, group);
}

static inline int open_probe(struct fixture *f, uint64_t address, int group, bool disabled,
			     uint16_t aux_action)
{
	struct uprobe_spec spec;
	int err = own_probe__spec_of(&spec, address);
	struct perf_event_attr attr = {
		.type = (uint32_t)read_number("/sys/bus/event_source/devices/uprobe/type"),
		.config1 = (uintptr_t) "/proc/self/exe",
		.sample_period = 1,
		.disabled = disabled,
		.__reserved_3 = aux_action,
	};

	if (err)
		return err;
	attr.config2 = spec.offset;
	return open_event(&attr, f->child, group);
}

/* The PT event's rings; AUX in overwrite mode. */
static inline void map_rings(struct fixture *f)
{
	struct perf_event_mmap_page *page;

	f->base = mmap(NULL, BASE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, f->pt, 0);
	assert_ptr_not_equal(f->base, MAP_FAILED);
	page = (void *)f->base;
	page->aux_offset = BASE_SIZE;
	page->aux_size = AUX_SIZE;
	f->aux = mmap(NULL, AUX_SIZE, PROT_READ, MAP_SHARED, f->pt, BASE_SIZE);
	assert_ptr_not_equal(f->aux, MAP_FAILED);
}

static inline uint64_t aux_head(struct fixture *f)
{
	struct perf_event_mmap_page *page = (void *)f->base;

	return __atomic_load_n(&page->aux_head, __ATOMIC_ACQUIRE);
}

#endif
