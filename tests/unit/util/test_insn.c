// SPDX-License-Identifier: MIT
#include "util/insn.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <pthread.h>
#include <string.h>

#define IP 0x401000u

struct code {
	const char *what;
	const char *bytes; /* a string, for its length: it may hold NULs */
	size_t len;
	enum insn_class cls;
	uint64_t target;
};

#define CODE(what, bytes, cls, target)                                                             \
	{                                                                                          \
		what, bytes, sizeof(bytes) - 1, cls, target                                        \
	}
#define N(array) (sizeof(array) / sizeof((array)[0]))

static struct insn decode(const char *bytes, size_t len)
{
	struct insn insn;

	assert_int_equal(insn__decode((const uint8_t *)bytes, len, IP, &insn), 0);
	return insn;
}

#define DECODE(bytes) decode(bytes, sizeof(bytes) - 1)

/* Decoded exactly, and with other bytes behind it. */
static void check(const struct code *codes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct code *code = &codes[i];
		char more[32];

		memset(more, 0xcc, sizeof(more));
		memcpy(more, code->bytes, code->len);
		for (int longer = 0; longer < 2; longer++) {
			struct insn insn = decode(longer ? more : code->bytes,
						  longer ? sizeof(more) : code->len);

			if (insn.len != code->len || insn.cls != code->cls ||
			    insn.target != code->target)
				fail_msg("%s: length %u, class %u, target %#jx", code->what,
					 insn.len, insn.cls, (uintmax_t)insn.target);
		}
	}
}

static void test_calls(void **state)
{
	static const struct code codes[] = {
		CODE("call +0x10", "\xe8\x10\0\0\0", INSN_CALL, IP + 5 + 0x10),
		CODE("call back", "\xe8\xfb\xff\xff\xff", INSN_CALL, IP),
		CODE("bnd call", "\xf2\xe8\x10\0\0\0", INSN_CALL, IP + 6 + 0x10),
		CODE("rex.W call", "\x48\xe8\x10\0\0\0", INSN_CALL, IP + 6 + 0x10),
		/* __tls_get_addr's padded call. Intel CPUs ignore the operand size. */
		CODE("data16 call", "\x66\xe8\x10\0\0\0", INSN_CALL, IP + 6 + 0x10),
		CODE("addr32 call", "\x67\xe8\x10\0\0\0", INSN_CALL, IP + 6 + 0x10),
		CODE("call *%rax", "\xff\xd0", INSN_CALL_INDIRECT, 0),
		CODE("call *%r11", "\x41\xff\xd3", INSN_CALL_INDIRECT, 0),
		CODE("call *0x10(%rip)", "\xff\x15\x10\0\0\0", INSN_CALL_INDIRECT, 0),
		CODE("addr32 call *(%eax)", "\x67\xff\x10", INSN_CALL_INDIRECT, 0),
		CODE("notrack call *%rax", "\x3e\xff\xd0", INSN_CALL_INDIRECT, 0),
	};

	check(codes, N(codes));
}

static void test_returns(void **state)
{
	static const struct code codes[] = {
		CODE("ret", "\xc3", INSN_RET, 0),
		CODE("rep ret", "\xf3\xc3", INSN_RET, 0),
		CODE("bnd ret", "\xf2\xc3", INSN_RET, 0),
		CODE("ret $8", "\xc2\x08\0", INSN_RET, 0),
	};

	check(codes, N(codes));
}

