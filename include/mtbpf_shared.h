/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* Types and limits that the BPF programs share with user space; sizes are checked. */
#ifndef MTBPF_SHARED_H
#define MTBPF_SHARED_H

#ifndef __bpf__
#include <stdint.h>
typedef uint8_t __mt_u8;
typedef int8_t __mt_s8;
typedef uint16_t __mt_u16;
typedef int32_t __mt_s32;
typedef uint32_t __mt_u32;
typedef uint64_t __mt_u64;
#else
typedef unsigned char __mt_u8;
typedef signed char __mt_s8;
typedef unsigned short __mt_u16;
typedef int __mt_s32;
typedef unsigned int __mt_u32;
typedef unsigned long long __mt_u64;
#endif

/* bpf_get_stack() returns at most this many user frames; the kernel's default limit is 127. */
#define MT_STACK_DEPTH 127
/*
 * The stack is copied in pieces aligned to this size: no piece crosses from a mapped page into an
 * unmapped one, so that all readable bytes are copied.
 */
#define MT_COPY_PIECE 1024
/* A perf.data record has at most 64 KiB, headers included. */
#define MT_COPY_MAX (60 * 1024)
/* One piece more, because the first one may begin below the stack pointer. */
#define MT_COPY_PIECES (MT_COPY_MAX / MT_COPY_PIECE + 1)
/*
 * The histogram in the kernel: one bucket per value below MT_HIST_SUBS, then MT_HIST_SUBS buckets
 * of equal width per octave, so that a value is known to 6 %. The last bucket also counts all
 * larger values: 2^47 ns is 39 hours.
 */
#define MT_HIST_SUB_BITS 4
#define MT_HIST_SUBS	 (1 << MT_HIST_SUB_BITS)
#define MT_HIST_OCTAVES	 48
#define MT_FINE_BUCKETS	 ((MT_HIST_OCTAVES - MT_HIST_SUB_BITS + 1) * MT_HIST_SUBS)
/* Arguments per hit: the maximum of systemtap's sys/sdt.h. */
#define MT_ARGS_MAX 12
/* Open calls per thread that a duration threshold can follow (recursion). */
#define MT_CALL_DEPTH 16
/*
 * The cookie of an attachment: the probe's number in the low 32 bits. If a hit counts only when a
 * conditional jump is taken, the high 32 bits are MT_CONDITION | the low four bits of the jump's
 * opcode.
 */
#define MT_CONDITION	   0x10
#define MT_CONDITION_SHIFT 32
/*
 * The cookie of a breakpoint: the probe's number in the low bits; at a return also the address of
 * its function's entry.
 */
#define MT_BREAKPOINT_SHIFT 16
#define MT_BREAKPOINT_PROBE 0xffff
/*
 * The kernel function of a BPF helper: programs without a perf event call the helper to freeze
 * Intel PT, by a kprobe on this function. The helper changes nothing, and other programs rarely
 * call it.
 */
#define MT_FREEZE_CALL "bpf_get_numa_node_id"
/* Above the highest number of a system call on x86-64, which is about 470. */
#define MT_SYSCALLS 512
/* The most processes that can be followed at once, each by its pid. */
#define MT_TARGETS_MAX 65536
/* The most threads that can be in a region at once. */
#define MT_OPEN_REGIONS 16384
/* Entries per log; the oldest are overwritten. A power of two. */
#define MT_ENTRY_LOG 65536

enum mt_hit_reason {
	MT_HIT_EVERY = 0,    /* no threshold: each hit triggers */
	MT_HIT_DELAY = 1,    /* time since this thread's previous hit */
	MT_HIT_DURATION = 2, /* time from the function's entry to its return */
	MT_HIT_LAST = 3,     /* no threshold passed: max_hits hits have been counted */
	MT_HIT_MARK = 4,     /* time since this thread's mtbpf_mark_start() */
	MT_HIT_REGION = 5,   /* time since this thread's hit of the start probe */
	MT_HIT_STALL = 6, /* time since the start of a call, region or delay that has not ended */
};

