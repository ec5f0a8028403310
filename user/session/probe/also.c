// SPDX-License-Identifier: MIT
#include "session/probe/also.h"

#include <errno.h>

#include "target/symbols/symbols_usdt.h"
#include "util/log.h"

/* What is added, and for which of the names. */
struct adder {
	struct probes *also;
	const struct probes *have;
	const char *name;
};

static int refuse_place(const char *name)
{
	log__error("-also %s: not a whole function", name);
	log__hint("a call has a begin and an end: name the function alone");
	return -EINVAL;
}

static int refuse_go(const struct probe *probe)
{
	log__error("-also %s: calls of a Go program are its goroutines', which change threads",
		   probe->name);
	log__hint("-symbol %s -duration-thresh D measures them", probe->name);
	return -EINVAL;
}

static int refuse_many(const char *name)
{
	log__error("-also %s: more than %d functions", name, ALSO_MAX);
	log__hint("'mtbpf list' shows what a glob matches; each call of each costs two probes");
	return -EINVAL;
}

static int add(void *ctx, const struct probe *probe)
{
	struct adder *adder = ctx;

	if (probe->is_inside)
		return refuse_place(adder->name);
	if (probe->is_go)
		return refuse_go(probe);
	if (probes__have(adder->have, probe))
		return 0;
	if (adder->also->all.n == ALSO_MAX && !probes__have(adder->also, probe))
		return refuse_many(adder->name);
	return probes__add(adder->also, probe);
}

static int add_all(const struct selectors *selectors, const struct probe_source *in,
		   struct adder *adder)
{
	int err = 0;

	for (size_t i = 0; i < selectors->names.n && !err; i++) {
		adder->name = selectors->names.v[i];
		err = usdt__is_selector(adder->name)
			      ? refuse_place(adder->name)
			      : probe__each_function(in, adder->name, add, adder);
	}
	return err;
}

int also__find(struct probes *also, const struct option_list *texts, const struct probe_source *in,
	       const struct probes *have)
{
	struct adder adder = {.also = also, .have = have};
	struct selectors selectors = {0};
	int err = selectors__split(&selectors, texts, "-also");

	if (!err)
		err = add_all(&selectors, in, &adder);
	selectors__fini(&selectors);
	return err;
}
