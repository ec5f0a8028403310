/* SPDX-License-Identifier: MIT */
/* A command's options as a table: parsing (getopt_long_only), "did you mean", and help. */
#ifndef MTBPF_CLI_OPTIONS_H
#define MTBPF_CLI_OPTIONS_H

#include <stddef.h>
#include <stdio.h>

enum option_kind {
	OPT_FLAG,      /* bool */
	OPT_STRING,    /* const char *, points into argv */
	OPT_LIST,      /* struct option_list: like OPT_STRING, can be repeated */
	OPT_INT,       /* int, 0 or more */
	OPT_DURATION,  /* uint64_t nanoseconds */
	OPT_THRESHOLD, /* struct threshold: a duration, or a percentile */
	OPT_SIZE,      /* uint64_t bytes */
	OPT_CHOICE,    /* int, an index into choices */
	OPT_COUNT,     /* int, 1 or more; 0 without an argument */
};

#define OPTION_LIST_MAX 64
struct option_list {
	const char *v[OPTION_LIST_MAX];
	size_t n;
};

struct option_spec {
	const char *name;  /* without dashes */
	const char *alias; /* a second long name, or NULL */
	char letter;	   /* a short name, or 0; never 'h' */
	enum option_kind kind;
	const char *arg;	    /* what help calls the argument: "PID" */
	const char *help;	    /* one line */
	size_t offset;		    /* of the field in the command's options struct */
	const char *const *choices; /* OPT_CHOICE: NULL-terminated */
};

struct option_table {
	const char *command; /* "attach" */
	const char *usage;   /* "attach -pid PID -symbol NAME [options]" */
	const char *summary; /* one line */
	const char *const
		*examples; /* whole command lines, NULL-terminated; help begins with them */
	const struct option_spec *specs;
	size_t count;
};

/*
 * Parses argv[1..] into dst, whose defaults the caller has set. Sets *rest to the index of the
 * first word after the options ("--" is skipped). Options have one dash or two, can be shortened to
 * a unique prefix, and take "-pid 12" or "-pid=12"; if one is repeated, the last wins, except for
 * lists. Letters cannot be combined ("-vo") or joined with their argument ("-oFILE"). Returns 0;
 * -EINVAL after a message and a hint; -ECANCELED after -help has been printed; -ENOMEM.
 */
int options__parse(const struct option_table *table, void *dst, int argc, char **argv, int *rest);

void options__print_help(const struct option_table *table, FILE *out);
/* The name of the argument in messages and help. */
const char *option__arg_name(const struct option_spec *spec);

#endif
