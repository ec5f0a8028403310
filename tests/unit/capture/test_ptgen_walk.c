// SPDX-License-Identifier: MIT
/* What ptgen writes for the blocks that a thread runs (tests/ptgen/walk.h). */
#include "pt_fixture.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "walk.h"

#define RESTORER 0x7000
#define HANDLER	 0x5000
#define OTHER	 0x6000
#define SP	 0x7ffe00001000ull

struct fixture {
	struct ptgen_shared *shared;
	struct walk walk;
	struct signals signals;
	char *truth;
	size_t truth_size;
	FILE *truth_log;
	char text[4096]; /* packets, without those of time */
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->shared = calloc(1, ptgen_shared__size(4096));
	f->shared->config.ring_size = 4096;
	f->shared->config.stream = (struct pt_stream_config){.psb_period = 1u << 30,
							     .tsc_interval = UINT64_MAX,
							     .return_compression = true,
							     .cbr = PTGEN_CBR};
	f->shared->threads[0].tid = 43;
	f->truth_log = open_memstream(&f->truth, &f->truth_size);
	f->signals.handler[SIGUSR1] = f->signals.handler[SIGSEGV] = HANDLER;
	f->signals.handler[SIGUSR2] = OTHER;
	for (int nr = 1; nr <= 64; nr++)
		f->signals.restorer[nr] = RESTORER;
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	walk__fini(&f->walk);
	fclose(f->truth_log);
	free(f->truth);
	free(f->shared);
	free(f);
	return 0;
}

static void start(struct fixture *f)
{
	walk__init(&f->walk, f->shared, 0, &f->signals, f->truth_log);
}

/* Four instructions of four bytes; the last one is of this class. */
static struct block block(uint64_t ip, enum insn_class cls, uint64_t target)
{
	return (struct block){.start = ip,
			      .last = ip + 12,
			      .end = ip + 16,
			      .target = target,
			      .count = 4,
			      .cls = (uint8_t)cls};
}

static void run(struct fixture *f, const struct block *b, uint64_t sp)
{
	struct cpu_regs regs = {.rsp = sp};

	walk__block(&f->walk, b, &regs);
}

static const char *flow(struct fixture *f)
{
	struct pt_reader r;
	size_t n = 0;

	pt_stream__flush(f->walk.stream);
	f->text[0] = '\0';
	pt_reader__open(&r, ptgen_shared__ring(f->shared, 0), f->walk.out->written);
	while (pt_reader__next(&r)) {
		char packet[64];

		pt_reader__print(&r, packet, sizeof(packet));
		if (r.packet.type == ppt_tsc || r.packet.type == ppt_cbr ||
		    r.packet.type == ppt_mode || r.packet.type == ppt_psbend)
			continue;
		n += (size_t)snprintf(f->text + n, sizeof(f->text) - n, "%s%s", n ? ", " : "",
				      packet);
	}
	pt_reader__close(&r);
	return f->text;
}

static const char *truth(struct fixture *f)
{
	fflush(f->truth_log);
	return f->truth;
}

/* What the kernel leaves on the stack: arch/x86/include/asm/sigframe.h, struct rt_sigframe. */
struct frame {
	uint64_t restorer;
	uint8_t context[304];
	int32_t signo, sig_errno, code;
};

static void fill_frame(struct frame *frame, int signo, int code, uint64_t ip, uint64_t sp)
{
	ucontext_t context = {0};

	context.uc_mcontext.gregs[REG_RIP] = (greg_t)ip;
	context.uc_mcontext.gregs[REG_RSP] = (greg_t)sp;
	*frame = (struct frame){.restorer = RESTORER, .signo = signo, .code = code};
	memcpy(frame->context, &context, sizeof(frame->context));
}

static void run_handler(struct fixture *f, uint64_t ip, const struct frame *frame)
{
	struct block b = block(ip, INSN_RET, 0);
	struct cpu_regs regs = {.rsp = (uint64_t)frame,
				.rdx = (uint64_t)frame->context,
				.rdi = (uint64_t)frame->signo};
	static struct block kept[4];
	static unsigned int n;

	b.is_handler = true;
	kept[n++ % 4] = b;
	walk__block(&f->walk, &kept[(n - 1) % 4], &regs);
}