/*
 * Limits for what triggers, as the user gave them; 0: no limit. Options, the trigger's
 * configuration and its programs have the same struct: a new limit is a member here, a condition
 * in a program, and an option.
 */
struct mt_limits {
	/*
	 * A thread that has been in a call, region or delay for this long triggers before that
	 * ends.
	 */
	__mt_u64 stall_thresh_ns;
	__mt_u64 after_ns;	  /* nothing triggers within this time after the first arming */
	__mt_u64 min_interval_ns; /* least time between two triggers */
	__mt_s32 skip;	   /* hits within the other limits that do not trigger, before one does */
	__mt_s32 max_hits; /* number of hits (durations: returned calls) that end the session */
};
_Static_assert(sizeof(struct mt_limits) == 32, "mt_limits");

/*
 * The conditions of -if: what each compares, how, and with what. At most MT_TERMS; all must hold.
 */
#define MT_TERMS 4

enum mt_field {
	MT_FIELD_ARG = 1,    /* a value at the hit, read by mt_reads.terms[i] for term i */
	MT_FIELD_RETVAL = 2, /* like MT_FIELD_ARG, after the call has returned */
	MT_FIELD_TID = 3,    /* as user space sees it */
	MT_FIELD_COMM = 4,   /* the thread's name; only with MT_OP_EQ or MT_OP_NE */
};

enum mt_op {
	MT_OP_EQ = 1,
	MT_OP_NE = 2,
	MT_OP_LT = 3,
	MT_OP_LE = 4,
	MT_OP_GT = 5,
	MT_OP_GE = 6,
	MT_OP_AND = 7, /* both have a bit in common */
};

struct mt_term {
	__mt_u64 value;
	__mt_u64 comm[2]; /* the thread's name, padded with zeroes */
	__mt_u8 field, op;
	__mt_u8 pad[6];
};
_Static_assert(sizeof(struct mt_term) == 32, "mt_term");

/* The part of a duration, a region or a delay that is measured. */
enum mt_cpu_measure {
	MT_CPU_ALL = 0, /* the whole time */
	MT_CPU_ON = 1,	/* the time on a CPU */
	MT_CPU_OFF = 2, /* the time off the CPU: blocked, or ready and waiting for one */
};

/* The call, delay or region that a stalled thread has not left. */
enum mt_stall_from {
	MT_STALL_CALL = 1,   /* a call of the function */
	MT_STALL_HIT = 2,    /* the time since its last hit */
	MT_STALL_REGION = 3, /* the time since its hit of the start probe */
};
/* The most questions (is this call still open?) that can wait for an answer at once. */
#define MT_ANSWERS 256
/* The most threads whose open calls can be watched for stalls at once. */
#define MT_STALLS_MAX 8192

/* Offsets in the kernel's struct task_struct, in bytes, which differ from kernel to kernel. */
struct mt_task_offsets {
	__mt_u32 pid, flags, state, ptrace, jobctl, signal;
	__mt_u32 signal_flags; /* in struct signal_struct, which signal points to */
	__mt_u32 tgid, stack;
	/* From a task to its cgroup, and to the id of each cgroup above that. */
	__mt_u32 cgroups, css_cgroup, cgroup_level, cgroup_ancestors, cgroup_node, node_id;
	__mt_u32 pad;
};
_Static_assert(sizeof(struct mt_task_offsets) == 64, "mt_task_offsets");

/* A thread's place at one moment. */
struct mt_thread {
	__mt_u32 tid, tgid;  /* as user space sees them */
	__mt_u32 inner_tid;  /* as the thread sees itself, in its own pid namespace */
	__mt_u32 state;	     /* task_struct.__state: 0 if it runs, or is ready to */
	__mt_u32 on_cpu;     /* it runs */
	__mt_u32 syscall;    /* number of the system call that it is in, or MT_NO_SYSCALL */
	__mt_u64 args[3];    /* arguments of that system call */
	__mt_u64 n_switches; /* how often it left a CPU: the same later if it has not run since */
	__mt_u64 returns_to; /* where the innermost call with a return probe returns to; 0: none */
	__mt_u64 regs[8];    /* bx, bp, sp, ip, r12 to r15 */
	char comm[16];
};
_Static_assert(sizeof(struct mt_thread) == 144, "mt_thread");

