// SPDX-License-Identifier: MIT
#include "session/target_wait.h"

#include <errno.h>
#include <poll.h>

#include "util/clock.h"
#include "util/log.h"

#define LOOK_INTERVAL_MS 500

/* A service manager removes a service's cgroup, and makes it anew: all is looked up each time. */
static int choose(struct target *target, const struct target_options *options, bool quietly)
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

/* What the next look may find otherwise. */
static bool may_come(int err)
{
	return err && err != -ENOTUNIQ && err != -ENOMEM;
}

int target__wait(struct target *target, const struct target_options *options, int signal_fd,
		 uint64_t deadline_ns)
{
	struct pollfd fd = {.fd = signal_fd, .events = POLLIN};
	bool said = false;

	for (;;) {
		int err = choose(target, options, true);

		/* Once more, for what there is to say of it. */
		if (!may_come(err))
			err = choose(target, options, false);
		if (!may_come(err))
			return err;
		if (!said)
			log__info("%s has no processes: waiting for them; Ctrl-C ends it",
				  target_options__name(options));
		said = true;
		if (clock__now_ns() >= deadline_ns)
			return -ETIME;
		if (poll(&fd, 1, LOOK_INTERVAL_MS) > 0)
			return -EINTR;
	}
}
