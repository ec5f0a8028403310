// SPDX-License-Identifier: MIT
#include "session/target.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/picker.h"
#include "target/container.h"
#include "target/process.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/names.h"
#include "util/vec.h"

/* A message names at most this many processes. */
#define NAMED_MAX 8

int target_options__check(const struct target_options *options, const char *command)
{
	const struct {
		const char *option, *text;
	} all[] = {{"-pid", options->pids},
		   {"-name", options->name},
		   {"-container", options->container},
		   {"-k8s-pod", options->pod},
		   {"-cgroup", options->cgroup}},
	  *first = NULL;
	struct pid_set pids = {0};
	int err;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (!all[i].text)
			continue;
		if (first) {
			log__error("%s: %s and %s cannot both be given", command, first->option,
				   all[i].option);
			log__hint("choose one of the two");
			return -EINVAL;
		}
		first = &all[i];
	}
	if (!options->pids)
		return 0;
	err = pid_set__parse(&pids, options->pids);
	pid_set__fini(&pids);
	if (!err)
		return 0;
	if (err == -ERANGE)
		log__error("%s: -pid '%s' is too large", command, options->pids);
	else
		log__error("%s: -pid '%s' is not a number or a list like 17,4", command,
			   options->pids);
	log__hint("'pgrep -a NAME' lists pids; -name NAME takes all processes of that name");
	return -EINVAL;
}

/* -pid 0 means that no pid was given. */
bool target_options__any(const struct target_options *o)
{
	return (o->pids && o->pids[strspn(o->pids, "0,")]) || o->name || o->cgroup ||
	       o->container || o->pod;
}

const char *target_options__name(const struct target_options *o)
{
	return o->name ? o->name : o->container ? o->container : o->pod ? o->pod : o->cgroup;
}

/* Lists the processes found: a glob may match more than was meant. */
static void say_found(const struct process_list *list, const struct pid_set *pids, const char *name)
{
	size_t said = 0;

	if (pids->n == 1) {
		log__info("'%s' is process %d", name, pids->v[0]);
		return;
	}
	log__info("'%s' are %zu processes:", name, pids->n);
	for (size_t i = 0; i < list->n && said < NAMED_MAX; i++)
		if (pid_set__has(pids, list->v[i].pid) && said++ < NAMED_MAX)
			log__info("  %d %.60s", list->v[i].pid, list->v[i].command);
	if (pids->n > said)
		log__info("  and %zu more", pids->n - said);
}

static int choose_name(struct target *target, const char *name)
{
	struct nearest nearest = {.word = name};
	struct process_list list;
	const char *meant;
	int err = process_list__read(&list);

	for (size_t i = 0; i < list.n && !err; i++) {
		if (process_entry__matches(&list.v[i], name))
			err = pid_set__add(&target->pids, list.v[i].pid);
		nearest__offer(&nearest, list.v[i].comm);
		nearest__offer(&nearest, list.v[i].program);
	}
	meant = nearest__result(&nearest);
	if (!err && target->pids.n) {
		say_found(&list, &target->pids, name);
	} else if (!err) {
		log__error("no process has the name '%s'", name);
		if (meant)
			log__hint("did you mean '%s'?", meant);
		else
			log__hint("use the name in ps or the name of the program file (a script "
				  "has its interpreter's); globs match the whole name");
		err = -ESRCH;
	}
	process_list__fini(&list);
	return err;
}

bool target__blame_children(const struct target *target, bool with_children)
{
	for (size_t i = 0; i < target->pids.n; i++) {
		int pid = (int)target->pids.v[i];

		if (!process__has_unknown_child(pid, &target->pids, with_children))
			continue;
		if (with_children)
			log__info("process %d forked children before mtbpf began, which are not "
				  "watched: -children follows only later ones; -pid %d,$(pgrep -d, "
				  "-P %d) watches those, too",
				  pid, pid, pid);
		else
			log__info("process %d has children, which are not watched: -pid "
				  "%d,$(pgrep -d, -P %d) watches them, too, and -children follows "
				  "those that it forks later",
				  pid, pid, pid);
		return true;
	}
	return false;
}

static int choose_container(struct target *target, const struct target_options *options)
{
	struct container container;
	int err = options->pod ? container__find_pod(&container, options->pod)
			       : container__find(&container, options->container);

	if (!err && container.path[0]) {
		log__info("%s: the cgroup %s", options->pod ? options->pod : options->container,
			  container.path);
		err = cgroup__open(&target->cgroup, container.path);
	} else if (!err) {
		err = pid_set__add_all(&target->pids, &container.pids);
	}
	container__fini(&container);
	return err;
}

