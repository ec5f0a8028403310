/* SPDX-License-Identifier: MIT */
/*
 * A recording: what one capture left, in memory and as a directory NAME.mtbpf/ on disk.
 *
 *   data       a perf.data file (`perf script -i NAME.mtbpf` reads it)
 *   images/    code that no file holds (the vdso, the [uprobes] page, JIT code), and files that may
 *              not be found again; in the layout of perf's build id cache, for `perf --buildid-dir`
 *   kcore_dir/ if the kernel was traced: its code and symbols, as `perf record --kcore` writes them
 *   meta.json  written last: a directory without it is an incomplete recording
 */
#ifndef MTBPF_CAPTURE_RECORDING_RECORDING_H
#define MTBPF_CAPTURE_RECORDING_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "mtbpf_shared.h"
#include "util/vec.h"

/* Version 2: hits may have a copy of the stack. */
#define RECORDING_VERSION 2

/* Kinds of loss. They are counted, kept in the recording, and printed. */
enum drop {
	DROP_TRIGGERS, /* passed the threshold, but the trigger's ring buffer was full */
	DROP_BUSY,     /* passed the threshold while the trigger was not armed: a snapshot was being
			  taken */
	DROP_UNMEASURED, /* hits whose delay or duration is unknown: no room for the start, calls
			    nested too deep, or hit in an interrupt */
	DROP_KEYS,	 /* requests (-key) evicted from the full map */
	DROP_KEYLESS,	 /* hits whose key could not be read */
	DROP_RESTARTED,	 /* requests that began again before they had ended */
	DROP_MISSED,	 /* times that the kernel did not run a program of the trigger */
	DROP_THROTTLED,	 /* times that the kernel paused sampling */
	DROP_THREADS,	 /* threads that are not recorded */
	DROP_HITS,	 /* hits whose thread is not recorded */
	DROP_MAPPINGS,	 /* mappings that are not recorded */
	DROP_RECORDS,	 /* records of mappings and threads lost in the kernel's buffers */
	DROP_TRACE,	 /* gaps in the traces of threads */
	DROP_DISK,	 /* threads whose trace did not fit on the disk */
	DROP_LEFT_OUT,	 /* bytes of trace left undecoded for lack of memory; never in a file */
	DROPS
};

/*
 * A place in a file, independent of where it is mapped. Code of a JIT, which is in no file, has
 * inode 0 and its address as the offset.
 */
struct rec_place {
	uint64_t ino, offset;
	uint32_t maj, min; /* 0 and 0: any file system */
};

/* An executable mapping, from time_ns on. */
struct rec_map {
	uint64_t time_ns;
	uint64_t start, len, pgoff;
	uint64_t ino;
	uint32_t maj, min;
	pid_t pid, tid;
	char build_id[41]; /* of the file, in hex; "" not known */
	char *path;
};

struct rec_thread {
	pid_t pid, tid;
	uint64_t start_ns; /* when it was first seen */
	char comm[16];
};

/*
 * PT bytes of one thread, or of all threads that ran on one CPU (then pid and tid are 0, and the
 * switches tell the threads apart). Oldest first. If wrapped, the oldest packet may be cut.
 */
struct rec_aux {
	pid_t pid, tid;
	int cpu;      /* valid if tid is 0 */
	uint64_t tsc; /* about when data ends: PT packets have only 56 bits of it */
	uint8_t *data;
	size_t size;
	size_t left_out; /* bytes before data that are not decoded: -filter, or too little memory */
	bool wrapped;
	bool is_mapped; /* data is in a mapping of the recording's file or of a spool: read-only,
			   not freed */
};

struct rec_spool {
	void *data;
	size_t size;
};

/* The thread on a CPU from time_ns on; 0 and 0: no recorded thread. */
struct rec_switch {
	uint64_t time_ns;
	int cpu;
	pid_t pid, tid;
};

/* Minor page faults per sample; all major faults are sampled. */
#define REC_FAULT_PERIOD 32

