/* SPDX-License-Identifier: MIT */
/*
 * The code the kernel puts into a probed process's [uprobes] mapping. Nobody can read that mapping
 * from outside, so we look at our own: a return probe on a function of ours makes the kernel map
 * the same page here.
 */
#ifndef MTBPF_CAPTURE_CODE_UPROBES_PAGE_H
#define MTBPF_CAPTURE_CODE_UPROBES_PAGE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture/recording/recording.h"

#define UPROBES_PAGE_SIZE 4096
#define UPROBES_INSN_SIZE 16

/*
 * Copies the page, at most size bytes. The count; 0 where no return probe can be set (rights, no
 * uprobe PMU), after a line on stderr.
 */
size_t uprobes_page__read(uint8_t *page, size_t size);

/*
 * The same of the page that probes on a long nop call from their second hit on (since Linux 6.18:
 * arch/x86/kernel/uprobes.c, arch_uprobe_optimize()). 0 where the kernel does not do that, or no
 * probe can be set; prints nothing.
 */
#define UPROBES_TRAMPOLINE "[uprobes-trampoline]"
size_t uprobes_trampoline__read(uint8_t *page, size_t size);

/*
 * Adds the page as process pid has it to rec, if it has one: its mapping from time_ns on, and its
 * code: the trampoline of return probes in the first slot where own_page_len is not 0 (what
 * uprobes_page__read() gave), and the probed instruction in all others, where the kernel
 * single-steps a copy of it. 0 or -ENOMEM.
 */
int uprobes_page__add(struct recording *rec, pid_t pid, uint64_t time_ns, const uint8_t *own_page,
		      size_t own_page_len, const uint8_t probed[static UPROBES_INSN_SIZE]);

/*
 * Probes, of whomever, that the kernel has made calls: what runs there is not what the file says.
 *
 * Adds the [uprobes-trampoline] pages of process pid, from the beginning on, and the calls to them
 * in the files it has mapped, as they are now. To be called behind code_copy__take(), which drops
 * what an earlier call has added. 0 or -ENOMEM.
 */
int patched_code__take(struct recording *rec, pid_t pid);

#endif
