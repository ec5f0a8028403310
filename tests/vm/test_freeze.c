// SPDX-License-Identifier: MIT
/* Runs in the VM: how a probe's hit stops Intel PT inside the kernel, and where the trace ends. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <intel-pt.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../live/own_code.h"
#include "util/fs.h"

#define DATA_PAGES 8
#define AUX_SIZE   (256 * 1024)
/* include/uapi/linux/perf_event.h: aux_action, which lies where older headers have __reserved_3. */
#define AUX_START_PAUSED 1
#define AUX_PAUSE	 2
/* arch/x86/include/asm/ptrace.h: struct pt_regs */
#define REGS_DI 112
#define HITS	10
#define WANTED	5

struct fixture {
	pid_t child;
	int go, done; /* pipes */
	int pt, probe, program;
	uint8_t *base, *aux;
};

__attribute__((noinline, noipa)) static void hit_me(int n)
{
	__asm__ volatile("nop" : : "r"(n));
}

/* The probe stands on the first instruction, whatever that is. */
static uint64_t probed_ip(void)
{
	return (uintptr_t)hit_me;
}

static void child__main(int go, int done)
{
	char byte;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(go, &byte, 1) == 1) {
		for (int i = 1; i <= HITS; i++)
			hit_me(i);
		if (write(done, &byte, 1) != 1)
			break;
	}
	_exit(0);
}

static int set_up(void **state)
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

