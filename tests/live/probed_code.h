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
FUNCTION(timed, "push %rbp\n mov %rsp, %rbp\n call timed_body\n pop %rbp\n ret\n");

#undef FUNCTION

#endif