static void test_jumps(void **state)
{
	static const struct code codes[] = {
		CODE("jmp short", "\xeb\x10", INSN_JUMP, IP + 2 + 0x10),
		CODE("jmp self", "\xeb\xfe", INSN_JUMP, IP),
		CODE("jmp near", "\xe9\0\x10\0\0", INSN_JUMP, IP + 5 + 0x1000),
		CODE("jmp far back", "\xe9\0\0\0\x80", INSN_JUMP, IP + 5 - 0x80000000ull),
		CODE("bnd jmp", "\xf2\xe9\0\x10\0\0", INSN_JUMP, IP + 6 + 0x1000),
		CODE("data16 jmp", "\x66\xe9\0\x10\0\0", INSN_JUMP, IP + 6 + 0x1000),
		CODE("jmp *%rax", "\xff\xe0", INSN_JUMP_INDIRECT, 0),
		CODE("bnd jmp *%rax", "\xf2\xff\xe0", INSN_JUMP_INDIRECT, 0),
		CODE("notrack jmp *%rdx", "\x3e\xff\xe2", INSN_JUMP_INDIRECT, 0),
		CODE("jmp *0x10(%rip)", "\xff\x25\x10\0\0\0", INSN_JUMP_INDIRECT, 0),
		CODE("bnd jmp *0x10(%rip)", "\xf2\xff\x25\x10\0\0\0", INSN_JUMP_INDIRECT, 0),
		CODE("jmp *(%r8,%rax,8)", "\x41\xff\x24\xc0", INSN_JUMP_INDIRECT, 0),
	};

	check(codes, N(codes));
}

static void test_conditionals(void **state)
{
	static const struct code codes[] = {
		CODE("jo", "\x70\x10", INSN_COND, IP + 2 + 0x10),
		CODE("jg back", "\x7f\x80", INSN_COND, IP + 2 - 0x80),
		CODE("jo near", "\x0f\x80\0\x10\0\0", INSN_COND, IP + 6 + 0x1000),
		CODE("jg near back", "\x0f\x8f\xfa\xff\xff\xff", INSN_COND, IP),
		CODE("jne,pt", "\x3e\x75\x10", INSN_COND, IP + 3 + 0x10),
		CODE("bnd jne", "\xf2\x75\x10", INSN_COND, IP + 3 + 0x10),
		CODE("bnd jne near", "\xf2\x0f\x85\0\x10\0\0", INSN_COND, IP + 7 + 0x1000),
		CODE("loopne", "\xe0\x10", INSN_COND, IP + 2 + 0x10),
		CODE("loope", "\xe1\x10", INSN_COND, IP + 2 + 0x10),
		CODE("loop", "\xe2\xfe", INSN_COND, IP),
		CODE("jrcxz", "\xe3\x10", INSN_COND, IP + 2 + 0x10),
		CODE("jecxz", "\x67\xe3\x10", INSN_COND, IP + 3 + 0x10),
	};

	check(codes, N(codes));
}

static void test_into_the_kernel(void **state)
{
	static const struct code codes[] = {
		CODE("syscall", "\x0f\x05", INSN_SYSCALL, 0),
		CODE("sysenter", "\x0f\x34", INSN_SYSCALL, 0),
		CODE("int $0x80", "\xcd\x80", INSN_SYSCALL, 0),
		CODE("int $3, the long one", "\xcd\x03", INSN_SYSCALL, 0),
		CODE("int1", "\xf1", INSN_SYSCALL, 0),
		CODE("int3", "\xcc", INSN_INT3, 0),
	};

	check(codes, N(codes));
}

static void test_far(void **state)
{
	static const struct code codes[] = {
		CODE("iret", "\xcf", INSN_FAR, 0),
		CODE("iretq", "\x48\xcf", INSN_FAR, 0),
		CODE("far return", "\xcb", INSN_FAR, 0),
		CODE("far return, 64 bits", "\x48\xcb", INSN_FAR, 0),
		CODE("far return $8", "\xca\x08\0", INSN_FAR, 0),
		CODE("far jump", "\xff\x28", INSN_FAR, 0),
		CODE("far jump, 64 bits", "\x48\xff\x6c\x24\x08", INSN_FAR, 0),
		CODE("far call", "\xff\x18", INSN_FAR, 0),
		CODE("far call 0x10(%rip)", "\xff\x1d\x10\0\0\0", INSN_FAR, 0),
		CODE("sysret", "\x48\x0f\x07", INSN_FAR, 0),
		CODE("sysexit", "\x0f\x35", INSN_FAR, 0),
		CODE("uiret", "\xf3\x0f\x01\xec", INSN_FAR, 0),
		CODE("vmlaunch", "\x0f\x01\xc2", INSN_FAR, 0),
		CODE("vmresume", "\x0f\x01\xc3", INSN_FAR, 0),
	};

	check(codes, N(codes));
}