static int tear_down(void **state)
{
	struct fixture *f = *state;

	if (f->aux)
		munmap(f->aux, AUX_SIZE);
	if (f->base)
		munmap(f->base, (DATA_PAGES + 1) * 4096);
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

static void run_hits(struct fixture *f)
{
	char byte = 'x';

	assert_int_equal(write(f->go, &byte, 1), 1);
	assert_int_equal(read(f->done, &byte, 1), 1);
	/* The target has neither died nor stopped of it. */
	assert_int_equal(waitpid(f->child, NULL, WNOHANG), 0);
}

static uint64_t read_number(const char *path)
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

static int open_event(struct perf_event_attr *attr, pid_t pid, int group)
{
	int fd;

	attr->size = sizeof(*attr);
	fd = (int)syscall(SYS_perf_event_open, attr, pid, -1, group, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int open_pt(struct fixture *f, int group, bool disabled, uint32_t aux_action)
{
	struct perf_event_attr attr = {
		.type = (uint32_t)read_number("/sys/bus/event_source/devices/intel_pt/type"),
		.config = 1 | 1 << 10 | 1 << 13, /* pt, tsc, branch */
		.disabled = disabled,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.__reserved_3 = (uint16_t)aux_action,
	};

	return open_event(&attr, f->child, group);
}

static int open_probe(struct fixture *f, int group, bool disabled, uint32_t aux_action)
{
	struct own_code_search search = {.address = probed_ip()};
	struct perf_event_attr attr = {
		.type = (uint32_t)read_number("/sys/bus/event_source/devices/uprobe/type"),
		.config1 = (uintptr_t) "/proc/self/exe",
		.sample_period = 1,
		.disabled = disabled,
		.__reserved_3 = (uint16_t)aux_action,
	};

	dl_iterate_phdr(own_code__visit, &search);
	attr.config2 = search.offset;
	return open_event(&attr, f->child, group);
}

static void map_buffers(struct fixture *f)
{
	struct perf_event_mmap_page *page;

	f->base = mmap(NULL, (DATA_PAGES + 1) * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, f->pt, 0);
	assert_ptr_not_equal(f->base, MAP_FAILED);
	page = (void *)f->base;
	page->aux_offset = (DATA_PAGES + 1) * 4096;
	page->aux_size = AUX_SIZE;
	f->aux = mmap(NULL, AUX_SIZE, PROT_READ, MAP_SHARED, f->pt, (off_t)page->aux_offset);
	assert_ptr_not_equal(f->aux, MAP_FAILED);
}

/* Returns 1 on the hit whose argument is WANTED, else 0. */
static void gate(struct fixture *f)
{
	struct bpf_insn code[] = {
		{BPF_LDX | BPF_MEM | BPF_DW, 0, 1, REGS_DI, 0},
		{BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 2, WANTED},
		{BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0},
		{BPF_JMP | BPF_EXIT, 0, 0, 0, 0},
		{BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 1},
		{BPF_JMP | BPF_EXIT, 0, 0, 0, 0},
	};
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_KPROBE,
		.insns = (uintptr_t)code,
		.insn_cnt = sizeof(code) / sizeof(*code),
		.license = (uintptr_t) "Dual MIT/GPL",
	};

	f->program = (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
	assert_true(f->program >= 0);
	assert_int_equal(ioctl(f->probe, PERF_EVENT_IOC_SET_BPF, f->program), 0);
}

static uint64_t aux_head(struct fixture *f)
{
	return __atomic_load_n(&((struct perf_event_mmap_page *)f->base)->aux_head,
			       __ATOMIC_ACQUIRE);
}

/* What a trace holds: how often it stood at the probe, and what stands at its end. */
struct trace {
	unsigned int at_probe; /* FUPs of the probed instruction */
	uint64_t last_fup;
	enum pt_packet_type last; /* of those that are not padding */
};

static uint64_t full_ip(uint64_t last, const struct pt_packet_ip *packet)
{
	switch (packet->ipc) {
	case pt_ipc_update_16:
		return (last & ~0xffffull) | packet->ip;
	case pt_ipc_update_32:
		return (last & ~0xffffffffull) | packet->ip;
	case pt_ipc_sext_48:
		return (uint64_t)((int64_t)(packet->ip << 16) >> 16);
	default:
		return packet->ip;
	}
}

static void note_packet(struct trace *trace, const struct pt_packet *packet, uint64_t *last_ip)
{
	switch (packet->type) {
	case ppt_pad:
		return;
	case ppt_psb:
		*last_ip = 0;
		break;
	case ppt_tip:
	case ppt_tip_pge:
	case ppt_tip_pgd:
	case ppt_fup:
		if (packet->payload.ip.ipc != pt_ipc_suppressed)
			*last_ip = full_ip(*last_ip, &packet->payload.ip);
		if (packet->type == ppt_fup) {
			trace->last_fup = *last_ip;
			trace->at_probe += *last_ip == probed_ip();
		}
		break;
	default:
		break;
	}
	trace->last = packet->type;
}

/* Of a buffer that has not wrapped. */
static struct trace read_trace(struct fixture *f)
{
	struct trace trace = {0};
	struct pt_config config;
	struct pt_packet_decoder *decoder;
	struct pt_packet packet;
	uint64_t last_ip = 0;

	pt_config_init(&config);
	config.begin = f->aux;
	config.end = f->aux + aux_head(f);
	decoder = pt_pkt_alloc_decoder(&config);
	assert_non_null(decoder);
	assert_true(pt_pkt_sync_forward(decoder) >= 0);
	while (pt_pkt_next(decoder, &packet, sizeof(packet)) > 0)
		note_packet(&trace, &packet, &last_ip);
	pt_pkt_free_decoder(decoder);
	return trace;
}

static uint64_t pauses(void)
{
	return read_number("/sys/module/softpt/parameters/pauses");
}

static bool open_paused_by_probe(struct fixture *f, uint32_t start)
{
	f->pt = open_pt(f, -1, true, start);
	if (f->pt < 0)
		return false;
	map_buffers(f);
	f->probe = open_probe(f, f->pt, false, AUX_PAUSE);
	return f->probe >= 0;
}

static void need_aux_pause(struct fixture *f, uint32_t start)
{
	if (open_paused_by_probe(f, start))
		return;
	print_message("# skip: this kernel cannot pause AUX events\n");
	skip();
}

static void test_pause_at_the_gated_hit(void **state)
{
	struct fixture *f = *state;
	uint64_t before = pauses();
	struct trace trace;

	need_aux_pause(f, 0);
	gate(f);
	assert_int_equal(ioctl(f->pt, PERF_EVENT_IOC_ENABLE, 0), 0);
	run_hits(f);
	assert_int_equal(pauses() - before, 1);
	assert_int_equal(ioctl(f->pt, PERF_EVENT_IOC_DISABLE, 0), 0);

	trace = read_trace(f);
	assert_int_equal(trace.at_probe, WANTED);
	assert_true(trace.last_fup == probed_ip());
	assert_int_equal(trace.last, ppt_tip_pgd);
}

static void test_paused_stays_paused(void **state)
{
	struct fixture *f = *state;
	uint64_t head;

	need_aux_pause(f, 0);
	gate(f);
	assert_int_equal(ioctl(f->pt, PERF_EVENT_IOC_ENABLE, 0), 0);
	run_hits(f);
	assert_int_equal(ioctl(f->pt, PERF_EVENT_IOC_DISABLE, 0), 0);
	head = aux_head(f);
	assert_int_equal(ioctl(f->pt, PERF_EVENT_IOC_ENABLE, 0), 0);
	run_hits(f);
	assert_int_equal(ioctl(f->pt, PERF_EVENT_IOC_DISABLE, 0), 0);
	assert_true(aux_head(f) == head);
}

static void test_start_paused(void **state)
{
	struct fixture *f = *state;

	need_aux_pause(f, AUX_START_PAUSED);
	assert_int_equal(ioctl(f->pt, PERF_EVENT_IOC_ENABLE, 0), 0);
	run_hits(f);
	assert_int_equal(ioctl(f->pt, PERF_EVENT_IOC_DISABLE, 0), 0);
	assert_int_equal(aux_head(f), 0);
}

/* The leader's overflow takes the whole group off the CPU: aux_head is right with no more done. */
static void test_refresh_at_the_gated_hit(void **state)
{
	struct fixture *f = *state;
	struct trace trace;

	f->probe = open_probe(f, -1, true, 0);
	assert_true(f->probe >= 0);
	f->pt = open_pt(f, f->probe, false, 0);
	assert_true(f->pt >= 0);
	map_buffers(f);
	gate(f);
	assert_int_equal(ioctl(f->probe, PERF_EVENT_IOC_REFRESH, 1), 0);
	run_hits(f);

	trace = read_trace(f);
	assert_int_equal(trace.at_probe, WANTED);
	assert_true(trace.last_fup == probed_ip());
	assert_int_equal(trace.last, ppt_tip_pgd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_pause_at_the_gated_hit, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_paused_stays_paused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_start_paused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_refresh_at_the_gated_hit, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
