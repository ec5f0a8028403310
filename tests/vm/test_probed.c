// SPDX-License-Identifier: MIT
/* Runs in the VM: probes on instructions of each kind, while the code is traced. */
#include "pt_fixture.h"

#include <stdio.h>

#define ROUNDS 3

/*
 * 3n + 40 for n != 0. What the kernel emulates under a probe, and what it runs out of line: with
 * operands of its own, relative to the IP, a branch, a return.
 */
uint64_t probed_code(uint64_t n);
extern const char emulated_push[], plain_mov[], ip_relative[], emulated_call[], emulated_jump[],
	indirect_call[], plain_ret[];

__asm__(".text\n"
	".type probed_code, @function\n"
	"probed_code:\n"
	"emulated_push: push %rbp\n"
	"plain_mov: mov %rsp, %rbp\n"
	"xor %eax, %eax\n"
	"ip_relative: add forty(%rip), %rax\n"
	"emulated_call: call add_n\n"
	"test %rdi, %rdi\n"
	"emulated_jump: jne 1f\n"
	"ud2\n"
	"1: lea add_n(%rip), %rdx\n"
	"indirect_call: call *%rdx\n"
	"call add_n\n"
	"pop %rbp\n"
	"plain_ret: ret\n"
	"add_n: add %rdi, %rax\n"
	"ret\n"
	"forty: .quad 40\n"
	".size probed_code, .-probed_code\n");

static bool shows_trap_flag(void)
{
	uint64_t flags;

	/* Below the red zone. */
	__asm__ volatile("lea -128(%%rsp), %%rsp; pushf; pop %0; lea 128(%%rsp), %%rsp"
			 : "=r"(flags));
	return flags & 0x100;
}

static int work(void)
{
	if (shows_trap_flag())
		return 1;
	for (uint64_t n = 1; n <= ROUNDS; n++)
		if (probed_code(n) != 3 * n + 40)
			return 1;
	return 0;
}

static void trace(struct fixture *f)
{
	f->pt = open_pt(f, -1, true, 0);
	assert_true(f->pt >= 0);
	map_rings(f);
	assert_int_equal(ioctl(f->pt, PERF_EVENT_IOC_ENABLE, 0), 0);
}

static uint64_t hits(struct fixture *f)
{
	uint64_t count = 0;

	assert_int_equal(read(f->probe, &count, sizeof(count)), sizeof(count));
	return count;
}

static void test_each_kind(void **state)
{
	struct fixture *f = *state;
	const char *const sites[] = {emulated_push, plain_mov,	   ip_relative, emulated_call,
				     emulated_jump, indirect_call, plain_ret};

	trace(f);
	for (size_t i = 0; i < sizeof(sites) / sizeof(*sites); i++) {
		f->probe = open_probe(f, (uintptr_t)sites[i], -1, false, 0);
		assert_true(f->probe >= 0);
		run_child(f);
		assert_int_equal(hits(f), ROUNDS);
		close(f->probe);
		f->probe = -1;
		run_child(f);
	}
}

/* Stopped and started at any point, in and out of the probes. */
static void test_toggled_while_it_runs(void **state)
{
	struct fixture *f = *state;

	trace(f);
	f->probe = open_probe(f, (uintptr_t)plain_mov, -1, false, 0);
	assert_true(f->probe >= 0);
	for (int i = 0; i < 200; i++) {
		char byte = 'x';

		assert_int_equal(write(f->go, &byte, 1), 1);
		for (int k = 0; k < 4; k++) {
			ioctl(f->pt, PERF_EVENT_IOC_DISABLE, 0);
			ioctl(f->pt, PERF_EVENT_IOC_ENABLE, 0);
		}
		assert_int_equal(read(f->done, &byte, 1), 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_each_kind, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_toggled_while_it_runs, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
