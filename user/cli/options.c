// SPDX-License-Identifier: MIT
#include "cli/options.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/log.h"
#include "util/names.h"
#include "cli/options_internal.h"
#include "util/units.h"

/* getopt_long's `val` of specs[0]: above every character that it returns of its own. */
#define FIRST_VAL 256

struct parser {
	const struct option_table *table;
	const struct option *longs;
	void *dst;
	char **argv;
};

/* ", "-separated words for one line of a message; cut off where they would not fit. */
struct word_list {
	char text[512];
	size_t len;
};

static void word_list__add(struct word_list *list, const char *dash, const char *word)
{
	size_t room = sizeof(list->text) - list->len;
	int n = snprintf(list->text + list->len, room, "%s%s%s", list->len ? ", " : "", dash, word);

	if (n > 0)
		list->len += (size_t)n < room ? (size_t)n : room - 1;
}

static int has_arg_of(enum option_kind kind)
{
	if (kind == OPT_FLAG)
		return no_argument;
	return kind == OPT_COUNT ? optional_argument : required_argument;
}

static void add_long(struct option **next, const char *name, int has_arg, int val)
{
	*(*next)++ = (struct option){
		.name = name,
		.has_arg = has_arg,
		.val = val,
	};
}

/*
 * A letter becomes a long option of one letter, so that getopt never takes "-ouptut" for
 * "-o uptut". Names of one spec share their val: a prefix of both is not ambiguous.
 */
static struct option *new_longs(const struct option_table *table)
{
	size_t max = 3 * table->count + 3;
	struct option *longs = calloc(1, max * sizeof(*longs) + 2 * table->count);
	struct option *next = longs;
	char *letter = (char *)(longs + max);

	if (!longs)
		return NULL;
	for (size_t i = 0; i < table->count; i++) {
		const struct option_spec *spec = &table->specs[i];
		int has_arg = has_arg_of(spec->kind);

		add_long(&next, spec->name, has_arg, FIRST_VAL + (int)i);
		if (spec->alias)
			add_long(&next, spec->alias, has_arg, FIRST_VAL + (int)i);
		if (!spec->letter)
			continue;
		letter[0] = spec->letter;
		add_long(&next, letter, has_arg, FIRST_VAL + (int)i);
		letter += 2;
	}
	add_long(&next, "help", no_argument, FIRST_VAL + (int)table->count);
	add_long(&next, "h", no_argument, FIRST_VAL + (int)table->count);
	return longs;
}

static const char *without_dashes(const char *word)
{
	return word + (word[0] == '-') + (word[0] == '-' && word[1] == '-');
}

/* The length of what stands before "=value", dashes included. */
static int name_len(const char *word)
{
	return (int)strcspn(word, "=");
}

/* Lists the options, each once, that the typed name is a prefix of; returns how many. */
static size_t list_prefixed(const struct parser *parser, const char *typed, struct word_list *list)
{
	const char *name = without_dashes(typed);
	size_t len = (size_t)name_len(name);
	size_t n = 0;
	int last_val = 0;

	for (const struct option *o = parser->longs; len && o->name; o++) {
		if (strncmp(o->name, name, len) || o->val == last_val)
			continue;
		word_list__add(list, "-", o->name);
		last_val = o->val;
		n++;
	}
	return n;
}

static int report_ambiguous(const struct parser *parser, const char *typed,
			    const struct word_list *list)
{
	log__error("%s: ambiguous option '%.*s'", parser->table->command, name_len(typed), typed);
	log__hint("possible options are %s", list->text);
	return -EINVAL;
}