/* A thread's stack at one moment. */
struct rec_sample {
	uint64_t time_ns;
	pid_t pid, tid;
	int cpu;
	bool at_switch;	   /* taken when the thread left its CPU; otherwise by the clock, but see
			      at_park and faults */
	bool at_park;	   /* taken when a goroutine began to wait; says nothing about the thread */
	bool in_kernel;	   /* the thread was in kernel code, called from ips[0] */
	uint32_t n_ips;	   /* 0: no user code */
	uint32_t first_ip; /* in recording.sample_ips: the current address, then return addresses */
	uint32_t faults;   /* at a page fault: faults since the last such sample; otherwise 0 */
	bool is_major;	   /* the faults are major: they waited for the page's contents */
	/*
	 * This many ips after the first are addresses of call instructions (LBR), until
	 * settle_calls() replaces them by return addresses.
	 */
	uint32_t n_calls;
	uint32_t user; /* 1 + index of its copy in recording.sample_users; 0: none */
	/* The kernel's part of the stack, innermost first, in sample_ips. 0: not recorded. */
	uint32_t n_kernel;
	uint32_t first_kernel;
};

/* A thread's user registers and the top of its stack at a sample, to be unwound. */
struct rec_user {
	uint64_t bx, bp, sp, ip, r12, r13, r14, r15; /* must be first; ordered as PERF_HIT_REGS */
	uint8_t *stack;				     /* from sp on */
	size_t size;
};

/* The scheduler's action on a thread. */
enum rec_sched_what {
	REC_SCHED_IN,	     /* it runs from now on */
	REC_SCHED_BLOCKED,   /* it left its CPU to wait */
	REC_SCHED_PREEMPTED, /* it was preempted, and is still ready to run */
};

struct rec_sched {
	uint64_t time_ns;
	pid_t pid, tid;
	int cpu;
	enum rec_sched_what what;
};

/* A loss that the kernel's own records report. */
struct rec_loss {
	uint64_t time_ns;
	pid_t pid, tid;
	uint64_t aux_flags; /* for PT: PERF_AUX_FLAG_TRUNCATED, PARTIAL, COLLISION */
	uint64_t records;   /* or: number of lost records of mappings and threads */
};

/* The top of the user stack at a hit: from the hit's sp on. */
struct rec_stack {
	size_t hit; /* index of the hit in the recording */
	uint8_t *data;
	size_t size;
};

/* The place of a thread while a thread of its process (maybe itself) was stalled. */
struct rec_thread_state {
	size_t hit; /* index of the stall's hit in the recording */
	pid_t pid, tid;
	char comm[16];
	bool is_on_cpu, is_ready; /* running; ready to run; if neither, waiting */
	bool is_stopped;
	uint32_t syscall;	  /* system call that it waited in, or MT_NO_SYSCALL */
	uint64_t arg;		  /* its first argument */
	pid_t owner;		  /* the thread that held the mutex it waited for; 0: unknown */
	uint32_t n_ips, first_ip; /* in recording.state_ips: current address, then returns */
	bool is_whole;		  /* the stack reaches the outermost frame */
};

/* Code that no file holds. */
struct rec_image {
	char *path; /* as in rec_map: "[vdso]" */
	uint64_t start;
	uint8_t *data;
	size_t size;
	bool is_elf; /* otherwise raw bytes at start */
	pid_t pid;   /* process that has this code; 0: all that map `path` */
};

/* A file that was mapped executable. */
struct rec_file {
	char *path; /* as in rec_map, without " (deleted)" */
	uint64_t ino;
	char build_id[41]; /* in hex; "" if unknown */
	int fd;		   /* its contents; -1: not in the recording */
	int debug_fd;	   /* its separate debug file; -1: none, or none in the recording */
	char *name;	   /* its path in the recording's directory, or NULL */
	char *debug_name;
};

/* The names of JIT code: the text of a /tmp/perf-PID.map. */
struct rec_perf_map {
	pid_t pid;
	char *text;
};

/* The process's root directory, if it differs from ours. */
struct rec_root {
	pid_t pid;
	int fd;	       /* O_PATH */
	bool is_owner; /* otherwise another rec_root owns fd */
};

