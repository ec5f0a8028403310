// SPDX-License-Identifier: MIT
#include "session/probe/probes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "session/probe/jit_probe.h"
#include "session/probe/kernel_probe.h"
#include "session/probe/find_probes.h"
#include "target/usdt.h"
#include "util/log.h"

int selectors__add(struct selectors *selectors, const char *name)
{
	char *copy = strdup(name);

	if (copy && !VEC_ADD(&selectors->names, copy))
		return 0;
	free(copy);
	return -ENOMEM;
}

/* Length of the first name in the text. */
static size_t first_length(const char *text)
{
	int depth = 0;

	if (strstr(text, "operator"))
		return strlen(text);
	for (size_t i = 0;; i++) {
		if (!text[i] || (text[i] == ',' && depth <= 0))
			return i;
		if (strchr("([{<", text[i]))
			depth++;
		else if (strchr(")]}>", text[i]))
			depth--;
	}
}

int selectors__split(struct selectors *selectors, const struct option_list *texts,
		     const char *option)
{
	for (size_t i = 0; i < texts->n; i++) {
		const char *text = texts->v[i], *rest = text;

		for (;;) {
			size_t len = first_length(rest);
			char *name = strndup(rest, len);
			int err;

			/* An empty text is looked up, which reports that it is not found. */
			if (!len && *text) {
				log__error("an empty name in the list %s '%s'", option, text);
				log__hint("name several functions as %s A,B or %s A %s B", option,
					  option, option);
				free(name);
				return -EINVAL;
			}
			err = name ? selectors__add(selectors, name) : -ENOMEM;
			free(name);
			if (err)
				return err;
			if (!rest[len])
				break;
			rest += len + 1;
		}
	}
	return 0;
}

int selectors__replace_dot(struct selectors *selectors, const struct probe_source *source)
{
	for (size_t i = 0; i < selectors->names.n; i++) {
		char **name = &selectors->names.v[i], *copy;
		const char *own;

		if (strcmp(*name, "."))
			continue;
		own = source->programs ? programs__default_trigger(source->programs)
				       : default_trigger__find(source->process, source->exec_path);
		if (!own) {
			log__error("-symbol . is the program's own mtbpf_take_snapshot(), and the "
				   "program does not contain one");
			log__hint("-symbol '?' lets you pick a function, -symbol NAME names one");
			return -EINVAL;
		}
		copy = strdup(own);
		if (!copy)
			return -ENOMEM;
		free(*name);
		*name = copy;
	}
	return 0;
}

void selectors__fini(struct selectors *selectors)
{
	VEC_FINI_EACH(&selectors->names, e, free(*e));
}

/* True if one of the probes is at the same place. */
static bool probes__have(const struct probes *probes, const struct probe *probe)
{
	return VEC_FIND(&probes->all, e,
			e->offset == probe->offset && !strcmp(e->path, probe->path));
}

int probes__add(void *ctx, const struct probe *probe)
{
	struct probes *probes = ctx;
	struct probe *last = probes->all.n ? &probes->all.v[probes->all.n - 1] : NULL;
	size_t len = strlen(probes->name);
	/* A USDT probe has several places with one name. */
	bool is_named = last && !strcmp(last->name, probe->name);

	if (probes__have(probes, probe))
		return 0;
	if (VEC_ADD(&probes->all, *probe))
		return -ENOMEM;
	if (is_named)
		return 0;
	snprintf(probes->name + len, sizeof(probes->name) - len, "%s%s", len ? ", " : "",
		 probe->name);
	if (++probes->n_names <= 2)
		probes->first_two_len = strlen(probes->name);
	if (probes->n_names <= 3)
		snprintf(probes->shown, sizeof(probes->shown), "%s", probes->name);
	else
		snprintf(probes->shown, sizeof(probes->shown), "%.*s and %zu more",
			 (int)probes->first_two_len, probes->name, probes->n_names - 2);
	return 0;
}

int probes__find(struct probes *probes, const struct selectors *selectors,
		 const struct probe_source *source)
{
	int err = 0;

	for (size_t i = 0; i < selectors->names.n && !err; i++)
		err = probe__each(source, selectors->names.v[i], probes__add, probes);
	return err;
}

void probes__fini(struct probes *probes)
{
	VEC_FINI(&probes->all);
}

bool probes__at_entry(const struct probes *probes)
{
	return !VEC_FIND(&probes->all, e, !e->site.at_entry);
}

bool probes__are_library(const struct probes *probes)
{
	return probes->all.n && !VEC_FIND(&probes->all, e, !e->is_library);
}

