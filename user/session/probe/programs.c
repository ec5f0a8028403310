// SPDX-License-Identifier: MIT
#include "session/probe/programs.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "session/probe/file_probe.h"
#include "session/probe/kernel_probe.h"
#include "util/cleanup.h"
#include "util/log.h"

/* A hash (FNV-1a) of the mapped files: workers of one program have the same. */
static uint64_t code_hash(const struct process *process)
{
	uint64_t hash = 0xcbf29ce484222325;

	VEC_EACH(&process->maps, m)
		if (m->prot & PROT_EXEC && m->ino)
			hash = (hash ^ m->ino ^ (uint64_t)m->maj << 40 ^ (uint64_t)m->min << 48) *
			       0x100000001b3;
	return hash;
}

static struct program *find_code(const struct programs *programs, uint64_t code)
{
	for (size_t i = 0; i < programs->all.n; i++)
		if (programs->all.v[i].code == code)
			return &programs->all.v[i];
	return NULL;
}

/* A process that has just exited is skipped silently. */
static int add_process(struct programs *programs, pid_t pid)
{
	LOG_SILENTLY;
	struct program new = {.n = 1}, *known;
	int err = 0;

	if (process__open(&new.process, pid))
		return 0;
	new.code = code_hash(&new.process);
	known = find_code(programs, new.code);
	if (known)
		known->n++;
	else
		err = VEC_ADD(&programs->all, new);
	if (known || err)
		process__close(&new.process);
	return err;
}

static void name_target(const struct programs *programs, char *name, size_t size)
{
	if (target__is_cgroup(programs->target))
		snprintf(name, size, "the cgroup %s", programs->target->cgroup.path);
	else
		snprintf(name, size, "those");
}

int programs__open(struct programs *programs, const struct target *target)
{
	_cleanup_free_ pid_t *pids = NULL;
	char where[PATH_MAX + 32];
	size_t n;
	int err;

	*programs = (struct programs){.target = target};
	err = target__processes(target, &pids, &n);
	if (!err && !n)
		err = target__refuse_empty(target);
	for (size_t i = 0; !err && i < n; i++)
		err = add_process(programs, pids[i]);
	if (err || programs->all.n)
		return err;
	name_target(programs, where, sizeof(where));
	log__error("cannot look at the processes of %s", where);
	log__hint("run as root, or with CAP_SYS_PTRACE");
	return -ESRCH;
}

void programs__fini(struct programs *programs)
{
	VEC_FINI_EACH(&programs->all, e, process__close(&e->process));
}

/* each_in_process(), or file_probe__each_function(). */
typedef int (*probe_each_fn)(const struct probe_source *source, const char *symbol, probe_fn fn,
			     void *ctx);

/* The state of a search through programs. */
struct search {
	const struct probe_source *source; /* the settings for all programs */
	probe_each_fn each;
	probe_fn fn;
	void *ctx;
	const struct process *process; /* the current process */
	const char *symbol;	       /* the selector, or the name that the user has picked */
	char picked[sizeof(((struct probe *)NULL)->name)];
	VEC(struct probe) found; /* in all programs so far */
	size_t n_new;		 /* places in this program that no earlier one has */
	bool is_quiet;		 /* they are only counted */
};

/* Counts a place that is new, or hands it on. */
static int take(void *ctx, const struct probe *probe)
{
	struct search *search = ctx;

	for (size_t i = 0; i < search->found.n; i++)
		if (file_probe__is_same(&search->found.v[i], probe, search->process))
			return 0;
	search->n_new++;
	if (search->is_quiet)
		return 0;
	return VEC_ADD(&search->found, *probe) ? -ENOMEM : search->fn(search->ctx, probe);
}

/*
 * Searches one program: with messages, and the user may pick a function; or quietly, to count its
 * places that are new.
 */
static int search_in(struct search *search, const struct program *program, bool quietly)
{
	struct probe_source source = search->source ? *search->source : (struct probe_source){0};
	enum log_level level = log__level();
	int err;

	source.process = &program->process;
	source.programs = NULL;
	search->process = &program->process;
	search->n_new = 0;
	search->is_quiet = quietly;
	if (quietly)
		log__set_level(LOG_SILENT);
	err = search->each(&source, search->symbol, take, search);
	log__set_level(level);
	return err;
}

/* Replaces a process that has ended by another one of the same program. False without any. */
static bool replace_process(const struct programs *programs, struct program *program)
{
	LOG_SILENTLY;
	_cleanup_free_ pid_t *pids = NULL;
	size_t n = 0;

	if (target__processes(programs->target, &pids, &n))
		return false;
	for (size_t i = 0; i < n; i++) {
		struct process other;

		if (pids[i] == program->process.pid || process__open(&other, pids[i]))
			continue;
		if (code_hash(&other) != program->code) {
			process__close(&other);
			continue;
		}
		process__close(&program->process);
		program->process = other;
		program->n--;
		return true;
	}
	return false;
}

