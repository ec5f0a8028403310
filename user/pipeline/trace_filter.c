// SPDX-License-Identifier: MIT
#include "pipeline/trace_filter.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/log.h"
#include "util/units.h"

/* ---- parsing */

static int refuse(const char *text, const char *why)
{
	log__error("-filter '%s': %s", text, why);
	log__hint("-filter takes FROM..TO: " FILTER_HINT);
	return -EINVAL;
}

static const struct {
	const char *name;
	int base;
} bases[] = {{"begin", FILTER_BEGIN}, {"end", FILTER_END}, {"hit", FILTER_HIT}};

/* Returns the rest of the text after a base's name; NULL if it does not begin with one. */
static const char *behind_base(const char *text, struct filter_point *point)
{
	for (size_t i = 0; i < sizeof(bases) / sizeof(bases[0]); i++) {
		size_t len = strlen(bases[i].name);

		if (strncmp(text, bases[i].name, len) || (text[len] && !strchr("+-", text[len])))
			continue;
		point->base = bases[i].base;
		return text + len;
	}
	return NULL;
}

static bool is_time(const char *text)
{
	struct filter_point point;

	return strchr("0123456789+-", *text) || behind_base(text, &point);
}

static int parse_time(const char *text, const char *whole, struct filter_point *point)
{
	const char *rest = behind_base(text, point);
	bool is_bare = rest && !*rest, is_before;
	uint64_t ns = 0;
	int err = 0;

	if (!rest && *text == '+')
		return refuse(whole, "'+' must follow begin, end or hit");
	if (!rest) {
		point->base = *text == '-' ? FILTER_END : FILTER_BEGIN;
		rest = text;
	}
	is_before = *rest == '-';
	rest += *rest == '-' || *rest == '+';
	if (!is_bare && strcmp(rest, "0"))
		err = units__parse_duration(rest, &ns);
	if (err == -ERANGE)
		return refuse(whole, "the maximum duration is 292 years");
	if (err)
		return refuse(whole, "a time needs a unit: 10us, 10ms or 1.5s");
	point->offset_ns = is_before ? -(int64_t)ns : (int64_t)ns;
	return 0;
}

/* The function that `text` names; *name stays NULL for an open end. */
static int parse_name(const char *text, const char *whole, char **name)
{
	static const char *const others[] = {"line:", "addr:", "usdt:", "0x"};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (!strncmp(text, others[i], strlen(others[i])))
			return refuse(whole, "a function must be given by its name");
	if (!strcmp(text, "?"))
		return refuse(whole, "'?' is not possible here: name the function");
	if (!*text)
		return 0;
	*name = strdup(text);
	return *name ? 0 : -ENOMEM;
}

/* Splits the text at "..". If there are several, the one to split at needs spaces around it. */
static int split(char *text, const char *whole, char **from, char **to)
{
	char *dots = strstr(text, " .. ");
	size_t len = strlen(" .. ");

	if (!dots) {
		dots = strstr(text, "..");
		len = strlen("..");
		if (!dots)
			return refuse(whole, "the '..' between its two ends is missing");
		/* "a...b" could be split at its first two dots or its last two. */
		if (strstr(dots + 1, ".."))
			return refuse(whole, "it has more than one '..': put spaces around the "
					     "'..' that separates FROM and TO");
	}
	*dots = '\0';
	*from = text;
	*to = dots + len;
	return 0;
}

int trace_filter__add(struct trace_filter *f, const char *whole)
{
	_cleanup_free_ char *text = strdup(whole);
	char *from = "", *to = "";
	bool is_times, is_functions;
	int err = text ? split(text, whole, &from, &to) : -ENOMEM;

	if (err)
		return err;
	if (!*from && !*to)
		return refuse(whole, "it has neither a beginning nor an end");
	is_times = (*from && is_time(from)) || (*to && is_time(to));
	is_functions = (*from && !is_time(from)) || (*to && !is_time(to));
	if (is_times && is_functions)
		return refuse(whole, "one end is a time and the other a function: give one -filter "
				     "for times, one for functions");
	if (is_functions) {
		if (f->has_functions)
			return refuse(whole, "only one range of functions can be given");
		f->has_functions = true;
		err = parse_name(from, whole, &f->start);
		return err ? err : parse_name(to, whole, &f->stop);
	}
	if (f->has_times)
		return refuse(whole, "only one range of times can be given");
	f->has_times = true;
	if (*from)
		err = parse_time(from, whole, &f->from);
	if (!err && *to)
		err = parse_time(to, whole, &f->to);
	if (!err && *from && *to && f->from.base == f->to.base &&
	    f->from.offset_ns > f->to.offset_ns)
		return refuse(whole, "the end is before the beginning");
	return err;
}

