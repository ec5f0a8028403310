// SPDX-License-Identifier: MIT
#include "stack/stitch/fit.h"

#include <string.h>

/* Frames that are compared to find where one stack lies on another: recursion may be deep. */
#define MAX_COMPARED 1024
/* The same where each place is looked at: as many that agree are no accident. */
#define ENOUGH_COMPARED 64

bool held__is_outermost(const struct held *held)
{
	static const char *const names[] = {"main", "_start", "__libc_start_call_main",
					    "start_thread", "clone3"};

	const struct function *function = held->function;

	for (size_t i = 0; function && i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(function->raw_name ? function->raw_name : function->name, names[i]))
			return true;
	return false;
}

static size_t count(struct held_stack stack, const struct function *function)
{
	size_t n = 0;

	for (size_t i = 0; i < stack.n; i++)
		n += stack.v[i].function == function;
	return n;
}

static bool return_alike(const struct held *a, const struct held *b)
{
	return a->return_ip <= b->return_ip + b->slack && b->return_ip <= a->return_ip + a->slack;
}

static bool agrees(const struct held *a, const struct held *b)
{
	return a->function && a->function == b->function && a->return_ip && return_alike(a, b);
}

static struct fit lay(struct held_stack a, struct held_stack b, int64_t offset, size_t limit)
{
	struct fit fit = {.offset = offset, .first = offset < 0 ? (size_t)-offset : 0};
	int64_t tops = ((int64_t)a.n - 1) - ((int64_t)b.n - 1 + offset);
	size_t k = fit.first, i = (size_t)((int64_t)k + offset);

	fit.distance = (size_t)(tops < 0 ? -tops : tops);
	/* Of the lower of the two it is not known where it returns to. */
	if (!a.v[i].function || a.v[i].function != b.v[k].function)
		return fit;
	if (a.v[i].return_ip && b.v[k].return_ip && !return_alike(&a.v[i], &b.v[k]))
		return fit;
	do {
		fit.n_agreed++;
		k++, i++;
	} while (fit.n_agreed < limit && k < b.n && i < a.n && agrees(&a.v[i], &b.v[k]));
	fit.n_changed = (a.n - i) + (b.n - k);
	return fit;
}

struct fit held_stack__lay(struct held_stack a, struct held_stack b, int64_t offset)
{
	return lay(a, b, offset, SIZE_MAX);
}

static void try_at(struct held_stack a, struct held_stack b, int64_t offset, struct fit *best)
{
	struct fit fit;

	if (offset <= -(int64_t)b.n || offset >= (int64_t)a.n)
		return;
	fit = lay(a, b, offset, MAX_COMPARED);
	if (fit.n_agreed && (!best->n_agreed || fit__weight(&fit) > fit__weight(best)))
		*best = fit;
}

/* From equally deep tops on: at least as many frames have changed as these lie apart. */
static struct fit find_best(struct held_stack a, struct held_stack b)
{
	int64_t level = (int64_t)a.n - (int64_t)b.n, most = (int64_t)(a.n < b.n ? a.n : b.n);
	struct fit best = {0};

	for (int64_t apart = 0; apart < (int64_t)(a.n + b.n); apart++) {
		if (best.n_agreed && most - apart <= fit__weight(&best))
			break;
		try_at(a, b, level - apart, &best);
		if (apart)
			try_at(a, b, level + apart, &best);
	}
	return best.n_agreed < MAX_COMPARED ? best : held_stack__lay(a, b, best.offset);
}

/*
 * One frame whose function alone agrees says little: it must be the only one that can be meant, and
 * not much can have happened.
 */
static bool is_enough(struct held_stack a, struct held_stack b, struct fit *fit, enum seam seam)
{
	const struct function *function;

	if (!fit->n_agreed)
		return false;
	function = b.v[fit->first].function;
	fit->is_certain = fit->n_agreed > 1 || held__is_outermost(&b.v[fit->first]);
	if (fit->is_certain)
		return true;
	/* Exceptions are taken by the innermost frame that can; switches are the innermost. */
	if ((seam == SEAM_LEAP || seam == SEAM_WAIT) && fit->offset >= 0)
		return true;
	if (seam == SEAM_SETTLED)
		return true;
	return seam != SEAM_LONG && count(a, function) == 1 && count(b, function) == 1;
}

bool held_stack__fits(struct held_stack a, struct held_stack b, enum seam seam, struct fit *best)
{
	*best = a.n && b.n ? find_best(a, b) : (struct fit){0};
	return is_enough(a, b, best, seam);
}

bool held_stack__fits_lowest(struct held_stack a, struct held_stack b, enum seam seam,
			     struct fit *best)
{
	const size_t limit = b.n < ENOUGH_COMPARED ? b.n : ENOUGH_COMPARED;

	*best = (struct fit){0};
	for (size_t at = 0; at < a.n && best->n_agreed < limit; at++) {
		struct fit fit = lay(a, b, (int64_t)at, limit);

		if (fit.n_agreed > best->n_agreed)
			*best = fit;
	}
	if (best->n_agreed)
		*best = held_stack__lay(a, b, best->offset);
	return is_enough(a, b, best, seam);
}
