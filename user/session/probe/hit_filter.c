// SPDX-License-Identifier: MIT
#include "session/probe/hit_filter.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session/probe/probes.h"
#include "util/log.h"

#define HINT_TERMS                                                                                 \
	"-if '(int)arg1 > 100 && comm == \"worker\"': arg1 to arg6, retval, tid and comm; == != "  \
	"< <= > >= and &; up to 4 terms"

static int refuse(const char *what, const char *at)
{
	log__error("-if: %s: '%s'", what, at);
	log__hint(HINT_TERMS);
	return -EINVAL;
}

static const char *skip_blanks(const char *at)
{
	while (isspace((unsigned char)*at))
		at++;
	return at;
}

static bool take(const char **at, const char *word)
{
	const char *from = skip_blanks(*at);
	size_t n = strlen(word);

	if (strncmp(from, word, n))
		return false;
	*at = from + n;
	return true;
}

/* Integer types of C on x86-64, by their names; negative: signed. */
static const struct {
	const char *name;
	int8_t size;
} types[] = {
	{"(int)", -4},		{"(unsigned)", 4},   {"(unsigned int)", 4}, {"(long)", -8},
	{"(unsigned long)", 8}, {"(long long)", -8}, {"(size_t)", 8},	    {"(ssize_t)", -8},
	{"(short)", -2},	{"(char)", -1},	     {"(bool)", 1},	    {"(unsigned short)", 2},
	{"(unsigned char)", 1}, {"(int8_t)", -1},    {"(int16_t)", -2},	    {"(int32_t)", -4},
	{"(int64_t)", -8},	{"(uint8_t)", 1},    {"(uint16_t)", 2},	    {"(uint32_t)", 4},
	{"(uint64_t)", 8},
};

static int8_t take_type(const char **at)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (take(at, types[i].name))
			return types[i].size;
	return 0;
}

static int take_field(const char **at, struct mt_term *term)
{
	static const char *const args[] = {"arg1", "arg2", "arg3", "arg4", "arg5", "arg6"};
	const char *begin = *at;

	for (uint8_t i = 0; i < sizeof(args) / sizeof(args[0]); i++)
		if (take(at, args[i])) {
			term->field = MT_FIELD_ARG;
			term->arg = i;
		}
	if (!term->field && take(at, "retval"))
		term->field = MT_FIELD_RETVAL;
	else if (!term->field && take(at, "comm"))
		term->field = MT_FIELD_COMM;
	else if (!term->field && take(at, "tid"))
		term->field = MT_FIELD_TID;
	if (!term->field || isalnum((unsigned char)**at) || **at == '_')
		return refuse("unknown name", skip_blanks(begin));
	if (term->size && term->field > MT_FIELD_RETVAL)
		return refuse("tid and comm have no other type", begin);
	if (!term->size && term->field == MT_FIELD_RETVAL) {
		log__error("-if: the type of retval is not known");
		log__hint("say it: '(int)retval < 0', or (long), (unsigned), (bool), ...");
		return -EINVAL;
	}
	return 0;
}

static int take_op(const char **at, struct mt_term *term)
{
	static const struct {
		const char *text;
		uint8_t op;
	} ops[] = {{"==", MT_OP_EQ}, {"!=", MT_OP_NE}, {"<=", MT_OP_LE}, {">=", MT_OP_GE},
		   {"<", MT_OP_LT},  {">", MT_OP_GT},  {"&", MT_OP_AND}};
	const char *begin = skip_blanks(*at);

	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]) && !term->op; i++)
		if (strncmp(begin, "&&", 2) && take(at, ops[i].text))
			term->op = ops[i].op;
	if (!term->op)
		return refuse("no operator", begin);
	if (term->field == MT_FIELD_COMM && term->op > MT_OP_NE)
		return refuse("comm is compared by == and !=", begin);
	return 0;
}

static int take_comm(const char **at, struct mt_term *term)
{
	const char *begin = skip_blanks(*at), *end;

	end = *begin == '"' ? strchr(begin + 1, '"') : NULL;
	if (!end)
		return refuse("a thread's name is in quotes", begin);
	/* TASK_COMM_LEN, with the zero. */
	if (end - begin - 1 >= (long)sizeof(term->comm))
		return refuse("a thread's name has at most 15 characters", begin);
	memcpy(term->comm, begin + 1, (size_t)(end - begin - 1));
	*at = end + 1;
	return 0;
}