static void test_branches(void **state)
{
	struct fixture *f = *state;
	struct block cond = block(0x1000, INSN_COND, 0x1100),
		     call = block(0x1100, INSN_CALL, 0x2000), ret = block(0x2000, INSN_RET, 0),
		     jump = block(0x1110, INSN_JUMP, 0x1000),
		     indirect = block(0x1010, INSN_JUMP_INDIRECT, 0);

	start(f);
	run(f, &cond, SP);
	run(f, &call, SP); /* taken */
	run(f, &ret, SP - 8);
	run(f, &jump, SP);
	run(f, &cond, SP);
	run(f, &indirect, SP); /* not taken */
	run(f, &ret, SP);
	assert_string_equal(flow(f), "psb, pge sext48:1000, tnt TTN, tip 16:2000");
	/* The begin, and five that went elsewhere. */
	assert_int_equal(f->walk.out->branches, 6);
	assert_string_equal(truth(f), "43 2 call 0x2000 1\n"
				      "43 3 return 0x1110 0\n");
}

static void test_a_return_that_pops_arguments(void **state)
{
	struct fixture *f = *state;
	struct block call = block(0x1000, INSN_CALL, 0x2000), ret = block(0x2000, INSN_RET, 0),
		     next = block(0x1010, INSN_OTHER, 0);

	ret.popped = 16;
	start(f);
	run(f, &call, SP);
	run(f, &ret, SP - 8);
	run(f, &next, SP + 16);
	assert_non_null(strstr(truth(f), "return 0x1010 0\n"));
}

static void test_blocks_that_were_cut(void **state)
{
	struct fixture *f = *state;
	struct block cut = block(0x1000, INSN_OTHER, 0), repeated = block(0x100c, INSN_OTHER, 0),
		     next = block(0x1010, INSN_JUMP_INDIRECT, 0);

	repeated.last = 0x100c;
	repeated.end = 0x1010;
	repeated.count = 1;
	start(f);
	run(f, &cut, SP);
	/* The string instruction at its end, iteration by iteration, is one instruction. */
	run(f, &repeated, SP);
	run(f, &repeated, SP);
	run(f, &next, SP);
	run(f, &cut, SP);
	assert_string_equal(flow(f), "psb, pge sext48:1000, tip 16:1000");
	assert_int_equal(f->walk.instructions, 3 + 1 + 4);
	assert_int_equal(f->walk.out->irregular, 0);
}

static void test_a_system_call(void **state)
{
	struct fixture *f = *state;
	struct block enter = block(0x1000, INSN_SYSCALL, 0), next = block(0x1010, INSN_OTHER, 0);

	start(f);
	run(f, &enter, SP);
	walk__syscall(&f->walk, SYS_getpid);
	run(f, &next, SP);
	assert_string_equal(flow(f), "psb, pge sext48:1000, pgd -, pge 16:1010");
	assert_int_equal(f->walk.out->branches, 3);
}

static void test_a_signal_between_two_blocks(void **state)
{
	struct fixture *f = *state;
	struct block cond = block(0x1000, INSN_COND, 0x1100),
		     jump = block(0x1100, INSN_JUMP, 0x1000);
	struct frame frame;

	start(f);
	run(f, &cond, SP);
	fill_frame(&frame, SIGUSR1, 0, 0x1100, SP);
	run_handler(f, HANDLER, &frame);
	assert_string_equal(flow(f),
			    "psb, pge sext48:1000, tnt T, fup 16:1100, pgd -, pge 16:5000");
	/* Back from it. */
	f->walk.prev = NULL;
	f->walk.stream->enabled = false;
	run(f, &jump, SP);
	assert_int_equal(f->walk.out->irregular, 0);
}

static void test_an_exception_in_mid_block(void **state)
{
	struct fixture *f = *state;
	struct block cond = block(0x1000, INSN_COND, 0x1100);
	struct frame frame;

	start(f);
	run(f, &cond, SP);
	fill_frame(&frame, SIGSEGV, 1, 0x1004, SP);
	run_handler(f, HANDLER, &frame);
	assert_string_equal(flow(f), "psb, pge sext48:1000, fup 16:1004, pgd -, pge 16:5000");
}

/* A loop of one block: the address alone does not tell whether it ran. */
static void test_a_signal_that_is_sent_is_no_exception(void **state)
{
	struct fixture *f = *state;
	struct block cond = block(0x1000, INSN_COND, 0x1000);
	struct frame frame;

	start(f);
	run(f, &cond, SP);
	fill_frame(&frame, SIGSEGV, 0, 0x1000, SP);
	run_handler(f, HANDLER, &frame);
	assert_string_equal(flow(f),
			    "psb, pge sext48:1000, tnt T, fup 16:1000, pgd -, pge 16:5000");
}

static void test_a_breakpoint(void **state)
{
	struct fixture *f = *state;
	struct block b = block(0x1000, INSN_INT3, 0);
	struct frame frame;

	f->signals.handler[SIGTRAP] = HANDLER;
	start(f);
	run(f, &b, SP);
	fill_frame(&frame, SIGTRAP, SI_KERNEL, b.end, SP);
	run_handler(f, HANDLER, &frame);
	assert_string_equal(flow(f), "psb, pge sext48:1000, fup 16:100c, pgd -, pge 16:5000");
}

