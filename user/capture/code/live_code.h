/* SPDX-License-Identifier: MIT */
/*
 * Copies the code of processes while it can be read: files may be replaced, memory changes, and
 * processes exit.
 */
#ifndef MTBPF_CAPTURE_CODE_LIVE_CODE_H
#define MTBPF_CAPTURE_CODE_LIVE_CODE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture/recording/recording.h"
#include "target/cgroup.h"
#include "target/maps.h"
#include "target/process.h"

/*
 * Records the mapped files of these processes (of all in the cgroup if it is not NULL), and copies
 * the code in their memory. Call it before the recording begins, because the process may have ended
 * afterwards, and again after the freeze. 0 or -errno.
 */
int live_code__take(struct recording *rec, const struct pid_set *pids, const struct cgroup *cgroup);

/*
 * Adds to rec->files the files that process pid has mapped executable and that are not in it yet:
 * their descriptors stay readable if a file is replaced or deleted later. With rec->portable, adds
 * the separate debug files, too. 0 or -ENOMEM; nothing is added for a process that has ended.
 */
int code_files__note(struct recording *rec, pid_t pid);

/*
 * Adds to rec->data_maps process pid's mappings without code of the files in rec->files. 0 or
 * -ENOMEM; nothing is added for a process that has ended.
 */
int data_maps__take(struct recording *rec, pid_t pid);

/* Limit on copies of code, in bytes, for all processes of a recording together. */
#define CODE_COPY_MAX (64u << 20)
/* The same limit for the text of perf maps. */
#define PERF_MAPS_MAX (64u << 20)

/*
 * Copies into rec->images the pages in memory of process pid's executable mappings that are not of
 * a file in rec->files; if there are any, also its perf map into rec->perf_maps. These replace an
 * earlier copy of this process. Warns if the code does not fit into `limit` bytes. 0 or -ENOMEM; if
 * the process has ended, the earlier copy stays.
 */
int code_copy__take(struct recording *rec, pid_t pid, size_t limit);

/*
 * Copies the vdso's code from a live process, or from this process (NULL), whose vdso is the same.
 * 0 or -errno; 0 too if the process lacks a vdso.
 */
int vdso_image__add(struct recording *rec, const struct process *process);

/*
 * For another tool's recording that has the vdso mapped but no copy of it: copies this process's
 * vdso if the build ids are equal or, without a build id, if the kernel's release is the same. 0 or
 * -errno; also 0 if the vdsos differ.
 */
int vdso_image__add_running(struct recording *rec);

/*
 * Makes an existing recording portable: opens each mapped file, and debug file, whose contents it
 * lacks, if it is still the file that ran (same build id, otherwise same inode, otherwise same
 * name). Other files are left out with a warning. 0 or -ENOMEM.
 */
int found_files__add(struct recording *rec);

/* Adds one thread and its name, as /proc shows them, valid from time_ns on. 0 or -ENOMEM. */
int process_note__thread(struct recording *rec, pid_t pid, pid_t tid, uint64_t time_ns);
/* The mapping as a recording has it, valid from time_ns on; its path still belongs to `m`. */
struct rec_map process_note__map(pid_t pid, const struct mapping *m, uint64_t time_ns);
/*
 * Adds the executable mappings of one process, as /proc shows them, valid from time_ns on. 0 or
 * -errno: -ESRCH the process has ended.
 */
int process_note__maps(struct recording *rec, pid_t pid, uint64_t time_ns);

/*
 * The code that the kernel puts into a probed process's [uprobes] mapping. No other process can
 * read that mapping, so mtbpf reads its own: a return probe on one of its functions makes the
 * kernel map the same page here.
 */

#define UPROBES_PAGE_SIZE 4096
#define UPROBES_INSN_SIZE 16

/*
 * Copies the page, at most `size` bytes. Returns the number of bytes; 0 after a message if no
 * return probe can be set (missing rights, no uprobe PMU).
 */
size_t uprobes_page__read(uint8_t *page, size_t size);

/*
 * Copies the page that a probe on a long nop calls from its second hit on (since Linux 6.18:
 * arch/x86/kernel/uprobes.c, arch_uprobe_optimize()). 0 if the kernel has no such page, or no probe
 * can be set. Prints an error only if the kernel lacks uprobe events.
 */
#define UPROBES_TRAMPOLINE "[uprobes-trampoline]"
size_t uprobes_trampoline__read(uint8_t *page, size_t size);

/*
 * If process pid has the page, or has exited, adds the page to rec: its mapping from time_ns on,
 * and its code. The first slot is the trampoline of return probes, if own_page_len is not 0 (the
 * result of uprobes_page__read()). All others contain the probed instruction, where the kernel
 * single-steps a copy of it. 0 or -ENOMEM.
 */
int uprobes_page__add(struct recording *rec, pid_t pid, uint64_t time_ns, const uint8_t *own_page,
		      size_t own_page_len, const uint8_t probed[static UPROBES_INSN_SIZE]);

#endif
