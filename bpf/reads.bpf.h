/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* Reads the values of -if, -key and -print at a hit: arguments, and memory that they point to. */
#ifndef MTBPF_READS_BPF_H
#define MTBPF_READS_BPF_H

#include "args.bpf.h"

/* Indexed by the number of the probe. User space sets the size and fills it. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct mt_reads);
} reads_of_probes SEC(".maps");

const volatile __u32 n_prints;
const volatile bool keeps_prints; /* prints are read at the call's entry, for its return */

/* The location of a hit. At a uprobe, the program's context is the registers. */
struct hit_place {
	void *ctx;
	struct pt_regs *regs; /* of user space */
	/*
	 * The registers of user space are those saved at the entry into the kernel: the hit is at a
	 * system call, a tracepoint, a signal, a kernel function or a breakpoint, not at a uprobe.
	 */
	bool in_kernel;
	u32 probe; /* number of the probe if in_kernel; a uprobe has it in its cookie */
	bool is_syscall;
	u64 saved; /* if in_kernel: address of the saved registers of user space */
	/* Identifies the call of a kernel function: where it is on the thread's kernel stack. */
	u64 kernel_sp;
	bool is_breakpoint; /* a hardware breakpoint in a JIT's code; in_kernel is set as well */
	bool in_interrupt;  /* the function runs in an interrupt, which has its own stack */
};

/* The number of the probe. A tracepoint's program can read a cookie only since Linux 6.10. */
static __always_inline u32 probe_of(const struct hit_place *place)
{
	return place->in_kernel ? place->probe : bpf_get_attach_cookie(place->ctx);
}

static __always_inline const struct mt_reads *reads_of(const struct hit_place *place)
{
	u32 key = probe_of(place);

	return bpf_map_lookup_elem(&reads_of_probes, &key);
}

/* False if the value cannot be read without a page fault. */
static __always_inline bool read_value(const void *regs, const struct mt_value *value, u64 *out)
{
	u32 n = value->n_derefs;

	if (!read_arg(regs, &value->from, out))
		return false;
	for (u32 i = 0; i < MT_DEREFS && i < n; i++) {
		*out += (s64)value->offsets[i];
		if (i + 1 == n)
			return value->is_address || read_memory(*out, value->size, out);
		if (bpf_probe_read_user(out, sizeof(*out), (const void *)*out))
			return false;
	}
	return true;
}

/*
 * Reads up to MT_TEXT_MAX bytes of a string, with its NUL; sets is_cut if the string is longer.
 * room: size of the array that contains the string; 0: not known. The string then ends at the
 * array's end if it has no NUL.
 */
static __always_inline void read_string(u64 at, u32 room, struct mt_printed *out)
{
	u64 size = MT_TEXT_MAX, last = 0;
	long n;

	if (room && room < MT_TEXT_MAX)
		size = (u64)room + 1;
	/* Keeps the bound in one register for the verifier: see read_memory(). */
	asm volatile("" : "+r"(size));
	if (!size || size > MT_TEXT_MAX)
		return;
	n = bpf_probe_read_user_str(out->text, size, (const void *)at);
	if (n <= 0)
		return;
	if (n == MT_TEXT_MAX && (!room || room >= MT_TEXT_MAX))
		read_memory(at + MT_TEXT_MAX - 1, 1, &last);
	out->length = n - 1;
	out->is_cut = last != 0;
	out->kind = MT_PRINT_STRING;
}

static __always_inline void read_bytes(u64 at, u64 length, struct mt_printed *out)
{
	u64 n = length < MT_TEXT_MAX ? length : MT_TEXT_MAX;

	/* Keeps the bound in one register for the verifier: see read_memory(). */
	asm volatile("" : "+r"(n));
	if ((s64)length < 0 || n > MT_TEXT_MAX ||
	    (n && bpf_probe_read_user(out->text, n, (const void *)at)))
		return;
	out->length = n;
	out->is_cut = length > MT_TEXT_MAX;
	out->kind = MT_PRINT_BYTES;
}

/* If the value cannot be read, out->kind stays MT_PRINT_NONE. */
static __always_inline void read_print(const void *regs, const struct mt_print *print,
				       struct mt_printed *out)
{
	s8 size = print->value.n_derefs ? print->value.size : print->value.from.size;
	u64 value, length;

	if (!read_value(regs, &print->value, &value))
		return;
	if (print->kind == MT_PRINT_STRING) {
		read_string(value, print->value.is_address ? print->value.room : 0, out);
	} else if (print->kind == MT_PRINT_BYTES) {
		if (read_value(regs, &print->length, &length))
			read_bytes(value, length, out);
	} else {
		out->number = value;
		out->is_signed = size < 0;
		out->kind = MT_PRINT_NUMBER;
	}
}

/*
 * Reads the values of -print that belong to the call's entry, or those that belong to its return.
 * Leaves the others in `out` unchanged.
 */
static __always_inline void read_prints(const struct hit_place *place, bool at_return,
					struct mt_printed *out)
{
	const struct mt_reads *reads = reads_of(place);

	for (u32 i = 0; reads && i < MT_PRINTS && i < n_prints; i++)
		if (reads->prints[i].at_return == at_return)
			read_print(place->regs, &reads->prints[i], &out[i]);
}

static __always_inline void clear_prints(struct mt_printed *out)
{
	for (u32 i = 0; i < MT_PRINTS; i++) {
		out[i].number = 0;
		out[i].length = 0;
		out[i].kind = MT_PRINT_NONE;
		out[i].is_signed = out[i].is_cut = 0;
	}
}

/* Values of -print from the entry of a call, kept until its return. */
struct kept_prints {
	u64 sequence; /* of the call */
	struct mt_printed v[MT_PRINTS];
};

/* Scratch space per thread: the program does not interrupt itself within one thread. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct kept_prints);
} print_scratch SEC(".maps");

/*
 * Indexed by the call's number. A call that is left without a return leaves its entry behind, so
 * the oldest are evicted; the prints of an evicted call are unknown. User space sizes it like
 * lru_latches.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, u64);
	__type(value, struct kept_prints);
} kept_of_calls SEC(".maps");

static __always_inline void keep_prints(const struct hit_place *place, u64 sequence)
{
	struct kept_prints *kept = bpf_task_storage_get(&print_scratch, bpf_get_current_task_btf(),
							NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!kept)
		return;
	kept->sequence = sequence;
	clear_prints(kept->v);
	read_prints(place, false, kept->v);
	bpf_map_update_elem(&kept_of_calls, &sequence, kept, BPF_ANY);
}

static __always_inline void forget_prints(u64 sequence)
{
	if (keeps_prints)
		bpf_map_delete_elem(&kept_of_calls, &sequence);
}

/* The kernel may reuse an evicted entry for another call during the copy: `sequence` shows that. */
static __always_inline void copy_kept(u64 sequence, struct mt_printed *out)
{
	const volatile struct kept_prints *kept = bpf_map_lookup_elem(&kept_of_calls, &sequence);

	if (!kept || kept->sequence != sequence)
		return;
	bpf_probe_read_kernel(out, sizeof(kept->v), (const void *)kept->v);
	if (kept->sequence != sequence)
		clear_prints(out);
}

#endif