static int pick(struct target *target)
{
	struct process_list list;
	char **lines = NULL;
	int err, picked = 0;

	if (!picker__is_possible())
		return -ENODATA;
	err = process_list__read(&list);
	if (!err) {
		lines = calloc(list.n + 1, sizeof(*lines));
		err = lines ? 0 : -ENOMEM;
	}
	for (size_t i = 0; i < list.n && !err; i++)
		if (asprintf(&lines[i], "%7d  %-15s  %.150s", list.v[i].pid, list.v[i].comm,
			     list.v[i].command) < 0) {
			lines[i] = NULL;
			err = -ENOMEM;
		}
	if (!err) {
		picked = picker__pick("process", (const char *const *)lines, list.n);
		err = picked < 0 ? picked : 0;
	}
	if (!err)
		err = pid_set__add(&target->pids, list.v[picked].pid);
	if (err == -ECANCELED) {
		log__error("no process was picked");
		log__hint("name one with -pid PID, -name NAME or -container NAME");
		err = -EINVAL;
	}
	for (size_t i = 0; lines && i < list.n; i++)
		free(lines[i]);
	free(lines);
	process_list__fini(&list);
	return err;
}

int target__choose(struct target *target, const struct target_options *options)
{
	int err;

	*target = (struct target){.cgroup.fd = -1};
	if (!target_options__any(options))
		return pick(target);
	if (options->name)
		return choose_name(target, options->name);
	if (options->container || options->pod)
		return choose_container(target, options);
	if (options->cgroup)
		return cgroup__open(&target->cgroup, options->cgroup);
	err = pid_set__parse(&target->pids, options->pids);
	/* If several pids were given, each must exist. */
	for (size_t i = 0; i < target->pids.n && !err && target->pids.n > 1; i++) {
		struct process process;

		err = process__open(&process, target->pids.v[i]);
		if (!err)
			process__close(&process);
	}
	return err;
}

void target__close(struct target *target)
{
	cgroup__close(&target->cgroup);
	pid_set__fini(&target->pids);
}

int target__processes(const struct target *target, pid_t **pids, size_t *n)
{
	int err;

	if (!target__is_cgroup(target)) {
		*pids = calloc(target->pids.n + 1, sizeof(**pids));
		*n = target->pids.n;
		if (*pids)
			memcpy(*pids, target->pids.v, *n * sizeof(**pids));
		return *pids ? 0 : -ENOMEM;
	}
	err = cgroup__processes(&target->cgroup, pids, n);
	if (err) {
		log__error("cannot read the processes of %s: %s", target->cgroup.path,
			   strerror(-err));
		log__hint(err == -ENOMEM
				  ? "free memory"
				  : "check that the cgroup exists: 'systemd-cgls' shows all");
	}
	return err;
}

int target__refuse_empty(const struct target *target)
{
	log__error("the cgroup %s contains no process", target->cgroup.path);
	log__hint("start the service first, or let 'mtbpf record -dir' wait for it; "
		  "/proc/PID/cgroup shows the cgroup of each process");
	return -ESRCH;
}

bool target__is_alive(const struct target *target)
{
	if (target__is_cgroup(target))
		return cgroup__populated(&target->cgroup);
	return VEC_FIND(&target->pids, pid, process__alive(*pid));
}

#define LOOK_INTERVAL_MS 500

/* A service manager may remove a service's cgroup and create it again, so everything is looked up
 * each time. */
static int choose_again(struct target *target, const struct target_options *options, bool quietly)
{
	enum log_level level = log__level();
	int err;

	target__close(target);
	if (quietly)
		log__set_level(LOG_SILENT);
	err = target__choose(target, options);
	log__set_level(level);
	return err ? err : target__is_alive(target) ? 0 : -ESRCH;
}

int target__wait(struct target *target, const struct target_options *options, int signal_fd,
		 uint64_t deadline_ns)
{
	struct pollfd fd = {.fd = signal_fd, .events = POLLIN};
	pid_t known = target->pids.n ? target->pids.v[0] : 0;
	bool said = false;

	for (;;) {
		int err = choose_again(target, options, true);
		bool is_known = !err && target->pids.n && target->pids.v[0] == known;
		bool is_over = !err || err == -ENOTUNIQ || err == -ENOMEM;

		/*
		 * The wait is over: choose again with messages, unless they would repeat those of
		 * the last time.
		 */
		if (is_over && !is_known)
			err = choose_again(target, options, false);
		/* After any other error, a later attempt may succeed. */
		if (!err || err == -ENOTUNIQ || err == -ENOMEM)
			return err;
		if (!said)
			log__info("waiting for a process of %s to start; Ctrl-C ends mtbpf",
				  target_options__name(options));
		said = true;
		if (clock__now_ns() >= deadline_ns)
			return -ETIME;
		if (poll(&fd, 1, LOOK_INTERVAL_MS) > 0)
			return -EINTR;
	}
}