int trace_filter__parse(struct trace_filter *f, const char *const *texts, size_t n)
{
	int err = 0;

	for (size_t i = 0; i < n && !err; i++)
		err = trace_filter__add(f, texts[i]);
	return err;
}

void trace_filter__fini(struct trace_filter *f)
{
	free(f->start);
	free(f->stop);
}

/* ---- resolving a filter for a recording */

/*
 * The hit that the report is about: the slowest that triggered, otherwise the last one. NULL: the
 * recording lacks hits.
 */
static const struct mt_hit *hit_of(const struct recording *rec)
{
	const struct mt_hit *slowest = NULL;

	VEC_EACH(&rec->hits, hit)
		if (hit->reason != MT_HIT_LAST && (!slowest || hit->value_ns >= slowest->value_ns))
			slowest = hit;
	return slowest || !rec->hits.n ? slowest : &rec->hits.v[rec->hits.n - 1];
}

/* `open` is the result for a point that is not given. */
static int resolve(const struct filter_point *point, const struct recording *rec,
		   const struct decode_bounds *bounds, uint64_t open, uint64_t *ns)
{
	const struct mt_hit *hit = hit_of(rec);
	uint64_t base = bounds->first_ns;

	*ns = open;
	if (point->base == FILTER_OPEN)
		return 0;
	if (point->base == FILTER_HIT && !hit) {
		log__error("-filter: 'hit' is the time of the hit, and this recording does not "
			   "contain a hit");
		log__hint("count from the beginning or the end instead: 10ms..20ms, -20ms..");
		return -EINVAL;
	}
	if (point->base == FILTER_HIT)
		base = hit->time_ns;
	else if (point->base == FILTER_END)
		base = bounds->last_ns;
	*ns = base + (uint64_t)point->offset_ns;
	/* Not 0, which means no limit. */
	if (point->offset_ns < 0 && (uint64_t)-point->offset_ns >= base)
		*ns = 1;
	return 0;
}

int trace_filter__resolve(const struct trace_filter *f, const struct recording *rec,
			  const struct decode_bounds *bounds, struct filter_part *part)
{
	struct decode_filter *out = &part->decode;
	int err;

	*part = (struct filter_part){.is_known = true,
				     .decode = {.start = f->start, .stop = f->stop},
				     .bounds = *bounds};
	err = resolve(&f->from, rec, bounds, 0, &out->from_ns);
	if (!err)
		err = resolve(&f->to, rec, bounds, UINT64_MAX, &out->to_ns);
	if (err || out->from_ns <= out->to_ns)
		return err;
	log__error("-filter: in this recording FROM is later than TO");
	log__hint("count both from the same point: 10ms..20ms, -20ms..-10ms or hit-5ms..hit");
	return -EINVAL;
}

int trace_filter__apply(const struct trace_filter *f, struct recording *rec, struct images *images,
			struct filter_part *part)
{
	const struct decode_filter *filter = &part->decode;
	struct decode_bounds bounds;
	uint64_t all = 0, left = 0, to_ns;
	int err = decode__find_bounds(rec, images, &bounds);

	if (!err)
		err = trace_filter__resolve(f, rec, &bounds, part);
	if (err)
		return err;
	VEC_EACH(&rec->aux, aux)
		all += aux->size;
	decode_filter__narrow(filter, rec);
	VEC_EACH(&rec->aux, aux)
		left += aux->size;
	to_ns = filter->to_ns < UINT64_MAX ? filter->to_ns : bounds.last_ns;
	log__debug("filter: the trace ends at %" PRId64 " ns; wanted %" PRId64 " to %" PRId64
		   " ns: %" PRIu64 " of %" PRIu64 " bytes",
		   (int64_t)(bounds.last_ns - bounds.first_ns),
		   filter->from_ns ? (int64_t)(filter->from_ns - bounds.first_ns) : 0,
		   (int64_t)(to_ns - bounds.first_ns), left, all);
	filter_part__drop_hits(part, rec);
	return 0;
}