/* "/proc/PID/root", "/proc/self/fd/N" */
#define REC_ROOT_SIZE 32

/* A file that the process had open when recording ended, and for which a thread waited. */
struct rec_open_file {
	pid_t pid;
	int fd;
	char *path; /* as in /proc/PID/fd; of a socket: socket_name__find() */
};

/* The hypervisor's report of stolen time. */
enum rec_steal {
	REC_STEAL_NOT_ASKED,
	REC_STEAL_TOLD,
	REC_STEAL_NOT_TOLD, /* the hypervisor or the kernel does not report it */
};

/*
 * Time taken from a thread that could run: by the quota of its cgroup, from when the quota was used
 * up until the thread ran again; or by the hypervisor, from a thread on a CPU, until it left the
 * CPU.
 */
struct rec_taken {
	pid_t pid, tid;
	bool by_quota;
	uint64_t until_ns, ns;
};

/* "cgroup /web/a, quota 10.0 ms of 100 ms": the limit of a process that was throttled. */
struct rec_quota {
	pid_t pid;
	/* True for a memory limit, at which the process had to free memory: "cgroup /web". */
	bool of_memory;
	char *text;
};

/* A fact about the machine, or a label that the user gave: "host", "web-3". */
struct rec_label {
	char *key, *value;
};

/* The kernel's code, if it was traced. */
struct rec_kernel {
	char *kallsyms; /* text of /proc/kallsyms; NULL: not traced, and nothing else is valid */
	char *modules;	/* text of /proc/modules */
	int kcore;	/* descriptor of an ELF file with the code: /proc/kcore, or a copy */
};

/* Bits of intel_pt's attr.config; they are those of IA32_RTIT_CTL in all kernels. */
#define PT_CONFIG_EVENT (1ull << 31)

/* Settings that a decoder must know. TSC to ns: zero + (tsc * mult >> shift). */
struct rec_pt_config {
	uint16_t time_shift;
	uint32_t time_mult;
	uint64_t time_zero;
	uint64_t config;      /* the intel_pt event's attr.config, PT_CONFIG_* */
	uint32_t mtc_freq;    /* MTC period, as in the format field */
	uint32_t nom_freq;    /* max non-turbo ratio, x 100 MHz */
	uint32_t tsc_ctc_num; /* CPUID 15H EBX */
	uint32_t tsc_ctc_den; /* CPUID 15H EAX */
	uint32_t cpu_family, cpu_model, cpu_stepping; /* 0/0/0: not an Intel CPU's stream */
};

