// SPDX-License-Identifier: MIT
#include "trace/slice.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "kernel/kernel.h"
#include "mtbpf_shared.h"

static void add(struct slice_args *args, struct fxt_arg arg)
{
	assert(args->n < FXT_MAX_ARGS);
	args->v[args->n++] = arg;
}

static void add_number(struct slice_args *args, const char *key, uint64_t number)
{
	add(args, (struct fxt_arg){.key = key, .kind = FXT_UINT, .number = number});
}

static void add_pointer(struct slice_args *args, const char *key, uint64_t address)
{
	add(args, (struct fxt_arg){.key = key, .kind = FXT_POINTER, .number = address});
}

static void add_string(struct slice_args *args, const char *key, const char *string)
{
	if (string)
		add(args, (struct fxt_arg){.key = key, .kind = FXT_STRING, .string = string});
}

const struct slice_flag slice_flags[SLICE_FLAGS] = {
	{"inferred_start", CALL_INFERRED_START},
	{"inferred_end", CALL_INFERRED_END},
	{"by_jump", CALL_BY_JUMP},
	{"cut_short", CALL_CUT_SHORT},
	{"inferred", CALL_INFERRED},
	{"sampled", CALL_SAMPLED},
};

/*
 * True if the address is known and the name does not tell it. A function's name tells where it
 * begins, so only calls that began elsewhere, or in a PLT stub, need the address. entry_ip 0: the
 * address is unknown.
 */
static bool has_address(const struct call *call)
{
	const struct function *function = call->function;

	return call->entry_ip && (!function || function->kind == FUNCTION_PLT ||
				  call->flags & (CALL_INSIDE | CALL_INFERRED_START));
}

/*
 * True if the call's instructions can be counted: not for an inlined function, whose code is mixed
 * with the code around it, and not for code known by its names only.
 */
static bool has_insns(const struct call *call)
{
	const struct function *function = call->function;

	if (call->self_insns)
		return true;
	return function && call->kind != CALL_INLINED && !(call->flags & CALL_SAMPLED) &&
	       !(function->image && !elf_image__has_code(function->image));
}

static bool has_call_ip(const struct call *call)
{
	return call->kind != CALL_INLINED && call->call_ip;
}

static const struct source_place *called_at(const struct call *call, const struct call_site *site)
{
	const struct source_place *place = call->kind == CALL_INLINED ? &call->inlined->call
					   : site		      ? &site->source
								      : NULL;

	return place && place->file ? place : NULL;
}

/*
 * The arguments that describe a call: address, module, file, line, call_ip, call_file, call_line,
 * insns, its flags, and how it was left; each if known, and the address only if the name does not
 * tell it. `site` is the call's, or NULL.
 */
static void slice_args__of_call(struct slice_args *args, const struct call *call,
				const struct call_site *site)
{
	const struct source_place *called = called_at(call, site);
	const struct function *function = call->function;
	struct source_place place;

	args->n = 0;
	if (has_address(call))
		add(args, (struct fxt_arg){.key = "address",
					   .kind = FXT_POINTER,
					   .number = call->entry_ip,
					   .varies = true});
	if (function) {
		add_string(args, "module", function->module);
		if (function__source(function, &place)) {
			add_string(args, "file", place.file);
			add_number(args, "line", place.line);
		}
	}
	if (has_call_ip(call))
		add(args, (struct fxt_arg){.key = "call_ip",
					   .kind = FXT_POINTER,
					   .number = call->call_ip,
					   .varies = true});
	if (called) {
		add_string(args, "call_file", called->file);
		add_number(args, "call_line", called->line);
	}
	if (has_insns(call))
		add(args, (struct fxt_arg){.key = "insns",
					   .kind = FXT_UINT,
					   .number = call->self_insns,
					   .varies = true});
	for (size_t i = 0; i < SLICE_FLAGS; i++)
		if (call->flags & slice_flags[i].flag)
			add_string(args, slice_flags[i].key, "true");
	add_string(args, "left_by", left_by__name(call->left_by));
}