enum mt_file_kind {
	MT_FILE_ANY = 0,
	MT_FILE_SOCKET = 1,
	MT_FILE_REGULAR = 2,
	MT_FILE_PIPE = 3, /* and FIFOs */
	MT_FILE_TTY = 4,
	MT_FILE_EVENTFD = 5,
	MT_FILE_EPOLL = 6,
	MT_FILE_TIMERFD = 7,
	MT_FILE_OTHER = 8,
};

/* The task of a probe in the kernel, or of a breakpoint, for the trigger. */
enum mt_role {
	MT_ROLE_HITS = 1,    /* it is a hit or begins a call */
	MT_ROLE_RETURNS = 2, /* it ends that call */
	MT_ROLE_STARTS = 4,  /* it begins a region; a system call begins one at its return */
	MT_ROLE_STOPS = 8,   /* it ends a region */
};

struct mt_syscall {
	__mt_u32 probe;	   /* number of the probe */
	__mt_u8 roles;	   /* bits of enum mt_role; 0: it is not probed */
	__mt_u8 file_kind; /* enum mt_file_kind of the descriptor in its first argument */
	__mt_u8 reads;	   /* 1: a call that returns 0 (end of file) does not count */
	__mt_u8 nonzero;   /* 1: it counts only if its first argument is a status that is not 0 */
};
_Static_assert(sizeof(struct mt_syscall) == 8, "mt_syscall");

/* Offsets in the kernel's structs, in bytes: from a thread to the file of a descriptor. */
struct mt_file_offsets {
	__mt_u32 task_files, files_fdt, fdt_fd, fdt_max;
	__mt_u32 file_inode, file_dentry, dentry_name;
	__mt_u32 inode_mode, inode_rdev, inode_sb, sb_magic;
	__mt_u32 inode_ino;
};
_Static_assert(sizeof(struct mt_file_offsets) == 48, "mt_file_offsets");

enum mt_arg_kind {
	MT_ARG_UNKNOWN = 0,   /* cannot be read (a vector register, for example) */
	MT_ARG_CONSTANT = 1,  /* the number mt_arg.value */
	MT_ARG_REGISTER = 2,  /* in the register mt_arg.base */
	MT_ARG_MEMORY = 3,    /* in memory at base + index * scale + value, members of mt_arg */
	MT_ARG_GIVEN = 4,     /* in the register mt_arg.base, if mtbpf_hit() got an argument */
	MT_ARG_GOROUTINE = 5, /* the running goroutine's g, in a Go program */
};

/* The place of a probe's argument. Registers are offsets into the kernel's struct pt_regs. */
struct mt_arg {
	__mt_u64 value;
	__mt_u16 base;
	__mt_u16 index;
	__mt_u8 kind;  /* enum mt_arg_kind */
	__mt_u8 scale; /* of index; 0: no index */
	__mt_s8 size;  /* 1, 2, 4 or 8 bytes; negative: signed */
	__mt_u8 pad;
};
_Static_assert(sizeof(struct mt_arg) == 16, "mt_arg");

/* The arguments that are read at the hits of one probe. */
struct mt_args {
	__mt_u32 n;
	/* 1: mtbpf_hit() of mtbpf.h: n is lowered to its third argument, if that is smaller. */
	__mt_u32 is_library;
	struct mt_arg v[MT_ARGS_MAX];
};
_Static_assert(sizeof(struct mt_args) == 8 + 16 * MT_ARGS_MAX, "mt_args");

/* The kinds of thread-local variables from which the thread's trace id is read. */
enum mt_trace_kind {
	MT_TRACE_NONE = 0,
	MT_TRACE_HALVES = 1, /* two numbers, the higher half first: mtbpf_trace_id_ of mtbpf.h */
	MT_TRACE_RECORD = 2, /* a pointer to OpenTelemetry's record, otel_thread_ctx_v1, or NULL */
};

