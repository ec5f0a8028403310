// SPDX-License-Identifier: MIT
#include "sampled/sample_stack.h"

#include <errno.h>
#include <string.h>

#include "util/insn.h"

uint64_t sample_stack__returns_to(const struct recording *rec, pid_t tid, uint64_t time_ns)
{
	uint64_t ip = 0;

	VEC_EACH(&rec->hits, hit) {
		/* A hit at the return is in the caller; at the entry the caller is frame 1. */
		ip = hit->reason == MT_HIT_DURATION ? hit->ip
		     : hit->stack_depth > 1	    ? hit->stack[1]
						    : 0;
		if (hit->time_ns >= time_ns && (pid_t)hit->tid == tid)
			break;
	}
	return ip;
}

uint64_t sample_stack__trampoline(const struct recording *rec, pid_t pid)
{
	const struct rec_map *map =
		VEC_FIND(&rec->maps, e, e->pid == pid && !strcmp(e->path, "[uprobes]"));

	return map ? map->start : 0;
}

/*
 * The state from which a copy of a stack is unwound, without a return probe. The recording keeps
 * the copy.
 */
static struct unwind_start start_of(const struct rec_user *user)
{
	return (struct unwind_start){
		.ip = user->ip,
		.sp = user->sp,
		.bp = user->bp,
		.bx = user->bx,
		.r12 = user->r12,
		.r13 = user->r13,
		.r14 = user->r14,
		.r15 = user->r15,
		.stack = user->stack,
		.size = user->size,
	};
}

int sample_stack__unwind(const struct recording *rec, const struct rec_sample *sample,
			 struct code_map *map, const probed_calls *calls, struct unwound *out)
{
	struct unwind_start start = start_of(&rec->sample_users.v[sample->user - 1]);

	start.trampoline = sample_stack__trampoline(rec, sample->pid);
	start.returns_to = sample_stack__returns_to(rec, sample->tid, sample->time_ns);
	start.calls = calls->v;
	start.n_calls = calls->n;
	return unwind__stack(map, &start, out);
}

/*
 * The C library's outermost functions lack frame pointers: chains end somewhere in _start,
 * __libc_start_main() and its callee, or in clone3() and start_thread().
 */
#define OUTERMOST 3

static int count_one(const struct recording *rec, const struct rec_sample *sample,
		     struct code_map *map, struct chain_count *count)
{
	const uint64_t *ips = sample->n_ips ? &rec->sample_ips.v[sample->first_ip] : NULL;
	const probed_calls none = {0};
	struct unwound unwound;
	int err = sample_stack__unwind(rec, sample, map, &none, &unwound);
	size_t last = unwound.is_whole ? OUTERMOST : 1, n = unwound.ips.n;
	bool reaches = false;

	/*
	 * Counts stacks with enough unwind information (musl lacks it). A stack with a single
	 * caller does not count, because frame pointers miss the caller of a function without a
	 * frame.
	 */
	if (!err && (unwound.is_whole || n > 2)) {
		for (size_t i = n > last ? n - last : 1; i < n; i++)
			for (size_t j = 1; j < sample->n_ips && !reaches; j++)
				reaches = ips[j] == unwound.ips.v[i];
		count->unwound++;
		count->reach += reaches;
	}
	unwound__fini(&unwound);
	return err;
}

int sample_stack__count(const struct recording *rec, struct images *images,
			struct chain_count *count)
{
	struct code_map *map = code_map__new();
	size_t next = 0;
	int err = map ? images__apply(images, rec->pid, UINT64_MAX, &next, map) : -ENOMEM;

	for (size_t i = 0; i < rec->samples.n && !err; i++)
		if (rec->samples.v[i].user)
			err = count_one(rec, &rec->samples.v[i], map, count);
	code_map__free(map);
	return err;
}

int hit_stack__find(const struct recording *rec, const struct mt_hit *hit, struct images *images,
		    struct unwound *out)
{
	const struct rec_user user = recording__hit_user(rec, hit);
	const struct unwind_start start = start_of(&user);
	struct code_map *map = code_map__new();
	uint32_t junction = 0;
	size_t next = 0;
	int err;

	*out = (struct unwound){0};
	err = map ? images__apply(images, (pid_t)hit->tgid, hit->time_ns, &next, map) : -ENOMEM;
	if (!err)
		err = user.stack ? unwind__stack(map, &start, out) : VEC_ADD(&out->ips, hit->ip);
	if (err || out->is_whole)
		goto out;
	/* Continues with the chain after the last address that was unwound. */
	while (junction < hit->stack_depth && hit->stack[junction] != out->ips.v[out->ips.n - 1])
		junction++;
	for (uint32_t i = junction + 1; !err && i < hit->stack_depth; i++) {
		/* %rbp may hold something else than a frame pointer. */
		if (!unwind__is_behind_call(map, hit->stack[i]))
			break;
		err = VEC_ADD(&out->ips, hit->stack[i]);
	}
out:
	code_map__free(map);
	return err;
}

/* The return address of the call instruction at ip. */
static uint64_t after_call(struct code_map *map, uint64_t ip)
{
	uint8_t code[INSN_MAX_LEN];
	size_t n = code_map__read(map, ip, code, sizeof(code));
	struct insn insn;

	if (!n || insn__decode(code, n, ip, &insn) ||
	    (insn.cls != INSN_CALL && insn.cls != INSN_CALL_INDIRECT))
		return ip + 1;
	return ip + insn.len;
}

/* Settles all samples of one process, with its last mappings. */
static int settle_process(struct recording *rec, struct images *images, pid_t pid)
{
	struct code_map *map = code_map__new();
	size_t next = 0;
	int err = map ? images__apply(images, pid, UINT64_MAX, &next, map) : -ENOMEM;

	VEC_EACH_WHILE(&rec->samples, sample, !err) {
		uint64_t *ips = &rec->sample_ips.v[sample->first_ip];

		if (sample->pid != pid || !sample->n_calls)
			continue;
		for (uint32_t i = 1; i <= sample->n_calls && i < sample->n_ips; i++)
			ips[i] = after_call(map, ips[i]);
		sample->n_calls = 0;
	}
	code_map__free(map);
	return err;
}

int settle_calls(struct recording *rec, struct images *images)
{
	int err = 0;

	for (size_t i = 0; i < rec->samples.n && !err; i++)
		if (rec->samples.v[i].n_calls)
			err = settle_process(rec, images, rec->samples.v[i].pid);
	return err;
}