const struct slice_by_key slice_by_keys[SLICE_BY_MAX] = {{"by", "by_ns"},
							 {"by_2", "by_2_ns"},
							 {"by_3", "by_3_ns"},
							 {"by_4", "by_4_ns"},
							 {"by_5", "by_5_ns"}};

/*
 * Adds the n threads or goroutines that caused the call: each name, with the first thread of that
 * name. If there are several names, also the time of each. `texts` must live as long as the
 * arguments.
 */
static void slice_args__add_by(struct slice_args *args, const struct done_by *by, size_t n,
			       char texts[static SLICE_BY_MAX][SLICE_BY_SIZE])
{
	struct done_by names[SLICE_BY_MAX];
	size_t n_names = 0;

	/* Adds up the times of threads with the same name and function, as in the report. */
	for (size_t i = 0; i < n; i++) {
		size_t k = 0;

		while (k < n_names && (strcmp(names[k].comm, by[i].comm) ||
				       strcmp(names[k].in ?: "", by[i].in ?: "")))
			k++;
		if (k < n_names)
			names[k].ns += by[i].ns;
		else if (k < SLICE_BY_MAX)
			names[n_names++] = by[i];
	}
	/* Each name needs two arguments, and one must be left for what the call waits for. */
	for (size_t i = 0; i < n_names && args->n + 2 < FXT_MAX_ARGS; i++) {
		snprintf(texts[i], SLICE_BY_SIZE, "%s (process %d, thread %d%s%.200s)",
			 names[i].comm, names[i].pid, names[i].tid,
			 names[i].is_goroutine ? SLICE_BY_IN : "",
			 !names[i].is_goroutine ? ""
			 : names[i].in		? names[i].in
						: SLICE_BY_NOWHERE);
		add_string(args, slice_by_keys[i].who, texts[i]);
		if (n_names > 1)
			add_number(args, slice_by_keys[i].ns, names[i].ns);
	}
}

const char *const counted_texts[COUNTED_ALL] = {
	[COUNTED_THROTTLED] = "throttled",
	[COUNTED_INTERRUPTS] = "interrupts",
	[COUNTED_THROTTLED | COUNTED_INTERRUPTS] = "throttled, interrupts",
	[COUNTED_STOLEN] = "stolen",
	[COUNTED_STOLEN | COUNTED_THROTTLED] = "throttled, stolen",
	[COUNTED_STOLEN | COUNTED_INTERRUPTS] = "interrupts, stolen",
	[COUNTED_STOLEN | COUNTED_THROTTLED | COUNTED_INTERRUPTS] = "throttled, interrupts, stolen",
	[COUNTED_NOT_STOLEN] = "not stolen",
	[COUNTED_NOT_STOLEN | COUNTED_THROTTLED] = "throttled, not stolen",
	[COUNTED_NOT_STOLEN | COUNTED_INTERRUPTS] = "interrupts, not stolen",
	[COUNTED_NOT_STOLEN | COUNTED_THROTTLED | COUNTED_INTERRUPTS] =
		"throttled, interrupts, not stolen",
};

/* The arguments that were read at the hit (arg1, ...), as far as there is room. */
static void add_given(struct slice_args *args, const struct hit_mark *hit)
{
	static const char *const keys[MT_ARGS_MAX] = {"arg1", "arg2",  "arg3",	"arg4",
						      "arg5", "arg6",  "arg7",	"arg8",
						      "arg9", "arg10", "arg11", "arg12"};

	for (uint32_t i = 0; i < hit->n_args && i < MT_ARGS_MAX && args->n < FXT_MAX_ARGS; i++)
		if (hit->args_read >> i & 1)
			add(args,
			    (struct fxt_arg){.key = keys[i],
					     .kind = hit->args_signed >> i & 1 ? FXT_INT : FXT_UINT,
					     .number = hit->args[i]});
}

