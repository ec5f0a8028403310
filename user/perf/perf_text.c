// SPDX-License-Identifier: MIT
#include "perf/perf_text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "decode/spread.h"
#include "perf/perf_line.h"
#include "stack/stack.h"
#include "target/symbols/named_image.h"
#include "util/cleanup.h"
#include "util/meter.h"
#include "util/names.h"
#include "util/vec.h"

/* The most threads: each takes memory before its first branch, and more are implausible. */
#define MAX_THREADS 16384

/* A branch as perf prints it, without the names of its places. */
struct perf_branch {
	uint64_t time_ns;
	uint64_t from, to; /* 0: unknown */
	uint32_t flags;	   /* enum perf_flag */
	uint32_t n_insns;  /* 0: not known */
	uint8_t insn_len;  /* of the instruction at `from`; 0: not known */
};

struct perf_process {
	pid_t pid;
	struct named_image *image;
};

/* Losses that perf has reported and that the thread's next branch turns into a gap. */
struct perf_loss {
	uint64_t time_ns;
	uint8_t reason; /* enum gap_reason */
};

struct perf_thread {
	pid_t pid, tid;
	struct perf_process *process;
	struct stack *stack;
	struct spread spread; /* through which branches reach the stack */
	char comm[16];
	uint64_t last_ns;
	bool is_on;	  /* between a begin and an end */
	bool is_finished; /* its stack takes no more branches */
	uint8_t gap;	  /* enum gap_reason of the gap that it is in */
	VEC(struct perf_loss) losses;
	size_t next_loss;
};

struct perf_threads {
	perf_tap_fn tap;
	void *ctx;
	VEC(struct perf_process *) processes;
	struct hash_index by_pid;
	VEC(struct perf_thread *) threads;
	struct hash_index by_tid;
	struct perf_thread *last; /* the one that was found last */
	struct perf_totals totals;
	size_t next_tree;
	const struct ocaml_traps *traps;
};

struct perf_threads *perf_threads__new(perf_tap_fn tap, void *ctx)
{
	struct perf_threads *threads = calloc(1, sizeof(*threads));

	if (!threads)
		return NULL;
	threads->tap = tap;
	threads->ctx = ctx;
	return threads;
}

void perf_threads__set_traps(struct perf_threads *threads, const struct ocaml_traps *traps)
{
	threads->traps = traps;
}

void perf_threads__free(struct perf_threads *threads)
{
	if (!threads)
		return;
	for (size_t i = 0; i < threads->threads.n; i++) {
		stack__free(threads->threads.v[i]->stack);
		spread__fini(&threads->threads.v[i]->spread);
		VEC_FINI(&threads->threads.v[i]->losses);
		free(threads->threads.v[i]);
	}
	for (size_t i = 0; i < threads->processes.n; i++) {
		named_image__free(threads->processes.v[i]->image);
		free(threads->processes.v[i]);
	}
	VEC_FINI(&threads->threads);
	VEC_FINI(&threads->processes);
	hash_index__fini(&threads->by_pid);
	hash_index__fini(&threads->by_tid);
	free(threads);
}

/* Finds the process, or adds it. NULL: out of memory. */
static struct perf_process *find_process(struct perf_threads *threads, pid_t pid)
{
	uint64_t hash = hash__mix(0, (uint64_t)pid);
	uint32_t number =
		HASH_FIND(&threads->by_pid, hash, i, threads->processes.v[i - 1]->pid == pid);
	struct perf_process *added;

	if (number)
		return threads->processes.v[number - 1];
	added = calloc(1, sizeof(*added));
	if (!added || VEC_ADD(&threads->processes, added)) {
		free(added);
		return NULL;
	}
	added->pid = pid;
	added->image = named_image__new();
	if (!added->image ||
	    hash_index__add(&threads->by_pid, hash, (uint32_t)threads->processes.n))
		return NULL;
	return added;
}

