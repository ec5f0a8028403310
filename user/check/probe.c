// SPDX-License-Identifier: MIT
/* The trigger: BPF programs, uprobes, and the tracefs that many threads' uprobes need. */
#include <errno.h>
#include <unistd.h>

#include "capture/probe/uprobe_event.h"
#include "check/subjects.h"
#include "trigger/trigger.h"

static bool is_refusal(int err)
{
	return err == -EPERM || err == -EACCES;
}

/* By loading them, not by version. */
void check_bpf(const struct check *check, struct check_result *result)
{
	struct trigger_config config = {.tgid = getpid(), .count_only = true};
	struct trigger *trigger = trigger__new(&config);
	int err = -errno;

	if (trigger) {
		check_result__add_text(result, "latch", trigger__latch_name(trigger));
		check_result__set(result, CHECK_OK, "the programs load; hit times are kept in %s",
				  trigger__latch_name(trigger));
		trigger__free(trigger);
		return;
	}
	check_result__set(result, CHECK_MISSING, "the programs do not load: %s",
			  check__strerror(err));
	if (is_refusal(err))
		check_result__remedy(result, "run as root (CAP_BPF, CAP_PERFMON)");
	else
		check_result__remedy(result, "Linux 6.1 or later");
}

void check_uprobe(const struct check *check, struct check_result *result)
{
	int err;

	if (access("/sys/bus/event_source/devices/uprobe/type", R_OK)) {
		check_result__set(result, CHECK_MISSING, "no uprobe PMU");
		check_result__remedy(result, "a kernel with CONFIG_UPROBE_EVENTS");
		return;
	}
	err = own_probe__try();
	if (!err)
		check_result__set(result, CHECK_OK, "tried: a probe of our own is hit");
	else if (err == -ENODATA)
		check_result__set(result, CHECK_MISSING,
				  "tried: a probe can be set, but is not hit");
	else
		check_result__set(result, CHECK_MISSING, "no probe can be set: %s",
				  check__strerror(err));
	if (is_refusal(err))
		check_result__remedy(result, "run as root (CAP_SYS_ADMIN)");
}

void check_tracefs(const struct check *check, struct check_result *result)
{
	const char *place;
	int err = tracefs_probe__try(&place);

	if (err) {
		check_result__set(result, CHECK_LIMITED, "one thread at a time: %s",
				  check__strerror(err));
		check_result__remedy(result, is_refusal(err)
						     ? "run as root"
						     : "a kernel with CONFIG_UPROBE_EVENTS");
		return;
	}
	if (place)
		check_result__add_text(result, "place", place);
	check_result__set(result, CHECK_OK, "%s",
			  place ? place : "mounted nowhere, but can be, for mtbpf alone");
}
