/* SPDX-License-Identifier: MIT */
/* The code of processes while it can be read: files may be replaced, memory changes, all exits. */
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
 * Notes the files of these processes, or of all in the cgroup where that is not NULL, and copies
 * the code in their memory. To be called before the recording begins, as the process may be gone at
 * its end, and again when it is frozen. 0 or -errno.
 */
int live_code__take(struct recording *rec, const struct pid_set *pids, const struct cgroup *cgroup);

/*
 * Adds to rec->files what process pid has mapped executable by now and is not known yet: a file
 * that is replaced or deleted later can still be read from its descriptor. With rec->portable, the
 * separate debug files as well. 0 or -ENOMEM; nothing is added for a process that has ended.
 */
int code_files__note(struct recording *rec, pid_t pid);

/*
 * Adds to rec->data_maps the mappings without code that process pid has of the files in rec->files.
 * 0 or -ENOMEM; nothing is added for a process that has ended.
 */
int data_maps__take(struct recording *rec, pid_t pid);

/* Limits on copies, in bytes, for all processes of a recording together: code. */
#define CODE_COPY_MAX (64u << 20)
/* ... and the text of perf maps. */
#define PERF_MAPS_MAX (64u << 20)

/*
 * Copies into rec->images the pages in memory of every executable mapping of process pid that is
 * not of a file in rec->files, and its perf map into rec->perf_maps; what an earlier copy of this
 * process took goes. A line where it does not fit into `limit` bytes. 0 or -ENOMEM; of a process
 * that is gone, the earlier copy stays.
 */
int code_copy__take(struct recording *rec, pid_t pid, size_t limit);

/*
 * Copies the vdso's code from a live process, or from this process (NULL), whose vdso is the same.
 * 0 or -errno; 0 too if the process lacks a vdso.
 */
int vdso_image__add(struct recording *rec, const struct process *process);

/*
 * For a recording by another tool that has the vdso mapped but no copy of it: copies this process's
 * vdso if it has the same build id or, without one, if the kernel's release is the same. 0 or
 * -errno; 0 too if the two differ.
 */
int vdso_image__add_running(struct recording *rec);

/*
 * Makes an existing recording portable: opens each mapped file, and its debug file, whose bytes it
 * lacks, if it is still the file that ran (by build id, else by inode, else by name). Other files
 * are left out with a warning. 0 or -ENOMEM.
 */
int found_files__add(struct recording *rec);

/* Adds one thread and its name, as /proc shows them, valid from time_ns on. 0 or -ENOMEM. */
int process_note__thread(struct recording *rec, pid_t pid, pid_t tid, uint64_t time_ns);
/* A mapping as it is now; its path stays the mapping's. */
struct rec_map process_note__map(pid_t pid, const struct mapping *m, uint64_t time_ns);
/*
 * Adds the executable mappings of one process, as /proc shows them, valid from time_ns on. 0 or
 * -errno: -ESRCH the process has ended.
 */
int process_note__maps(struct recording *rec, pid_t pid, uint64_t time_ns);

/*
 * The code the kernel puts into a probed process's [uprobes] mapping. Nobody can read that mapping
 * from outside, so we look at our own: a return probe on a function of ours makes the kernel map
 * the same page here.
 */

#define UPROBES_PAGE_SIZE 4096
#define UPROBES_INSN_SIZE 16

/*
 * Copies the page, at most size bytes. Returns how many; 0 after a message if no return probe can
 * be set (rights, no uprobe PMU).
 */
size_t uprobes_page__read(uint8_t *page, size_t size);

/*
 * Copies the page that a probe on a long nop calls from its second hit on (since Linux 6.18:
 * arch/x86/kernel/uprobes.c, arch_uprobe_optimize()). 0 if the kernel has no such page, or no probe
 * can be set. Prints nothing.
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

#endif