static uint64_t hash_ids(pid_t pid, pid_t tid)
{
	return hash__mix((uint64_t)pid, (uint64_t)tid);
}

static struct perf_thread *add_thread(struct perf_threads *threads, pid_t pid, pid_t tid)
{
	struct perf_thread *added;

	if (threads->threads.n >= MAX_THREADS) {
		errno = EMFILE;
		return NULL;
	}
	errno = ENOMEM;
	added = calloc(1, sizeof(*added));
	if (!added || VEC_ADD(&threads->threads, added)) {
		free(added);
		return NULL;
	}
	added->pid = pid;
	added->tid = tid;
	added->process = find_process(threads, pid);
	if (!added->process ||
	    hash_index__add(&threads->by_tid, hash_ids(pid, tid), (uint32_t)threads->threads.n))
		return NULL;
	added->stack = stack__new(pid, tid, "", named_image__map(added->process->image));
	if (!added->stack)
		return NULL;
	stack__set_traps(added->stack, threads->traps);
	spread__init(&added->spread, NULL, 0);
	added->spread.by_branches = true;
	return added;
}

/* Finds the thread, if a line has named it before; NULL: none has. */
static struct perf_thread *find_known(struct perf_threads *threads, pid_t pid, pid_t tid)
{
	struct perf_thread *const *all = threads->threads.v, *last = threads->last;
	uint32_t number;

	if (last && last->tid == tid && last->pid == pid)
		return last;
	number = HASH_FIND(&threads->by_tid, hash_ids(pid, tid), i,
			   all[i - 1]->tid == tid && all[i - 1]->pid == pid);
	return number ? threads->last = all[number - 1] : NULL;
}

/* The name, which is not terminated, is copied. */
static void set_comm(struct perf_thread *thread, const char *comm, size_t len)
{
	if (len > sizeof(thread->comm) - 1)
		len = sizeof(thread->comm) - 1;
	if (len == strlen(thread->comm) && !memcmp(thread->comm, comm, len))
		return;
	memcpy(thread->comm, comm, len);
	thread->comm[len] = '\0';
	label__clean_in_place(thread->comm);
}

/* Learns from branches between places without names: see named_image__follow(). 0 or -ENOMEM. */
static int follow(struct perf_thread *thread, const struct perf_branch *branch)
{
	const uint32_t no_jump = PERF_IS_RETURN | PERF_IS_ASYNC | PERF_IS_BEGIN | PERF_IS_END;
	enum named_branch how = NAMED_JUMP;

	if (branch->flags & no_jump)
		how = NAMED_OTHER;
	else if (branch->flags & PERF_IS_CALL)
		how = NAMED_CALL;
	else if (branch->flags & PERF_IS_CONDITIONAL)
		how = NAMED_COND;
	return named_image__follow(thread->process->image, how, branch->from, branch->to);
}

/* Passes the branch to the tap or, as a batch of one (threads alternate), to the stack. */
static int hand_on(struct perf_threads *threads, struct perf_thread *thread, const struct branch *b)
{
	struct decode_totals *totals = &threads->totals.decode;
	struct branch_batch timed[SPREAD_BATCHES];
	struct branch branch = *b;
	int err = 0;

	if (!totals->first_ns || b->time_ns < totals->first_ns)
		totals->first_ns = b->time_ns;
	if (b->time_ns > totals->last_ns)
		totals->last_ns = b->time_ns;
	if (threads->tap)
		return threads->tap(threads->ctx, thread->tid, b);
	if (spread__take(&thread->spread, &branch, 1, timed))
		return -ENOMEM;
	for (size_t i = 0; i < SPREAD_BATCHES && !err; i++)
		err = stack__take(thread->stack, timed[i].v, timed[i].n);
	return err;
}

static int break_trace(struct perf_threads *threads, struct perf_thread *thread, uint8_t reason)
{
	struct branch gap = {.time_ns = thread->last_ns, .kind = BRANCH_GAP, .reason = reason};

	threads->totals.decode.gaps[reason]++;
	thread->is_on = false;
	thread->gap = reason;
	return hand_on(threads, thread, &gap);
}

