// SPDX-License-Identifier: MIT
#include "sampled/sample_stack.h"

#include <errno.h>
#include <string.h>

/* At its return it is where that has led, at its entry the first caller. */
static uint64_t caller_of(const struct mt_hit *hit)
{
	if (hit->reason == MT_HIT_DURATION)
		return hit->ip;
	return hit->stack_depth > 1 ? hit->stack[1] : 0;
}

uint64_t sample_stack__returns_to(const struct recording *rec, pid_t tid, uint64_t time_ns)
{
	uint64_t ip = 0;

	for (size_t i = 0; i < rec->hits.n; i++) {
		const struct mt_hit *hit = &rec->hits.v[i];

		ip = caller_of(hit);
		if (hit->time_ns >= time_ns && (pid_t)hit->tid == tid)
			break;
	}
	return ip;
}

uint64_t sample_stack__trampoline(const struct recording *rec, pid_t pid)
{
	for (size_t i = 0; i < rec->maps.n; i++)
		if (rec->maps.v[i].pid == pid && !strcmp(rec->maps.v[i].path, "[uprobes]"))
			return rec->maps.v[i].start;
	return 0;
}

struct unwind_start sample_stack__start(const struct rec_user *user)
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
			 struct code_map *map, struct unwound *out)
{
	struct unwind_start start = sample_stack__start(&rec->sample_users.v[sample->user - 1]);

	start.trampoline = sample_stack__trampoline(rec, sample->pid);
	start.returns_to = sample_stack__returns_to(rec, sample->tid, sample->time_ns);
	return unwind__stack(map, &start, out);
}

/*
 * The C library's own outermost functions have no frame pointers: a chain ends somewhere in them
 * (_start, __libc_start_main() and what that calls; clone3() and start_thread()).
 */
#define OUTERMOST 3

static bool reaches(const struct unwound *unwound, const uint64_t *ips, size_t n)
{
	size_t last = unwound->is_whole ? OUTERMOST : 1;
	size_t from = unwound->ips.n > last ? unwound->ips.n - last : 1;

	for (size_t i = from; i < unwound->ips.n; i++)
		for (size_t j = 1; j < n; j++)
			if (ips[j] == unwound->ips.v[i])
				return true;
	return false;
}

static int count_one(const struct recording *rec, const struct rec_sample *sample,
		     struct code_map *map, struct chain_count *count)
{
	struct unwound unwound;
	int err = sample_stack__unwind(rec, sample, map, &unwound);

	/*
	 * As far as there is unwind information: musl's own functions have none. Of a single caller
	 * a function that has no frame yet would say that frame pointers leave it out.
	 */
	if (!err && (unwound.is_whole || unwound.ips.n > 2)) {
		count->unwound++;
		count->reach += reaches(&unwound,
					sample->n_ips ? &rec->sample_ips.v[sample->first_ip] : NULL,
					sample->n_ips);
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