static int take_number(const char **at, struct mt_term *term)
{
	const char *begin = skip_blanks(*at);
	char *end;

	if (!isdigit((unsigned char)*begin) && *begin != '-')
		return refuse("no number", begin);
	errno = 0;
	term->value = *begin == '-' ? (uint64_t)strtoll(begin, &end, 0) : strtoull(begin, &end, 0);
	if (errno || end == begin || isalnum((unsigned char)*end) || *end == '_' || *end == '.')
		return refuse("not a whole number", begin);
	*at = end;
	return 0;
}

static int take_term(const char **at, struct mt_term *term)
{
	int err;

	term->size = take_type(at);
	err = take_field(at, term);
	if (!err)
		err = take_op(at, term);
	if (err)
		return err;
	return term->field == MT_FIELD_COMM ? take_comm(at, term) : take_number(at, term);
}

int hit_filter__parse(struct hit_filter *filter, const char *text)
{
	const char *at = text;
	int err = 0;

	*filter = (struct hit_filter){0};
	while (text && !err) {
		if (filter->n == MT_TERMS)
			return refuse("more than 4 terms", at);
		err = take_term(&at, &filter->terms[filter->n]);
		filter->n++;
		if (!err && !*skip_blanks(at))
			break;
		if (!err && !take(&at, "&&"))
			err = refuse("'&&' or the end is missing", skip_blanks(at));
	}
	return err;
}

bool hit_filter__has_return(const struct hit_filter *filter)
{
	for (uint32_t i = 0; i < filter->n; i++)
		if (filter->terms[i].field == MT_FIELD_RETVAL)
			return true;
	return false;
}

static int refuse_arg(const struct probe *probe, const struct mt_term *term, const char *why)
{
	log__error("-if: arg%u of %s: %s", term->arg + 1u, probe->name, why);
	log__hint("arguments are those of a C function at its entry, of a USDT probe, or of "
		  "mtbpf_take_snapshot_with_arg()");
	return -EINVAL;
}

/*
 * System V ABI for x86-64, 3.2.3: integer arguments, by their offsets in the kernel's struct
 * pt_regs (arch/x86/include/asm/ptrace.h): di, si, dx, cx, r8, r9.
 */
static const uint16_t arg_registers[] = {112, 104, 96, 88, 72, 64};

static int read_register(struct probe *probe, const struct mt_term *term)
{
	struct mt_arg *arg = &probe->args.v[term->arg];

	if (probe->is_inside)
		return refuse_arg(probe, term, "the probe is inside the function");
	if (probe->is_go)
		return refuse_arg(probe, term, "Go passes its arguments in another way");
	if (!term->size)
		return refuse_arg(probe, term, "its type is not known: say it, as in (int)arg1");
	if (arg->kind && arg->size != term->size)
		return refuse_arg(probe, term, "it has two types");
	*arg = (struct mt_arg){
		.kind = MT_ARG_REGISTER, .base = arg_registers[term->arg], .size = term->size};
	return 0;
}

static int apply_to(const struct hit_filter *filter, struct probe *probe)
{
	bool knows_args = probe->args.n || probe->is_library;
	uint32_t n = 0;
	int err = 0;

	for (uint32_t i = 0; i < filter->n && !err; i++) {
		const struct mt_term *term = &filter->terms[i];

		if (term->field != MT_FIELD_ARG)
			continue;
		if (!knows_args)
			err = read_register(probe, term);
		else if (term->arg >= probe->args.n)
			err = refuse_arg(probe, term, "it does not have so many");
		else if (term->size)
			err = refuse_arg(probe, term, "its type is known: leave it out");
		if (term->arg >= n)
			n = term->arg + 1u;
	}
	if (!knows_args)
		probe->args.n = n;
	return err;
}

int hit_filter__apply(const struct hit_filter *filter, struct probes *probes)
{
	int err = 0;

	for (size_t i = 0; i < probes->all.n && filter->n; i++)
		if (probe__in_kernel(&probes->all.v[i])) {
			log__error("-if is not looked at for system calls: %s",
				   probes->all.v[i].name);
			log__hint("leave -if out, or name a function");
			return -EINVAL;
		}
	for (size_t i = 0; i < probes->all.n && !err; i++)
		err = apply_to(filter, &probes->all.v[i]);
	return err;
}