/* Turns all losses up to time_ns into one gap. */
static int take_losses(struct perf_threads *threads, struct perf_thread *thread, uint64_t time_ns)
{
	uint8_t reason = GAP_NONE;

	/* Lines tell the time in microseconds, errors in nanoseconds. */
	while (thread->next_loss < thread->losses.n &&
	       thread->losses.v[thread->next_loss].time_ns / 1000 <= time_ns / 1000)
		reason = thread->losses.v[thread->next_loss++].reason;
	if (thread->next_loss == thread->losses.n)
		thread->next_loss = thread->losses.n = 0;
	return reason == GAP_NONE ? 0 : break_trace(threads, thread, reason);
}

/* Continues the trace after a gap. */
static int resume(struct perf_threads *threads, struct perf_thread *thread, const struct branch *b)
{
	struct branch begin = {.time_ns = b->time_ns,
			       .kind = BRANCH_BEGIN,
			       .to = b->kind == BRANCH_BEGIN ? b->to : b->from};
	int err = take_losses(threads, thread, b->time_ns);

	/* The trace begins, although no end of the part before was reported. */
	if (!err && thread->is_on && b->kind == BRANCH_BEGIN)
		err = break_trace(threads, thread, GAP_LOST);
	if (err || thread->is_on)
		return err;
	if (thread->gap != GAP_NONE)
		threads->totals.decode.gap_ns[thread->gap] += b->time_ns - thread->last_ns;
	thread->gap = GAP_NONE;
	thread->is_on = true;
	return hand_on(threads, thread, &begin);
}

/* Takes the thread's next branch. 0, -ENOMEM, or what the tap returned. */
static int add_branch(struct perf_threads *threads, struct perf_thread *thread,
		      const struct perf_branch *branch)
{
	struct branch b = {.time_ns = branch->time_ns,
			   .from = branch->from,
			   .to = branch->to,
			   .n_insns = branch->n_insns,
			   .n_branches = 1,
			   .kind = perf_flags__kind(branch->flags, branch->from, branch->to),
			   .len = branch->insn_len};
	int err;

	if (b.time_ns < thread->last_ns) {
		threads->totals.moved++;
		b.time_ns = thread->last_ns;
	}
	if (!b.len)
		b.len = perf_flags__insn_len(b.kind, branch->flags);
	if (b.kind == BRANCH_BEGIN || !thread->is_on || thread->losses.n) {
		err = resume(threads, thread, &b);
		if (err)
			return err;
	}
	thread->last_ns = b.time_ns;
	threads->totals.decode.branches++;
	threads->totals.decode.insns += b.n_insns;
	if (b.kind == BRANCH_BEGIN)
		return 0;
	if (b.kind == BRANCH_END || b.kind == BRANCH_END_SYSCALL || b.kind == BRANCH_END_ASYNC) {
		b.to = 0;
		thread->is_on = false;
	}
	return hand_on(threads, thread, &b);
}

/* tools/perf/util/intel-pt-decoder/intel-pt-decoder.h: the INTEL_PT_ERR_* */
static uint8_t reason_of(int code)
{
	static const uint8_t reasons[] = {
		[3] = GAP_BAD_PACKET, [5] = GAP_UNMAPPED, [6] = GAP_MISMATCH, [7] = GAP_OVERFLOW};
	uint8_t reason = GAP_NONE;

	if (code >= 0 && (size_t)code < sizeof(reasons))
		reason = reasons[code];
	return reason == GAP_NONE ? GAP_LOST : reason;
}

/*
 * Notes a loss, which becomes a gap at the thread's next branch at time_ns or later. For a thread
 * not seen yet it is only counted. `code` is an Intel PT error, or 0. 0 or -ENOMEM.
 */
