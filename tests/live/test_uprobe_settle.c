// SPDX-License-Identifier: MIT
/*
 * A thread that is held inside a probe's handler, by a BPF program that waits for a page: settling
 * the probe waits for it, and so does attaching a trigger to the events of a source.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "own_code.h"
#include "session/gate.h"

#define PAGE_BYTES 4096
#define REGS_DI	   112 /* struct pt_regs */
#define WAIT_MS	   10000

struct held {
	struct uprobe_spec spec;
	void *page; /* not there until fill() */
	int probe, faults, source_event;
	struct gate gate;
	atomic_bool settled;
	int err;
};

__attribute__((noinline, noipa)) static void hit_with(const void *page)
{
	__asm__ volatile("nop" : : "r"(page));
}

/* Reads 8 bytes at the probed function's first argument, and waits where they are not there. */
static int load_reader(void)
{
	struct bpf_insn code[] = {
		{BPF_LDX | BPF_MEM | BPF_DW, 3, 1, REGS_DI, 0},
		{BPF_ALU64 | BPF_MOV | BPF_X, 1, 10, 0, 0},
		{BPF_ALU64 | BPF_ADD | BPF_K, 1, 0, 0, -8},
		{BPF_ALU64 | BPF_MOV | BPF_K, 2, 0, 0, 8},
		{BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_copy_from_user},
		{BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0},
		{BPF_JMP | BPF_EXIT, 0, 0, 0, 0},
	};
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_KPROBE,
		.prog_flags = BPF_F_SLEEPABLE,
		.insns = (uintptr_t)code,
		.insn_cnt = sizeof(code) / sizeof(*code),
		.license = (uintptr_t) "Dual MIT/GPL",
	};

	return (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
}

static int watch_faults(void *page)
{
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register range = {.range = {(uintptr_t)page, PAGE_BYTES},
					.mode = UFFDIO_REGISTER_MODE_MISSING};

	if (fd >= 0 && (ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &range))) {
		close(fd);
		return -1;
	}
	return fd;
}

static void fill(const struct held *h)
{
	struct uffdio_zeropage zero = {.range = {(uintptr_t)h->page, PAGE_BYTES}};

	assert_int_equal(ioctl(h->faults, UFFDIO_ZEROPAGE, &zero), 0);
}

static void *hit_thread(void *arg)
{
	hit_with(arg);
	return NULL;
}

static void *settle_thread(void *arg)
{
	struct held *h = arg;

	h->err = uprobe_event__settle(&h->spec);
	h->settled = true;
	return NULL;
}

static void open_held(struct held *h)
{
	int program = load_reader();

	if (program < 0) {
		puts("# skip: this kernel has no BPF programs for uprobes that wait");
		skip();
	}
	*h = (struct held){.probe = -1};
	h->page =
		mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	h->faults = watch_faults(h->page);
	assert_true(h->faults >= 0);
	assert_int_equal(own_probe__spec_of(&h->spec, (uintptr_t)hit_with), 0);
	h->spec.pid = getpid();
	h->probe = uprobe_event__open(&h->spec);
	assert_true(h->probe >= 0);
	assert_int_equal(ioctl(h->probe, PERF_EVENT_IOC_SET_BPF, program), 0);
	close(program);
}

/*
 * What settle() does begins while the thread is in the handler, and ends when it has left that. The
 * thread is let go whatever comes of it: one that stays there keeps the whole machine from removing
 * a probe.
 */
static void check_waits(struct held *h, void *(*settle)(void *))
{
	struct pollfd fault = {.fd = h->faults, .events = POLLIN};
	pthread_t hits, settles;
	bool is_early;
	int n;

	pthread_create(&hits, NULL, hit_thread, h->page);
	n = poll(&fault, 1, WAIT_MS);
	pthread_create(&settles, NULL, settle, h);
	usleep(100000);
	is_early = h->settled;
	fill(h);
	pthread_join(settles, NULL);
	pthread_join(hits, NULL);
	assert_int_equal(h->err, 0);
	assert_int_equal(n, 1);
	assert_false(is_early);
}

static void close_held(struct held *h)
{
	close(h->probe);
	close(h->faults);
	munmap(h->page, PAGE_BYTES);
}

static void test_waits_for_who_is_in_the_handler(void **state)
{
	struct held h;

	open_held(&h);
	check_waits(&h, settle_thread);
	close_held(&h);
}

static int event_of_source(const struct source *source, size_t i)
{
	return ((const struct held *)(const void *)source)->source_event;
}

static void *attach_thread(void *arg)
{
	struct held *h = arg;

	h->err = gate__attach(&h->gate, event_of_source, (const struct source *)(const void *)h);
	h->settled = true;
	return NULL;
}

/* Its event was there before the trigger's program: who came between the two is waited for. */
static void test_a_trigger_on_a_sources_event_waits_too(void **state)
{
	struct trigger_config config = {.tgid = getpid(), .delay_thresh_ns = UINT64_MAX};
	struct probe probe = {0};
	struct held h;

	open_held(&h);
	snprintf(probe.path, sizeof(probe.path), "%s", h.spec.path);
	probe.offset = probe.entry_offset = h.spec.offset;
	assert_int_equal(gate__open(&h.gate, &config, &(struct gate_probes){.v = &probe, .n = 1}),
			 0);
	h.source_event = uprobe_event__open(&h.spec);
	assert_true(h.source_event >= 0);
	check_waits(&h, attach_thread);
	gate__close(&h.gate);
	close(h.source_event);
	close_held(&h);
}

static void test_without_anybody_there(void **state)
{
	struct uprobe_spec spec, none;

	assert_int_equal(own_probe__spec_of(&spec, (uintptr_t)hit_with), 0);
	assert_int_equal(uprobe_event__settle(&spec), 0);
	none = spec;
	none.path = "/nonexistent";
	assert_int_equal(uprobe_event__settle(&none), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_waits_for_who_is_in_the_handler),
		cmocka_unit_test(test_a_trigger_on_a_sources_event_waits_too),
		cmocka_unit_test(test_without_anybody_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
