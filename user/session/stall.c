// SPDX-License-Identifier: MIT
/*
 * -stall-thresh: chooses what it measures. After a stall, finds where each thread of the process
 * is, and which thread has the mutex that another one waits for.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mtbpf_shared.h"
#include "sampled/sample_stack.h"
#include "session/session.h"
#include "session/session_internal.h"
#include "target/unwind/unwind.h"
#include "trigger/stall.h"
#include "util/cleanup.h"
#include "util/log.h"

/* arch/x86/entry/syscalls/syscall_64.tbl */
#define SYSCALL_FUTEX 202

/* include/uapi/linux/futex.h */
#define FUTEX_WAIT	  0
#define FUTEX_LOCK_PI	  6
#define FUTEX_WAIT_BITSET 9
#define FUTEX_LOCK_PI2	  13
#define FUTEX_COMMAND	  0x7f
#define FUTEX_WAITERS	  0x80000000u
#define FUTEX_TID_MASK	  0x3fffffffu

/* Limit for all copies of stacks together; stacks of further threads are not copied. */
#define COPIES_MOST (64u << 20)

/* The user registers as struct mt_thread has them. */
enum { REG_BX, REG_BP, REG_SP, REG_IP, REG_R12, REG_R13, REG_R14, REG_R15 };

struct stalled_thread {
	struct mt_thread at;
	pid_t owner;
	bool has_moved; /* it has run since its registers were read: they do not match its stack */
	uint8_t *stack; /* from sp on; NULL without a copy */
	size_t size;
};

struct stalled_threads {
	size_t hit; /* index of the hit in the recording */
	struct stalled_thread *v;
	size_t n;
};

void stalled_threads__free(struct stalled_threads *threads)
{
	if (!threads)
		return;
	for (size_t i = 0; i < threads->n; i++)
		free(threads->v[i].stack);
	free(threads->v);
	free(threads);
}

int stall__refuse_go(const struct probes *probes)
{
	if (!probes__are_go(probes))
		return 0;
	log__error("-stall-thresh cannot measure calls of Go functions: they belong to goroutines, "
		   "not to threads");
	log__hint("use -duration-thresh D, which triggers when the call returns; or -stall-thresh "
		  "together with -start and -stop or with -delay-thresh, which measure threads");
	return -EINVAL;
}

int stall__choose(struct session *s)
{
	bool is_inside = false;

	if (!s->options->limits.stall_thresh_ns)
		return 0;
	VEC_EACH(&s->probes.all, probe)
		is_inside |= probe->is_inside;
	s->stall_from = MT_STALL_CALL;
	if (s->regions.stop_triggers)
		s->stall_from = MT_STALL_REGION;
	else if (threshold__is_set(&s->options->delay_thresh) || probes__are_library(&s->probes) ||
		 is_inside)
		s->stall_from = MT_STALL_HIT;
	return s->stall_from == MT_STALL_CALL ? stall__refuse_go(&s->probes) : 0;
}

static bool waits(const struct mt_thread *thread)
{
	return thread->state && thread->syscall != MT_NO_SYSCALL;
}

/* glibc's struct __pthread_mutex_s, as far as it is the same in all versions for x86-64. */
struct glibc_mutex {
	uint32_t lock, count;
	int32_t owner;
	uint32_t nusers;
	int32_t kind;
};
#define MUTEX_KINDS	0x1ff /* type, robust, priority inheritance, protect, shared, elision */
#define MUTEX_CONTENDED 2     /* value of the lock: it is held, and threads wait for it */

/*
 * Returns the tid of the owner of the mutex that the thread waits for, in the process's own pid
 * namespace; 0: the thread waits for something else, or the owner is not known. glibc waits until
 * the lock word is no longer 2, or, for a robust mutex, until it no longer contains the owner's
 * tid. A futex with such a value, whose other members are plausible, is taken for a mutex.
 */
