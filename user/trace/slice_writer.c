// SPDX-License-Identifier: MIT
#include "trace/slice_writer.h"

static void fill_event(struct fxt_event *event, struct slice_args *args, const struct call *call,
		       const struct call_site *site)
{
	slice_args__of_call(args, call, site);
	*event = (struct fxt_event){
		.category = slice__category(call),
		.name = call__name(call),
		.args = args->v,
		.n_args = args->n,
	};
}

/* Kinds that share a hash: so many have a place each. */
#define PROBES 4

/* That of the kind; or one that it may have, if it is not written before. */
static struct slice_template *find_template(struct slice_writer *writer,
					    const struct slice_kind *kind)
{
	const uint64_t odd = 0x9e3779b97f4a7c15;
	uint64_t hash =
		((uintptr_t)kind->function + (uintptr_t)kind->called + kind->rest) * odd >> 32;
	uint16_t *place;

	for (uint64_t i = 0; i < PROBES; i++) {
		place = &writer->places[(hash + i) % SLICE_PLACES];
		if (!*place && writer->n_templates < SLICE_TEMPLATES)
			*place = ++writer->n_templates;
		else if (!*place || slice_kind__equals(&writer->templates[*place - 1].kind, kind))
			break;
		else
			continue;
		break;
	}
	return &writer->templates[(*place ? *place : hash % SLICE_TEMPLATES + 1) - 1];
}

/* Of slices of that kind, as this one is; NULL where there can be none. */
static const struct fxt_template *template_of(struct slice_writer *writer,
					      const struct slice_kind *kind,
					      const struct call *call, const struct call_site *site)
{
	struct slice_template *template = find_template(writer, kind);
	struct slice_args args;
	struct fxt_event event;

	if (slice_kind__equals(&template->kind, kind) &&
	    fxt__is_current(writer->fxt, &template->fxt))
		return &template->fxt;
	template->kind = *kind;
	fill_event(&event, &args, call, site);
	return fxt__make_template(writer->fxt, &template->fxt, &event) ? &template->fxt : NULL;
}

/* What the tree knows of this call alone: no template has that. */
struct why {
	const struct done_by *by;
	size_t n_by;
	const struct waits_for *wait;
};

static struct why why_of(const struct call_tree *tree, const struct call *call)
{
	bool is_off = call->kind == CALL_OFF_CPU;
	const struct done_by *by = is_off ? call_tree__done_by(tree, call) : NULL;
	const struct done_by *end = by ? tree->done_by.v + tree->done_by.n : NULL;
	size_t n = 0;

	while (by && by + n < end && by[n].call == by->call)
		n++;
	return (struct why){.by = by, .n_by = n, .wait = call_tree__waits_for(tree, call)};
}

/* Only of these anything may be known. */
static bool may_have_why(const struct call *call)
{
	return call->kind == CALL_OFF_CPU || call->kind == CALL_SYSCALL;
}

static void write_event(struct slice_writer *writer, const struct call_tree *tree,
			const struct call *call, const struct call_site *site,
			const struct why *why, uint64_t time_ns, uint64_t end_ns)
{
	char by[SLICE_BY_MAX][SLICE_BY_SIZE], waits_for[WAITS_FOR_SIZE], name[CALL_NAME_SIZE];
	struct slice_args args;
	struct fxt_event event;

	fill_event(&event, &args, call, site);
	event.name = call__full_name(call, name);
	if (why->by)
		slice_args__add_by(&args, why->by, why->n_by, by);
	if (why->wait)
		slice_args__add_wait(&args, why->wait, waits_for);
	event.n_args = args.n;
	event.pid = tree->pid;
	event.tid = tree->tid;
	event.time_ns = time_ns;
	if (end_ns)
		fxt__complete(writer->fxt, &event, end_ns);
	else
		fxt__begin(writer->fxt, &event);
}

void slice_writer__write(struct slice_writer *writer, const struct call_tree *tree,
			 const struct call *call, const struct call_site *site, uint64_t time_ns,
			 uint64_t end_ns)
{
	const struct why why = may_have_why(call) ? why_of(tree, call) : (struct why){0};
	const struct slice_kind kind = slice__kind(call, site);
	bool is_alone = why.by || why.wait || call__has_own_name(call);
	const struct fxt_template *template = call->self_insns <= UINT32_MAX && !is_alone
						      ? template_of(writer, &kind, call, site)
						      : NULL;
	uint64_t numbers[SLICE_NUMBERS];

	if (!template) {
		write_event(writer, tree, call, site, &why, time_ns, end_ns);
		return;
	}
	slice__get_numbers(call, &kind, numbers);
	fxt__slice_from(writer->fxt, template, tree->pid, tree->tid, time_ns, end_ns, numbers);
}