struct recording {
	char *source;  /* "soft", "pt", "sample", "perf" (a plain perf.data) */
	char *trigger; /* what was probed: "one_iter" */
	char *command; /* the process's name; of `run`: the path of the program */
	pid_t pid;
	uint64_t threshold_ns;
	uint32_t reason;       /* enum mt_hit_reason */
	uint64_t frozen_ns;    /* when recording stopped */
	uint64_t unix_zero_ns; /* Unix time at 0 of the recording's clock; 0: not known */
	uint64_t probe_ip;     /* run-time address of the probe, in process pid; 0: none */
	/* Places (-stop) at which the recording of a thread stops. */
	VEC(struct rec_place) stops;
	char *freeze;	  /* name of the freeze method */
	char *os_release; /* the release of the kernel that recorded it; NULL: unknown */
	struct rec_pt_config pt;
	bool kernel_only;	       /* user code was not traced */
	VEC(struct rec_map) maps;      /* ascending by time */
	VEC(struct rec_map) data_maps; /* mappings of the same files' data: for perf's unwinding */
	VEC(struct rec_thread) threads;
	VEC(struct rec_aux) aux;
	/*
	 * The file that the recording was read from. It stays mapped: copying PT takes longer than
	 * decoding it.
	 */
	struct {
		void *data; /* NULL: none */
		size_t size;
	} mapped;
	/* Spools: data that was on disk first and is mapped. */
	VEC(struct rec_spool) spools;
	VEC(struct rec_loss) losses;	 /* ascending by time */
	VEC(struct rec_switch) switches; /* ascending by time; of recordings by CPU */
	/* Samples of a sampling source, unordered; `aux` is empty then. */
	VEC(struct rec_sample) samples;
	VEC(uint64_t) sample_ips;
	VEC(struct rec_user) sample_users;
	VEC(struct rec_sched) scheds;
	VEC(struct mt_sched) sched_bys; /* wakers and replacing threads; see enum mt_sched_kind */
	VEC(struct mt_entry) entries;
	VEC(struct rec_open_file) open_files;
	VEC(struct rec_taken) taken; /* ascending by time */
	VEC(struct rec_quota) quotas;
	VEC(struct rec_label) labels; /* unique by key */
	bool knows_taken;	      /* false: `taken` was never recorded */
	enum rec_steal steal;	      /* whether the hypervisor reports stolen time */
	bool knows_interrupts;	      /* sched_bys include the time of interrupts */
	uint64_t sample_period_ns;    /* of timed samples; 0: none were requested */
	uint64_t ring_bytes;	      /* size of the full ring of stacks; 0: none was full */
	uint64_t sampled_ns;	      /* how long the last snapshot's source ran; not on disk */
	/* In the last snapshot, the rings of all CPUs are complete from this time on. Not on disk.
	 */
	uint64_t complete_ns;
	VEC(struct rec_image) images;
	VEC(struct rec_file) files;
	VEC(struct rec_perf_map) perf_maps;
	VEC(struct rec_root) roots; /* recording__hold_roots() */
	bool portable; /* contains all files, not only those that may not be found again */
	VEC(struct mt_hit) hits;
	VEC(struct rec_stack) stacks; /* for some hits; ascending by hit */
	uint32_t cpu_measure;	      /* enum mt_cpu_measure: which time threshold_ns limits */
	uint64_t stall_thresh_ns;     /* 0: stalls were not looked for */
	uint32_t stall_from;	      /* enum mt_stall_from */
	char *key;		      /* -key as the user wrote it; NULL: none */
	VEC(char *) prints;	      /* -print: names of the values in the hits' prints */
	VEC(struct rec_thread_state) thread_states;
	VEC(uint64_t) state_ips;
	struct rec_kernel kernel;
	uint64_t drops[DROPS]; /* not counting `losses`; see recording__drops() */
};

/* tools/perf/util/tsc.c: tsc_to_perf_time(). */
static inline uint64_t rec_pt__tsc_to_ns(const struct rec_pt_config *pt, uint64_t tsc)
{
	uint64_t quot = tsc >> pt->time_shift;
	uint64_t rem = tsc & ((1ull << pt->time_shift) - 1);

	return pt->time_zero + quot * pt->time_mult + ((rem * pt->time_mult) >> pt->time_shift);
}

/* The name in meta.json: "triggers". */
const char *drop__name(enum drop drop);

#define DROP_TEXT_SIZE 128
/* "3 triggers: the kernel's buffer was full". Returns buf. */
const char *drop__format(char buf[static DROP_TEXT_SIZE], enum drop drop, uint64_t n);
/* Fills counts with all drops of a recording, including those in rec->losses. Returns the sum. */
uint64_t recording__drops(const struct recording *rec, uint64_t counts[static DROPS]);

/* Adds a copy of a name of -print. The hits' prints are in the same order. 0 or -ENOMEM. */
int recording__add_print(struct recording *rec, const char *name);

void rec_kernel__fini(struct rec_kernel *kernel);

void recording__init(struct recording *rec);
void recording__fini(struct recording *rec);

/* True if there is one ring per CPU, not per thread. */
bool recording__is_by_cpu(const struct recording *rec);
/* True if the recording has samples, switches or entries instead of PT. */
bool recording__is_sampled(const struct recording *rec);
/* Bytes of PT, or of samples, entries and hits; 0: nothing was recorded. */
size_t recording__traced_bytes(const struct recording *rec);
/* NULL if unknown. */
const struct rec_thread *recording__find_thread(const struct recording *rec, pid_t pid, pid_t tid);