struct mt_args *probes__args(const struct probes *probes)
{
	struct mt_args *args = calloc(probes->all.n + 1, sizeof(*args));

	for (size_t i = 0; args && i < probes->all.n; i++)
		args[i] = probes->all.v[i].args;
	return args;
}

struct mt_reads *probes__reads(const struct probes *probes, const struct probes *starts)
{
	struct mt_reads *reads = calloc(probes->all.n + starts->all.n + 1, sizeof(*reads));

	for (size_t i = 0; reads && i < probes->all.n; i++)
		reads[i] = probes->all.v[i].reads;
	for (size_t i = 0; reads && i < starts->all.n; i++)
		reads[probes->all.n + i] = starts->all.v[i].reads;
	return reads;
}

const struct probe *probes__stepped(const struct probes *probes)
{
	return VEC_FIND(&probes->all, e, !e->site.emulated) ?: &probes->all.v[0];
}

int probes__check_calls(const struct probes *probes)
{
	const struct probe *inside = VEC_FIND(&probes->all, e, e->is_inside);

	if (!inside)
		return jit_probe__check_calls(probes->all.v, probes->all.n);
	log__error(
		probe__in_kernel(inside)
			? "%s is a single moment, without a duration"
			: "%s is inside a function: only calls of whole functions have a duration",
		inside->name);
	log__hint("name a whole function, or measure from hit to hit: attach -delay-thresh, watch "
		  "without -durations");
	return -EINVAL;
}

static int refuse_exits(const struct probe *probe)
{
	if (probe->exits_err == -ENOENT)
		log__error("%s never returns: durations cannot be measured", probe->name);
	else if (probe->exits_err == -E2BIG)
		log__error("%s has more returns than the %d that can be probed", probe->name,
			   EXIT_SITES_MAX);
	else if (probe->exits_err == -EOPNOTSUPP)
		log__error(
			"the kernel refuses probes on a return of %s: it has a lock, es, cs, ss or "
			"ds prefix",
			probe->name);
	else
		log__error("cannot find the returns of %s: there may be data in its code",
			   probe->name);
	log__hint("measure delays instead: attach -delay-thresh, or watch without -durations%s",
		  probe->exits_err == -ENOENT ? ""
		  : probe->return_reader == RETURN_READER_NONE
			  ? "; or -return-probes uretprobe, which replaces return addresses"
		  : probe->return_reader == RETURN_READER_UNWINDER
			  ? "; or -return-probes uretprobe, which ends the program if an "
			    "exception passes this function"
			  : "");
	return -EINVAL;
}

bool probes__are_go(const struct probes *probes)
{
	return VEC_FIND(&probes->all, e, e->is_go);
}

static int refuse_uretprobe(const struct probe *probe)
{
	log__error(
		"-return-probes uretprobe would crash this program: its runtime reads the return "
		"address of %s",
		probe->name);
	log__hint("leave out -return-probes: the return instructions are then probed, which "
		  "is safe for this program");
	return -EINVAL;
}

/*
 * At a return instruction rax has the value. At a jump out of the function it does not: the
 * function that is jumped to computes the value.
 */
static int refuse_retval(const struct probe *probe, const char *option)
{
	int32_t at = probe->exits.first_jump;

	log__error("%s: retval of %s is not known: %s%s%#x is a tail call, and the function that "
		   "it jumps to computes the value",
		   option, probe->name, probe->name, at < 0 ? "-" : "+", (unsigned int)abs(at));
	log__hint("leave out retval, or name the function that it jumps to, or a caller%s",
		  probe->return_reader == RETURN_READER_RUNTIME ? ""
		  : probe->return_reader == RETURN_READER_UNWINDER
			  ? "; or use -return-probes uretprobe, which ends the program if an "
			    "exception passes this function"
			  : "; or use -return-probes uretprobe, which knows the value");
	return -EINVAL;
}

