// SPDX-License-Identifier: MIT
/* What this user may do: capabilities, perf's and ptrace's settings. */
#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <unistd.h>

#include "check/subjects.h"
#include "kernel/rights.h"
#include "util/fs.h"

const char *check__strerror(int err)
{
	const char *name = strerrorname_np(-err);

	return name ? name : strerror(-err);
}

/* Where the kernel takes CAP_SYS_ADMIN instead (include/linux/capability.h). */
static bool is_part_of_sys_admin(int capability)
{
	return capability == CAP_BPF || capability == CAP_PERFMON ||
	       capability == CAP_CHECKPOINT_RESTORE;
}

void check_capability(const struct check *check, struct check_result *result)
{
	bool part = is_part_of_sys_admin(check->which) && capability__has(CAP_SYS_ADMIN);

	check_result__add_number(result, "number", check->which);
	check_result__add_number(result, "effective", capability__effective(check->which));
	if (capability__has(check->which)) {
		check_result__set(result, CHECK_OK, "for %s", check->purpose);
	} else if (part) {
		check_result__set(result, CHECK_OK, "for %s: CAP_SYS_ADMIN is enough",
				  check->purpose);
	} else if (capability__effective(check->which)) {
		check_result__set(result, CHECK_MISSING, "no %s", check->purpose);
		check_result__remedy(result, "leave the user namespace");
	} else {
		check_result__set(result, CHECK_MISSING, "no %s", check->purpose);
		check_result__remedy(result, geteuid() ? "run as root" : "have it granted");
	}
}

/*
 * Events of user code alone, on a task: include/linux/perf_event.h: perf_allow_*(). Above 2 is
 * Debian's own: CAP_SYS_ADMIN for every event.
 */
enum check_state perf__judge(long paranoid, bool perfmon, bool admin)
{
	if (admin || (perfmon && paranoid <= 2))
		return CHECK_OK;
	return paranoid <= 2 ? CHECK_LIMITED : CHECK_MISSING;
}

void check_perf(const struct check *check, struct check_result *result)
{
	char text[32];
	long paranoid;

	if (check__read_line("/proc/sys/kernel/perf_event_paranoid", text, sizeof(text))) {
		check_result__set(result, CHECK_MISSING, "no perf events in this kernel");
		return;
	}
	paranoid = fs__read_number("/proc/sys/kernel/perf_event_paranoid", 2);
	check_result__add_number(result, "perf_event_paranoid", paranoid);
	switch (perf__judge(paranoid, capability__has(CAP_PERFMON),
			    capability__has(CAP_SYS_ADMIN))) {
	case CHECK_OK:
		check_result__set(result, CHECK_OK, "perf_event_paranoid is %ld, and lifted",
				  paranoid);
		break;
	case CHECK_LIMITED:
		check_result__set(result, CHECK_LIMITED,
				  "perf_event_paranoid is %ld: own processes only", paranoid);
		check_result__remedy(result, "CAP_PERFMON");
		break;
	default:
		check_result__set(result, CHECK_MISSING,
				  "perf_event_paranoid is %ld: for CAP_SYS_ADMIN only", paranoid);
		check_result__remedy(result, "run as root");
	}
}

/* security/yama/yama_lsm.c: 1 descendants, 2 with the capability, 3 nobody. */
enum check_state ptrace__judge(long scope, bool capable)
{
	if (scope >= 3)
		return CHECK_MISSING;
	if (capable)
		return CHECK_OK;
	return scope == 2 ? CHECK_MISSING : CHECK_LIMITED;
}

void check_ptrace(const struct check *check, struct check_result *result)
{
	long scope = fs__read_number("/proc/sys/kernel/yama/ptrace_scope", 0);
	enum check_state state = ptrace__judge(scope, capability__has(CAP_SYS_PTRACE));

	check_result__add_number(result, "ptrace_scope", scope);
	if (state == CHECK_OK)
		check_result__set(result, state, "any process can be looked at");
	else if (scope >= 3)
		check_result__set(result, state, "yama's ptrace_scope 3 forbids it to everybody");
	else if (scope == 2)
		check_result__set(result, state, "yama's ptrace_scope 2 wants CAP_SYS_PTRACE");
	else
		check_result__set(result, state, "%s only",
				  scope ? "what mtbpf starts itself (yama's ptrace_scope 1)"
					: "processes of this user");
	if (scope >= 3)
		check_result__remedy(result, "a reboot undoes it");
	else if (state != CHECK_OK)
		check_result__remedy(result, "run as root");
}