static void test_others_go_on(void **state)
{
	static const struct code codes[] = {
		CODE("mov %rsp,%rbp", "\x48\x89\xe5", INSN_OTHER, 0),
		CODE("sub $0x18,%rsp", "\x48\x83\xec\x18", INSN_OTHER, 0),
		CODE("lea 0x10(%rip),%rax", "\x48\x8d\x05\x10\0\0\0", INSN_OTHER, 0),
		CODE("movabs", "\x48\xb8\1\2\3\4\5\6\7\x8", INSN_OTHER, 0),
		CODE("push *(%rax)", "\xff\x30", INSN_OTHER, 0),
		CODE("incl (%rax)", "\xff\x00", INSN_OTHER, 0),
		CODE("setne %al", "\x0f\x95\xc0", INSN_OTHER, 0),
		CODE("ud2", "\x0f\x0b", INSN_OTHER, 0),
		CODE("vmcall", "\x0f\x01\xc1", INSN_OTHER, 0),
		CODE("xbegin", "\xc7\xf8\x10\0\0\0", INSN_OTHER, 0),
		/* The last opcode byte is that of a branch, but in another map. */
		CODE("vpcmpeqb", "\xc5\xf9\x74\xc1", INSN_OTHER, 0),
		CODE("vpsubsb", "\xc5\xf9\xe8\xc1", INSN_OTHER, 0),
		CODE("psubsb", "\x0f\xe8\xc1", INSN_OTHER, 0),
		CODE("pclmulqdq", "\x66\x0f\x3a\x44\xc1\x11", INSN_OTHER, 0),
		CODE("sha1nexte", "\x0f\x38\xc8\xc1", INSN_OTHER, 0),
		CODE("bswap %ebx", "\x0f\xcb", INSN_OTHER, 0),
		CODE("evex vaddps", "\x62\xf1\x74\x48\x58\xc2", INSN_OTHER, 0),
		CODE("endbr64", "\xf3\x0f\x1e\xfa", INSN_OTHER, 0),
	};

	check(codes, N(codes));
}

static void test_endbr(void **state)
{
	assert_true(DECODE("\xf3\x0f\x1e\xfa").is_endbr);
	assert_true(DECODE("\xf3\x0f\x1e\xfb").is_endbr);
	assert_false(DECODE("\xf3\x48\x0f\x1e\xc8").is_endbr); /* rdsspq %rax */
	assert_false(DECODE("\x0f\x1e\xfa").is_endbr);	       /* nop %edx */
	assert_false(DECODE("\x55").is_endbr);
}

static void test_push_reg(void **state)
{
	assert_true(DECODE("\x55").is_push_reg);
	assert_true(DECODE("\x50").is_push_reg);
	assert_true(DECODE("\x41\x50").is_push_reg);
	assert_true(DECODE("\x41\x57").is_push_reg);
	assert_false(DECODE("\x66\x50").is_push_reg);	  /* push %ax */
	assert_false(DECODE("\x5d").is_push_reg);	  /* pop %rbp */
	assert_false(DECODE("\x6a\x01").is_push_reg);	  /* push $1 */
	assert_false(DECODE("\xff\x30").is_push_reg);	  /* push (%rax) */
	assert_false(DECODE("\x0f\xa0").is_push_reg);	  /* push %fs */
	assert_false(DECODE("\x0f\x50\xc1").is_push_reg); /* movmskps */
}