/* The place of such a variable. */
struct mt_trace_place {
	__mt_u64 offset; /* from the thread pointer; with a module: from the begin of its block */
	__mt_u32 module; /* the variable's module: its index in the thread's DTV (glibc); 0: none */
	__mt_u32 kind;	 /* enum mt_trace_kind */
};
_Static_assert(sizeof(struct mt_trace_place) == 16, "mt_trace_place");

/* The variables of one process; the first one that contains a trace id is used. */
#define MT_TRACE_PLACES 4
struct mt_trace_places {
	struct mt_trace_place v[MT_TRACE_PLACES];
};
/* The most processes whose variables are known. */
#define MT_TRACED_MAX 256
/* The most pointers that a value such as arg1->a->b can follow. */
#define MT_DEREFS 4
/* The most values of -print, and the longest text of one; the rest is cut off. */
#define MT_PRINTS   4
#define MT_TEXT_MAX 256

/*
 * A value at a hit: an argument, or the memory found by following n_derefs pointers from it.
 * offsets[i] is added to pointer i to find the next pointer; the last one, to find the value.
 */
struct mt_value {
	struct mt_arg from;
	__mt_s32 offsets[MT_DEREFS];
	__mt_u8 n_derefs;
	__mt_s8 size;	    /* with n_derefs: of the value; 1, 2, 4 or 8 bytes; negative: signed */
	__mt_u8 is_address; /* with n_derefs: an array is found; its address is the value */
	__mt_u8 pad;
	__mt_u32 room; /* with is_address: the array's size, a limit for strings; 0: not known */
};
_Static_assert(sizeof(struct mt_value) == 40, "mt_value");

enum mt_print_kind {
	MT_PRINT_NONE = 0, /* in a hit: the value could not be read */
	MT_PRINT_NUMBER = 1,
	MT_PRINT_STRING = 2, /* a string, up to its NUL */
	MT_PRINT_BYTES = 3,  /* as many as `length` says */
};

struct mt_print {
	struct mt_value value, length;
	__mt_u8 kind;	   /* enum mt_print_kind */
	__mt_u8 at_return; /* 1: it is the returned value; others are read at the call's entry */
	__mt_u8 pad[6];
};
_Static_assert(sizeof(struct mt_print) == 88, "mt_print");

/* The values that -key, -if and -print read at the hits of one probe. */
struct mt_reads {
	struct mt_value key;
	struct mt_value terms[MT_TERMS];
	struct mt_print prints[MT_PRINTS];
};
_Static_assert(sizeof(struct mt_reads) == 40 * (1 + MT_TERMS) + 88 * MT_PRINTS, "mt_reads");

/* A value of -print, as read at a hit. */
struct mt_printed {
	__mt_u64 number;
	__mt_u16 length; /* of text, without a NUL */
	__mt_u8 kind;	 /* enum mt_print_kind */
	__mt_u8 is_signed;
	__mt_u8 is_cut; /* the value is longer than text */
	__mt_u8 pad[3];
	char text[MT_TEXT_MAX];
};
_Static_assert(sizeof(struct mt_printed) == 16 + MT_TEXT_MAX, "mt_printed");

/* The most requests that -key can follow at once; beyond that the oldest are forgotten. */
#define MT_REQUESTS 32768

/* A branch from the CPU's last branch records (LBR), laid out as struct perf_branch_entry. */
struct mt_branch {
	__mt_u64 from, to;
	__mt_u64 flags;
};
_Static_assert(sizeof(struct mt_branch) == 24, "mt_branch");
/* The largest number of LBR entries of any CPU. */
#define MT_BRANCHES_MAX 32

/*
 * A hit that triggered; in the ring buffer, `copied` bytes of the user stack follow it, starting at
 * sp rounded down to MT_COPY_PIECE. If arming is 0, it is a question of ask() in bpf/stall.bpf.h
 * instead, which gives some members another meaning.
 */