const char *const hit_text_keys[HIT_TEXTS] = {
	[HIT_TEXT_TIME] = "time",
	[HIT_TEXT_TRACE_ID] = "trace_id",
	[HIT_TEXT_COUNTED] = "counted",
};

const struct slice_value_key slice_value_keys[] = {
	{"delay_ns", MT_HIT_DELAY},	{"duration_ns", MT_HIT_DURATION},
	{"since_mark_ns", MT_HIT_MARK}, {"region_ns", MT_HIT_REGION},
	{"stall_ns", MT_HIT_STALL},	{NULL, 0},
};

void slice_args__of_hit(struct slice_args *args, const struct hit_mark *hit,
			char moment[static UNITS_MOMENT_SIZE])
{
	args->n = 0;
	for (const struct slice_value_key *value = slice_value_keys; value->key; value++)
		if (value->reason == hit->reason)
			add_number(args, value->key, hit->value_ns);
	if (hit->cpu_measure)
		add_number(args, hit->cpu_measure == MT_CPU_OFF ? "off_cpu_ns" : "on_cpu_ns",
			   hit->cpu_measure == MT_CPU_OFF ? hit->off_cpu_ns
							  : hit->value_ns - hit->off_cpu_ns);
	if (hit->stall_from)
		add_number(args, "stall_from", hit->stall_from);
	if (hit->threshold_ns)
		add_number(args, "threshold_ns", hit->threshold_ns);
	if (hit->unix_ms)
		add_string(args, hit_text_keys[HIT_TEXT_TIME],
			   units__format_moment(moment, hit->unix_ms));
	add_number(args, "sequence", hit->sequence);
	add_number(args, "tid", (uint32_t)hit->tid);
	if (hit->ip)
		add_pointer(args, "address", hit->ip);
	if (hit->trace_id[0])
		add_string(args, hit_text_keys[HIT_TEXT_TRACE_ID], hit->trace_id);
	if (hit->since_tid) {
		add_pointer(args, "key", hit->key);
		add_number(args, "since_tid", (uint32_t)hit->since_tid);
	}
	for (uint32_t i = 0; i < hit->n_prints && args->n < FXT_MAX_ARGS; i++)
		add_string(args, hit->prints[i].name, hit->prints[i].text);
	add_given(args, hit);
	if (hit->counted < COUNTED_ALL && counted_texts[hit->counted] && args->n < FXT_MAX_ARGS)
		add_string(args, hit_text_keys[HIT_TEXT_COUNTED], counted_texts[hit->counted]);
}

/* "user", "library", "kernel", "gap", "signal", "inlined", "off-cpu", "switch". */
static const char *slice__category(const struct call *call)
{
	static const char *const categories[16] = {
		[CALL_SIGNAL] = "signal",   [CALL_SYSCALL] = "kernel",
		[CALL_UNTRACED] = "kernel", [CALL_IN_KERNEL] = "kernel",
		[CALL_OFF_CPU] = "off-cpu", [CALL_SWITCHED] = "switch",
		[CALL_GAP] = "gap",	    [CALL_NOT_RECORDED] = "gap",
		[CALL_NO_CALLERS] = "gap",  [CALL_INLINED] = "inlined",
	};
	const char *so;

	if (categories[call->kind])
		return categories[call->kind];
	if (address__is_kernel(call->entry_ip))
		return "kernel";
	/* By the file's name, "libc.so.6" or "plugin.so": an executable is not named so. */
	so = call->function && call->function->module ? strstr(call->function->module, ".so")
						      : NULL;
	return so && (so[3] == '\0' || so[3] == '.') ? "library" : "user";
}

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

static bool is_same(const struct slice_kind *a, const struct slice_kind *b)
{
	return a->function == b->function && a->called == b->called && a->rest == b->rest;
}

/* The places that kinds with the same hash may use. */
#define PROBES 4

