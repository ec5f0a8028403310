// SPDX-License-Identifier: MIT
#include "session/probe/hit_reads.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session/probe/probe.h"
#include "target/elf/arguments_btf.h"
#include "util/log.h"
#include "util/vec.h"

#define HINT_TERMS                                                                                 \
	"-if 'arg1 > 100 && comm == \"worker\"': arg1 to arg12, members of them, retval, tid and " \
	"comm; == != < <= > >= and &; up to 4 terms"
#define HINT_KEY                                                                                   \
	"-key arg1, -key 'arg1->request', one of -start and one of -stop: -key arg1,arg2; in Go "  \
	"-key goroutine"
#define HINT_PRINT "-print 'str(arg1), str(arg2->data, arg2->len), arg3': up to 4"

/* Parsing. */

/* The option that is being parsed, for messages. */
struct source {
	const char *option, *hint;
};

static const struct source of_terms = {"-if", HINT_TERMS}, of_key = {"-key", HINT_KEY},
			   of_print = {"-print", HINT_PRINT};

static int refuse(const struct source *source, const char *what, const char *at)
{
	log__error("%s: %s: '%s'", source->option, what, at);
	log__hint("%s", source->hint);
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

static bool is_of_name(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* Types of C on x86-64 and their sizes in bytes; negative: signed. */
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

static void take_type(const char **at, struct hit_value *value)
{
	if (take(at, "(char *)") || take(at, "(char*)")) {
		value->size = 8;
		value->as_text = true;
	}
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]) && !value->size; i++)
		if (take(at, types[i].name))
			value->size = types[i].size;
}

/* False if a number is missing, or if it is too large. */
static bool take_offset(const char **at, int32_t *number)
{
	const char *begin = *at;
	char *end;
	long long n;

	if (!isdigit((unsigned char)*begin))
		return false;
	n = strtoll(begin, &end, 0);
	if (n > INT32_MAX || is_of_name(*end))
		return false;
	*number = (int32_t)n;
	*at = end;
	return true;
}

static bool take_name(const char **at, char *name, size_t size)
{
	size_t n = 0;

	while (is_of_name((*at)[n]))
		n++;
	if (!n || n >= size || isdigit((unsigned char)**at))
		return false;
	snprintf(name, size, "%.*s", (int)n, *at);
	*at += n;
	return true;
}

static bool take_step(const char **at, struct value_step *step)
{
	const char *from = *at;

	if (*from == '[') {
		step->kind = STEP_INDEX;
		from++;
		if (!take_offset(&from, &step->number) || *from != ']')
			return false;
		*at = from + 1;
		return true;
	}
	step->kind = *from == '.' ? STEP_DOT : STEP_ARROW;
	*at += *from == '.' ? 1 : 2;
	if (step->kind == STEP_ARROW && take_offset(at, &step->number)) {
		step->kind = STEP_OFFSET;
		return true;
	}
	return take_name(at, step->name, sizeof(step->name));
}

/* False, and *at unchanged, unless the text begins with an argument or retval. */
static bool take_base(const char **at, struct value_path *path)
{
	const char *from = skip_blanks(*at);
	int32_t n;

	if (take(&from, "retval")) {
		path->of_return = true;
	} else if (take(&from, "arg") && take_offset(&from, &n) && n >= 1 && n <= MT_ARGS_MAX) {
		path->arg = (uint32_t)n - 1;
	} else {
		return false;
	}
	if (is_of_name(*from))
		return false;
	*at = from;
	return true;
}

/* Copies the text from `begin` to `end` without blanks around it, cut to HIT_TEXT_SIZE. */
static void keep_text(char text[static HIT_TEXT_SIZE], const char *begin, const char *end)
{
	begin = skip_blanks(begin);
	while (end > begin && isspace((unsigned char)end[-1]))
		end--;
	snprintf(text, HIT_TEXT_SIZE, "%.*s", (int)(end - begin), begin);
}

static int take_value(const struct source *source, const char **at, struct hit_value *value)
{
	const char *begin = *at;

	*value = (struct hit_value){0};
	take_type(at, value);
	if (!take_base(at, &value->path))
		return refuse(source, "unknown name", skip_blanks(*at));
	while (**at == '[' || **at == '.' || !strncmp(*at, "->", 2)) {
		const char *step = *at;

		if (value->path.n == VALUE_STEPS)
			return refuse(source, "more than 8 members", begin);
		if (!take_step(at, &value->path.steps[value->path.n++]))
			return refuse(source, "the name or offset of a member is missing", step);
	}
	keep_text(value->text, begin, *at);
	return 0;
}