/* Returns 0 also if the program lacks the symbol: another may have it. */
static int search_program(struct search *search, struct program *program)
{
	int err = search_in(search, program, true);
	bool is_ambiguous = err == -ENOTUNIQ;

	if (is_ambiguous && search->found.n) {
		log__warn("'%s' names several functions in process %d (%s): none of them is probed",
			  search->symbol, (int)program->process.pid, program->process.comm);
		return 0;
	}
	if (err && !is_ambiguous)
		return err == -ENOMEM ? err : 0;
	program->is_probed = true;
	if (!is_ambiguous && !search->n_new)
		return 0;
	err = search_in(search, program, false);
	if (err || !is_ambiguous)
		return err;
	snprintf(search->picked, sizeof(search->picked), "%s", search->found.v[0].name);
	search->symbol = search->picked;
	return 0;
}

/* If there is only one program, its own message explains why the symbol is not found. */
static int explain(const struct programs *programs, struct search *search)
{
	char where[PATH_MAX + 32];
	int err = programs->all.n == 1 ? search_in(search, &programs->all.v[0], false) : 0;

	if (err)
		return err;
	name_target(programs, where, sizeof(where));
	log__error("the processes of %s do not contain a function '%s'", where, search->symbol);
	log__hint("'mtbpf list -pid PID' shows functions; lib.so:NAME is one in a library");
	return -ENOENT;
}

/*
 * Calls fn once for every place in any of source->programs, and marks those programs as probed. A
 * function that the user picks in one program is looked up by its name in the others. -ENOENT: no
 * program has it.
 */
static int each_in_programs(const struct probe_source *source, const char *symbol,
			    probe_each_fn each, probe_fn fn, void *ctx)
{
	struct programs *programs = source->programs;
	struct search search = {
		.source = source, .each = each, .fn = fn, .ctx = ctx, .symbol = symbol};
	size_t n_gone = 0;
	int err = 0;

	VEC_EACH_WHILE(&programs->all, program, !err) {
		do
			err = search_program(&search, program);
		while (err != -ENOMEM && !process__alive(program->process.pid) &&
		       replace_process(programs, program));
		if (process__alive(program->process.pid))
			continue;
		n_gone++;
		program->is_probed = false;
		err = err == -ENOMEM ? err : 0;
	}
	if (n_gone)
		log__info("%zu of the programs ended meanwhile and are ignored", n_gone);
	if (!err && !search.found.n)
		err = explain(programs, &search);
	VEC_FINI(&search.found);
	return err;
}

static int each_in_process(const struct probe_source *source, const char *symbol, probe_fn fn,
			   void *ctx)
{
	return kernel_probe_kind__of(symbol) ? kernel_probe__each(source, symbol, fn, ctx)
					     : file_probe__each(source, symbol, fn, ctx);
}

int probe__each(const struct probe_source *source, const char *symbol, probe_fn fn, void *ctx)
{
	return source->programs ? each_in_programs(source, symbol, each_in_process, fn, ctx)
				: each_in_process(source, symbol, fn, ctx);
}

int probe__each_function(const struct probe_source *source, const char *symbol, probe_fn fn,
			 void *ctx)
{
	return source->programs
		       ? each_in_programs(source, symbol, file_probe__each_function, fn, ctx)
		       : file_probe__each_function(source, symbol, fn, ctx);
}

bool programs__have(const struct programs *programs, const char *symbol)
{
	struct search search = {.each = each_in_process, .symbol = symbol};
	bool found = false;

	for (size_t i = 0; i < programs->all.n && !found; i++) {
		int err = search_in(&search, &programs->all.v[i], true);

		found = !err || err == -ENOTUNIQ;
	}
	return found;
}

void programs__remove(struct programs *programs, const struct programs *others)
{
	size_t kept = 0;

	VEC_EACH(&programs->all, program) {
		if (find_code(others, program->code))
			process__close(&program->process);
		else
			programs->all.v[kept++] = *program;
	}
	programs->all.n = kept;
}

const struct process *programs__first(const struct programs *programs)
{
	for (size_t i = 0; i < programs->all.n; i++)
		if (programs->all.v[i].is_probed)
			return &programs->all.v[i].process;
	return &programs->all.v[0].process;
}

size_t programs__unprobed(const struct programs *programs, const struct process **first)
{
	size_t n = 0;

	VEC_EACH(&programs->all, program) {
		if (program->is_probed)
			continue;
		if (!n)
			*first = &program->process;
		n += program->n;
	}
	return n;
}

const char *programs__default_trigger(const struct programs *programs)
{
	for (size_t i = 0; default_triggers[i]; i++)
		if (programs__have(programs, default_triggers[i]))
			return default_triggers[i];
	return NULL;
}
