// SPDX-License-Identifier: MIT
#include "session/probe/probes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session/probe/default_trigger.h"
#include "target/symbols/symbols_usdt.h"
#include "util/log.h"

int selectors__add(struct selectors *selectors, const char *name)
{
	char **out = VEC_PUSH(&selectors->names);

	if (!out)
		return -ENOMEM;
	*out = strdup(name);
	if (*out)
		return 0;
	selectors->names.n--;
	return -ENOMEM;
}

/* How much of the text is the first name. */
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

static int refuse_empty(const char *option, const char *text)
{
	log__error("an empty name between the commas of %s '%s'", option, text);
	log__hint("several functions: %s A,B or %s A %s B", option, option, option);
	return -EINVAL;
}

static int split_text(struct selectors *selectors, const char *text, const char *option)
{
	const char *rest = text;
	int err = 0;

	for (;;) {
		size_t len = first_length(rest);
		char *name = len ? strndup(rest, len) : NULL;

		if (!len && rest != text)
			return refuse_empty(option, text);
		/* An empty text is looked for, and not found. */
		err = selectors__add(selectors, name ? name : "");
		free(name);
		if (err || !rest[len])
			return err;
		if (!len)
			return refuse_empty(option, text);
		rest += len + 1;
	}
}

int selectors__split(struct selectors *selectors, const struct option_list *texts,
		     const char *option)
{
	int err = 0;

	for (size_t i = 0; i < texts->n && !err; i++)
		err = split_text(selectors, texts->v[i], option);
	return err;
}

void selectors__fini(struct selectors *selectors)
{
	for (size_t i = 0; i < selectors->names.n; i++)
		free(selectors->names.v[i]);
	VEC_FINI(&selectors->names);
}

bool probes__have(const struct probes *probes, const struct probe *probe)
{
	for (size_t i = 0; i < probes->all.n; i++)
		if (probes->all.v[i].offset == probe->offset &&
		    !strcmp(probes->all.v[i].path, probe->path))
			return true;
	return false;
}

int probes__add(struct probes *probes, const struct probe *probe)
{
	struct probe *out, *last = probes->all.n ? &probes->all.v[probes->all.n - 1] : NULL;
	size_t len = strlen(probes->name);
	/* A USDT probe has several places. */
	bool is_named = last && !strcmp(last->name, probe->name);

	if (probes__have(probes, probe))
		return 0;
	out = VEC_PUSH(&probes->all);
	if (!out)
		return -ENOMEM;
	*out = *probe;
	if (is_named)
		return 0;
	snprintf(probes->name + len, sizeof(probes->name) - len, "%s%s", len ? ", " : "",
		 probe->name);
	return 0;
}

static int add_found(void *ctx, const struct probe *probe)
{
	return probes__add(ctx, probe);
}

int probes__find(struct probes *probes, const struct selectors *selectors,
		 const struct probe_source *source)
{
	int err = 0;

	for (size_t i = 0; i < selectors->names.n && !err; i++)
		err = probe__each(source, selectors->names.v[i], add_found, probes);
	return err;
}

void probes__fini(struct probes *probes)
{
	VEC_FINI(&probes->all);
}

bool probes__at_entry(const struct probes *probes)
{
	for (size_t i = 0; i < probes->all.n; i++)
		if (!probes->all.v[i].site.at_entry)
			return false;
	return true;
}

bool probes__are_library(const struct probes *probes)
{
	for (size_t i = 0; i < probes->all.n; i++)
		if (!probes->all.v[i].is_library)
			return false;
	return probes->all.n;
}

struct mt_args *probes__args(const struct probes *probes)
{
	struct mt_args *args = calloc(probes->all.n + 1, sizeof(*args));

	for (size_t i = 0; args && i < probes->all.n; i++)
		args[i] = probes->all.v[i].args;
	return args;
}

const struct probe *probes__stepped(const struct probes *probes)
{
	for (size_t i = 0; i < probes->all.n; i++)
		if (!probes->all.v[i].site.emulated)
			return &probes->all.v[i];
	return &probes->all.v[0];
}

int probes__check_calls(const struct probes *probes)
{
	for (size_t i = 0; i < probes->all.n; i++) {
		if (!probes->all.v[i].is_inside)
			continue;
		log__error("%s is probed inside a function: only a whole function's calls have a "
			   "duration",
			   probes->all.v[i].name);
		log__hint("name the function alone, or measure from hit to hit: attach "
			  "-delay-thresh, watch without -durations");
		return -EINVAL;
	}
	return 0;
}

static int refuse_exits(const struct probe *probe)
{
	switch (-probe->exits_err) {
	case ENOENT:
		log__error("%s is never left: it has no return", probe->name);
		break;
	case E2BIG:
		log__error("%s has more returns than the %d that can be probed", probe->name,
			   EXIT_SITES_MAX);
		break;
	case EOPNOTSUPP:
		log__error("the kernel takes no probe on a return of %s: it has a prefix",
			   probe->name);
		break;
	default:
		log__error("cannot tell the returns of %s: there may be data among its code",
			   probe->name);
		break;
	}
	log__hint("-delay-thresh measures from call to call, without the return%s",
		  probe->is_go ? "" : "; -return-probes uretprobe replaces return addresses");
	return -EINVAL;
}

bool probes__are_go(const struct probes *probes)
{
	for (size_t i = 0; i < probes->all.n; i++)
		if (probes->all.v[i].is_go)
			return true;
	return false;
}

/* Whether all of them are as the first is: in Go a call is a goroutine's, elsewhere a thread's. */
static int check_kinds(const struct probes *probes)
{
	const struct probe *first = probes->all.v;

	for (size_t i = 1; i < probes->all.n; i++) {
		const struct probe *other = &probes->all.v[i];

		if (other->is_go == first->is_go)
			continue;
		log__error("%s is in a Go program and %s is not: how long calls take is measured "
			   "in different ways there",
			   first->is_go ? first->name : other->name,
			   first->is_go ? other->name : first->name);
		log__hint("choose the processes of one of them, or use -delay-thresh");
		return -EINVAL;
	}
	return 0;
}

int probes__choose_returns(const struct probes *probes, int choice, bool *by_insn)
{
	*by_insn = choice == RETURN_PROBES_INSNS;
	*by_insn |= choice == RETURN_PROBES_AUTO && probes__are_go(probes);
	for (size_t i = 0; i < probes->all.n && *by_insn; i++)
		if (probes->all.v[i].exits_err)
			return refuse_exits(&probes->all.v[i]);
	return *by_insn ? check_kinds(probes) : 0;
}