/* -if */

static int take_field(const char **at, struct mt_term *term, struct hit_value *value)
{
	const char *begin = *at, *from = *at;

	*value = (struct hit_value){0};
	take_type(&from, value);
	if (take(&from, "comm"))
		term->field = MT_FIELD_COMM;
	else if (take(&from, "tid"))
		term->field = MT_FIELD_TID;
	if (!term->field) {
		int err = take_value(&of_terms, at, value);

		term->field = value->path.of_return ? MT_FIELD_RETVAL : MT_FIELD_ARG;
		return err;
	}
	if (is_of_name(*from))
		return refuse(&of_terms, "unknown name", skip_blanks(begin));
	if (value->size)
		return refuse(&of_terms, "tid and comm take no type", begin);
	*at = from;
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
		return refuse(&of_terms, "an operator is missing or unknown", begin);
	if (term->field == MT_FIELD_COMM && term->op > MT_OP_NE)
		return refuse(&of_terms, "comm is compared by == and !=", begin);
	return 0;
}

static int take_comm(const char **at, struct mt_term *term)
{
	const char *begin = skip_blanks(*at), *end;

	end = *begin == '"' ? strchr(begin + 1, '"') : NULL;
	if (!end)
		return refuse(&of_terms, "a thread's name must be in quotes", begin);
	/* comm has TASK_COMM_LEN bytes; the last one is the terminating zero. */
	if (end - begin - 1 >= (long)sizeof(term->comm))
		return refuse(&of_terms, "a thread's name has at most 15 characters", begin);
	memcpy(term->comm, begin + 1, (size_t)(end - begin - 1));
	*at = end + 1;
	return 0;
}

static int take_number(const char **at, struct mt_term *term, bool *is_negative)
{
	const char *begin = skip_blanks(*at);
	char *end;

	if (!isdigit((unsigned char)*begin) && *begin != '-')
		return refuse(&of_terms, "a number is missing", begin);
	errno = 0;
	term->value = *begin == '-' ? (uint64_t)strtoll(begin, &end, 0) : strtoull(begin, &end, 0);
	if (errno || end == begin || is_of_name(*end) || *end == '.')
		return refuse(&of_terms, "not a whole number", begin);
	*is_negative = (int64_t)term->value < 0 && *begin == '-';
	*at = end;
	return 0;
}

static int parse_filter(struct hit_filter *filter, const char *text)
{
	const char *at = text;
	int err = 0;

	while (text && !err) {
		struct mt_term *term = &filter->terms[filter->n];

		if (filter->n == MT_TERMS)
			return refuse(&of_terms, "more than 4 terms", at);
		err = take_field(&at, term, &filter->values[filter->n]);
		if (!err)
			err = take_op(&at, term);
		if (!err)
			err = term->field == MT_FIELD_COMM
				      ? take_comm(&at, term)
				      : take_number(&at, term, &filter->is_negative[filter->n]);
		filter->n++;
		if (!err && !*skip_blanks(at))
			break;
		if (!err && !take(&at, "&&"))
			err = refuse(&of_terms, "expected '&&' or the end", skip_blanks(at));
	}
	return err;
}

/* -key and -print */

static int parse_key(struct hit_reads *reads, const char *text)
{
	const char *at = text;
	int err;

	if (!text)
		return 0;
	reads->has_key = true;
	if (take(&at, "goroutine")) {
		reads->keys[0] = (struct hit_value){.is_goroutine = true, .text = "goroutine"};
		reads->keys[1] = reads->keys[0];
		return *skip_blanks(at) ? refuse(&of_key, "unexpected text", skip_blanks(at)) : 0;
	}
	err = take_value(&of_key, &at, &reads->keys[0]);
	reads->keys[1] = reads->keys[0];
	reads->has_stop_key = !err && take(&at, ",");
	if (reads->has_stop_key)
		err = take_value(&of_key, &at, &reads->keys[1]);
	if (!err && *skip_blanks(at))
		err = refuse(&of_key, "unexpected text", skip_blanks(at));
	if (!err && (reads->keys[0].path.of_return || reads->keys[1].path.of_return))
		err = refuse(&of_key, "a returned value cannot be a key", text);
	return err;
}

