/* SPDX-License-Identifier: MIT */
/* Where the arguments of a USDT probe are, from the text in its note. */
#ifndef MTBPF_TARGET_USDT_ARGS_H
#define MTBPF_TARGET_USDT_ARGS_H

#include "mtbpf_shared.h"

/*
 * Reads "-4@%eax 8@-24(%rbp) 4@$5 8@(%rax,%rbx,8)": size@operand, negative where signed. What is
 * somewhere else (vector registers, %rip, segments), or no such text at all, is MT_ARG_UNKNOWN.
 */
void usdt_args__parse(const char *text, struct mt_args *args);

#endif