static void test_two_signals_at_once(void **state)
{
	struct fixture *f = *state;
	struct block jump = block(0x1000, INSN_JUMP, 0x1100),
		     call = block(OTHER, INSN_CALL, 0x2000), last = block(0x2000, INSN_OTHER, 0);
	struct {
		uint64_t below[16];
		struct frame inner, outer;
	} stack;

	start(f);
	run(f, &jump, SP);
	fill_frame(&stack.outer, SIGUSR1, 0, 0x1100, SP);
	fill_frame(&stack.inner, SIGUSR2, 0, HANDLER, (uint64_t)&stack.outer);
	run_handler(f, OTHER, &stack.inner);
	assert_string_equal(flow(f), "psb, pge sext48:1000, fup 16:1100, pgd -, pge 16:6000");
	f->walk.prev = &call;
	run(f, &last, (uint64_t)&stack.below[8]);
	/* The second handler's frame, and what it calls; the first one's has not begun. */
	assert_non_null(strstr(truth(f), "call 0x2000 2\n"));
}

/* A handler that the program calls itself, whatever its arguments. */
static void test_a_handler_that_is_called(void **state)
{
	struct fixture *f = *state;
	struct block call = block(0x1000, INSN_CALL, HANDLER), next = block(0x1010, INSN_OTHER, 0);
	struct frame frame;

	fill_frame(&frame, SIGUSR1, 0, 0x1100, SP);
	frame.restorer = 0x1010;
	start(f);
	run(f, &call, SP);
	run_handler(f, HANDLER, &frame);
	run(f, &next, SP);
	assert_string_equal(flow(f), "psb, pge sext48:1000, tnt T");
}

static void test_what_cannot_be(void **state)
{
	struct fixture *f = *state;
	struct block jump = block(0x1000, INSN_JUMP, 0x1100), other = block(0x3000, INSN_OTHER, 0);

	start(f);
	run(f, &jump, SP);
	run(f, &other, SP);
	assert_string_equal(flow(f), "psb, pge sext48:1000, fup 16:100c, pgd -, pge 16:3000");
	assert_int_equal(f->walk.out->irregular, 1);
}

/* It lasts for some time, system calls or not; what would have come meanwhile is not there. */
static void test_an_overflow(void **state)
{
	struct fixture *f = *state;
	struct block indirect = block(0x1000, INSN_JUMP_INDIRECT, 0),
		     enter = block(0x2000, INSN_SYSCALL, 0),
		     next = block(0x2010, INSN_JUMP, 0x1000);
	int rounds = 0;

	f->shared->config.overflow_period = 40;
	start(f);
	while (!f->walk.out->overflows) {
		run(f, &indirect, SP);
		run(f, &enter, SP);
		walk__syscall(&f->walk, SYS_getpid);
		run(f, &next, SP);
		assert_true(++rounds < 2000);
	}
	f->shared->config.overflow_period = f->walk.overflow_at = UINT64_MAX;
	run(f, &indirect, SP);
	run(f, &indirect, SP);
	assert_in_range(rounds, 160, 240);
	assert_true(f->walk.out->written < 200);
	assert_non_null(strstr(flow(f), "ovf, fup sext48:"));
}

static void test_begin_and_end(void **state)
{
	struct fixture *f = *state;
	struct block indirect = block(0x1000, INSN_JUMP_INDIRECT, 0);

	f->shared->config.skip = 8;
	f->shared->config.limit = 12;
	start(f);
	for (int i = 0; i < 2; i++)
		run(f, &indirect, SP);
	assert_int_equal(f->walk.out->written, 0);
	for (int i = 0; i < 3; i++)
		run(f, &indirect, SP);
	assert_false(f->walk.out->ended);
	run(f, &indirect, SP);
	assert_true(f->walk.out->ended);
	assert_int_equal(f->walk.out->instructions, 12);
	assert_string_equal(flow(f), "psb, pge sext48:1000, tip 16:1000, tip 16:1000, tip 16:1000, "
				     "fup 16:1000, pgd -");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_branches),
		TEST(test_a_return_that_pops_arguments),
		TEST(test_blocks_that_were_cut),
		TEST(test_a_system_call),
		TEST(test_a_signal_between_two_blocks),
		TEST(test_an_exception_in_mid_block),
		TEST(test_a_signal_that_is_sent_is_no_exception),
		TEST(test_a_breakpoint),
		TEST(test_two_signals_at_once),
		TEST(test_a_handler_that_is_called),
		TEST(test_what_cannot_be),
		TEST(test_an_overflow),
		TEST(test_begin_and_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