/*
 * The address of the hit's probe in its process: a cgroup's processes may have mapped the file at
 * different addresses.
 */
uint64_t recording__probe_of(const struct recording *rec, const struct mt_hit *hit);

/* True if the mapping contains the place; sets its address. */
bool rec_map__has(const struct rec_map *map, const struct rec_place *place, uint64_t *ip);

/*
 * Returns the registers at the hit, which must be an element of rec->hits, and the copy of its
 * stack, which the recording owns; stack is NULL if no copy was taken.
 */
struct rec_user recording__hit_user(const struct recording *rec, const struct mt_hit *hit);

/* The following functions copy strings and bytes. 0 or -ENOMEM. */

/* Inserts the mapping after all mappings of the same time or earlier. */
int recording__add_map(struct recording *rec, const struct rec_map *map);
/* Does nothing if an image with the same path, start and process exists. */
int recording__add_image(struct recording *rec, const struct rec_image *image);
/* Removes the images that are copies of this process's memory. */
void recording__drop_copies(struct recording *rec, pid_t pid);
/* Copies the path. Takes ownership of the descriptors and of both names, also on failure. */
int recording__add_file(struct recording *rec, const struct rec_file *file);
/* Copies the text, which replaces an earlier one of the same process. */
int recording__add_perf_map(struct recording *rec, pid_t pid, const char *text);
/* Sets the stack of the last hit. */
int recording__add_stack(struct recording *rec, const uint8_t *data, size_t size);
/* A thread that is known already gets the new name. */
int recording__add_thread(struct recording *rec, const struct rec_thread *thread);
/*
 * Adds the forked thread, with its parent's name and, if it is a new process, its parent's mappings
 * at that time.
 */
int recording__add_fork(struct recording *rec, const struct rec_thread *child, pid_t parent_pid,
			pid_t parent_tid);
/* Insert the loss, or the switch, after all of the same time or earlier. */
int recording__add_loss(struct recording *rec, const struct rec_loss *loss);
int recording__add_switch(struct recording *rec, const struct rec_switch *sw);
/* Adds the sample with its addresses, and sets first_ip. */
int recording__add_sample(struct recording *rec, const struct rec_sample *sample,
			  const uint64_t *ips);
/* Sets the user registers of the last sample. */
int recording__add_sample_user(struct recording *rec, const struct rec_user *user);
/* Sets the kernel's part of the last sample's stack. */
int recording__add_sample_kernel(struct recording *rec, const uint64_t *ips, uint32_t n);
int recording__add_sched_by(struct recording *rec, const struct mt_sched *by);
/* Adds a state with its addresses, and sets first_ip. 0 or -ENOMEM. */
int recording__add_thread_state(struct recording *rec, const struct rec_thread_state *state,
				const uint64_t *ips);
/* Copies the path. A descriptor that is known already keeps its path. */
int recording__add_open_file(struct recording *rec, pid_t pid, int fd, const char *path);
/* NULL if unknown. */
const char *recording__find_open_file(const struct recording *rec, pid_t pid, int fd);
/*
 * Copies both, without characters that cannot be shown. Replaces an earlier value of the same key.
 */
int recording__set_label(struct recording *rec, const char *key, const char *value);
/*
 * Copies the text of the process's CPU quota or, if of_memory, its memory limit. The first of each
 * kind is kept.
 */
int recording__set_quota(struct recording *rec, pid_t pid, bool of_memory, const char *text);
/* NULL without such a text. */
const char *recording__find_quota(const struct recording *rec, pid_t pid, bool of_memory);
/*
 * Takes ownership of aux->data. Drops aux if it has no data, since the reader of a file does so as
 * well: decoding this recording, and later its file, must give the same trace.
 */
int recording__add_aux(struct recording *rec, const struct rec_aux *aux);
void rec_aux__fini(struct rec_aux *aux);
/*
 * Drops the older half of each ring, because decoding all of it takes too much memory, and counts
 * this in rec's drops. False if the rings are too small to be halved.
 */
bool recording__leave_out_older_half(struct recording *rec);

