/* SPDX-License-Identifier: MIT */
/* Functions to probe, in assembly, so that what stands at each address is known. */
#ifndef MTBPF_TESTS_PROBED_CODE_H
#define MTBPF_TESTS_PROBED_CODE_H

/* The probe goes on the push at the start of each. */
void hit_me(void);	 /* push %rbp */
void hit_me_no_fp(void); /* push %rbx: no frame of its own */

/* Calls `function` through call_inner(): two frames with frame pointers. */
void call_outer(void (*function)(void));
/* Where call_outer() and call_inner() go on. */
extern const char outer_return[], inner_return[];

/* Calls hit_me() with OWN_REGISTER(n) in the registers that calls preserve, but rbp and rsp. */
void call_with_registers(void);
#define OWN_REGISTER(n) (0x1122334455667700ull + (n)) /* rbx: 0, r12: 12, ... */

/* Calls timed_body(), which the program defines, and does nothing else. */
struct timed_call;
void timed(const struct timed_call *call);
void timed_body(const struct timed_call *call);

/*
 * Sixteen functions, one each LEAVE_IF_SIZE bytes: with those flags, leave by a conditional jump of
 * opcode 0f 80+n, for what returns 1; else return 0.
 */
#define LEAVE_IF_SIZE 16
#define LEAVE_IF_LEN  11
#define LEAVE_IF_JUMP 2
extern const unsigned char leave_if[];

#define FUNCTION(name, body)                                                                       \
	__asm__(".text\n.globl " #name "\n.type " #name ", @function\n" #name ":\n" body           \
		".size " #name ", .-" #name "\n")

FUNCTION(hit_me, "push %rbp\n mov %rsp, %rbp\n pop %rbp\n ret\n");
FUNCTION(hit_me_no_fp, "push %rbx\n pop %rbx\n ret\n");
FUNCTION(call_outer, "push %rbp\n mov %rsp, %rbp\n call call_inner\n"
		     ".globl outer_return\n outer_return: pop %rbp\n ret\n");
FUNCTION(call_inner, "push %rbp\n mov %rsp, %rbp\n call *%rdi\n"
		     ".globl inner_return\n inner_return: pop %rbp\n ret\n");
FUNCTION(call_with_registers,
	 "push %rbx\n push %r12\n push %r13\n push %r14\n push %r15\n"
	 "movabs $0x1122334455667700, %rbx\n lea 12(%rbx), %r12\n lea 13(%rbx), %r13\n"
	 "lea 14(%rbx), %r14\n lea 15(%rbx), %r15\n call hit_me\n"
	 "pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbx\n ret\n");
FUNCTION(timed, "push %rbp\n mov %rsp, %rbp\n call timed_body\n pop %rbp\n ret\n");

FUNCTION(leave_taken, "mov $1, %eax\n ret\n");
__asm__(".text\n.globl leave_if\n.balign 16\nleave_if:\n.set condition, 0\n.rept 16\n"
	".balign 16\n push %rdi\n popf\n .byte 0x0f, 0x80 + condition\n"
	".long leave_taken - . - 4\n xor %eax, %eax\n ret\n.set condition, condition + 1\n.endr\n");

#undef FUNCTION

#endif
