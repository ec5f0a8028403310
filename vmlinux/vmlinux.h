/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * The kernel types that the BPF programs use, and nothing else, so that they build without the
 * BTF of a running kernel. All of it is user ABI: nothing here may need a CO-RE relocation, or the
 * program would no longer load where the kernel has no BTF.
 */
#ifndef __VMLINUX_H__
#define __VMLINUX_H__

typedef signed char __s8;
typedef unsigned char __u8;
typedef short __s16;
typedef unsigned short __u16;
typedef int __s32;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;

/* bpf_helper_defs.h names these in prototypes. */
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;

typedef __s8 s8;
typedef __u8 u8;
typedef __u16 u16;
typedef __s32 s32;
typedef __s64 s64;
typedef __u32 u32;
typedef __u64 u64;
typedef _Bool bool;

enum { false = 0, true = 1 };

#define NULL ((void *)0)

/*
 * arch/x86/include/asm/ptrace.h: what a uprobe's program gets as its context. The layout is that
 * of the user ABI (PTRACE_GETREGS) up to ss.
 */
struct pt_regs {
	unsigned long r15;
	unsigned long r14;
	unsigned long r13;
	unsigned long r12;
	unsigned long bp;
	unsigned long bx;
	unsigned long r11;
	unsigned long r10;
	unsigned long r9;
	unsigned long r8;
	unsigned long ax;
	unsigned long cx;
	unsigned long dx;
	unsigned long si;
	unsigned long di;
	unsigned long orig_ax;
	unsigned long ip;
	unsigned long cs;
	unsigned long flags;
	unsigned long sp;
	unsigned long ss;
};

struct task_struct;

/* include/uapi/linux/bpf.h */
struct bpf_pidns_info {
	__u32 pid;
	__u32 tgid;
};

enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PROG_ARRAY = 3,
	BPF_MAP_TYPE_PERF_EVENT_ARRAY = 4,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_CGROUP_ARRAY = 8,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};

enum {
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
};

enum {
	BPF_F_NO_PREALLOC = 1,
	BPF_F_MMAPABLE = 1024,
};

enum {
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1,
};

/* Of bpf_perf_event_output(). */
#define BPF_F_CURRENT_CPU 0xffffffffull

enum {
	BPF_RB_FORCE_WAKEUP = 2,
};

/* Flags of bpf_get_stack(); the lowest 8 bits are the number of frames to skip. */
enum {
	BPF_F_USER_STACK = 256,
};

#endif