static int lose(struct perf_threads *threads, pid_t pid, pid_t tid, uint64_t time_ns, int code)
{
	struct perf_thread *thread = find_known(threads, pid, tid);

	if (thread)
		return VEC_ADD(&thread->losses, (struct perf_loss){time_ns, reason_of(code)});
	threads->totals.decode.gaps[reason_of(code)]++;
	return 0;
}

const struct perf_totals *perf_threads__totals(const struct perf_threads *threads)
{
	return &threads->totals;
}

/* The thread's first tree is that of its own stack. */
static int finish(struct perf_threads *threads, struct perf_thread *thread, struct call_tree *tree)
{
	int err = take_losses(threads, thread, UINT64_MAX);
	struct branch_batch rest;

	spread__finish(&thread->spread, &rest);
	if (!err)
		err = stack__take(thread->stack, rest.v, rest.n);
	if (!err)
		err = stack__finish(thread->stack, tree);
	thread->is_finished = true;
	return err ? err : 1;
}

int perf_threads__next_tree(struct perf_threads *threads, struct call_tree *tree)
{
	while (threads->next_tree < threads->threads.n) {
		struct perf_thread *thread = threads->threads.v[threads->next_tree];
		int more = thread->is_finished ? stack__finish_next(thread->stack, tree)
					       : finish(threads, thread, tree);

		if (more > 0)
			memcpy(tree->comm, thread->comm, sizeof(tree->comm));
		if (more)
			return more;
		stack__free(thread->stack);
		thread->stack = NULL;
		threads->next_tree++;
	}
	return 0;
}

/* Far more than a line: most have a few hundred bytes, those with C++ names a few thousand. */
#define BUFFER_SIZE (256u << 10)

/* Takes the place at ip from `rest` and moves `rest` past it. 0 or -ENOMEM. */
static int take_place(struct named_image *image, uint64_t ip, struct perf_span *rest,
		      bool *is_known)
{
	const struct named_spot *spot = ip ? named_image__spot(image, ip) : NULL;
	struct named_place place = {.ip = ip};
	size_t n = spot ? spot->label_len : 0;
	int err = 0;

	if (n && n <= rest->len && !memcmp(spot->label, rest->text, n) &&
	    (n == rest->len || rest->text[n] == ' ' || rest->text[n] == '\t')) {
		*is_known = spot->function && spot->is_followed;
	} else {
		n = perf_place__parse(&place, rest->text, rest->len);
		*is_known = false;
		if (ip)
			err = named_image__learn(image, &place, rest->text, n);
	}
	rest->text += n;
	rest->len -= n;
	return err;
}

static int take_branch(struct perf_threads *threads, struct perf_line *line,
		       struct perf_text_totals *totals)
{
	struct perf_branch branch = {.time_ns = line->time_ns, .from = line->from};
	bool from_known, to_known;
	struct perf_thread *thread;
	struct named_image *image;
	struct perf_extra extra;
	struct perf_words words;
	int err;

	perf_words__parse(&words, line->flags.text, line->flags.len);
	branch.flags = words.flags;
	if (words.flags & PERF_IS_NOT_TAKEN) {
		totals->not_taken++;
		return 0;
	}
	thread = find_known(threads, line->pid, line->tid);
	if (!thread)
		thread = add_thread(threads, line->pid, line->tid);
	if (!thread && errno == EMFILE) {
		totals->left_out++;
		return 0;
	}
	if (!thread)
		return -ENOMEM;
	if (line->comm.len)
		set_comm(thread, line->comm.text, line->comm.len);
	image = thread->process->image;
	err = take_place(image, line->from, &line->rest, &from_known);
	if (err)
		return err;
	if (!perf_line__parse_target(&line->rest, &branch.to)) {
		totals->other++;
		return 0;
	}
	totals->unknown_flags += words.has_unknown || !words.flags;
	err = take_place(image, branch.to, &line->rest, &to_known);
	if (!err && (!from_known || !to_known))
		err = follow(thread, &branch);
	if (err)
		return err;
	if (line->rest.len) {
		perf_extra__parse(&extra, line->rest.text, line->rest.len);
		branch.n_insns = extra.n_insns;
		branch.insn_len = extra.insn_len;
	}
	return add_branch(threads, thread, &branch);
}

