/* SPDX-License-Identifier: MIT */
/*
 * The values that are read at a hit: -if, such as "arg1 > 100 && comm == \"worker\"", -key, such as
 * "arg1->request", and -print, such as "str(arg1->uri.data, arg1->uri.len), arg2".
 */
#ifndef MTBPF_SESSION_PROBE_HIT_READS_H
#define MTBPF_SESSION_PROBE_HIT_READS_H

#include <stdbool.h>
#include <stdint.h>

#include "mtbpf_shared.h"
#include "target/elf/arguments.h"

struct probe;

#define HIT_TEXT_SIZE 128

/* "(int)arg1->a.b" */
struct hit_value {
	struct value_path path;
	int8_t size;	   /* of the type in the cast; negative: signed; 0: no cast */
	bool as_text;	   /* the cast is (char *) */
	bool is_goroutine; /* -key goroutine: no argument */
	char text[HIT_TEXT_SIZE];
};

/* -if */
struct hit_filter {
	struct mt_term terms[MT_TERMS];
	struct hit_value values[MT_TERMS]; /* for terms with arguments or retval */
	bool is_negative[MT_TERMS];	   /* the number has a minus */
	uint32_t n;
};

/* One of -print. */
struct hit_print {
	struct hit_value value, length;
	enum mt_print_kind kind;
	char text[HIT_TEXT_SIZE]; /* as the user wrote it; used as its name */
};

struct hit_reads {
	struct hit_filter filter;
	struct hit_value keys[2];   /* -key A,B: at -start, at -stop; equal with -key A */
	bool has_key, has_stop_key; /* -key was given, with a second value for -stop */
	struct hit_print prints[MT_PRINTS];
	uint32_t n_prints;
	bool stores_no_memory; /* the caller sets it: keys and prints in memory are refused */
};

/* Each text may be NULL. 0, or -EINVAL after a message and a hint. */
int hit_reads__parse(struct hit_reads *reads, const char *filter, const char *key,
		     const char *print);
/* Returns the option, "-if" or "-print", that reads retval; otherwise NULL. */
const char *hit_reads__of_return(const struct hit_reads *reads);
/* Returns the option, "-key" or "-print", that stores values from the program's memory; or NULL. */
const char *hit_reads__of_memory(const struct hit_reads *reads);
/* True if any value has to be read at hits. */
bool hit_reads__any(const struct hit_reads *reads);

/*
 * Finds where the values are at a hit of this probe, by the function's debug info, and sets
 * probe->reads. If one cannot be read, sets probe->refused to the reason. At a probe of -start only
 * the key is read. function is NULL for USDT probes and system calls.
 */
void hit_reads__bind(const struct hit_reads *reads, const struct function *function,
		     struct probe *probe, bool is_start);
/*
 * Binds USDT probes and system calls, and checks all n probes. 0, or -EINVAL after a line and a
 * hint if a value is not known at one of them.
 */
int hit_reads__check(const struct hit_reads *reads, struct probe *probes, size_t n, bool is_start);

#endif
