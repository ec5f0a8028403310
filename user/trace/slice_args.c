// SPDX-License-Identifier: MIT
#include "trace/slice_args.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "mtbpf_shared.h"
#include "util/address.h"

static void add(struct slice_args *args, struct fxt_arg arg)
{
	assert(args->n < FXT_MAX_ARGS);
	args->v[args->n++] = arg;
}

static void add_number(struct slice_args *args, const char *key, uint64_t number)
{
	add(args, (struct fxt_arg){.key = key, .kind = FXT_UINT, .number = number});
}

/* 0 is how "unknown" is written where addresses are kept. */
static void add_address(struct slice_args *args, const char *key, uint64_t address)
{
	if (address)
		add(args, (struct fxt_arg){.key = key, .kind = FXT_POINTER, .number = address});
}

static void add_string(struct slice_args *args, const char *key, const char *string)
{
	if (string)
		add(args, (struct fxt_arg){.key = key, .kind = FXT_STRING, .string = string});
}

static void add_flags(struct slice_args *args, uint8_t flags)
{
	static const struct {
		enum call_flags flag;
		const char *key;
	} names[] = {
		{CALL_INFERRED_START, "inferred_start"},
		{CALL_INFERRED_END, "inferred_end"},
		{CALL_BY_JUMP, "by_jump"},
		{CALL_CUT_SHORT, "cut_short"},
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (flags & names[i].flag)
			add_string(args, names[i].key, "true");
	}
}

void slice_args__of_call(struct slice_args *args, const struct call *call)
{
	const struct function *function = call->function;
	struct source_place place;

	args->n = 0;
	add_address(args, "address", call->entry_ip);
	if (function) {
		add_string(args, "module", function->module);
		if (function__source(function, &place)) {
			add_string(args, "file", place.file);
			add_number(args, "line", place.line);
		}
	}
	add_address(args, "call_ip", call->call_ip);
	if (function || call->self_insns)
		add_number(args, "insns", call->self_insns);
	add_flags(args, call->flags);
}

void slice_args__of_hit(struct slice_args *args, const struct hit_mark *hit)
{
	args->n = 0;
	if (hit->reason == MT_HIT_DELAY)
		add_number(args, "delay_ns", hit->value_ns);
	else if (hit->reason == MT_HIT_DURATION)
		add_number(args, "duration_ns", hit->value_ns);
	add_number(args, "sequence", hit->sequence);
	add_number(args, "tid", (uint32_t)hit->tid);
	add_address(args, "address", hit->ip);
}

/* By the file's name, "libc.so.6" or "plugin.so": an executable is not named so. */
static bool is_shared_object(const char *module)
{
	const char *so = module ? strstr(module, ".so") : NULL;

	return so && (so[3] == '\0' || so[3] == '.');
}

const char *slice__category(const struct call *call)
{
	switch (call->kind) {
	case CALL_SIGNAL:
		return "signal";
	case CALL_SYSCALL:
	case CALL_UNTRACED:
		return "kernel";
	case CALL_GAP:
		return "gap";
	default:
		break;
	}
	if (address__is_kernel(call->entry_ip))
		return "kernel";
	return call->function && is_shared_object(call->function->module) ? "library" : "user";
}
