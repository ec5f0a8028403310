// SPDX-License-Identifier: MIT
#include "target/symbols/symbols_usdt.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target/symbols/symbols_internal.h"
#include "util/cleanup.h"
#include "util/log.h"
#include "util/nearest.h"

#define MAX_LISTED 5

/* What the user typed, taken apart: parts of `words`. */
struct usdt_query {
	const char *text;
	char *words;	    /* owned */
	const char *module; /* NULL: any */
	const char *provider, *name;
};

bool usdt__is_selector(const char *text)
{
	return !strncmp(text, USDT_PREFIX, strlen(USDT_PREFIX));
}

static int refuse_text(const struct usdt_query *query, size_t at, const char *what)
{
	log__error("bad trigger: %s", what);
	log__caret(query->text, at);
	log__hint("the form is usdt:PROVIDER:NAME or usdt:FILE:PROVIDER:NAME; 'mtbpf list' with "
		  "'usdt:*' shows them");
	return -EINVAL;
}

/* The last two words are the probe's, whatever colons a path has. */
static int parse(struct usdt_query *query, const char *text)
{
	char *last, *middle;

	*query = (struct usdt_query){.text = text};
	query->words = strdup(text + strlen(USDT_PREFIX));
	if (!query->words)
		return -ENOMEM;
	last = strrchr(query->words, ':');
	if (!last)
		return refuse_text(query, strlen(text), "a USDT probe is a provider's");
	*last = '\0';
	query->name = last + 1;
	middle = strrchr(query->words, ':');
	query->provider = middle ? middle + 1 : query->words;
	if (middle) {
		*middle = '\0';
		query->module = query->words;
	}
	if (!*query->provider)
		return refuse_text(query, strlen(USDT_PREFIX) + (query->provider - query->words),
				   "no provider");
	return *query->name ? 0 : refuse_text(query, strlen(text), "no name of a probe");
}

static bool is_module(const struct usdt_query *query, const struct module *module)
{
	struct query by_name = {.module = query->module};

	if (!query->module || !strcmp(query->module, module->mapping.path))
		return true;
	by_name.module_len = strlen(query->module);
	return query__covers(&by_name, TIER_NAMED, module);
}

/* What is looked for among the places of one module. */
struct usdt_search {
	const struct usdt_query *query;
	const struct module *module;
	usdt_match_vec *found;
	struct nearest nearest;
	char *best;	 /* what nearest.best points to */
	size_t n_places; /* looked at */
};

/* Another place of a probe may be named twice, by inlining: a hit there is one hit. */
static bool is_known(const struct usdt_search *s, const struct usdt_place *place)
{
	for (size_t i = 0; i < s->found->n; i++)
		if (s->found->v[i].module == s->module &&
		    s->found->v[i].place.vaddr == place->vaddr)
			return true;
	return false;
}

static void offer(struct usdt_search *s, const struct usdt_place *place)
{
	char *name;

	if (asprintf(&name, "%s:%s", place->provider, place->name) < 0)
		return;
	nearest__offer(&s->nearest, name);
	if (s->nearest.best == name) {
		free(s->best);
		s->best = name;
	} else {
		free(name);
	}
}

static int look_at(void *ctx, const struct usdt_place *place)
{
	struct usdt_search *s = ctx;
	struct usdt_match *match;

	s->n_places++;
	if (fnmatch(s->query->provider, place->provider, 0) ||
	    fnmatch(s->query->name, place->name, 0)) {
		offer(s, place);
		return 0;
	}
	if (is_known(s, place))
		return 0;
	match = VEC_PUSH(s->found);
	if (!match)
		return -ENOMEM;
	*match = (struct usdt_match){.module = s->module, .place = *place};
	return 0;
}

static bool is_same_probe(const struct usdt_match *a, const struct usdt_match *b)
{
	return !strcmp(a->place.provider, b->place.provider) &&
	       !strcmp(a->place.name, b->place.name);
}

static bool is_first(const usdt_match_vec *found, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (is_same_probe(&found->v[i], &found->v[at]))
			return false;
	return true;
}