static void test_nops(void **state)
{
	assert_true(DECODE("\x90").is_nop1);
	assert_true(DECODE("\x66\x90").is_nop1);
	assert_true(DECODE("\x2e\x66\x90").is_nop1);
	assert_false(DECODE("\xf3\x90").is_nop1);     /* pause */
	assert_false(DECODE("\x49\x90").is_nop1);     /* xchg %r8,%rax */
	assert_false(DECODE("\x41\x90").is_nop1);     /* xchg %r8d,%eax */
	assert_false(DECODE("\x91").is_nop1);	      /* xchg %ecx,%eax */
	assert_false(DECODE("\x0f\x90\xc0").is_nop1); /* seto %al */
	assert_false(DECODE("\x0f\x1f\x44\0\0").is_nop1);
	assert_int_equal(DECODE("\x66\x90").len, 2);

	assert_true(DECODE("\x0f\x1f\0").is_multi_byte_nop);
	assert_true(DECODE("\x0f\x1f\x44\0\0").is_multi_byte_nop);
	assert_true(DECODE("\x66\x2e\x0f\x1f\x84\0\0\0\0\0").is_multi_byte_nop);
	assert_int_equal(DECODE("\x66\x2e\x0f\x1f\x84\0\0\0\0\0").len, 10);
	assert_false(DECODE("\x0f\x1f\x4c\0\0").is_multi_byte_nop); /* /1 */
	assert_false(DECODE("\x0f\x1e\x44\0\0").is_multi_byte_nop);
	assert_false(DECODE("\xf3\x0f\x1e\xfa").is_multi_byte_nop);
	assert_false(DECODE("\x90").is_multi_byte_nop);
}

static void expect_error(const char *bytes, size_t len, int err)
{
	struct insn insn;

	assert_int_equal(insn__decode((const uint8_t *)bytes, len, IP, &insn), err);
}

static void test_truncated(void **state)
{
	static const char *const whole[] = {
		"\xe8\x11\x11\x11\x11",
		"\xf2\xe9\x11\x11\x11\x11",
		"\x41\x50",
		"\xff\x25\x11\x11\x11\x11",
		"\x0f\x1f\x44\x01\x01",
		"\x66\x2e\x0f\x1f\x84\x01\x01\x01\x01\x01",
		"\xc5\xf9\x74\xc1",
	};

	/* An empty buffer need not exist. */
	expect_error(NULL, 0, -ENODATA);
	for (size_t i = 0; i < N(whole); i++) {
		for (size_t len = 0; len < strlen(whole[i]); len++)
			expect_error(whole[i], len, -ENODATA);
		assert_int_equal(decode(whole[i], strlen(whole[i])).len, strlen(whole[i]));
	}
}

#define INVALID(bytes) expect_error(bytes, sizeof(bytes) - 1, -EILSEQ)

static void test_invalid(void **state)
{
	INVALID("\x06"); /* push %es, before 64 bits */
	INVALID("\x06\x90\x90\x90");
	INVALID("\xce");	     /* into */
	INVALID("\x9a\0\0\0\0\0\0"); /* far call to an immediate */
	INVALID("\xff\xff");	     /* ff /7 */
	INVALID("\xff\xd8");	     /* far call of a register */
	INVALID("\xf0\x90");	     /* lock nop */
	/* 15 bytes are the limit: Intel SDM vol. 2, 2.3.11. */
	INVALID("\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x90");
	assert_int_equal(DECODE("\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x90").len,
			 15);
}

static void test_target_wraps_with_the_address(void **state)
{
	struct insn insn;

	assert_int_equal(insn__decode((const uint8_t *)"\xeb\xfe", 2, UINT64_MAX - 1, &insn), 0);
	assert_int_equal(insn.target, UINT64_MAX - 1);
	assert_int_equal(insn__decode((const uint8_t *)"\xe8\0\0\0\0", 5, 0x7fffffffff00, &insn),
			 0);
	assert_int_equal(insn.target, 0x7fffffffff05);
}

static void *decode_many(void *arg)
{
	struct insn insn;

	for (int i = 0; i < 1000; i++) {
		if (insn__decode((const uint8_t *)"\xe8\0\0\0\0", 5, IP, &insn) ||
		    insn.target != IP + 5)
			return NULL;
	}
	return arg;
}

/* Chunks of a trace are decoded on all cores. */
static void test_threads(void **state)
{
	pthread_t threads[4];
	void *ok;

	for (size_t i = 0; i < N(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, decode_many, threads), 0);
	for (size_t i = 0; i < N(threads); i++) {
		pthread_join(threads[i], &ok);
		assert_ptr_equal(ok, threads);
	}
}

