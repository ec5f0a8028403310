/* SPDX-License-Identifier: MIT */
/*
 * The finished call trees of one thread, one per stack that it ran on. user/stack and user/sampled
 * make them, user/trace writes them.
 */
#ifndef MTBPF_STACK_CALL_TREE_H
#define MTBPF_STACK_CALL_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "mtbpf_shared.h"
#include "target/elf/elf_image.h"
#include "target/elf/elf_inlined.h"
#include "util/names.h"
#include "util/vec.h"

struct code_map;

#define CALL_NO_PARENT UINT32_MAX

enum call_kind {
	CALL_FUNCTION, /* an activation of `function` */
	CALL_SIGNAL,   /* the same, entered by the kernel to handle a signal */
	CALL_KERNEL,   /* the same, entered by a syscall, an interrupt or an exception */
	CALL_SYSCALL,  /* time in a syscall: enum syscall_reason; function is NULL */
	/*
	 * Time in code that is not traced (user code if only the kernel is): `reason` is the
	 * pt_event__of() of the event that Event Trace reported, else 0; function is NULL.
	 */
	CALL_UNTRACED,
	CALL_SWITCHED, /* another stack of the thread runs; function is NULL */
	CALL_GAP,      /* the trace is broken: enum gap_reason in `reason`; function is NULL */
	CALL_OFF_CPU,  /* the thread was on no CPU: enum off_reason in `reason`; function is NULL */
	/*
	 * Samples: kernel code. The outermost one is all of the kernel, with function NULL;
	 * calls in it are the kernel's functions.
	 */
	CALL_IN_KERNEL,
	CALL_INLINED, /* `function` is part of its caller: which calls it made is known, not when
			 it began or ended */
	CALL_NOT_RECORDED, /* samples: no stack tells what ran there; function is NULL */
	CALL_NO_CALLERS,   /* samples: a placeholder for callers that are missing from the stack;
			      function is NULL */
};

enum call_flags {
	CALL_INFERRED_START = 1 << 0, /* was already running when the segment began */
	CALL_INFERRED_END = 1 << 1,   /* was still running when the segment ended */
	CALL_BY_JUMP = 1 << 2,	 /* entered by a tail call: the frame that it replaced is gone */
	CALL_CUT_SHORT = 1 << 3, /* left without a return: enum left_by in `left_by` */
	CALL_INSIDE = 1 << 4,	 /* entry_ip is not the function's first instruction */
	CALL_INFERRED = 1 << 5,	 /* it ran on across a gap, or only a stack shows that it ran */
	CALL_SAMPLED = 1 << 6,	 /* seen in samples; edges without an INFERRED flag are exact */
};

/* Kinds of time in the kernel. */
enum syscall_reason {
	SYSCALL_ANY,
	SYSCALL_RECLAIM, /* samples: the thread freed memory so that an allocation could go on */
};

/* Why a thread was on no CPU. */
enum off_reason {
	OFF_BLOCKED,   /* it waited for something */
	OFF_PREEMPTED, /* it could have run: somebody else did */
	OFF_RUNNABLE,  /* it was ready to run, but waited for a CPU */
	OFF_THROTTLED, /* it could have run, but its cgroup's quota of CPU time was used up */
	OFF_STOLEN,    /* the hypervisor did not run its virtual CPU */
};

/*
 * The thread or goroutine that caused a call off the CPU: it woke a thread that was blocked, ran in
 * its place, or made a goroutine ready.
 */
struct done_by {
	uint32_t call; /* index in call_tree.calls of the CALL_OFF_CPU that it caused */
	pid_t pid, tid;
	char comm[32]; /* the thread's; or "goroutine 18"; "Go's runtime" if no goroutine woke it */
	uint64_t ns;   /* how much of the call's time it caused */
	bool is_goroutine;
	const char *in; /* of a goroutine: the function that it was in; NULL: not known */
};