struct mt_hit {
	__mt_u64 time_ns;  /* bpf_ktime_get_ns(): CLOCK_MONOTONIC */
	__mt_u64 value_ns; /* the time that `reason` names; 0 for MT_HIT_EVERY and MT_HIT_LAST */
	__mt_u64 sequence; /* number of this hit among all hits of the target, from 1 */
	__mt_u64 ip;	   /* user registers at the hit */
	__mt_u64 sp;
	__mt_u64 bp;
	__mt_u32 tid; /* as user space sees it */
	__mt_u32 tgid;
	__mt_u32 cpu;
	__mt_u32 reason;		/* enum mt_hit_reason */
	__mt_u32 stack_depth;		/* valid entries of stack */
	__mt_u32 copied;		/* bytes of the user stack after this struct, or 0 */
	__mt_u64 stack[MT_STACK_DEPTH]; /* return addresses by frame pointer; [0] is ip */
	__mt_u64 bx;			/* with r12 to r15: the other callee-saved registers */
	__mt_u64 r12;
	__mt_u64 r13;
	__mt_u64 r14;
	__mt_u64 r15;
	/*
	 * Address of the probe; for a duration: of the entry probe. If the probe is in the kernel:
	 * the ip of user code.
	 */
	__mt_u64 probe_ip;
	__mt_u16 n_args;
	__mt_u16 syscall;     /* number + 1 of the probed system call; 0: not a system call */
	__mt_u16 args_read;   /* bit i: args[i] could be read */
	__mt_u16 args_signed; /* bit i: args[i] is a signed number */
	__mt_u64 args[MT_ARGS_MAX];
	__mt_u32 n_branches; /* last branches before the hit, newest first; 0: no LBR */
	__mt_u32 arming;     /* number of the hit's arming; 0: a question; not in recordings */
	struct mt_branch branches[MT_BRANCHES_MAX];
	__mt_u64 off_cpu_ns; /* the part of value_ns off the CPU, if measured */
	/* The trace that the thread worked for, its first byte the highest; 0 and 0: not known. */
	__mt_u64 trace_id[2];
	__mt_u64 key;	    /* with -key: the request's key */
	__mt_u32 since_tid; /* with -key: the thread in which value_ns began; 0: no key */
	__mt_u32 n_prints;
	struct mt_printed prints[MT_PRINTS];
};
_Static_assert(sizeof(struct mt_hit) == 176 + 8 * MT_STACK_DEPTH + 8 * MT_ARGS_MAX +
						24 * MT_BRANCHES_MAX +
						sizeof(struct mt_printed) * MT_PRINTS,
	       "mt_hit");

enum mt_entry_kind {
	MT_ENTRY_HIT = 0,  /* end_ns is 0 if the call's return is not known */
	MT_ENTRY_CALL = 1, /* its return is probed, too; end_ns is 0 until it returns */
	MT_ENTRY_LEFT = 2, /* it was left without a return, at the latest at end_ns */
	/*
	 * Like MT_ENTRY_HIT, for any probe in the kernel: `ip` is that of user code, for a system
	 * call the address after its instruction.
	 */
	MT_ENTRY_KERNEL = 4,
	MT_ENTRY_READY = 3, /* not a call: thread tid made a waiting goroutine ready */
};

/*
 * A hit of the probe, whether or not it triggered, a call of another function (-also), a wait of a
 * goroutine, or a region.
 */
struct mt_entry {
	__mt_u64 start_ns; /* CLOCK_MONOTONIC */
	__mt_u64 end_ns;   /* the call's return, if that is probed; 0: not known */
	__mt_u32 tid;	   /* as user space sees it */
	__mt_u32 tgid;
	__mt_u32 kind;	    /* enum mt_entry_kind */
	__mt_u32 goroutine; /* the goroutine whose call it is; 0: the call is the thread's */
	/*
	 * Return address; 0: not known. For a goroutine instead: the tid at the start << 8; its low
	 * byte is the call's 3rd argument, with which gopark() gets the reason for the wait. Of a
	 * region that is open: off_cpu_ns() at its start.
	 */
	__mt_u64 returns_to;
	/*
	 * Go's number of the goroutine; 0: not known. MT_ENTRY_READY: the number of the goroutine
	 * that made the call; 0: the runtime made it, outside of any goroutine. Of a region that is
	 * open: its socket, see bpf/syscalls.bpf.h.
	 */
	__mt_u64 goid;
	__mt_u64 ip; /* address of the probe; but see MT_ENTRY_KERNEL */
};
_Static_assert(sizeof(struct mt_entry) == 56, "mt_entry");

