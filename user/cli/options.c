// SPDX-License-Identifier: MIT
#include "cli/options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/log.h"
#include "util/names.h"
#include "util/units.h"

/* getopt_long's `val` of specs[0]: above the characters that it returns for errors. */
#define FIRST_VAL 256

const char *option__arg_name(const struct option_spec *spec)
{
	return spec->arg ? spec->arg : "VALUE";
}

struct parser {
	const struct option_table *table;
	const struct option *longs;
	void *dst;
	char **argv;
};

/* Words separated by ", ", for a message; truncated if they do not fit. */
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

static void add_long(struct option **next, const char *name, int has_arg, int val)
{
	*(*next)++ = (struct option){
		.name = name,
		.has_arg = has_arg,
		.val = val,
	};
}

/*
 * A letter becomes a long option of one letter, so that getopt does not read "-ouptut" as
 * "-o uptut". The names of one option share their val: a prefix of both is not ambiguous.
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
		int has_arg = spec->kind == OPT_FLAG	? no_argument
			      : spec->kind == OPT_COUNT ? optional_argument
							: required_argument;

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

/* The length of the name with its dashes, without "=value". */
static int name_len(const char *word)
{
	return (int)strcspn(word, "=");
}

/* Lists the options that begin with the typed name, each once. Returns their number. */
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

static int report_unknown(const struct parser *parser, const char *typed)
{
	const char *command = parser->table->command;
	const char *name = without_dashes(typed);
	_cleanup_free_ char *word = strndup(name, (size_t)name_len(name));
	struct nearest nearest = {.word = word ? word : ""};
	const char *meant;

	for (const struct option *o = parser->longs; o->name; o++) {
		/* Single letters resemble every two-letter word. */
		if (o->name[1])
			nearest__offer(&nearest, o->name);
	}
	meant = nearest__result(&nearest);
	log__error("%s: unknown option '%.*s'", command, name_len(typed), typed);
	if (meant)
		log__hint("did you mean -%s? (mtbpf %s -help lists all options)", meant, command);
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

/* getopt returned '?'; optopt tells why, except for an ambiguous prefix. */
static int report_refused(const struct parser *parser, const char *typed)
{
	const char *command = parser->table->command;
	struct word_list list = {.len = 0};
	int n = name_len(typed);

	if (optopt >= FIRST_VAL) {
		log__error("%s: option '%.*s' takes no argument, but got '%s'", command, n, typed,
			   typed + n + 1);
		log__hint("leave out the value: giving the option turns it on");
	} else if (list_prefixed(parser, typed, &list) > 1) {
		log__error("%s: ambiguous option '%.*s'", command, n, typed);
		log__hint("possible options are %s", list.text);
	} else {
		return report_unknown(parser, typed);
	}
	return -EINVAL;
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
		[OPT_INT] = "is not a whole number",	  [OPT_COUNT] = "is not a count",
		[OPT_DURATION] = "is not a duration",	  [OPT_SIZE] = "is not a size",
		[OPT_CHOICE] = "is not a possible value", [OPT_THRESHOLD] = "is not a duration",
		[OPT_LIST] = "is one too many",
	};

	const char *why = wrong[spec->kind];

	if (err == -ERANGE && spec->kind != OPT_LIST)
		why = "is too large";
	else if (*value == '-' && isdigit((unsigned char)value[1]) && spec->kind != OPT_CHOICE)
		why = "is negative";
	log__error("%s: -%s '%s' %s", parser->table->command, spec->name, value, why);
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
		/* Continue to the end: "99999999999x" is not a number. */
		if (sum <= INT_MAX)
			sum = sum * 10 + (*text - '0');
	}
	if (sum > INT_MAX)
		return -ERANGE;
	*value = (int)sum;
	return 0;
}

static int set_value(const struct parser *parser, const struct option_spec *spec, const char *value)
{
	void *field = (char *)parser->dst + spec->offset;
	struct option_list *list = field;
	int err = 0, i = 0;

	switch (spec->kind) {
	case OPT_FLAG:
		*(bool *)field = true;
		break;
	case OPT_STRING:
		*(const char **)field = value;
		break;
	case OPT_LIST:
		if (list->n == OPTION_LIST_MAX)
			err = -ERANGE;
		else
			list->v[list->n++] = value;
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
		while (spec->choices[i] && strcmp(spec->choices[i], value))
			i++;
		if (spec->choices[i])
			*(int *)field = i;
		else
			err = -EINVAL;
		break;
	}
	return err ? report_bad_value(parser, spec, value, err) : 0;
}