/* The system call in which a blocked thread left its CPU. */
struct waits_for {
	uint32_t call; /* index in call_tree.calls of the CALL_OFF_CPU */
	int syscall;   /* its number, or MT_STOPPED_BY_SIGNAL and the like */
	int fd;	       /* its first argument; -1: not a file descriptor */
	/* The file of fd at the end of the recording, which owns this string; NULL: not known. */
	const char *file;
	pid_t owner; /* tid of the thread, in the same process, that holds the mutex the call waits
			for; 0: not known */
	char owner_comm[16];
	/*
	 * The whole text, if it comes from a trace file; NULL: it is made from the members above.
	 */
	const char *text;
};

/* Page faults at one moment, or a move of the thread to another CPU. */
struct fault_mark {
	uint64_t time_ns;
	uint32_t n;			 /* number of page faults */
	bool is_major;			 /* they had to wait for a file or a swapped page */
	bool is_move;			 /* a move to another CPU, no fault */
	const struct function *function; /* NULL: not known */
};

/* Time that interrupts took within a stretch of time on the CPU. */
struct interrupts_mark {
	uint64_t start_ns, end_ns;
	uint64_t ns; /* at most end_ns - start_ns */
};

/* The reason why a call ended without a return. */
enum left_by {
	LEFT_BY_UNKNOWN, /* the reason is not known, or the call returned */
	LEFT_BY_THROW,	 /* a C++ exception */
	LEFT_BY_PANIC,	 /* of Rust, of Go */
	LEFT_BY_RAISE,	 /* of OCaml */
	LEFT_BY_LONGJMP,
	LEFT_BY_SIGLONGJMP,
	LEFT_BY_GOEXIT,
};

/* One activation: one slice. */
struct call {
	uint64_t start_ns, end_ns; /* start <= end */
	uint64_t entry_ip;	   /* where the function was entered, or first seen; page fault: the
				      faulting address, or 0 */
	union {
		uint64_t call_ip;	       /* address of the calling instruction; 0 unknown */
		const struct inlined *inlined; /* CALL_INLINED: the inlined call */
	};
	const struct function *function;
	uint64_t self_insns : 39; /* instructions executed in it, callees not counted */
	uint64_t told_at_end : 1; /* the last callee that the consumer took ended at end_ns */
	uint64_t told_before : 1; /* the consumer took calls between this and the sibling before */
	uint64_t left_by : 3;	  /* enum left_by */
	uint64_t kind : 4;	  /* enum call_kind */
	uint64_t flags : 8;	  /* enum call_flags */
	uint64_t reason : 8;	  /* see enum call_kind */
	uint32_t parent;	  /* index, or CALL_NO_PARENT */
	uint32_t depth;		  /* 0 for a root */
};
/* Millions of calls take most of the memory that decoding needs. */
_Static_assert(sizeof(struct call) == 56, "no padding");

/* Frames that an exception or a longjmp() ended, as a whole: they did not return. */
struct unwind {
	uint64_t start_ns; /* entry of the call that began it, such as __cxa_throw() */
	uint64_t end_ns;   /* when the thread continued in the frame that it landed in */
	/*
	 * Indices of these two calls: `to` is a direct or indirect caller of `from`, unless a gap
	 * is between them.
	 */
	uint32_t from, to;
	enum left_by left_by;
};

/*
 * The instructions that made a tree's calls: there are millions of calls, but only thousands of
 * such instructions.
 */

/*
 * An instruction's function, inlined function and source. A site that has neither of the last two
 * is not stored.
 */
struct call_site {
	const struct function *function; /* the one whose code contains the instruction */
	const struct inlined *inlined;	 /* innermost inlined call that contains it; NULL: none */
	struct source_place source;	 /* file is NULL where not known */
};

struct call_sites {
	struct site_place {
		uint64_t ip; /* of the calling instruction; 0: a free place */
		struct call_site *site;
	} * places; /* a hash table */
	size_t n, n_places;
	/* Number of places that have a site; number of sites in inlined code. */
	size_t n_known, n_inlined;
};