static int report_unknown(const struct parser *parser, const char *typed)
{
	const char *command = parser->table->command;
	const char *name = without_dashes(typed);
	_cleanup_free_ char *word = strndup(name, (size_t)name_len(name));
	struct nearest nearest = {.word = word ? word : ""};
	const char *meant;

	for (const struct option *o = parser->longs; o->name; o++) {
		/* A letter is near every word of two. */
		if (o->name[1])
			nearest__offer(&nearest, o->name);
	}
	meant = nearest__result(&nearest);
	log__error("%s: unknown option '%.*s'", command, name_len(typed), typed);
	if (meant)
		log__hint("did you mean -%s? (mtbpf %s -help lists them)", meant, command);
	else
		log__hint("mtbpf %s -help lists the options", command);
	return -EINVAL;
}

static int report_missing(const struct parser *parser, const char *typed,
			  const struct option_spec *spec)
{
	log__error("%s: option '%s' needs an argument", parser->table->command, typed);
	log__hint("-%s %s: %s", spec->name, option__arg_name(spec), spec->help);
	return -EINVAL;
}

static int report_needless(const struct parser *parser, const char *typed)
{
	log__error("%s: option '%.*s' takes no argument, but got '%s'", parser->table->command,
		   name_len(typed), typed, typed + name_len(typed) + 1);
	log__hint("leave out the value: giving the option turns it on");
	return -EINVAL;
}

/* getopt returned '?': it says why only in optopt, and for an ambiguous prefix not even there. */
static int report_refused(const struct parser *parser, const char *typed)
{
	struct word_list list = {.len = 0};

	if (optopt >= FIRST_VAL)
		return report_needless(parser, typed);
	if (list_prefixed(parser, typed, &list) > 1)
		return report_ambiguous(parser, typed, &list);
	return report_unknown(parser, typed);
}

static void hint_value(const struct option_spec *spec, int err)
{
	struct word_list list = {.len = 0};

	switch (spec->kind) {
	case OPT_DURATION:
		log__hint(err == -ERANGE
				  ? "the maximum duration is 292 years"
				  : "durations need a unit: 10ns, 10us, 10ms, 10s, 10min or 10h");
		break;
	case OPT_LIST:
		log__hint("-%s can be given %d times", spec->name, OPTION_LIST_MAX);
		break;
	case OPT_THRESHOLD:
		log__hint(err == -ERANGE ? "the maximum duration is 292 years, the maximum "
					   "percentile p99.9999"
					 : "durations need a unit: 10ns, 10us, 10ms, 10s, 10min or "
					   "10h; p99.9 is a percentile");
		break;
	case OPT_SIZE:
		log__hint(err == -ERANGE ? "the maximum size is 8388607T"
					 : "sizes are bytes or have a unit: 4096, 256K, 4M or 1G");
		break;
	case OPT_INT:
		log__hint("-%s takes a whole number from 0 to %d", spec->name, INT_MAX);
		break;
	case OPT_COUNT:
		log__hint("-%s takes a whole number from 1 to %d, or no value", spec->name,
			  INT_MAX);
		break;
	default:
		for (size_t i = 0; spec->choices[i]; i++)
			word_list__add(&list, "", spec->choices[i]);
		log__hint("-%s takes one of: %s", spec->name, list.text);
	}
}

static int report_bad_value(const struct parser *parser, const struct option_spec *spec,
			    const char *value, int err)
{
	static const char *const wrong[] = {
		[OPT_INT] = "is not a whole number",
		[OPT_COUNT] = "is not a count",
		[OPT_DURATION] = "is not a duration",
		[OPT_SIZE] = "is not a size",
		[OPT_CHOICE] = "is not one of its choices",
		[OPT_THRESHOLD] = "is not a duration",
		[OPT_LIST] = "is one too many",
	};

	log__error("%s: -%s '%s' %s", parser->table->command, spec->name, value,
		   err == -ERANGE && spec->kind != OPT_LIST ? "is too large" : wrong[spec->kind]);
	hint_value(spec, err);
	return -EINVAL;
}

static int parse_int(const char *text, int *value)
{
	int64_t sum = 0;

	if (!*text)
		return -EINVAL;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return -EINVAL;
		/* On to the end even so: "99999999999x" is no number at all. */
		if (sum <= INT_MAX)
			sum = sum * 10 + (*text - '0');
	}
	if (sum > INT_MAX)
		return -ERANGE;
	*value = (int)sum;
	return 0;
}