static int take_print(const char **at, struct hit_print *print)
{
	const char *begin = *at;
	int err;

	print->kind = MT_PRINT_NUMBER;
	if (!take(at, "str(")) {
		err = take_value(&of_print, at, &print->value);
	} else {
		print->kind = MT_PRINT_STRING;
		err = take_value(&of_print, at, &print->value);
		if (!err && take(at, ",")) {
			print->kind = MT_PRINT_BYTES;
			err = take_value(&of_print, at, &print->length);
		}
		if (!err && !take(at, ")"))
			err = refuse(&of_print, "')' is missing", skip_blanks(*at));
		if (!err && print->kind == MT_PRINT_BYTES &&
		    print->length.path.of_return != print->value.path.of_return)
			err = refuse(&of_print,
				     "both values of str() must be arguments, or both "
				     "of retval",
				     skip_blanks(begin));
	}
	keep_text(print->text, begin, *at);
	return err;
}

static int parse_print(struct hit_reads *reads, const char *text)
{
	const char *at = text;
	int err = 0;

	while (text && !err) {
		if (reads->n_prints == MT_PRINTS)
			return refuse(&of_print, "more than 4 values", at);
		err = take_print(&at, &reads->prints[reads->n_prints]);
		reads->n_prints++;
		if (!err && !*skip_blanks(at))
			break;
		if (!err && !take(&at, ","))
			err = refuse(&of_print, "expected ',' or the end", skip_blanks(at));
	}
	return err;
}

int hit_reads__parse(struct hit_reads *reads, const char *filter, const char *key,
		     const char *print)
{
	int err;

	*reads = (struct hit_reads){0};
	err = parse_filter(&reads->filter, filter);
	if (!err)
		err = parse_key(reads, key);
	return err ? err : parse_print(reads, print);
}

const char *hit_reads__of_return(const struct hit_reads *reads)
{
	if (FIND_IN(reads->filter.terms, reads->filter.n, term, term->field == MT_FIELD_RETVAL))
		return "-if";
	return FIND_IN(reads->prints, reads->n_prints, print, print->value.path.of_return)
		       ? "-print"
		       : NULL;
}

const char *hit_reads__of_memory(const struct hit_reads *reads)
{
	if (reads->keys[0].path.n || reads->keys[1].path.n)
		return "-key";
	return FIND_IN(reads->prints, reads->n_prints, print,
		       print->kind != MT_PRINT_NUMBER || print->value.path.n)
		       ? "-print"
		       : NULL;
}

bool hit_reads__any(const struct hit_reads *reads)
{
	return reads->filter.n || reads->has_key || reads->n_prints;
}

/* Binding: where the values are at the hits of one probe. */

/* Registers of a system call's arguments, as offsets in struct pt_regs: di, si, dx, r10, r8, r9. */
static const uint16_t syscall_registers[] = {112, 104, 96, 56, 72, 64};

static int tell(char why[static VALUE_WHY_SIZE], const char *text)
{
	snprintf(why, VALUE_WHY_SIZE, "%s", text);
	return -EINVAL;
}

static bool has_only_offsets(const struct value_path *path)
{
	return !FIND_IN(path->steps, path->n, step, step->kind != STEP_OFFSET);
}

/*
 * Adds the numeric offsets that the user wrote (arg1->8) to a value whose place is known: an
 * argument; or, if the argument is a reference to a pointer, the pointer in memory, which the debug
 * info has found.
 */
static int add_offsets(const struct hit_value *from, struct mt_value *value, enum value_type *type,
		       bool as_text, char why[static VALUE_WHY_SIZE])
{
	const struct value_path *path = &from->path;
	int8_t size = from->size ? from->size : as_text ? 8 : 0;

	if (!path->n)
		return 0;
	if (value->n_derefs + path->n > MT_DEREFS)
		return tell(why, "more than 4 pointers are followed");
	if (!size)
		return tell(why, "its type is not known: say it, as in (int)arg1->8");
	value->from.size = 8;
	for (size_t i = 0; i < path->n; i++)
		value->offsets[value->n_derefs++] = path->steps[i].number;
	value->size = size;
	value->is_address = 0;
	*type = from->as_text || as_text ? VALUE_TEXT : VALUE_INTEGER;
	return 0;
}

/* Finds an argument of a USDT probe (by its ELF note), of mtbpf_hit(), or of a system call. */
static int find_told(const struct hit_value *from, const struct probe *probe,
		     struct mt_value *value, enum value_type *type, char why[static VALUE_WHY_SIZE])
{
	bool is_syscall = probe->kernel.kind == KERNEL_PROBE_SYSCALL;
	uint32_t arg = from->path.arg;

