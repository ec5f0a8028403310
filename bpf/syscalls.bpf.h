/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * System calls as probes. A program's context begins with the address of user space's registers; at
 * the return, the result follows. This is the same for the tracepoints sys_enter and sys_exit and
 * for the entry and return of __x64_sys_X(const struct pt_regs *regs).
 */
#ifndef MTBPF_SYSCALLS_BPF_H
#define MTBPF_SYSCALLS_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "mtbpf_shared.h"

/* Offsets of the kernel's struct members; user space finds them in the kernel's BTF. */
const volatile struct mt_file_offsets file_offsets;

#define ANON_INODE_FS_MAGIC 0x09041934

#define S_IFMT	 0170000
#define S_IFIFO	 0010000
#define S_IFCHR	 0020000
#define S_IFREG	 0100000
#define S_IFSOCK 0140000

static __always_inline u64 read_kernel_word(u64 at)
{
	u64 word = 0;

	bpf_probe_read_kernel(&word, sizeof(word), (const void *)at);
	return word;
}

static __always_inline u32 read_kernel_u32(u64 at)
{
	u32 word = 0;

	bpf_probe_read_kernel(&word, sizeof(word), (const void *)at);
	return word;
}

/* The struct file of a descriptor of the current thread; 0: the descriptor is not open. */
static __always_inline u64 file_of(u32 fd)
{
	u64 task = bpf_get_current_task();
	u64 table = read_kernel_word(read_kernel_word(task + file_offsets.task_files) +
				     file_offsets.files_fdt);

	if (!table || fd >= read_kernel_u32(table + file_offsets.fdt_max))
		return 0;
	return read_kernel_word(read_kernel_word(table + file_offsets.fdt_fd) + 8ull * fd);
}

/* drivers/tty: TTY_MAJOR, TTYAUX_MAJOR, UNIX98_PTY_SLAVE_MAJOR and the seven numbers after it. */
static __always_inline bool is_tty(u64 inode)
{
	u32 major = read_kernel_u32(inode + file_offsets.inode_rdev) >> 20;

	return major == 4 || major == 5 || (major >= 136 && major <= 143);
}

/* Recognizes the kind by the name that /proc/PID/fd shows: "[eventfd]". */
static __always_inline u32 anonymous_kind(u64 file)
{
	char name[8] = {};
	u64 dentry = read_kernel_word(file + file_offsets.file_dentry);
	u64 at = read_kernel_word(dentry + file_offsets.dentry_name);

	bpf_probe_read_kernel(name, sizeof(name), (const void *)at);
	if (name[0] != '[')
		return MT_FILE_OTHER;
	if (name[1] == 'e' && name[2] == 'v' && name[6] == 'f')
		return MT_FILE_EVENTFD;
	if (name[1] == 'e' && name[2] == 'v' && name[6] == 'p')
		return MT_FILE_EPOLL;
	if (name[1] == 't' && name[2] == 'i')
		return MT_FILE_TIMERFD;
	return MT_FILE_OTHER;
}

static __always_inline u32 file_kind(u32 fd)
{
	u64 file = file_of(fd), inode, block;

	if (!file)
		return MT_FILE_ANY;
	inode = read_kernel_word(file + file_offsets.file_inode);
	block = read_kernel_word(inode + file_offsets.inode_sb);
	if (read_kernel_word(block + file_offsets.sb_magic) == ANON_INODE_FS_MAGIC)
		return anonymous_kind(file);
	switch (read_kernel_u32(inode + file_offsets.inode_mode) & S_IFMT) {
	case S_IFSOCK:
		return MT_FILE_SOCKET;
	case S_IFREG:
		return MT_FILE_REGULAR;
	case S_IFIFO:
		return MT_FILE_PIPE;
	case S_IFCHR:
		return is_tty(inode) ? MT_FILE_TTY : MT_FILE_OTHER;
	}
	return MT_FILE_OTHER;
}

/*
 * Identifies a socket: the descriptor in the lower 32 bits, and above it the inode's number, which
 * the kernel counts up, so that another socket with the same descriptor differs. 0: not known.
 */
static __always_inline u64 socket_of(u32 fd)
{
	u64 file = file_of(fd), ino;

	if (!file)
		return 0;
	ino = read_kernel_u32(read_kernel_word(file + file_offsets.file_inode) +
			      file_offsets.inode_ino);
	return ino ? ino << 32 | fd : 0;
}

/* True if the socket of this id (0: none) has been closed, and its descriptor may be another's. */
static __always_inline bool is_closed(u64 socket)
{
	return socket && socket_of(socket) != socket;
}

/* True if the system call's descriptor was that of the socket of this id, and is another file's. */
static __always_inline bool is_reused(u64 socket, const struct hit_place *place)
{
	return place->is_syscall && (u32)place->regs->di == (u32)socket && is_closed(socket);
}

/* The probed system calls, by number; user space fills it. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MT_SYSCALLS);
	__type(key, u32);
	__type(value, struct mt_syscall);
} probed_syscalls SEC(".maps");

/* Offset of thread_info.status in struct task_struct; 0: not known. */
const volatile __u32 task_status_at;

#define TS_COMPAT 2    /* arch/x86/include/asm/thread_info.h */
#define USER32_CS 0x23 /* arch/x86/include/asm/segment.h: __USER32_CS */

/*
 * True for a 32-bit system call, whose number means another call. Such calls reach
 * the tracepoints, but not the functions __x64_sys_X. Without BTF they are recognized only in
 * 32-bit code, not as int $0x80 in 64-bit code.
 */
static __always_inline bool is_compat(const struct pt_regs *regs)
{
	u64 cs = 0;

	if (task_status_at)
		return read_kernel_u32(bpf_get_current_task() + task_status_at) & TS_COMPAT;
	bpf_probe_read_kernel(&cs, sizeof(cs), &regs->cs);
	return (u16)cs == USER32_CS;
}

/*
 * True if latches are in the LRU hash: without the kernel's BTF, or if calls belong to goroutines.
 */
const volatile bool syscalls_use_lru;

/*
 * The probed system call of this context if it has one of these roles, otherwise NULL. Also works
 * at the return.
 */
static __always_inline const struct mt_syscall *probed_syscall(const u64 *ctx, u32 roles)
{
	const struct pt_regs *regs = (const void *)ctx[0];
	const struct mt_syscall *syscall;
	u64 number = -1;
	u32 key;

	bpf_probe_read_kernel(&number, sizeof(number), &regs->orig_ax);
	key = number < MT_SYSCALLS ? number : MT_SYSCALLS;
	syscall = bpf_map_lookup_elem(&probed_syscalls, &key);
	return syscall && syscall->roles & roles && !is_compat(regs) ? syscall : NULL;
}

/*
 * True if the first argument, a descriptor or a status, meets the system call's condition, or if it
 * has none.
 */
static __always_inline bool is_meant(const struct pt_regs *regs, const struct mt_syscall *syscall)
{
	/* The parent gets only the lowest eight bits of a status. */
	if (syscall->nonzero && !(u8)regs->di)
		return false;
	return syscall->file_kind == MT_FILE_ANY || file_kind(regs->di) == syscall->file_kind;
}

/*
 * True if the call was successful. A read that returns 0 is at the end of the file and does not
 * count.
 */
static __always_inline bool has_done(s64 result, const struct mt_syscall *syscall)
{
	return result > 0 || (!result && !syscall->reads);
}

#endif