static int parse_choice(const char *const *choices, const char *text, int *value)
{
	for (int i = 0; choices[i]; i++) {
		if (!strcmp(choices[i], text)) {
			*value = i;
			return 0;
		}
	}
	return -EINVAL;
}

static int add_to_list(struct option_list *list, const char *value)
{
	if (list->n == OPTION_LIST_MAX)
		return -ERANGE;
	list->v[list->n++] = value;
	return 0;
}

static int set_value(const struct parser *parser, const struct option_spec *spec, const char *value)
{
	void *field = (char *)parser->dst + spec->offset;
	int err = 0;

	switch (spec->kind) {
	case OPT_FLAG:
		*(bool *)field = true;
		break;
	case OPT_STRING:
		*(const char **)field = value;
		break;
	case OPT_LIST:
		err = add_to_list(field, value);
		break;
	case OPT_INT:
		err = parse_int(value, field);
		break;
	case OPT_COUNT:
		*(int *)field = 0;
		if (value)
			err = parse_int(value, field);
		if (value && !err && !*(int *)field)
			err = -EINVAL;
		break;
	case OPT_DURATION:
		err = units__parse_duration(value, field);
		break;
	case OPT_THRESHOLD:
		err = threshold__parse(value, field);
		break;
	case OPT_SIZE:
		err = units__parse_size(value, field);
		break;
	case OPT_CHOICE:
		err = parse_choice(spec->choices, value, field);
		break;
	}
	return err ? report_bad_value(parser, spec, value, err) : 0;
}

/*
 * getopt takes any next word as the argument: "-symbol -pid 12" would look for a function "-pid".
 * A value that does look like an option is given as -symbol=-pid.
 */
static bool swallowed_option(const struct parser *parser, const char *value)
{
	struct word_list list = {.len = 0};

	if (value != parser->argv[optind - 1] || value[0] != '-')
		return false;
	return !strcmp(value, "--") || list_prefixed(parser, value, &list);
}

/* getopt joins an optional argument with '=' only; people leave a space. */
static char *next_number(const struct parser *parser)
{
	char *next = parser->argv[optind];

	if (!next || !*next || next[strspn(next, "0123456789")])
		return NULL;
	optind++;
	return next;
}

static int take_option(const struct parser *parser, int val, const char *typed)
{
	const struct option_table *table = parser->table;
	const struct option_spec *spec;

	if (val == '?')
		return report_refused(parser, typed);
	if (val == ':')
		return report_missing(parser, typed, &table->specs[optopt - FIRST_VAL]);
	if (val == FIRST_VAL + (int)table->count) {
		options__print_help(table, stdout);
		return -ECANCELED;
	}
	spec = &table->specs[val - FIRST_VAL];
	if (optarg && swallowed_option(parser, optarg))
		return report_missing(parser, typed, spec);
	if (spec->kind == OPT_COUNT && !optarg)
		optarg = next_number(parser);
	return set_value(parser, spec, optarg);
}

int options__parse(const struct option_table *table, void *dst, int argc, char **argv, int *rest)
{
	_cleanup_free_ struct option *longs = new_longs(table);
	struct parser parser = {.table = table, .longs = longs, .dst = dst, .argv = argv};
	int val, err;

	if (!longs)
		return -ENOMEM;
	/* 0, not 1: glibc then forgets what an earlier parse left behind. */
	optind = 0;
	for (;;) {
		int at = optind ? optind : 1;

		/* '+': stop at the first word that is no option. ':': print nothing. */
		val = getopt_long_only(argc, argv, "+:", longs, NULL);
		if (val == -1)
			break;
		err = take_option(&parser, val, argv[at]);
		if (err)
			return err;
	}
	*rest = optind;
	return 0;
}