static uint32_t owner_of(const struct mt_thread *thread)
{
	uint32_t command = (uint32_t)thread->args[1] & FUTEX_COMMAND,
		 value = (uint32_t)thread->args[2];
	struct glibc_mutex mutex;

	if (!waits(thread) || thread->syscall != SYSCALL_FUTEX ||
	    process__read_memory((pid_t)thread->tgid, thread->args[0], &mutex, sizeof(mutex)) !=
		    sizeof(mutex))
		return 0;
	if (command == FUTEX_LOCK_PI || command == FUTEX_LOCK_PI2)
		return mutex.lock & FUTEX_TID_MASK;
	if ((command != FUTEX_WAIT && command != FUTEX_WAIT_BITSET) || mutex.lock != value ||
	    mutex.owner <= 0 || mutex.kind & ~MUTEX_KINDS)
		return 0;
	if (value == MUTEX_CONTENDED)
		return (uint32_t)mutex.owner;
	return value & FUTEX_WAITERS && (value & FUTEX_TID_MASK) == (uint32_t)mutex.owner
		       ? (uint32_t)mutex.owner
		       : 0;
}

static int copy_stack(struct stalled_thread *thread, uint32_t most, size_t *left)
{
	ssize_t got;

	if (!waits(&thread->at) || !most || *left < most)
		return 0;
	thread->stack = malloc(most);
	if (!thread->stack)
		return -ENOMEM;
	/* If the mapping ends earlier, read less. */
	for (got = -1; most >= 64 && got <= 0; most /= 2)
		got = process__read_memory((pid_t)thread->at.tgid, thread->at.regs[REG_SP],
					   thread->stack, most);
	thread->size = got > 0 ? (size_t)got & ~(size_t)7 : 0;
	*left -= thread->size;
	return 0;
}

static int take(struct session *s, struct thread_reader *reader, struct stalled_threads *threads)
{
	const struct capture_options *o = s->options;
	_cleanup_free_ struct mt_thread *at = NULL, *now = NULL;
	size_t n = 0, n_now = 0, left = COPIES_MOST;
	int err = thread_reader__read(reader, &at, &n);

	if (err)
		return err;
	threads->v = calloc(n ? n : 1, sizeof(*threads->v));
	if (!threads->v)
		return -ENOMEM;
	threads->n = n;
	for (size_t i = 0; i < n; i++)
		threads->v[i].at = at[i];
	for (size_t i = 0; i < n && !err; i++) {
		struct stalled_thread *thread = &threads->v[i];
		uint32_t inner_tid;

		err = copy_stack(thread, o->no_stack_copy ? 0 : (uint32_t)o->stack_copy, &left);
		inner_tid = owner_of(&thread->at);
		/* thread->owner: the owner's tid as we see it; 0: not a thread of the process. */
		for (size_t k = 0; k < n && inner_tid; k++)
			if (at[k].inner_tid == inner_tid)
				thread->owner = (pid_t)at[k].tid;
	}
	if (err)
		return err;
	/* If a thread has not switched since, its registers and its stack belong together. */
	err = thread_reader__read(reader, &now, &n_now);
	VEC_EACH(threads, thread) {
		const struct mt_thread *later = FIND_IN(now, n_now, e, e->tid == thread->at.tid);

		thread->has_moved = !later || later->n_switches != thread->at.n_switches ||
				    later->on_cpu || thread->at.on_cpu;
		if (thread->has_moved)
			thread->owner = 0;
	}
	return err;
}