	*type = VALUE_TEXT;
	if (!has_only_offsets(&from->path))
		return tell(why, "members by their names need the debug info of a function");
	if (is_syscall && (from->path.of_return || arg < 6)) {
		value->from = (struct mt_arg){.kind = MT_ARG_REGISTER, .size = 8};
		value->from.base =
			from->path.of_return ? VALUE_RETURN_REGISTER : syscall_registers[arg];
		if (from->path.of_return)
			value->from.size = -8;
	} else if (from->path.of_return) {
		return tell(why, "only functions and system calls return something");
	} else if (probe->is_library && arg) {
		/* mtbpf_hit() has more arguments, but only the header mtbpf.h uses those. */
		return tell(why, "mtbpf_take_snapshot_with_arg() has one argument, arg1");
	} else if (is_syscall || arg >= probe->args.n) {
		return tell(why, "the probe or system call has fewer arguments");
	} else {
		value->from = probe->args.v[arg];
		if (probe->is_library)
			value->from.kind = MT_ARG_GIVEN;
	}
	if (from->path.n && value->from.size != 8 && value->from.size != -8)
		return tell(why, "it is not a pointer");
	if (!is_syscall && !from->path.n && from->size && !from->as_text)
		return tell(why, "its type is known: leave it out");
	if (is_syscall && !from->path.n && from->size)
		value->from.size = from->size;
	return 0;
}

/* Finds an argument without debug info, by the ABI and the type that the user has written. */
static int find_by_rules(const struct hit_value *from, const struct function *function,
			 struct mt_value *value, enum value_type *type, bool as_text,
			 char why[static VALUE_WHY_SIZE])
{
	int8_t size = from->size ? from->size : as_text ? 8 : 0;

	if (!has_only_offsets(&from->path))
		return tell(why, "members by their names need the program's debug info (-g, or its "
				 "debug package), or BTF that has this function");
	if (!from->path.of_return && function__is_clone(function))
		return tell(why, "the compiler has changed how this function gets its arguments");
	if (!from->path.of_return && function__is_ocaml(function))
		return tell(why, "OCaml passes arguments in other registers");
	if (!from->path.of_return && from->path.arg >= VALUE_REGISTERS)
		return tell(why, "only the first six arguments are in registers");
	if (!size && !from->path.n)
		return tell(why, "its type is not known: say it, as in (int)arg1; a pointer is a "
				 "(long)");
	value->from =
		(struct mt_arg){.kind = MT_ARG_REGISTER,
				.base = from->path.of_return ? VALUE_RETURN_REGISTER
							     : value_registers[from->path.arg],
				.size = size ? size : 8};
	*type = from->as_text || as_text ? VALUE_TEXT : VALUE_INTEGER;
	return 0;
}

static int8_t *size_of(struct mt_value *value)
{
	return value->n_derefs ? &value->size : &value->from.size;
}

/*
 * Applies the type that the user has written to a value of a known type. If that type is larger,
 * the value is read with its own size: the bytes beside it, or the rest of its register, do not
 * belong to it.
 */
static int cast(const struct hit_value *from, struct mt_value *value, enum value_type *type,
		char why[static VALUE_WHY_SIZE])
{
	int8_t *size = size_of(value);
	bool is_larger = abs(from->size) > abs(*size);

	if (*type == VALUE_CHARACTERS) /* its address is its value */
		return 0;
	/*
	 * Structures and floating-point numbers in a register have been refused before. A small
	 * value of no known type is an enumeration: an int, whose sign older BTF does not give.
	 */
	if (*type == VALUE_NONE && (value->n_derefs || abs(from->size) > 4))
		return tell(why, "it is neither an integer nor a pointer");
	if (from->as_text && is_larger)
		return tell(why, "it is smaller than a pointer");
	if (is_larger && *size < 0 && from->size > 0)
		return tell(why, "its type is smaller and signed: use a signed type, as in "
				 "(long)arg1");
	if (!is_larger)
		*size = from->size;
	if (from->as_text)
		*type = VALUE_TEXT;
	else if (*type == VALUE_NONE || abs(from->size) < 8)
		*type = VALUE_INTEGER;
	return 0;
}

static int find_in_function(const struct hit_value *from, const struct probe *probe,
			    const struct function *function, struct mt_value *value,
			    enum value_type *type, bool as_text, char why[static VALUE_WHY_SIZE])
{
	/* With numeric offsets, the debug info only gives the register of the first pointer. */
	bool by_numbers = from->path.n && has_only_offsets(&from->path);
	struct value_path path = from->path;
	int err;

