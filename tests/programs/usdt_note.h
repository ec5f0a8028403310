/* SPDX-License-Identifier: MIT */
/*
 * USDT probes without systemtap's sys/sdt.h: a nop, and a note that tells where it is
 * (sourceware.org/systemtap/wiki/UserSpaceProbeImplementation).
 */
#ifndef USDT_NOTE_H
#define USDT_NOTE_H

/*
 * A probe here. provider and name are words, semaphore is the name of a counter or 0, args the text
 * of its arguments: what follows are the operands of an asm that the text may name.
 */
#define USDT_PROBE(provider, name, semaphore, args, ...)                                           \
	__asm__ volatile(                                                                          \
		"990:	nop\n"                                                                       \
		".pushsection .note.stapsdt, \"\", \"note\"\n"                                     \
		".balign 4\n"                                                                      \
		".4byte 992f-991f, 994f-993f, 3\n"                                                 \
		"991: .asciz \"stapsdt\"\n"                                                        \
		"992: .balign 4\n"                                                                 \
		"993: .8byte 990b\n"                                                               \
		".8byte _.stapsdt.base\n"                                                          \
		".8byte " #semaphore "\n"                                                          \
		".asciz \"" #provider "\"\n"                                                       \
		".asciz \"" #name "\"\n"                                                           \
		".asciz \"" args "\"\n"                                                            \
		"994: .balign 4\n"                                                                 \
		".popsection\n"                                                                    \
		".ifndef _.stapsdt.base\n"                                                         \
		".pushsection .stapsdt.base, \"aG\", \"progbits\", .stapsdt.base, comdat\n"        \
		".weak _.stapsdt.base\n"                                                           \
		".hidden _.stapsdt.base\n"                                                         \
		"_.stapsdt.base: .space 1\n"                                                       \
		".size _.stapsdt.base, 1\n"                                                        \
		".popsection\n"                                                                    \
		".endif\n"                                                                         \
		:                                                                                  \
		: __VA_ARGS__)

/* Its counter, which the kernel raises while the probe is set. */
#define USDT_SEMAPHORE(semaphore)                                                                  \
	__attribute__((section(".probes"), used)) volatile unsigned short semaphore

#endif
