// SPDX-License-Identifier: MIT
/* The kernel: its version, its BTF, and what its lockdown forbids. */
#include <errno.h>
#include <stdio.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "check/subjects.h"
#include "kernel/rights.h"

#define BTF "/sys/kernel/btf/vmlinux"

void check_kernel(const struct check *check, struct check_result *result)
{
	unsigned int major = 0, minor = 0;
	struct utsname name;

	if (uname(&name)) {
		check_result__set(result, CHECK_LIMITED, "its version cannot be read");
		return;
	}
	check_result__add_text(result, "release", name.release);
	check_result__set(result, CHECK_OK, "Linux %s", name.release);
	if (sscanf(name.release, "%u.%u", &major, &minor) != 2 || major > 6 ||
	    (major == 6 && minor >= 1))
		return;
	/* BPF links on perf events came with 5.15. */
	check_result__set(result, CHECK_LIMITED,
			  major < 5 || (major == 5 && minor < 15)
				  ? "Linux %s is too old for triggers"
				  : "Linux %s: mtbpf has not been tested on it",
			  name.release);
	check_result__remedy(result, "6.1 or later");
}

void check_btf(const struct check *check, struct check_result *result)
{
	if (!access(BTF, R_OK)) {
		check_result__set(result, CHECK_OK, BTF);
		return;
	}
	check_result__set(result, CHECK_LIMITED, "none: hit times are kept in an LRU hash");
	check_result__remedy(result, "a kernel with CONFIG_DEBUG_INFO_BTF");
}

/* security/security.c: lockdown_reasons: tracefs and kcore fall under confidentiality. */
void check_lockdown(const struct check *check, struct check_result *result)
{
	char text[64];
	int err = check__read_line(LOCKDOWN_PATH, text, sizeof(text));

	if (err == -EACCES) {
		check_result__set(result, CHECK_LIMITED, "only root can read " LOCKDOWN_PATH);
		return;
	}
	if (err) {
		check_result__set(result, CHECK_OK, "none known: no " LOCKDOWN_PATH);
		return;
	}
	check_result__add_text(result, "lockdown", text);
	switch (lockdown__parse(text)) {
	case LOCKDOWN_NONE:
		check_result__set(result, CHECK_OK, "none");
		break;
	case LOCKDOWN_INTEGRITY:
		check_result__set(result, CHECK_OK, "integrity: forbids nothing that is used here");
		break;
	case LOCKDOWN_CONFIDENTIALITY:
		check_result__set(result, CHECK_LIMITED,
				  "confidentiality: no probe for several threads");
		check_result__remedy(result, "boot with lockdown=integrity");
		break;
	default:
		check_result__set(result, CHECK_LIMITED, "unknown: %s", text);
	}
}