/* perf's error type 1: errors of instruction traces. */
#define ERROR_TYPE_INSTRUCTIONS 1

static int take_line(struct perf_text *to, const char *text, size_t len)
{
	enum perf_line_kind kind;
	struct perf_line line;
	int n = 0;

	to->totals.lines++;
	if (len && text[len - 1] == '\r')
		len--;
	kind = perf_line__parse(&line, text, len);
	if (kind == PERF_LINE_BRANCH)
		return take_branch(to->threads, &line, &to->totals);
	if (kind == PERF_LINE_ERROR)
		return lose(to->threads, line.pid, line.tid, line.has_time ? line.time_ns : 0,
			    line.type == ERROR_TYPE_INSTRUCTIONS ? line.code : 0);
	/* Stacks between branches add nothing to what the branches tell. */
	if (!to->threads->totals.decode.branches)
		n = perf_samples__take(to->samples, kind, &line, (struct perf_span){text, len});
	to->totals.sampled += n > 0;
	to->totals.other += !n && len;
	return n < 0 ? n : 0;
}

int perf_text__take(struct perf_text *to, const char *text, size_t len)
{
	int err = 0;

	while (len && !err) {
		const char *end = memchr(text, '\n', len);
		size_t n = end ? (size_t)(end - text) : len;

		err = take_line(to, text, n);
		n += end != NULL;
		text += n;
		len -= n;
	}
	return err;
}

bool perf_text__may_be(int fd)
{
	static const char magic[] = "PERFILE2";
	char start[4096];
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st))
		return false;
	if (!S_ISREG(st.st_mode))
		return S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode);
	n = pread(fd, start, sizeof(start), 0);
	if (n <= 0 || memchr(start, '\0', (size_t)n))
		return false;
	return (size_t)n < strlen(magic) || memcmp(start, magic, strlen(magic));
}

struct buffer {
	char *text;
	size_t n;
	bool is_skipping; /* the rest of a line that did not fit */
};

/* Takes the whole lines of the buffer and moves the rest to its front. */
static int take_lines(struct perf_text *to, struct buffer *buffer)
{
	char *start = buffer->text, *end = memrchr(start, '\n', buffer->n);
	char *first = end && buffer->is_skipping ? memchr(start, '\n', buffer->n) : NULL;
	int err;

	if (!end) {
		if (buffer->n == BUFFER_SIZE) {
			to->totals.too_long += !buffer->is_skipping;
			buffer->is_skipping = true;
		}
		if (buffer->is_skipping)
			buffer->n = 0;
		return 0;
	}
	if (first)
		start = first + 1;
	buffer->is_skipping = false;
	err = perf_text__take(to, start, (size_t)(end + 1 - start));
	buffer->n -= (size_t)(end + 1 - buffer->text);
	memmove(buffer->text, end + 1, buffer->n);
	return err;
}

int perf_text__read(struct perf_text *to, int fd, struct meter *meter)
{
	_cleanup_free_ char *text = malloc(BUFFER_SIZE);
	struct buffer buffer = {.text = text};
	ssize_t n = 1;
	int err = text ? 0 : -ENOMEM;

	while (!err && n) {
		n = read(fd, text + buffer.n, BUFFER_SIZE - buffer.n);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		to->totals.bytes += (uint64_t)n;
		meter__add(meter, (uint64_t)n);
		buffer.n += (size_t)n;
		if (n)
			err = take_lines(to, &buffer);
	}
	if (!err && !buffer.is_skipping)
		err = perf_text__take(to, text, buffer.n);
	return err;
}