/* Value of mt_entry.goid if it is unknown who made the goroutine ready. */
#define MT_GOID_UNKNOWN (~0ull)
/*
 * Entries in the log of goroutines' wake-ups, and in the log of the stacks of their waits; the
 * oldest are overwritten. A power of two.
 */
#define MT_GO_STACKS	  4096
#define MT_GO_STACK_DEPTH 32

/*
 * A call of runtime.ready() for a goroutine that waits in a measured call (of the trigger's
 * function or of -also), or the call of runtime.gopark() that began such a wait.
 */
struct mt_go_stack {
	__mt_u64 time_ns;   /* CLOCK_MONOTONIC; 0: never written */
	__mt_u32 tid, tgid; /* the calling thread */
	__mt_u32 goroutine; /* the goroutine made ready, or that waits; as in mt_entry */
	__mt_u16 depth;	    /* valid entries of stack */
	__mt_u16 cpu;
	__mt_u64 goid; /* ready(): the caller's goid, 0: no goroutine, or MT_GOID_UNKNOWN */
	__mt_u64 stack[MT_GO_STACK_DEPTH]; /* by frame pointer; [0] is the probe's address */
};
_Static_assert(sizeof(struct mt_go_stack) == 32 + 8 * MT_GO_STACK_DEPTH, "mt_go_stack");

/* Offsets in structs of Go's runtime, in bytes; all 0: not known. */
struct mt_go_offsets {
	__mt_u32 goid; /* in struct g */
	__mt_u32 m;    /* in struct g: its thread */
	__mt_u32 curg; /* in struct m: the goroutine that runs on it */
	__mt_u32 pad;
};
_Static_assert(sizeof(struct mt_go_offsets) == 16, "mt_go_offsets");

enum mt_sched_kind {
	MT_SCHED_WOKEN = 1,    /* `by` woke the thread */
	MT_SCHED_REPLACED = 2, /* from now on `by` runs on the CPU that the thread waits for */
	MT_SCHED_SYSCALL = 3,  /* the thread leaves its CPU in this system call */
	MT_SCHED_LONG = 4,     /* start of a long system call, which ended at took.end_ns */
	/* Start of a region, until took.end_ns (0: still open). Time outside is not recorded. */
	MT_SCHED_REGION = 5,
	MT_SCHED_INTERRUPTS = 6, /* until took.end_ns, interrupts took took.arg ns of its CPU */
	MT_SCHED_RECLAIM = 7,	 /* it freed memory until took.end_ns; took.arg: enum mt_reclaim */
};

/* A scheduling event of one of the target's threads. */
struct mt_sched {
	__mt_u64 time_ns; /* CLOCK_MONOTONIC; 0: never written */
	__mt_u32 tid, tgid;
	__mt_u32 by_tid, by_tgid; /* 0: an interrupt, or idle */
	__mt_u32 kind;		  /* enum mt_sched_kind */
	__mt_u32 syscall;	  /* MT_SCHED_SYSCALL, MT_SCHED_LONG: as in struct mt_record */
	union {
		char by_comm[16];
		struct {
			__mt_u64 arg;	/* the system call's first argument */
			__mt_u32 owner; /* as in struct mt_record */
			__mt_u32 pad;
		} in; /* MT_SCHED_SYSCALL */
		struct {
			/* LONG: as in.arg; INTERRUPTS: ns; RECLAIM: enum mt_reclaim. */
			__mt_u64 arg;
			__mt_u64 end_ns;
		} took; /* MT_SCHED_LONG, MT_SCHED_REGION, MT_SCHED_INTERRUPTS, MT_SCHED_RECLAIM */
	};
};
_Static_assert(sizeof(struct mt_sched) == 48, "mt_sched");

/* Why a thread has to free memory before it can allocate. */
enum mt_reclaim {
	MT_RECLAIM_CGROUP = 1,	   /* a cgroup is at its memory limit */
	MT_RECLAIM_MACHINE = 2,	   /* the machine is short of memory */
	MT_RECLAIM_COMPACTION = 3, /* compaction makes room for larger pages */
};