/*
 * Stacks and thread states refer to a hit by its index: those of hits that stay get the new index,
 * states of other hits one that no hit has.
 */
void filter_part__drop_hits(struct filter_part *part, struct recording *rec)
{
	size_t n = 0, n_stacks = 0, stack = 0;

	for (size_t i = 0; i < rec->hits.n; i++) {
		bool stays = decode_filter__has_time(&part->decode, rec->hits.v[i].time_ns);

		if (stack < rec->stacks.n && rec->stacks.v[stack].hit == i) {
			struct rec_stack kept = rec->stacks.v[stack++];

			kept.hit = n;
			if (stays)
				rec->stacks.v[n_stacks++] = kept;
			else
				free(kept.data);
		}
		/* A new index is at most i, so that no state is found twice. */
		VEC_EACH(&rec->thread_states, state)
			if (state->hit == i)
				state->hit = stays ? n : SIZE_MAX;
		if (stays)
			rec->hits.v[n++] = rec->hits.v[i];
	}
	part->n_hits = rec->hits.n - n;
	rec->hits.n = n;
	rec->stacks.n = n_stacks;
}

#define GONE CALL_NO_PARENT

/* Keeps the vector's elements that refer to calls that remain, and gives them the new numbers. */
#define RENUMBER(vec, member, numbers)                                                             \
	do {                                                                                       \
		size_t n_ = 0;                                                                     \
                                                                                                   \
		for (size_t i_ = 0; i_ < (vec)->n; i_++) {                                         \
			uint32_t number_ = (numbers)[(vec)->v[i_].member];                         \
                                                                                                   \
			if (number_ == GONE)                                                       \
				continue;                                                          \
			(vec)->v[n_] = (vec)->v[i_];                                               \
			(vec)->v[n_++].member = number_;                                           \
		}                                                                                  \
		(vec)->n = n_;                                                                     \
	} while (0)

/* A caller lasts as long as its callees: it stays if they stay. */
int filter_part__cut_tree(const struct filter_part *part, struct call_tree *tree)
{
	_cleanup_free_ uint32_t *numbers = malloc((tree->calls.n + 1) * sizeof(*numbers));
	uint64_t from_ns = part->decode.from_ns, to_ns = part->decode.to_ns;
	size_t n = 0;

	if (!numbers)
		return -ENOMEM;
	for (size_t i = 0; i < tree->calls.n; i++) {
		struct call call = tree->calls.v[i];

		numbers[i] = GONE;
		if (call.end_ns < from_ns || call.start_ns > to_ns)
			continue;
		if (call.start_ns < from_ns) {
			call.start_ns = from_ns;
			call.flags |= CALL_INFERRED_START;
		}
		if (call.end_ns > to_ns) {
			call.end_ns = to_ns;
			call.flags |= CALL_INFERRED_END;
		}
		if (call.parent != CALL_NO_PARENT)
			call.parent = numbers[call.parent];
		numbers[i] = (uint32_t)n;
		tree->calls.v[n++] = call;
	}
	tree->calls.n = n;
	RENUMBER(&tree->done_by, call, numbers);
	RENUMBER(&tree->waits, call, numbers);
	/* Trees of samples do not have unwinds: only a source that follows each call sees them. */
	tree->unwinds.n = 0;
	VEC_DROP(&tree->faults, fault, !decode_filter__has_time(&part->decode, fault->time_ns));
	VEC_DROP(&tree->interrupts, interrupt,
		 !decode_filter__has_time(&part->decode, interrupt->start_ns));
	return 0;
}

int filter_part__check(const struct filter_part *part, const struct filter_totals *found)
{
	const char *start = part->decode.start, *stop = part->decode.stop;

	if (found->branches) {
		if (stop && !found->stops)
			log__warn("-filter: %s is not called in the selected part: what is shown "
				  "lasts to the end of that part",
				  stop);
		return 0;
	}
	if (start && !found->starts) {
		log__error("-filter: %s is not called in %s", start,
			   part->decode.from_ns || part->decode.to_ns < UINT64_MAX
				   ? "the selected part"
				   : "the recording");
		log__hint("check the name ('mtbpf report' shows names); calls that are inlined or "
			  "in a gap are not seen");
	} else {
		log__error("-filter: nothing was recorded in that time");
		log__hint("the trace is %s long: choose FROM..TO within it",
			  DURATION(part->bounds.last_ns - part->bounds.first_ns));
	}
	return -ENODATA;
}