	if (probe->is_inside)
		return tell(why, "the probe is inside the function");
	if (probe->is_go)
		return tell(why, "Go passes arguments and results in another way");
	if (by_numbers)
		path.n = 0;
	err = function__find_value(function, &path, value, type, why);
	if (err == -ENODATA)
		err = function__find_value_by_btf(function, &path, value, type, why);
	if (err == -ENODATA)
		return find_by_rules(from, function, value, type, as_text, why);
	if (err)
		return err;
	if (!by_numbers)
		return from->size ? cast(from, value, type, why) : 0;
	/* With numeric offsets, a reference to an object is the address of that object. */
	if (value->n_derefs && *type != VALUE_POINTER && *type != VALUE_TEXT) {
		value->n_derefs = 0;
		value->offsets[0] = 0;
		value->from.size = 8;
	} else if (!value->n_derefs && value->from.size != 8 && value->from.size != -8) {
		return tell(why, "it is not a pointer");
	}
	return 0;
}

static int find_value(const struct hit_value *from, const struct probe *probe,
		      const struct function *function, bool as_text, struct mt_value *value,
		      char why[static VALUE_WHY_SIZE])
{
	enum value_type type;
	int err;

	*value = (struct mt_value){0};
	if (from->is_goroutine) {
		value->from = (struct mt_arg){.kind = MT_ARG_GOROUTINE, .size = 8};
		return function && !probe->is_go ? tell(why, "it is not in a Go program") : 0;
	}
	err = function && !probe->args.n
		      ? find_in_function(from, probe, function, value, &type, as_text, why)
		      : find_told(from, probe, value, &type, why);
	if (!err && has_only_offsets(&from->path))
		err = add_offsets(from, value, &type, as_text, why);
	if (err)
		return err;
	if (as_text && type != VALUE_TEXT && type != VALUE_CHARACTERS)
		return tell(why, "its type is not char *: write (char *) if it points to text");
	if (!as_text && type == VALUE_CHARACTERS)
		return tell(why, "it is an array: use str() for its text");
	return type == VALUE_NONE ? tell(why, "it is neither an integer nor a pointer") : 0;
}

static bool refuse_probe(const struct source *source, const struct hit_value *value,
			 struct probe *probe, const char *why)
{
	snprintf(probe->refused, sizeof(probe->refused), "%s: %s of %s: %s", source->option,
		 value->text, probe->name, why);
	return false;
}

static bool bind_value(const struct source *source, const struct hit_value *from,
		       const struct function *function, bool as_text, struct probe *probe,
		       struct mt_value *value)
{
	char why[VALUE_WHY_SIZE];

	return !find_value(from, probe, function, as_text, value, why) ||
	       refuse_probe(source, from, probe, why);
}

/* Binds a value of -key or -print, which is stored. */
static bool bind_stored(const struct source *source, const struct hit_value *from,
			const struct hit_reads *reads, const struct function *function,
			bool as_text, struct probe *probe, struct mt_value *value)
{
	if (!bind_value(source, from, function, as_text, probe, value))
		return false;
	return !reads->stores_no_memory || !value->n_derefs ||
	       refuse_probe(source, from, probe,
			    "it is a reference, and -no-stack-copy stores no memory of the "
			    "program");
}

static bool bind_print(const struct hit_reads *reads, uint32_t i, const struct function *function,
		       struct probe *probe)
{
	const struct hit_print *from = &reads->prints[i];
	struct mt_print *print = &probe->reads.prints[i];

	print->kind = (uint8_t)from->kind;
	print->at_return = from->value.path.of_return;
	return bind_stored(&of_print, &from->value, reads, function, from->kind != MT_PRINT_NUMBER,
			   probe, &print->value) &&
	       (from->kind != MT_PRINT_BYTES ||
		bind_stored(&of_print, &from->length, reads, function, false, probe,
			    &print->length));
}

/*
 * Refuses a number that the value, by its type, cannot have. The BPF program compares 64-bit
 * numbers, so such a number would never be equal, while C might convert it: -1 is 0xffffffff for an
 * unsigned int. Unsigned numbers of 64 bits are compared as C does.
 */
