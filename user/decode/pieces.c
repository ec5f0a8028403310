// SPDX-License-Identifier: MIT
#include "decode/pieces.h"

#include <errno.h>
#include <stdlib.h>

#include "decode/tsc.h"
#include "decode/walk/walk.h"

void pieces__fini(struct pieces *p)
{
	for (size_t i = 0; i < p->all.n; i++)
		VEC_FINI(&p->all.v[i].branches);
	VEC_FINI(&p->all);
	VEC_FINI(&p->events);
}

void pieces__begin(struct pieces *p, const struct rec_aux *aux, unsigned int snapshot)
{
	p->aux = aux;
	p->snapshot = snapshot;
	p->is_known = false;
}

static struct piece *current(struct pieces *p)
{
	return p->is_known ? &p->all.v[p->all.n - 1] : NULL;
}

static uint64_t time_of(const struct pieces *p, const struct branch *b)
{
	return rec_pt__tsc_to_ns(&p->rec->pt, tsc__extend(b->time_ns, p->aux->tsc));
}

static int add_event(struct pieces *p, const struct branch *b)
{
	struct pt_note *out = VEC_PUSH(&p->events);

	if (!out)
		return -ENOMEM;
	*out = (struct pt_note){.time_ns = b->time_ns ? time_of(p, b) : 0,
				.ip = b->from,
				.value = b->to,
				.cpu = p->aux->cpu,
				.kind = b->reason};
	return 0;
}

static int add(struct pieces *p, const struct branch *b)
{
	struct piece *piece = current(p);
	struct branch *out;
	uint64_t ns;

	if (!piece) {
		p->unknown_insns += b->n_insns;
		return b->kind == ENTRY_NOTE ? add_event(p, b) : 0;
	}
	out = VEC_PUSH(&piece->branches);
	if (!out)
		return -ENOMEM;
	*out = *b;
	if (!b->time_ns)
		return 0;
	ns = time_of(p, b);
	if (!piece->start_ns)
		piece->start_ns = ns;
	if (ns > piece->end_ns)
		piece->end_ns = ns;
	return 0;
}

/* It may be the same one: a region says whom it begins with. */
static int begin_thread(struct pieces *p, const struct branch *b)
{
	const struct rec_switch *who = (const void *)(uintptr_t)b->from;
	struct piece *piece = current(p);
	struct branch rest = {
		.kind = OUTBOX_REST, .n_insns = b->n_insns, .n_branches = b->n_branches};

	/* Counted before the switch was known. */
	if (b->n_insns && add(p, &rest))
		return -ENOMEM;
	if (piece && piece->who == who)
		return 0;
	p->is_known = false;
	if (!who)
		return 0;
	piece = VEC_PUSH(&p->all);
	if (!piece)
		return -ENOMEM;
	*piece = (struct piece){.who = who, .snapshot = p->snapshot, .aux = p->aux};
	p->is_known = true;
	return 0;
}

int pieces__take(void *pieces, struct branch *branches, size_t n)
{
	struct pieces *p = pieces;
	int err = 0;

	for (size_t i = 0; i < n && !err; i++)
		err = branches[i].kind == OUTBOX_WHO ? begin_thread(p, &branches[i])
						     : add(p, &branches[i]);
	return err;
}

static int by_time(const void *a, const void *b)
{
	const struct piece *p = a, *q = b;

	if (p->snapshot != q->snapshot)
		return p->snapshot < q->snapshot ? -1 : 1;
	if (p->start_ns != q->start_ns)
		return p->start_ns < q->start_ns ? -1 : 1;
	return 0;
}

static int by_thread(const void *a, const void *b)
{
	const struct piece *p = a, *q = b;

	if (p->who->tid != q->who->tid)
		return p->who->tid < q->who->tid ? -1 : 1;
	return by_time(a, b);
}

void pieces__sort(struct pieces *p)
{
	VEC_SORT(&p->all, by_thread);
}
