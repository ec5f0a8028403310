// SPDX-License-Identifier: MIT
#include "session/probe/also.h"

#include <errno.h>
#include <string.h>

#include "target/symbols/symbols_usdt.h"
#include "util/log.h"

/* What is added, and for which of the names. */
struct adder {
	struct probes *also;
	const struct probes *have;
	int returns; /* enum return_probes */
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
	log__error("-also %s: -return-probes uretprobe ends a Go program, whose runtime finds the "
		   "return addresses replaced",
		   probe->name);
	log__hint("leave -return-probes out");
	return -EINVAL;
}

static int refuse_many(const char *name)
{
	log__error("-also %s: more than %d functions", name, ALSO_MAX);
	log__hint("'mtbpf list' shows what a glob matches; each call of each costs two probes");
	return -EINVAL;
}

/* Where its returns are to be probed by themselves: whether they can be. */
static bool can_be_left(const struct adder *adder, const struct probe *probe)
{
	bool by_insn = adder->returns == RETURN_PROBES_INSNS || probe->is_go;

	return !by_insn || !probe->exits_err;
}

/* One of a glob is nothing to speak of. */
static int refuse_exits(const struct adder *adder, const struct probe *probe)
{
	if (strpbrk(adder->name, "*?[")) {
		log__debug("-also: %s has no return that can be probed", probe->name);
		return 0;
	}
	log__error("-also %s: it has no return that can be probed", probe->name);
	log__hint("leave it out; a function that it calls may have one");
	return -EINVAL;
}

static int add(void *ctx, const struct probe *probe)
{
	struct adder *adder = ctx;

	if (probe->is_inside)
		return refuse_place(adder->name);
	if (probe->is_go && adder->returns == RETURN_PROBES_URETPROBE)
		return refuse_go(probe);
	if (!can_be_left(adder, probe))
		return refuse_exits(adder, probe);
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
	       const struct probes *have, int returns)
{
	struct adder adder = {.also = also, .have = have, .returns = returns};
	struct selectors selectors = {0};
	int err = selectors__split(&selectors, texts, "-also");

	if (!err)
		err = add_all(&selectors, in, &adder);
	selectors__fini(&selectors);
	return err;
}
