// SPDX-License-Identifier: MIT
#include "session/session_again.h"

#include <errno.h>
#include <unistd.h>

#include "util/interrupts.h"
#include "session/target_wait.h"
#include "util/clock.h"
#include "util/log.h"

/* A crash is what the last moments show; who waits for a slow call waits for the next process. */
static bool goes_on(const struct capture_options *options, const struct recording *rec)
{
	return target_options__name(&options->target) && rec->trigger && *rec->trigger &&
	       !rec->hits.n;
}

static int refuse(int err, const char *name)
{
	if (err == -EINTR)
		log__error("nothing was recorded: interrupted before %s was there again", name);
	else if (err == -ETIME)
		log__error("nothing was recorded: %s was not there again in time", name);
	else
		return err;
	log__hint("without -symbol the snapshot is of its last moments, when it exits");
	return -ENOMSG;
}

static int wait_for_target(const struct capture_options *options, struct target *target,
			   uint64_t deadline_ns)
{
	const char *name = target_options__name(&options->target);
	int err, fd = interrupts__open();

	if (fd < 0)
		return fd;
	if (target__is_alive(target))
		log__info("of %s some were started again: going on with those that run now", name);
	else
		log__info(
			"the target has exited before a trigger: going on when it is there again");
	err = target__wait(target, &options->target, fd, deadline_ns);
	close(fd);
	return refuse(err, name);
}

int session__capture_again(const struct capture_options *options, struct session_start *start,
			   struct recording *rec, enum session_end *end)
{
	struct capture_options left = *options;
	uint64_t deadline =
		options->timeout_ns ? clock__now_ns() + options->timeout_ns : UINT64_MAX;
	int err = session__capture(&left, start, rec, end);

	while (!err && *end == SESSION_EXITED && goes_on(options, rec)) {
		uint64_t now;

		recording__fini(rec);
		recording__init(rec);
		err = wait_for_target(options, start->target, deadline);
		if (err)
			break;
		now = clock__now_ns();
		if (options->timeout_ns)
			left.timeout_ns = deadline > now ? deadline - now : 1;
		err = session__capture(&left, start, rec, end);
	}
	return err;
}