/*
 * Calls are in pre-order: a parent before its children, siblings by time. A child's interval is
 * within its parent's; siblings do not overlap. Writers walk the array once.
 */
struct call_tree {
	pid_t pid, tid;
	char comm[16];
	/*
	 * The coroutine's number in its thread, from 1, and its name, such as "goroutine 1". 0: the
	 * thread's own stack.
	 */
	uint32_t coroutine;
	char coroutine_name[64];
	VEC(struct call) calls;
	struct call_sites sites;       /* sites of calls' call_ip; empty until they are looked up */
	VEC(struct done_by) done_by;   /* ascending by `call`, then falling by ns */
	VEC(struct unwind) unwinds;    /* ascending by `from` */
	VEC(struct waits_for) waits;   /* ascending by `call` */
	VEC(struct fault_mark) faults; /* ascending by time */
	VEC(struct interrupts_mark) interrupts; /* ascending, without overlaps */
};

/* Sorts the unwinds by `from`, then by end_ns. */
void call_tree__sort_unwinds(struct call_tree *tree);
/* Appends a mark, without the part that overlaps those before it. 0 or -ENOMEM. */
int call_tree__add_interrupts(struct call_tree *tree, const struct interrupts_mark *mark);
/* The mark's interrupt time before time_ns, if it is spread evenly over the stretch. */
uint64_t interrupts_mark__until(const struct interrupts_mark *mark, uint64_t time_ns);

/*
 * Takes calls before their tree is finished, as soon as nothing can change them. Calls that were
 * taken are in no tree.
 */
struct call_consumer {
	/*
	 * Takes one call, or all callees of one caller that were made in the same inlined call:
	 * in pre-order, each with its own callees, except those that were taken before. Their
	 * parents are not known. The consumer may change them. 0 or -ENOMEM.
	 */
	int (*take)(void *ctx, struct call *calls, size_t n);
	/*
	 * Returns the outermost inlined call in which this call, which has ended, was made; NULL:
	 * it was not made in inlined code.
	 */
	const struct inlined *(*outermost)(void *ctx, const struct call *call);
	void *ctx;
};

/*
 * Looks up the call_ip of each call; `map` shows the code as it was at the end. Addresses at which
 * the code has changed get no site. 0 or -ENOMEM.
 */
int call_sites__find_all(struct call_sites *sites, const struct call_tree *tree,
			 struct code_map *map);
/*
 * Looks up one instruction. The first search for an ip reads the code that `map` shows now; later
 * ones return the same result.
 */
const struct call_site *call_sites__find_in(struct call_sites *sites, uint64_t ip,
					    struct code_map *map);
/* Adds the sites of `from`. 0 or -ENOMEM. */
int call_sites__add_all(struct call_sites *sites, const struct call_sites *from);
void call_sites__fini(struct call_sites *sites);

static inline struct site_place *call_sites__place(const struct call_sites *sites, uint64_t ip)
{
	size_t mask = sites->n_places - 1, at = (ip * 0x9e3779b97f4a7c15) >> 32 & mask;

	while (sites->places[at].ip != ip && sites->places[at].ip)
		at = (at + 1) & mask;
	return &sites->places[at];
}

/* Returns the site of the instruction at ip, or NULL. */
static inline const struct call_site *call_sites__find(const struct call_sites *sites, uint64_t ip)
{
	return ip && sites->n_known ? call_sites__place(sites, ip)->site : NULL;
}

/* The site of the instruction that made the call; NULL if it is unknown. */
static inline const struct call_site *call__site(const struct call *call,
						 const struct call_sites *sites)
{
	return call->kind == CALL_INLINED ? NULL : call_sites__find(sites, call->call_ip);
}

/* Kinds of time that were looked for in samples. Only for these does "none found" mean zero. */
enum counted {
	COUNTED_THROTTLED = 1 << 0,
	COUNTED_INTERRUPTS = 1 << 1,
	COUNTED_STOLEN = 1 << 2,
	COUNTED_NOT_STOLEN = 1 << 3, /* the machine cannot measure stolen time */
};
#define COUNTED_ALL 16 /* number of different sets */

