/* SPDX-License-Identifier: MIT */
/* What triggers, where that may be several functions: their names, and their probes. */
#ifndef MTBPF_SESSION_PROBE_PROBES_H
#define MTBPF_SESSION_PROBE_PROBES_H

#include "capture/recording/recording.h"
#include "session/capture_options.h"
#include "session/probe/probe.h"
#include "cli/options.h"
#include "util/vec.h"

/* The functions' names, one by one; none: nothing triggers. */
struct selectors {
	VEC(char *) names;
};

/*
 * Takes "A,B" apart, of each of the texts of an option ("-symbol"). A comma inside brackets, and
 * any in the name of an operator, belongs to a name: "ns::f(int, char)". 0; -EINVAL after a line
 * and a hint where a name is empty; -ENOMEM.
 */
int selectors__split(struct selectors *selectors, const struct option_list *texts,
		     const char *option);
/* Adds one as it is. 0 or -ENOMEM. */
int selectors__add(struct selectors *selectors, const char *name);
void selectors__fini(struct selectors *selectors);

#define PROBES_NAME_SIZE 512
struct probes {
	VEC(struct probe) all;
	char name[PROBES_NAME_SIZE]; /* "one_iter", or "one_iter, flush"; cut if too long */
};

/*
 * Adds what the selectors mean, in their order, as probe__each() does each. A place that was named
 * twice counts once. 0 or -errno.
 */
int probes__find(struct probes *probes, const struct selectors *selectors,
		 const struct probe_source *source);
/* Whether one of them is at that place. */
bool probes__have(const struct probes *probes, const struct probe *probe);
/* Adds one to a struct probes, unless it has it: a probe_fn. 0 or -ENOMEM. */
int probes__add(void *probes, const struct probe *probe);
void probes__fini(struct probes *probes);

/* Whether all of them are at their functions' entries; true of none. */
bool probes__at_entry(const struct probes *probes);
/* The arguments that each probe reads, for struct trigger_config. The caller frees it; NULL: no
 * memory. */
struct mt_args *probes__args(const struct probes *probes);
/* The first whose instruction the kernel steps a copy of, or the first. */
const struct probe *probes__stepped(const struct probes *probes);
/*
 * How returns are probed: enum return_probes as the user has chosen, or, of AUTO, by what the
 * program bears. 0 and *by_insn; or -EINVAL after a line and a hint, where that cannot be.
 */
enum return_probes { RETURN_PROBES_AUTO, RETURN_PROBES_URETPROBE, RETURN_PROBES_INSNS };
int probes__choose_returns(const struct probes *probes, int choice, bool *by_insn);
/* A call begins at its entry: -EINVAL after a line and a hint where one of them is elsewhere. */
int probes__check_calls(const struct probes *probes);
/* Whether one of them is in a Go program. */
bool probes__are_go(const struct probes *probes);
/* Whether all of them are mtbpf_hit() of mtbpf.h; false of none. */
bool probes__are_library(const struct probes *probes);

/* -also: functions whose calls are recorded one by one, though they trigger nothing. */

/* The most functions of -also: each of their calls costs the target two probes. */
#define ALSO_MAX 64

/*
 * Finds the functions that the texts mean, as probes__find() does, but all that a glob matches.
 * Those in `have`, whose calls are recorded anyway, are left out. `returns` is enum return_probes.
 * 0, or -errno after a line and a hint: -EINVAL if one is not a whole function, or for too many.
 */
int also__find(struct probes *also, const struct option_list *texts, const struct probe_source *in,
	       const struct probes *have, int returns);

/* -start and -stop: where the recording of a thread begins, and where it ends. */
struct start_stop {
	struct probes starts, stops; /* none: everything is recorded */
	bool stop_triggers;	     /* no other trigger was named */
	VEC(struct rec_place) start_places, stop_places;
};

/*
 * Finds what the options name; nothing where they name none.
 * 0, or -errno after a line and a hint: -EINVAL both are in one place. start_stop__fini() in any
 * case.
 */
int start_stop__find(struct start_stop *places, const struct capture_options *options,
		     const struct probe_source *source);
void start_stop__fini(struct start_stop *places);

static inline bool start_stop__any(const struct start_stop *places)
{
	return places->stops.all.n;
}

#endif