int stall__take_threads(struct session *s)
{
	struct recording *rec = s->rec;
	const struct mt_hit *hit = rec->hits.n ? &rec->hits.v[rec->hits.n - 1] : NULL;
	struct thread_reader *reader;
	int err;

	if (!hit || hit->reason != MT_HIT_STALL || s->stalled ||
	    (rec->thread_states.n &&
	     rec->thread_states.v[rec->thread_states.n - 1].hit == rec->hits.n - 1))
		return 0;
	reader = thread_reader__new((pid_t)hit->tgid);
	err = reader ? 0 : -errno;
	s->stalled = calloc(1, sizeof(*s->stalled));
	if (!err && !s->stalled)
		err = -ENOMEM;
	if (!err) {
		s->stalled->hit = rec->hits.n - 1;
		err = take(s, reader, s->stalled);
	}
	/*
	 * The hit gets the copy of its thread's stack, if the thread still has the hit's registers.
	 */
	for (size_t i = 0; !err && i < s->stalled->n; i++) {
		const struct stalled_thread *thread = &s->stalled->v[i];

		if (thread->at.tid != hit->tid || !thread->size || thread->has_moved ||
		    thread->at.regs[REG_SP] != hit->sp || thread->at.regs[REG_IP] != hit->ip)
			continue;
		err = recording__add_stack(rec, thread->stack, thread->size);
		break;
	}
	thread_reader__free(reader);
	if (!err || err == -ENOMEM)
		return err;
	log__warn("cannot read where the threads of process %u are: %s", hit->tgid, strerror(-err));
	stalled_threads__free(s->stalled);
	s->stalled = NULL;
	return 0;
}

static int unwind(const struct recording *rec, const struct stalled_thread *thread,
		  struct code_map *map, struct unwound *out)
{
	const uint64_t *regs = thread->at.regs;
	struct unwind_start start = {.ip = regs[REG_IP],
				     .sp = regs[REG_SP],
				     .bp = regs[REG_BP],
				     .bx = regs[REG_BX],
				     .r12 = regs[REG_R12],
				     .r13 = regs[REG_R13],
				     .r14 = regs[REG_R14],
				     .r15 = regs[REG_R15],
				     .stack = thread->stack,
				     .size = thread->size};

	*out = (struct unwound){0};
	if (!thread->size || thread->has_moved)
		return VEC_ADD(&out->ips, start.ip);
	start.trampoline = sample_stack__trampoline(rec, (pid_t)thread->at.tgid);
	start.returns_to = thread->at.returns_to;
	return unwind__stack(map, &start, out);
}

/* include/linux/sched.h */
#define TASK_STOPPED_TRACED 0xc

static int settle(struct session *s, const struct stalled_thread *thread, struct code_map *map)
{
	const struct mt_thread *at = &thread->at;
	bool is_waiting = waits(at) && !thread->has_moved;
	struct rec_thread_state state = {.hit = s->stalled->hit,
					 .pid = (pid_t)at->tgid,
					 .tid = (pid_t)at->tid,
					 .is_on_cpu = at->on_cpu,
					 .is_ready = !at->state || thread->has_moved,
					 .is_stopped =
						 at->state & TASK_STOPPED_TRACED && !s->ops->steps,
					 .syscall = is_waiting ? at->syscall : MT_NO_SYSCALL,
					 .arg = at->args[0],
					 .owner = thread->owner};
	struct unwound unwound;
	int err;

	memcpy(state.comm, at->comm, sizeof(state.comm));
	state.comm[sizeof(state.comm) - 1] = '\0';
	err = unwind(s->rec, thread, map, &unwound);
	if (!err && is_waiting)
		err = open_file__add(s->rec, state.pid, state.syscall, state.arg);
	state.n_ips = (uint32_t)unwound.ips.n;
	state.is_whole = unwound.is_whole;
	if (!err)
		err = recording__add_thread_state(s->rec, &state, unwound.ips.v);
	unwound__fini(&unwound);
	return err;
}

int stall__settle_threads(struct session *s)
{
	struct images *images = s->stalled ? images__new(s->rec) : NULL;
	struct code_map *map = images ? code_map__new() : NULL;
	size_t next = 0;
	int err = 0;

	if (!s->stalled)
		return 0;
	if (!map)
		err = -ENOMEM;
	if (!err)
		err = images__apply(images, (pid_t)s->rec->hits.v[s->stalled->hit].tgid, UINT64_MAX,
				    &next, map);
	for (size_t i = 0; i < s->stalled->n && !err; i++)
		err = settle(s, &s->stalled->v[i], map);
	code_map__free(map);
	images__free(images);
	stalled_threads__free(s->stalled);
	s->stalled = NULL;
	return err;
}