enum mt_record_kind {
	MT_RECORD_IN = 1,	  /* the thread starts to run */
	MT_RECORD_BLOCKED = 2,	  /* it blocked, and `by` runs on its CPU */
	MT_RECORD_PREEMPTED = 3,  /* it was preempted, and `by` runs on its CPU */
	MT_RECORD_WOKEN = 4,	  /* `by` woke it */
	MT_RECORD_REPLACED = 5,	  /* it is ready to run, but `by` now runs on its last CPU */
	MT_RECORD_LONG = 6,	  /* a long system call from here to end_ns */
	MT_RECORD_INTERRUPTS = 7, /* from here to end_ns interrupts took `arg` ns of its CPU */
	MT_RECORD_THROTTLED = 8,  /* it runs again after `arg` ns in which it was throttled */
	MT_RECORD_STOLEN = 9,	  /* it leaves its CPU; the hypervisor took `arg` ns while it ran */
	MT_RECORD_RECLAIM = 10,	  /* from here to end_ns it freed memory: `arg`, enum mt_reclaim */
};
#define MT_NO_SYSCALL 0xffffffffu
/*
 * Values of mt_record.syscall for a thread that did not wait in a system call, but was stopped: by
 * a signal, by a debugger or strace, or with its cgroup (docker pause).
 */
#define MT_STOPPED_BY_SIGNAL 0xfffffffeu
#define MT_STOPPED_BY_TRACER 0xfffffffdu
#define MT_FROZEN	     0xfffffffcu

/* A scheduling event of one of the target's threads, in the log of one CPU. One cache line. */
struct mt_record {
	__mt_u64 time_ns; /* CLOCK_MONOTONIC; 0: never written */
	__mt_u32 tid, tgid;
	__mt_u32 by_tid, by_tgid; /* 0: an interrupt, or idle */
	__mt_u16 kind;		  /* enum mt_record_kind */
	__mt_u16 cpu;
	__mt_u32 syscall; /* the system call it is in, MT_NO_SYSCALL, or how it was stopped */
	__mt_u64 arg;	  /* the call's first argument, or as enum mt_record_kind says */
	union {
		__mt_u64 end_ns; /* MT_RECORD_LONG, MT_RECORD_INTERRUPTS, MT_RECORD_RECLAIM */
		struct {
			/* futex(): the word at arg + 8, in glibc's mutexes the holder's tid. */
			__mt_u32 owner;
			/* BLOCKED, PREEMPTED: offset / 8 in the ring of stacks; 0: none. */
			__mt_u32 stack;
		};
	};
	char by_comm[16];
};
_Static_assert(sizeof(struct mt_record) == 64, "mt_record");

/* Most addresses per stack: the default of kernel.perf_event_max_stack. */
#define MT_STACK_IPS 127

/* The user stack of a thread that left a CPU. Each CPU has a ring of bytes for these stacks. */
struct mt_stack {
	__mt_u64 time_ns; /* of its record; 0: still being written */
	__mt_u32 tid;
	__mt_u16 n_ips;	   /* length of ips: the ip, then return addresses by frame pointers */
	__mt_u16 n_copied; /* bytes copied from sp on; they follow ips; a multiple of 8 */
	__mt_u64 regs[8];  /* only with a copy: bx, bp, sp, ip, r12 to r15 */
	__mt_u64 ips[];
};

/*
 * The largest size of a stack. A stack is not wrapped: the ring has this much room after its end.
 */
#define MT_STACK_MAX (sizeof(struct mt_stack) + 8 * MT_STACK_IPS + MT_COPY_MAX + 8)

/*
 * An MT_RECORD_INTERRUPTS is written after interrupts have taken MT_INTERRUPTS_NS, or after
 * MT_INTERRUPTS_STRETCH_NS if they took less, so that many interrupts do not fill the log. The
 * interrupt time of a call is therefore exact to within one record.
 */
#define MT_INTERRUPTS_NS	 50000
#define MT_INTERRUPTS_STRETCH_NS 10000000