/* The file that was mapped under this path and inode, or NULL. */
const struct rec_file *recording__find_file(const struct recording *rec, const char *path,
					    uint64_t ino);
/*
 * Opens the root directory of each process that is still running: after mtbpf has confined itself
 * (user/apart.h), it may not open /proc/PID/root. 0 or -ENOMEM.
 */
int recording__hold_roots(struct recording *rec);
/* The path of the process's root directory, whether it is held open or not. */
void recording__root_path(const struct recording *rec, pid_t pid, char path[static REC_ROOT_SIZE]);
/* Sets each mapping's build id to its file's, if known. */
void recording__settle_build_ids(struct recording *rec);

/*
 * Makes the directory (mode 0700), so that a path that cannot be written is known before the
 * capture. An existing one is first renamed to NAME.old (an older NAME.old is removed). 0, or
 * -errno after one line and a hint on stderr.
 */
int recording_dir__create(const char *path);
/*
 * Writes everything into the directory made by recording_dir__create(), and sets rec_file.name and
 * debug_name of the files that it copies there. 0, or -errno after one line and a hint on stderr.
 */
int recording__write(struct recording *rec, const char *path);
/*
 * Writes the recording under a temporary name and renames it when it is complete. After an error or
 * a signal (util/signals.h) only the previous recording is left. 0 or -errno, like the two
 * functions above.
 */
int recording__write_whole(struct recording *rec, const char *path);
/* Like recording__write(), but prints nothing. */
int recording__save(struct recording *rec, const char *path);
/*
 * Reads a recording's directory, or a perf.data: a file, or the directory of --kcore. 0, or -errno
 * after one line and a hint: -ENOENT; -ENODATA: incomplete, or without Intel PT and call chains;
 * -EINVAL: not a recording; -EPROTO: written by a newer version.
 */
int recording__read(struct recording *rec, const char *path);
/*
 * Checks the recording's mapped files after use. 0, or -EIO after a line and a hint if one of them
 * was truncated meanwhile, so that wrong contents were read.
 */
int recording__check_cut(const struct recording *rec);

/* A stream of Intel PT that is written to an unnamed file on disk while it is recorded. */
struct spool {
	int fd; /* -1: none */
	uint64_t size;
	int err; /* -errno of the write that failed; 0: none */
};

#define SPOOL_NONE                                                                                 \
	{                                                                                          \
		.fd = -1                                                                           \
	}

/* Opens a spool in this folder's file system. 0 or -errno; prints nothing. */
int spool__open(struct spool *spool, const char *dir);
void spool__close(struct spool *spool);

/* Appends. If writing fails, says so once, and appends nothing from then on. */
void spool__write(struct spool *spool, const void *bytes, size_t n);
/*
 * Maps the spool's bytes into aux and adds that to rec, which owns the mapping from now on; the
 * caller still closes the spool. If a write had failed, adds one to rec's DROP_DISK. 0 or -errno.
 */
int spool__finish(struct spool *spool, struct rec_aux *aux, struct recording *rec);

/* Functions shared by the directory and its meta.json. */

/* Returns meta.json's text, which the caller frees; NULL if memory ran out. */
char *recording_meta__print(const struct recording *rec);

/*
 * Reads meta.json's text into rec. read_image(ctx, file, ...) reads the bytes of images and perf
 * maps into memory that is freed here. 0; -EINVAL: not a recording's meta.json, or damaged;
 * -EPROTO: written by a newer version; -ENOMEM; or what read_image() returned.
 */
int recording_meta__parse(struct recording *rec, const char *text,
			  int (*read_image)(void *ctx, const char *file, char **data, size_t *size),
			  void *ctx);

/*
 * The total size of the files that go into images/: those that may not be found again, or all files
 * of a portable recording.
 */
uint64_t recording_files__size(const struct recording *rec);
/* The name of image i's file in images/. */
void recording_image__file(size_t i, char name[static 32]);
/* The name of a perf map's file in images/. */
void recording_perf_map__file(pid_t pid, char name[static 64]);

#endif
