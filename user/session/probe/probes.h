/* SPDX-License-Identifier: MIT */
/* Names and probes of one or several functions. */
#ifndef MTBPF_SESSION_PROBE_PROBES_H
#define MTBPF_SESSION_PROBE_PROBES_H

#include "capture/recording/recording.h"
#include "session/capture_options.h"
#include "session/probe/probe.h"
#include "cli/options.h"
#include "util/vec.h"

/* Names of functions. Without any, nothing triggers. */
struct selectors {
	VEC(char *) names;
};

/*
 * Splits each value of an option ("-symbol") at commas. Commas inside brackets and in names of
 * operators belong to the name: "ns::f(int, char)". Returns 0; -EINVAL after a message and a hint
 * if a name is empty; or -ENOMEM.
 */
int selectors__split(struct selectors *selectors, const struct option_list *texts,
		     const char *option);
/* Adds a copy of one name. 0 or -ENOMEM. */
int selectors__add(struct selectors *selectors, const char *name);
/*
 * Replaces ".", magic-trace's name for the default trigger, by the function's name. 0; -EINVAL
 * after a line and a hint if the program lacks it; or -ENOMEM.
 */
int selectors__replace_dot(struct selectors *selectors, const struct probe_source *source);
void selectors__fini(struct selectors *selectors);

#define PROBES_NAME_SIZE 512
struct probes {
	VEC(struct probe) all;
	char name[PROBES_NAME_SIZE]; /* "one_iter", or "one_iter, flush"; truncated if too long */
	/*
	 * The names as messages show them: all, or of more than three the first two and "and 4
	 * more".
	 */
	char shown[PROBES_NAME_SIZE];
	size_t n_names, first_two_len; /* of name: the length of its first two names */
};

/* Functions of Go's runtime at which goroutines begin and end to wait; all empty: not recorded. */
struct go_waits {
	struct probes park, ready, execute;
	struct mt_go_offsets offsets;
};

/*
 * Adds the probes that the selectors name, in order, with probe__each(). Adds each address once. 0
 * or -errno.
 */
int probes__find(struct probes *probes, const struct selectors *selectors,
		 const struct probe_source *source);
/*
 * A probe_fn: adds the probe to a struct probes, unless one of its probes is at the same place. 0
 * or -ENOMEM.
 */
int probes__add(void *probes, const struct probe *probe);
void probes__fini(struct probes *probes);

/* True if every probe, if any, is at its function's entry. */
bool probes__at_entry(const struct probes *probes);
/* The arguments of each probe, for struct trigger_config. The caller frees them; NULL: out of
 * memory. */
struct mt_args *probes__args(const struct probes *probes);
/*
 * The values to read at each probe, then those at each probe of -start. The caller frees them;
 * NULL: out of memory.
 */
struct mt_reads *probes__reads(const struct probes *probes, const struct probes *starts);
/* The first probe whose instruction the kernel single-steps as a copy; without one, the first. */
const struct probe *probes__stepped(const struct probes *probes);
/*
 * Decides how to probe returns: as the user chose (enum return_probes), or, for AUTO, on the
 * return instructions if something may read the return addresses of these functions (enum
 * return_reader). reads_retval is the option that reads what the calls return, or NULL: then all
 * exits must be returns. Returns 0 and sets *by_insn, or -EINVAL after a message and a hint.
 */
enum return_probes { RETURN_PROBES_AUTO, RETURN_PROBES_URETPROBE, RETURN_PROBES_INSNS };
int probes__choose_returns(const struct probes *probes, int choice, const char *reads_retval,
			   bool *by_insn);
/* Durations need whole functions: -EINVAL after a message and a hint if a probe is inside one. */
int probes__check_calls(const struct probes *probes);
/* True if one of the probes is in a Go program. */
bool probes__are_go(const struct probes *probes);
/* True if all probes are mtbpf_hit() of mtbpf.h, and there is at least one. */
bool probes__are_library(const struct probes *probes);

/* -also: functions whose calls are recorded and do not trigger. */

/* Most functions of -also: each of their calls costs the target two hits. */
#define ALSO_MAX 64

/*
 * Finds the functions that `texts` name, all matches of a glob included, except those in `have`,
 * whose calls are recorded anyway. `returns` is enum return_probes. 0, or -errno after a message
 * and a hint: -EINVAL if one is not a whole function, or if there are too many.
 */
int also__find(struct probes *also, const struct option_list *texts, const struct probe_source *in,
	       const struct probes *have, int returns);

/* -start and -stop: the probes at which the recording of a thread begins, and ends. */
struct start_stop {
	struct probes starts, stops; /* empty: everything is recorded */
	bool stop_triggers;	     /* the end of a region is the trigger */
	bool by_key; /* regions are requests (-key): all threads are always recorded */
	/* The time from start to stop is measured, but all threads are always recorded. */
	bool only_measured;
	VEC(struct rec_place) start_places, stop_places;
};

/*
 * Finds the probes of -start and -stop, if given. 0, or -errno after a message and a hint: -EINVAL
 * if both are the same place. Call start_stop__fini() in any case.
 */
int start_stop__find(struct start_stop *places, const struct capture_options *options,
		     const struct probe_source *source);
void start_stop__fini(struct start_stop *places);

/* Only measures the regions: the source cannot start or stop recording at these probes. */
void start_stop__only_measure(struct start_stop *places);

static inline bool start_stop__any(const struct start_stop *places)
{
	return places->stops.all.n;
}

/*
 * Functions of a JIT need one process. 0, or -EINVAL after a message and a hint if `is_one` is
 * false and a probe is on a function of a JIT.
 */
int probes__check_jit(const struct probes *probes, const struct start_stop *regions, bool is_one);

/* True if threads are recorded only between -start and -stop. */
static inline bool start_stop__bounds(const struct start_stop *places)
{
	return start_stop__any(places) && !places->by_key && !places->only_measured;
}

#endif