/*
 * BPF_TRACE_UPROBE_MULTI, the attach type of a program that runs at uprobes without perf events
 * (enum bpf_attach_type since Linux 6.6; Debian 12's headers and libbpf do not have it).
 */
#define MT_UPROBE_LINK 48

/* The recorder's state of one CPU. */
struct mt_cpu {
	__mt_u64 n_records; /* records written to its log since it was created */
	__mt_u64 n_left;    /* how often a thread of the target left the CPU */
	__mt_u64 n_clock;   /* timed samples and page faults */
	/*
	 * The target's thread that left the CPU last; or, if that one blocked while an earlier one
	 * was still waiting for the CPU, the earlier one. 0: none, or it has come back.
	 */
	__mt_u32 left_tid, left_tgid;
	__mt_u32 left_waits; /* 1: that thread is ready to run */
	__mt_u32 n_replaced; /* threads that have run on the CPU while left_tid waited for it */
	__mt_u64 left_task;  /* its struct task_struct, which may have been freed */
	/* Index of its log and rings, plus 1; 0: no log. Set by user space. */
	__mt_u32 slot;
	/* While left_tid is set: the thread that now runs on the CPU; 0: idle. */
	__mt_u32 now_tid, now_tgid;
	char now_comm[16];
	/* The target's thread that runs on the CPU; 0: none. */
	__mt_u32 in_tid, in_tgid;
	/* 1: the CPU handles an interrupt, or a softirq that an interrupt raised. */
	__mt_u16 in_hardirq, in_irq_softirq;
	/* Start of the running interrupt and of the running softirq; 0: none. */
	__mt_u64 hard_since_ns, soft_since_ns;
	/* Interrupt time not in the log yet, its begin and end, and the interrupted thread. */
	__mt_u64 interrupts_ns, interrupts_from_ns, interrupts_to_ns;
	__mt_u32 interrupts_tid, interrupts_tgid;
	/* The kernel's clock of stolen time when the target's thread got the CPU. */
	__mt_u64 stolen_ns;
	/* End of the last interrupt, or of the last softirq that an interrupt raised. */
	__mt_u64 interrupt_end_ns;
	/* Bytes ever written to its ring of stacks: where the next stack begins. Never 0. */
	__mt_u64 stacks_end;
	__mt_u64 stacks_begun; /* stacks_end when recording began; set by user space */
};
_Static_assert(sizeof(struct mt_cpu) == 168, "mt_cpu");

/* The state that stops the recording. The trigger writes it at the hit. */
struct mt_freezer {
	/*
	 * The number of the latest arming, from 1; set by user space. A hit of an earlier arming
	 * (in the ring of hits, or of a program that was preempted) has another number.
	 */
	__mt_u32 arming;
	__mt_u32 frozen;    /* the arming that has triggered; 0: none */
	__mt_u64 frozen_ns; /* time of that trigger */
};
_Static_assert(sizeof(struct mt_freezer) == 16, "mt_freezer");

/* Counters per CPU; user space adds them up. */
struct mt_counters {
	__mt_u64 hits;	   /* of the target */
	__mt_u64 triggers; /* hits and stalls that triggered, including the dropped ones */
	__mt_u64 dropped;  /* triggers lost: the ring buffer was full */
	__mt_u64 unarmed;  /* passed the threshold while not armed, or began before the arming */
	__mt_u64 let_pass; /* passed the threshold while armed, but the limits excluded them */
	/*
	 * Hits whose delay or duration is unknown: no room for the start, calls nested too deep, or
	 * the hit was in an interrupt.
	 */
	__mt_u64 unmeasured;
	__mt_u64 stalls; /* stalls that were counted and did not trigger */
	/* Requests (-key) added to the map, removed from it, or begun again while still in it. */
	__mt_u64 begun, ended, restarted;
	__mt_u64 keyless; /* hits whose key could not be read */
	__mt_u64 max_ns;  /* largest delay or duration so far */
	__mt_u64 sum_ns;  /* sum of all delays or durations */
	__mt_u64 fine[MT_FINE_BUCKETS];
};
_Static_assert(sizeof(struct mt_counters) == 104 + 8 * MT_FINE_BUCKETS, "mt_counters");

#endif