int probes__choose_returns(const struct probes *probes, int choice, const char *reads_retval,
			   bool *by_insn)
{
	const struct probe *read = NULL; /* its return address is the most likely to be read */
	const struct probe *first = probes->all.v;

	VEC_EACH(&probes->all, probe)
		if (probe->return_reader > (read ? read->return_reader : RETURN_READER_NONE))
			read = probe;

	*by_insn = choice == RETURN_PROBES_INSNS || (choice == RETURN_PROBES_AUTO && read);
	if (read && !*by_insn && read->return_reader == RETURN_READER_RUNTIME)
		return refuse_uretprobe(read);
	if (read && !*by_insn)
		log__warn("-return-probes uretprobe: an exception that passes %s will end the "
			  "program",
			  read->name);
	VEC_EACH_WHILE(&probes->all, probe, *by_insn) {
		if (probe->exits_err)
			return refuse_exits(probe);
		if (reads_retval && probe->exits.n_jumps)
			return refuse_retval(probe, reads_retval);
	}
	/* Durations are measured per goroutine in Go and per thread elsewhere: not both at once. */
	VEC_EACH_WHILE(&probes->all, other, *by_insn) {
		if (other->is_go == first->is_go)
			continue;
		log__error("%s is in a Go program and %s is not: durations in both cannot be "
			   "measured in one run",
			   first->is_go ? first->name : other->name,
			   first->is_go ? other->name : first->name);
		log__hint("record only the Go processes or only the others, or use -delay-thresh");
		return -EINVAL;
	}
	return 0;
}

/* State while the functions of one name of -also are added. */
struct adder {
	struct probes *also;
	const struct probes *have;
	int returns; /* enum return_probes */
	const char *name;
};

static int refuse_place(const char *name)
{
	log__error("-also %s does not name a whole function", name);
	log__hint("name functions of the program, without an offset and without line:, usdt:, "
		  "syscall: or kernel:");
	return -EINVAL;
}

static int add_also(void *ctx, const struct probe *probe)
{
	struct adder *adder = ctx;
	bool by_insn = adder->returns == RETURN_PROBES_INSNS ||
		       (adder->returns == RETURN_PROBES_AUTO && probe->return_reader);

	if (probe->is_inside)
		return refuse_place(adder->name);
	if (probe->return_reader == RETURN_READER_RUNTIME &&
	    adder->returns == RETURN_PROBES_URETPROBE)
		return refuse_uretprobe(probe);
	if (by_insn && probe->exits_err && strpbrk(adder->name, "*?[")) {
		log__debug("-also: the returns of %s cannot be probed", probe->name);
		return 0;
	}
	if (by_insn && probe->exits_err) {
		log__error("-also %s: the returns of this function cannot be probed", probe->name);
		log__hint("leave out -also, or give it a function that the refused one calls");
		return -EINVAL;
	}
	if (probes__have(adder->have, probe))
		return 0;
	if (adder->also->all.n == ALSO_MAX && !probes__have(adder->also, probe)) {
		log__error("-also %s: with this, -also names more than %d functions", adder->name,
			   ALSO_MAX);
		log__hint("use a narrower glob ('mtbpf list' shows the matches); each call costs "
			  "two probe hits");
		return -EINVAL;
	}
	return probes__add(adder->also, probe);
}

int also__find(struct probes *also, const struct option_list *texts, const struct probe_source *in,
	       const struct probes *have, int returns)
{
	struct adder adder = {.also = also, .have = have, .returns = returns};
	struct selectors selectors = {0};
	int err = selectors__split(&selectors, texts, "-also");

	for (size_t i = 0; i < selectors.names.n && !err; i++) {
		adder.name = selectors.names.v[i];
		err = usdt__is_selector(adder.name) || kernel_probe_kind__of(adder.name)
			      ? refuse_place(adder.name)
			      : probe__each_function(in, adder.name, add_also, &adder);
	}
	selectors__fini(&selectors);
	return err;
}

/*
 * Before a program starts, its inode comes from its file, not from its mappings. The device is left
 * out, since mappings may show another one than the file.
 */
static struct rec_place place_of(const struct probe *probe, const char *exec_path)
{
	struct rec_place place = {.ino = probe->file.ino,
				  .offset = probe->offset,
				  .maj = probe->file.maj,
				  .min = probe->file.min};
	struct stat st;

	/* The file of a JIT's function has inode 0: see struct rec_place. */
	if (exec_path && !stat(exec_path, &st))
		place.ino = st.st_ino;
	return place;
}

static bool is_same_place(const struct probe *a, const struct probe *b, const char *exec_path)
{
	const struct rec_place place = place_of(a, exec_path), other = place_of(b, exec_path);

	if (a->kernel.kind || b->kernel.kind)
		return a->kernel.kind == b->kernel.kind && a->offset == b->offset &&
		       a->kernel.signals == b->kernel.signals &&
		       !strcmp(a->kernel.name, b->kernel.name);
	return place.ino == other.ino && place.offset == other.offset;
}