static int take_option(const struct parser *parser, int val, const char *typed)
{
	const struct option_table *table = parser->table;
	const struct option_spec *spec;
	struct word_list list = {.len = 0};
	char *next = parser->argv[optind];

	if (val == '?')
		return report_refused(parser, typed);
	if (val == ':')
		return report_missing(parser, typed, &table->specs[optopt - FIRST_VAL]);
	if (val == FIRST_VAL + (int)table->count) {
		options__print_help(table, stdout);
		return -ECANCELED;
	}
	spec = &table->specs[val - FIRST_VAL];
	/*
	 * getopt takes any next word as the argument: "-symbol -pid 12" would look for a function
	 * "-pid". -symbol=-pid gives a value that looks like an option.
	 */
	if (optarg && optarg == parser->argv[optind - 1] && optarg[0] == '-' &&
	    (!strcmp(optarg, "--") || list_prefixed(parser, optarg, &list)))
		return report_missing(parser, typed, spec);
	/* getopt requires '=' before an optional argument; people type a space. */
	if (spec->kind == OPT_COUNT && !optarg && next && *next &&
	    !next[strspn(next, "0123456789")]) {
		optarg = next;
		optind++;
	}
	return set_value(parser, spec, optarg);
}

int options__parse(const struct option_table *table, void *dst, int argc, char **argv, int *rest)
{
	_cleanup_free_ struct option *longs = new_longs(table);
	struct parser parser = {.table = table, .longs = longs, .dst = dst, .argv = argv};
	int val, err;

	if (!longs)
		return -ENOMEM;
	/* 0 instead of 1 makes glibc discard the state of an earlier parse. */
	optind = 0;
	for (;;) {
		int at = optind ? optind : 1;

		/* '+': stop at the first word without a dash. ':': print nothing. */
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

/* Longer labels get a line of their own in the help, and do not widen its first column. */
#define MAX_LABEL_WIDTH 28

static void add_label(char *label, size_t size, const char *dash, const char *word)
{
	size_t len = strlen(label);

	snprintf(label + len, size - len, "%s%s", dash, word);
}

/* "-output, -o FILE" */
static void format_label(const struct option_spec *spec, char *label, size_t size)
{
	char letter[] = {spec->letter, '\0'};

	label[0] = '\0';
	add_label(label, size, "-", spec->name);
	if (spec->alias)
		add_label(label, size, ", -", spec->alias);
	if (spec->letter)
		add_label(label, size, ", -", letter);
	if (spec->kind == OPT_CHOICE && !spec->arg) {
		for (size_t i = 0; spec->choices[i]; i++)
			add_label(label, size, i ? "|" : " ", spec->choices[i]);
	} else if (spec->kind != OPT_FLAG) {
		add_label(label, size, " ", option__arg_name(spec));
	}
}

static bool fits(const char *text, size_t columns, size_t indent)
{
	for (; *text; text += text[0] == '\n') {
		size_t n = strcspn(text, "\n");

		if (indent + n > columns)
			return false;
		text += n;
	}
	return true;
}

/*
 * Prints text and a newline at column `indent`, and indents further lines likewise. Keeps the
 * line breaks of the text if all its lines fit.
 */
static void put_wrapped(FILE *out, const char *text, size_t indent)
{
	size_t columns = SIZE_MAX, at = indent;
	struct winsize size;
	bool keeps_lines;
	char before = '\n';

	/* Lines are not wrapped if the output is not a terminal, for grep. */
	if (isatty(fileno(out)) && !ioctl(fileno(out), TIOCGWINSZ, &size) && size.ws_col)
		columns = size.ws_col;
	keeps_lines = columns == SIZE_MAX || fits(text, columns, indent);

	while (*text) {
		size_t n = strcspn(text, " \n");

		if (at > indent && ((before == '\n' && keeps_lines) || at + 1 + n > columns)) {
			fprintf(out, "\n%*s", (int)indent, "");
			at = indent;
		} else if (at > indent) {
			putc(' ', out);
			at++;
		}
		fwrite(text, 1, n, out);
		at += n;
		before = text[n];
		text += n + (text[n] != '\0');
	}
	putc('\n', out);
}

static void print_line(FILE *out, int width, const char *label, const char *help)
{
	if ((int)strlen(label) > width)
		fprintf(out, "  %s\n  %*s  ", label, width, "");
	else
		fprintf(out, "  %-*s  ", width, label);
	put_wrapped(out, help, (size_t)width + 4);
}

void options__print_help(const struct option_table *table, FILE *out)
{
	char label[256];
	size_t width = strlen("-help, -h");

	for (size_t i = 0; i < table->count; i++) {
		size_t len;

		format_label(&table->specs[i], label, sizeof(label));
		len = strlen(label);
		if (len > width && len <= MAX_LABEL_WIDTH)
			width = len;
	}
	for (const char *const *example = table->examples; example && *example; example++)
		fprintf(out, "  %s%s", *example, example[1] ? "\n" : "\n\n");
	fputs("usage: mtbpf ", out);
	put_wrapped(out, table->usage, strlen("usage: mtbpf "));
	putc('\n', out);
	put_wrapped(out, table->summary, 0);
	fputs("\noptions:\n", out);
	for (size_t i = 0; i < table->count; i++) {
		format_label(&table->specs[i], label, sizeof(label));
		print_line(out, (int)width, label, table->specs[i].help);
	}
	print_line(out, (int)width, "-help, -h", "print this text");
}
