// SPDX-License-Identifier: MIT
/* Runs in the VM: how a probe's hit stops Intel PT inside the kernel, and where the trace ends. */
#include "pt_fixture.h"

#include <intel-pt.h>
#include <linux/bpf.h>

/* arch/x86/include/asm/ptrace.h: struct pt_regs */
#define REGS_DI 112
#define HITS	10
#define WANTED	5

__attribute__((noinline, noipa)) static void hit_me(int n)
{
	__asm__ volatile("nop" : : "r"(n));
}

static int work(void)
{
	for (int i = 1; i <= HITS; i++)
		hit_me(i);
	return 0;
}

/* The probe stands on the first instruction, whatever that is. */
static uint64_t probed_ip(void)
{
	return (uintptr_t)hit_me;
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

static bool open_paused_by_probe(struct fixture *f, uint16_t start)
{
	f->pt = open_pt(f, -1, true, start);
	if (f->pt < 0)
		return false;
	map_rings(f);
	f->probe = open_probe(f, probed_ip(), f->pt, false, AUX_PAUSE);
	return f->probe >= 0;
}

static void need_aux_pause(struct fixture *f, uint16_t start)
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
	run_child(f);
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
	run_child(f);
	assert_int_equal(ioctl(f->pt, PERF_EVENT_IOC_DISABLE, 0), 0);
	head = aux_head(f);
	assert_int_equal(ioctl(f->pt, PERF_EVENT_IOC_ENABLE, 0), 0);
	run_child(f);
	assert_int_equal(ioctl(f->pt, PERF_EVENT_IOC_DISABLE, 0), 0);
	assert_true(aux_head(f) == head);
}

static void test_start_paused(void **state)
{
	struct fixture *f = *state;

	need_aux_pause(f, AUX_START_PAUSED);
	assert_int_equal(ioctl(f->pt, PERF_EVENT_IOC_ENABLE, 0), 0);
	run_child(f);
	assert_int_equal(ioctl(f->pt, PERF_EVENT_IOC_DISABLE, 0), 0);
	assert_int_equal(aux_head(f), 0);
}

/* The leader's overflow takes the whole group off the CPU: aux_head is right with no more done. */
static void test_refresh_at_the_gated_hit(void **state)
{
	struct fixture *f = *state;
	struct trace trace;

	f->probe = open_probe(f, probed_ip(), -1, true, 0);
	assert_true(f->probe >= 0);
	f->pt = open_pt(f, f->probe, false, 0);
	assert_true(f->pt >= 0);
	map_rings(f);
	gate(f);
	assert_int_equal(ioctl(f->probe, PERF_EVENT_IOC_REFRESH, 1), 0);
	run_child(f);

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