/* Returns the kind's template, or one that the kind may replace. */
static struct slice_template *find_template(struct slice_writer *writer,
					    const struct slice_kind *kind)
{
	const uint64_t odd = 0x9e3779b97f4a7c15;
	uint64_t hash =
		((uintptr_t)kind->function + (uintptr_t)kind->called + kind->rest) * odd >> 32;
	uint16_t *place;

	for (uint64_t i = 0; i < PROBES; i++) {
		place = &writer->places[(hash + i) % SLICE_PLACES];
		if (!*place || is_same(&writer->templates[*place - 1].kind, kind))
			break;
	}
	if (!*place && writer->n_templates < SLICE_TEMPLATES)
		*place = ++writer->n_templates;
	return &writer->templates[(*place ? *place : hash % SLICE_TEMPLATES + 1) - 1];
}

/*
 * Returns the template for this kind of slice, made from this call if needed. NULL: it cannot have
 * one (fxt__make_template()).
 */
static const struct slice_template *
template_of(struct slice_writer *writer, const struct call *call, const struct call_site *site)
{
	const struct slice_kind kind = {
		.function = call->function,
		.called = called_at(call, site),
		.rest = (uint32_t)call->kind | (uint32_t)call->flags << 8 |
			(uint32_t)call->reason << 16 |
			(uint32_t)address__is_kernel(call->entry_ip) << 24 |
			(uint32_t)(call->entry_ip != 0) << 25 |
			(uint32_t)(call->call_ip != 0) << 26 |
			(uint32_t)(call->self_insns != 0) << 27 | (uint32_t)call->left_by << 28,
	};
	struct slice_template *template = find_template(writer, &kind);
	struct slice_args args;
	struct fxt_event event;

	if (is_same(&template->kind, &kind) && fxt__is_current(writer->fxt, &template->fxt))
		return template;
	template->kind = kind;
	template->has_address = has_address(call);
	template->has_call_ip = has_call_ip(call);
	template->has_insns = has_insns(call);
	fill_event(&event, &args, call, site);
	return fxt__make_template(writer->fxt, &template->fxt, &event) ? template : NULL;
}

/* Facts about this call alone, which a template cannot hold. */
struct why {
	const struct done_by *by;
	size_t n_by;
	const struct waits_for *wait;
};

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
		add_string(&args, "waits_for", waits_for__format(why->wait, waits_for));
	event.n_args = args.n;
	event.pid = tree->pid;
	event.tid = tree->tid;
	event.time_ns = time_ns;
	fxt__event(writer->fxt, end_ns ? FXT_EVENT_COMPLETE : FXT_EVENT_BEGIN, end_ns, &event);
}

void slice_writer__write(struct slice_writer *writer, const struct call_tree *tree,
			 const struct call *call, const struct call_site *site, uint64_t time_ns,
			 uint64_t end_ns)
{
	const struct slice_template *template = NULL;
	uint64_t numbers[FXT_TEMPLATE_NUMBERS];
	struct why why = {0};
	unsigned int n = 0;

	if (call->kind == CALL_OFF_CPU || call->kind == CALL_SYSCALL)
		why.wait = call_tree__waits_for(tree, call);
	if (call->kind == CALL_OFF_CPU)
		why.by = call_tree__done_by(tree, call);
	while (why.by && why.by + why.n_by < tree->done_by.v + tree->done_by.n &&
	       why.by[why.n_by].call == why.by->call)
		why.n_by++;
	if (call->self_insns <= UINT32_MAX && !why.by && !why.wait && !call__has_own_name(call))
		template = template_of(writer, call, site);

	if (!template) {
		write_event(writer, tree, call, site, &why, time_ns, end_ns);
		return;
	}
	/* In the order of slice_args__of_call(). */
	if (template->has_address)
		numbers[n++] = call->entry_ip;
	if (template->has_call_ip)
		numbers[n++] = call->call_ip;
	if (template->has_insns)
		numbers[n++] = call->self_insns;
	fxt__slice_from(writer->fxt, &template->fxt, tree->pid, tree->tid, time_ns, end_ns,
			numbers);
}