#define TRACE_ID_SIZE 33

/* A value of -print. */
struct hit_printed {
	const char *name; /* as the user has written it: "str(arg1)" */
	struct mt_printed value;
	char text[PRINTED_SIZE]; /* the same as text: printed__format() */
};

/* A hit as the trace and the report show it. */
struct hit_mark {
	/* Bits of enum counted: kinds of time that the whole recording was searched for. */
	uint8_t counted;
	uint64_t time_ns;
	uint64_t value_ns;     /* delay or duration */
	uint64_t threshold_ns; /* which value_ns has passed; 0: none was set */
	uint64_t unix_ms;      /* when it was, since 1970; 0: not known */
	uint64_t sequence;
	uint32_t reason;      /* enum mt_hit_reason */
	uint32_t cpu_measure; /* enum mt_cpu_measure: the part of value_ns that is compared */
	uint64_t off_cpu_ns;  /* the part of value_ns off the CPU, if it is measured */
	uint32_t stall_from;  /* of a stall: enum mt_stall_from; 0: not known */
	pid_t pid, tid;
	uint64_t ip;
	const struct function *function; /* NULL where unknown */
	/* Name of a USDT probe or system call: "usdt:app:request", "syscall:fsync"; or NULL. */
	const char *probe;
	/* A system call, tracepoint, signal or exit was hit: `function` is where the program was.
	 */
	bool in_kernel;
	bool is_syscall;
	/*
	 * Arguments from the program: args_read tells which of them could be read. All keep their
	 * numbers: args[1] is "arg2".
	 */
	uint32_t n_args;
	uint16_t args_read, args_signed; /* bit i: args[i] was read; is signed */
	uint64_t args[MT_ARGS_MAX];
	/* The trace id of the program's request: 32 hexadecimal digits as in OpenTelemetry; or "".
	 */
	char trace_id[TRACE_ID_SIZE];
	/* With -key: the request's key, and the thread in which value_ns began; 0: no key. */
	uint64_t key;
	pid_t since_tid;
	uint32_t n_prints;
	struct hit_printed prints[MT_PRINTS];
};

/* Name to show: the probe if it has a name, otherwise the function, which must be known then. */
static inline const char *hit_mark__name(const struct hit_mark *hit)
{
	return hit->probe ? hit->probe : hit->function->name;
}

/* The innermost slice of memory reclaim that contains the call or is the call; NULL: none. */
const struct call *call_tree__reclaim(const struct call_tree *tree, const struct call *call);

/*
 * The main cause of this call; entries for other causes of the same call follow it. NULL: not
 * known.
 */
const struct done_by *call_tree__done_by(const struct call_tree *tree, const struct call *call);

/* The system call that it waits in; NULL if that is not known, or if it does not wait. */
const struct waits_for *call_tree__waits_for(const struct call_tree *tree, const struct call *call);
#define WAITS_FOR_SIZE 192
/* "read of /var/log/x (fd 5)", "futex held by helper (123)", "stopped by a signal". Returns text.
 */
const char *waits_for__format(const struct waits_for *wait, char text[static WAITS_FOR_SIZE]);

/* "main", "[syscall]", "[switched out]", "[gap: overflow]", "[blocked]", "[not recorded]",
 * "[callers not recorded]", "[page fault]". */
const char *call__name(const struct call *call);
#define CALL_NAME_SIZE 80
/* The same, with the address of a page fault: "[page fault 0x7f00]". It may return text. */
const char *call__full_name(const struct call *call, char text[static CALL_NAME_SIZE]);
/* True if its full name differs from that of other calls of its kind and reason. */
static inline bool call__has_own_name(const struct call *call)
{
	return call->kind == CALL_UNTRACED && call->reason && call->entry_ip;
}
/* "throw", "panic"; NULL for LEFT_BY_UNKNOWN. */
const char *left_by__name(enum left_by left_by);

#endif
