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

#undef FUNCTION

#endif