static bool check_number(const struct hit_filter *filter, uint32_t i, struct probe *probe)
{
	const struct hit_value *from = &filter->values[i];
	bool is_negative = filter->is_negative[i];
	uint64_t number = filter->terms[i].value;
	int8_t size = *size_of(&probe->reads.terms[i]);
	uint32_t bits = 8 * (uint32_t)abs(size) - (size < 0);
	char why[VALUE_WHY_SIZE], range[64];

	if (filter->terms[i].op == MT_OP_AND)
		return true;
	/* For an argument of type int, programs set only the lower half of the register. */
	if (is_negative && probe->kernel.kind == KERNEL_PROBE_SYSCALL && size == 8 && !from->size)
		return refuse_probe(&of_terms, from, probe,
				    "its type is not known: say it, as in (int)arg1 == -1");
	if (size == 8)
		return true;
	if (is_negative ? size < 0 && (int64_t)number >= -(int64_t)(1ull << (bits - 1)) * 2
			: !(number >> bits))
		return true;
	if (size < 0)
		snprintf(range, sizeof(range), "%lld to %lld", -(long long)((1ull << bits) - 1) - 1,
			 (long long)((1ull << bits) - 1));
	else
		snprintf(range, sizeof(range), "0 to %llu", (1ull << bits) - 1);
	snprintf(why, sizeof(why), "by its type it is %s, and cannot be compared with %s%llu",
		 range, is_negative ? "-" : "",
		 (unsigned long long)(is_negative ? -number : number));
	return refuse_probe(&of_terms, from, probe, why);
}

void hit_reads__bind(const struct hit_reads *reads, const struct function *function,
		     struct probe *probe, bool is_start)
{
	const struct hit_filter *filter = &reads->filter;
	bool shows = function && !probe->args.n, fits = true;

	if (reads->has_key)
		fits = bind_stored(&of_key, &reads->keys[!is_start], reads, function, false, probe,
				   &probe->reads.key);
	for (uint32_t i = 0; i < reads->n_prints && fits && !is_start; i++)
		fits = bind_print(reads, i, function, probe);
	for (uint32_t i = 0; i < filter->n && fits && !is_start; i++)
		if (filter->terms[i].field <= MT_FIELD_RETVAL)
			fits = bind_value(&of_terms, &filter->values[i], function, false, probe,
					  &probe->reads.terms[i]) &&
			       check_number(filter, i, probe);
	/*
	 * The hit shows plain arguments of a function; the register of a reference has an address,
	 * and not the value. This comes last: find_value() takes probe->args for the arguments of a
	 * USDT note.
	 */
	for (uint32_t i = 0; i < filter->n && fits && shows && !is_start; i++) {
		const struct value_path *path = &filter->values[i].path;
		const struct mt_value *value = &probe->reads.terms[i];

		if (filter->terms[i].field != MT_FIELD_ARG || path->n || path->of_return ||
		    value->n_derefs)
			continue;
		if (!probe->args.v[path->arg].kind)
			probe->args.v[path->arg] = value->from;
		if (probe->args.n <= path->arg)
			probe->args.n = path->arg + 1;
	}
}

int hit_reads__check(const struct hit_reads *reads, struct probe *probes, size_t n, bool is_start)
{
	for (size_t i = 0; i < n && hit_reads__any(reads); i++) {
		struct probe *probe = &probes[i];
		bool is_told = probe__in_kernel(probe) || probe->is_usdt;
		/*
		 * At most hits, -if tid and -if comm need only the current thread. But the victim
		 * of the OOM killer is not the current thread.
		 */
		bool reads_unknown = probe->kernel.kind == KERNEL_PROBE_OOM || reads->has_key ||
				     (reads->n_prints && !is_start);

		for (uint32_t k = 0; k < reads->filter.n && !is_start; k++)
			reads_unknown |= reads->filter.terms[k].field <= MT_FIELD_RETVAL;
		if (reads_unknown && probe__in_kernel(probe) &&
		    probe->kernel.kind != KERNEL_PROBE_SYSCALL &&
		    probe->kernel.kind != KERNEL_PROBE_EXIT) {
			log__error("-if, -key and -print: the arguments of %s are not known",
				   probe->name);
			log__hint("leave out -if, -key and -print, or name a function or a system "
				  "call");
			return -EINVAL;
		}
		if (is_told)
			hit_reads__bind(reads, NULL, probe, is_start);
		if (!*probe->refused)
			continue;
		log__error("%s", probe->refused);
		log__hint("arguments are known for a C or C++ function at its entry, a system "
			  "call, a USDT probe and mtbpf_take_snapshot_with_arg()");
		return -EINVAL;
	}
	return 0;
}