/* The OOM killer runs in the thread that asks for memory, whichever process it chooses. */
static int check_oom(const struct start_stop *r)
{
	const struct probes *const all[] = {&r->starts, &r->stops};

	for (size_t i = 0; i < 2; i++)
		for (size_t k = 0; k < all[i]->all.n; k++) {
			if (all[i]->all.v[k].kernel.kind != KERNEL_PROBE_OOM)
				continue;
			log__error(
				"-start and -stop cannot be " OOM_PREFIX ", which is hit by "
				"the thread that asks for memory, and not by the process that is "
				"killed");
			log__hint("use -stop " SIGNAL_PREFIX
				  "KILL, the end of the process that is killed");
			return -EINVAL;
		}
	return 0;
}

static int note_found(void *found, const struct probe *probe)
{
	*(bool *)found = true;
	return 1;
}

/*
 * Looks for a function of Go's runtime: probes on system calls do not tell which program makes
 * them.
 */
static bool is_go_program(const struct probe_source *source)
{
	struct probe_source without_reads = *source;
	bool is_found = false;
	LOG_SILENTLY;

	without_reads.reads = NULL;
	probe__each_function(&without_reads, "runtime.gopanic", note_found, &is_found);
	return is_found;
}

/* A region belongs to a thread, but a goroutine that waits leaves its thread to others. */
static int check_goroutines(const struct start_stop *r, const struct capture_options *options,
			    const struct probe_source *source)
{
	bool is_go;

	if (r->by_key && !options->reads.keys[0].is_goroutine)
		return 0;
	is_go = probes__are_go(&r->starts) || probes__are_go(&r->stops) || is_go_program(source);
	if (!r->by_key && is_go)
		log__warn("-start and -stop are matched within a thread: if a goroutine waits "
			  "between the two, the -stop of another goroutine on that thread is taken "
			  "for its own, and times are too short or missing; use -key goroutine");
	if (!r->by_key || is_go)
		return 0;
	log__error("-key goroutine: the target is not a Go program");
	log__hint("leave out -key: a region then lasts from -start to -stop in one thread; or name "
		  "a value, such as -key arg1");
	return -EINVAL;
}

int start_stop__find(struct start_stop *r, const struct capture_options *options,
		     const struct probe_source *source)
{
	struct probe_source at_start = *source;
	int err;

	if (!options->start)
		return 0;
	r->stop_triggers = !options->symbols.n;
	r->by_key = options->reads.has_key;
	at_start.is_start = true;
	err = probe__each(&at_start, options->start, probes__add, &r->starts);
	if (!err)
		err = probe__each(source, options->stop, probes__add, &r->stops);
	if (!err)
		err = check_oom(r);
	VEC_EACH_WHILE(&r->starts.all, start, !err)
		VEC_EACH(&r->stops.all, stop) {
			if (!is_same_place(start, stop, source->exec_path))
				continue;
			log__error("-start %s and -stop %s are the same address or event",
				   options->start, options->stop);
			log__hint("choose a -stop that comes later: a function that is called "
				  "then, or a line (line:FILE:N)");
			return -EINVAL;
		}
	if (!err && r->by_key)
		err = hit_reads__check(&options->reads, r->starts.all.v, r->starts.all.n, true);
	if (!err)
		err = check_goroutines(r, options, source);
	VEC_EACH_WHILE(&r->starts.all, probe, !err && !r->by_key)
		err = VEC_ADD(&r->start_places, place_of(probe, source->exec_path));
	VEC_EACH_WHILE(&r->stops.all, probe, !err && !r->by_key)
		err = VEC_ADD(&r->stop_places, place_of(probe, source->exec_path));
	return err;
}

void start_stop__only_measure(struct start_stop *r)
{
	r->only_measured = true;
	r->start_places.n = r->stop_places.n = 0;
}

void start_stop__fini(struct start_stop *r)
{
	probes__fini(&r->starts);
	probes__fini(&r->stops);
	VEC_FINI(&r->start_places);
	VEC_FINI(&r->stop_places);
}

static const struct probe *first_breakpoint(const struct probes *probes)
{
	return VEC_FIND(&probes->all, e, e->kernel.kind == KERNEL_PROBE_BREAKPOINT);
}

/* A JIT's code is at other addresses in each process. */
int probes__check_jit(const struct probes *probes, const struct start_stop *regions, bool is_one)
{
	const struct probe *probe = first_breakpoint(probes) ?: first_breakpoint(&regions->starts)
							     ?: first_breakpoint(&regions->stops);

	if (is_one || !probe)
		return 0;
	log__error("%s: a JIT's function is a trigger in one process only", probe->name);
	log__hint("name one process: -pid PID, without -children");
	return -EINVAL;
}