static int refuse_several(const struct symbols *symbols, const struct usdt_query *query,
			  const usdt_match_vec *found)
{
	size_t n = 0, listed = 0;

	for (size_t i = 0; i < found->n; i++)
		n += is_first(found, i);
	log__error("'%s' names %zu USDT probes in %s", query->text, n, symbols->label);
	log__hint("name one of them:");
	for (size_t i = 0; i < found->n && listed < MAX_LISTED; i++) {
		if (!is_first(found, i))
			continue;
		log__hint("  usdt:%s:%s", found->v[i].place.provider, found->v[i].place.name);
		listed++;
	}
	if (n > listed)
		log__hint("  and %zu more", n - listed);
	return -ENOTUNIQ;
}

static int refuse_missing(const struct symbols *symbols, const struct usdt_search *s)
{
	if (!s->n_places) {
		log__error("%s does not contain USDT probes%s%s", symbols->label,
			   s->query->module ? " in " : "",
			   s->query->module ? s->query->module : "");
		log__hint("USDT probes come from sys/sdt.h; -symbol also takes functions");
		return -ENODATA;
	}
	log__error("no USDT probe '%s' in %s", s->query->text, symbols->label);
	if (s->best)
		log__hint("did you mean 'usdt:%s'?", s->best);
	else
		log__hint("'mtbpf list' with 'usdt:*' shows them");
	return -ENOENT;
}

static int search(const struct symbols *symbols, struct usdt_search *s)
{
	_cleanup_free_ char *wanted = NULL;
	int err = 0;

	if (asprintf(&wanted, "%s:%s", s->query->provider, s->query->name) < 0) {
		wanted = NULL;
		return -ENOMEM;
	}
	s->nearest.word = wanted;
	for (size_t i = 0; !err && i < symbols->n; i++) {
		s->module = &symbols->modules[i];
		if (is_module(s->query, s->module))
			err = elf_image__each_usdt(s->module->image, look_at, s);
	}
	if (!err && !s->found->n)
		err = refuse_missing(symbols, s);
	for (size_t i = 1; !err && i < s->found->n; i++)
		if (!is_same_probe(&s->found->v[0], &s->found->v[i]))
			err = refuse_several(symbols, s->query, s->found);
	return err;
}

int symbols__find_usdt(const struct symbols *symbols, const char *text, usdt_match_vec *found)
{
	struct usdt_query query;
	struct usdt_search s = {.query = &query, .found = found};
	int err = parse(&query, text);

	*found = (usdt_match_vec){0};
	if (!err)
		err = search(symbols, &s);
	if (err)
		VEC_FINI(found);
	free(s.best);
	free(query.words);
	return err;
}

/* symbols__each_usdt()'s, of one module. */
struct usdt_listing {
	const struct module *module;
	const char *glob;
	int (*fn)(void *ctx, const struct usdt_match *match);
	void *ctx;
};

static char *format(const char *module, const char *colon, const struct usdt_place *place)
{
	char *text;

	if (asprintf(&text, USDT_PREFIX "%s%s%s:%s", module, colon, place->provider, place->name) <
	    0)
		return NULL;
	return text;
}

static int list_place(void *ctx, const struct usdt_place *place)
{
	const struct usdt_listing *l = ctx;
	const struct usdt_match match = {.module = l->module, .place = *place};
	_cleanup_free_ char *full = format(module__name(l->module), ":", place);
	_cleanup_free_ char *plain = format("", "", place);

	if (!full || !plain)
		return -ENOMEM;
	if (fnmatch(l->glob, full, 0) && fnmatch(l->glob, plain, 0))
		return 0;
	return l->fn(l->ctx, &match);
}

int symbols__each_usdt(const struct symbols *symbols, const char *glob,
		       int (*fn)(void *ctx, const struct usdt_match *match), void *ctx)
{
	int result = 0;

	for (size_t i = 0; !result && i < symbols->n; i++) {
		struct usdt_listing l = {&symbols->modules[i], glob, fn, ctx};

		result = elf_image__each_usdt(l.module->image, list_place, &l);
	}
	return result;
}