/* With a byte less Zydis decodes it: what the tables tell of common instructions is the same. */
static void expect_the_same(const uint8_t bytes[static INSN_MAX_LEN])
{
	struct insn quick = {0}, zydis = {0};
	int err = insn__decode(bytes, INSN_MAX_LEN, IP, &quick);
	int other = insn__decode(bytes, INSN_MAX_LEN - 1, IP, &zydis);

	if (other == -ENODATA)
		return;
	if (err != other || quick.len != zydis.len || quick.cls != zydis.cls ||
	    quick.target != zydis.target || quick.is_endbr != zydis.is_endbr ||
	    quick.is_push_reg != zydis.is_push_reg || quick.is_nop1 != zydis.is_nop1 ||
	    quick.is_multi_byte_nop != zydis.is_multi_byte_nop)
		fail_msg("%02x %02x %02x %02x %02x %02x %02x: %d, length %u, class %u; Zydis: %d, "
			 "%u, %u",
			 bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], err,
			 quick.len, quick.cls, other, zydis.len, zydis.cls);
}

static void put(const char *prefix, bool is_two_byte, uint8_t op, uint8_t modrm, uint8_t sib)
{
	/* Displacements and immediates; above, other prefixes. */
	uint8_t bytes[INSN_MAX_LEN + 8];
	size_t n = strlen(prefix);

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(0x21 + 0x1f * i);
	memcpy(bytes, prefix, n);
	if (is_two_byte)
		bytes[n++] = 0x0f;
	bytes[n++] = op;
	bytes[n++] = modrm;
	bytes[n] = sib;
	expect_the_same(bytes);
}

static void test_tables_tell_what_zydis_does(void **state)
{
	static const char *const prefixes[] = {"",
					       "\x48",
					       "\x41",
					       "\x4f",
					       "\x66",
					       "\x66\x48",
					       "\xf3",
					       "\xf2",
					       "\xf3\x48",
					       "\xf2\x4c",
					       "\x64",
					       "\x65\x48",
					       "\x2e",
					       "\x3e",
					       "\x66\x2e",
					       "\x66\xf3",
					       "\x66\xf2\x48",
					       "\xf2\xf3",
					       "\x48\x66",
					       "\x48\x48",
					       "\x67",
					       "\xf0",
					       "\xf0\x48",
					       "\x66\x66",
					       "\xf3\x64",
					       "\x66\x66\x66\x66\x66",
					       "\x66\x66\x66\x66\x2e\x48"};
	static const uint8_t sibs[] = {0x00, 0x25, 0x24, 0xe5};

	for (size_t p = 0; p < N(prefixes); p++)
		for (unsigned int op = 0; op < 512; op++)
			for (unsigned int modrm = 0; modrm < 256; modrm++)
				for (size_t sib = 0; sib < N(sibs); sib++)
					put(prefixes[p], op > 255, (uint8_t)op, (uint8_t)modrm,
					    sibs[sib]);
}

static void test_any_bytes(void **state)
{
	uint64_t seed = 7;

	for (int i = 0; i < 1000000; i++) {
		uint8_t bytes[INSN_MAX_LEN];

		for (size_t k = 0; k < sizeof(bytes); k++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			bytes[k] = (uint8_t)(seed >> 56);
		}
		expect_the_same(bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* First: the threads race for the decoder's initialisation. */
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_calls),
		cmocka_unit_test(test_returns),
		cmocka_unit_test(test_jumps),
		cmocka_unit_test(test_conditionals),
		cmocka_unit_test(test_into_the_kernel),
		cmocka_unit_test(test_far),
		cmocka_unit_test(test_others_go_on),
		cmocka_unit_test(test_endbr),
		cmocka_unit_test(test_push_reg),
		cmocka_unit_test(test_nops),
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_invalid),
		cmocka_unit_test(test_target_wraps_with_the_address),
		cmocka_unit_test(test_tables_tell_what_zydis_does),
		cmocka_unit_test(test_any_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
