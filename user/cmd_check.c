// SPDX-License-Identifier: MIT
/* check: what this machine can do, one line a need. */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "cmd.h"
#include "trigger/trigger.h"
#include "util/cleanup.h"
#include "util/fs.h"
#include "util/log.h"
#include "util/options.h"

enum state { OK, MISSING, LIMITED };

static const char *const state_names[] = {"ok", "missing", "limited"};

static void line(const char *need, enum state state, const char *reason)
{
	printf("%-16s %-8s %s\n", need, state_names[state], reason);
}

static bool has_capability(int capability)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data))
		return false;
	return data[capability / 32].effective >> capability % 32 & 1;
}

static bool cpuinfo_has(const char *word)
{
	_cleanup_free_ char *text = NULL;
	size_t len;

	return !fs__read("/proc/cpuinfo", &text, &len) && strstr(text, word);
}

static bool check_pt(void)
{
	if (!access("/sys/bus/event_source/devices/intel_pt/type", R_OK)) {
		line("intel_pt", OK, "the PMU is there");
		return true;
	}
	line("intel_pt", MISSING,
	     cpuinfo_has("hypervisor")
		     ? "this is a virtual machine, and hardly any hypervisor hands PT to its "
		       "guests; "
		       "-source "
		       "soft works, far slower"
		     : "no such PMU on this CPU and kernel; -source soft works, far slower");
	return false;
}

static bool check_uprobe(void)
{
	bool pmu = !access("/sys/bus/event_source/devices/uprobe/type", R_OK);

	if (!pmu)
		line("uprobe", MISSING, "no uprobe PMU: the kernel lacks CONFIG_UPROBE_EVENTS");
	else if (!has_capability(CAP_SYS_ADMIN))
		line("uprobe", MISSING, "the uprobe PMU needs CAP_SYS_ADMIN: try sudo");
	else
		line("uprobe", OK, "the PMU is there, and CAP_SYS_ADMIN to use it");
	return pmu && has_capability(CAP_SYS_ADMIN);
}

/* By loading the programs, not by version. */
static bool check_bpf(void)
{
	struct trigger_config config = {.tgid = getpid(), .count_only = true};
	enum log_level level = log__level();
	struct trigger *trigger;
	char reason[128];

	log__set_level(LOG_SILENT);
	trigger = trigger__new(&config);
	log__set_level(level);
	if (!trigger) {
		snprintf(reason, sizeof(reason),
			 "the programs do not load: %s; needs CAP_BPF and "
			 "CAP_PERFMON, or root",
			 strerror(errno));
		line("bpf", MISSING, reason);
		return false;
	}
	snprintf(reason, sizeof(reason), "the programs load; hit times are kept in %s",
		 trigger__latch_name(trigger));
	line("bpf", OK, reason);
	trigger__free(trigger);
	return true;
}

static bool check_ptrace(void)
{
	_cleanup_free_ char *scope = NULL;
	size_t len;

	if (has_capability(CAP_SYS_PTRACE)) {
		line("ptrace", OK, "CAP_SYS_PTRACE: any process can be looked at and stepped");
		return true;
	}
	if (!fs__read("/proc/sys/kernel/yama/ptrace_scope", &scope, &len) && atoi(scope) > 0) {
		line("ptrace", MISSING,
		     "kernel.yama.ptrace_scope forbids it without CAP_SYS_PTRACE");
		return false;
	}
	line("ptrace", LIMITED, "own processes only: others need CAP_SYS_PTRACE");
	return true;
}

static void check_paranoid(void)
{
	_cleanup_free_ char *text = NULL;
	char reason[96];
	size_t len;
	int value;

	if (fs__read("/proc/sys/kernel/perf_event_paranoid", &text, &len)) {
		line("perf", MISSING, "the kernel has no perf events");
		return;
	}
	value = atoi(text);
	snprintf(reason, sizeof(reason), "kernel.perf_event_paranoid is %d%s", value,
		 has_capability(CAP_PERFMON) ? "; CAP_PERFMON is above it" : "");
	line("perf", value <= 1 || has_capability(CAP_PERFMON) ? OK : LIMITED, reason);
}

static void check_kernel(void)
{
	struct utsname name;

	if (!uname(&name))
		line("kernel", OK, name.release);
	if (!access("/sys/kernel/btf/vmlinux", R_OK))
		line("btf", OK, "/sys/kernel/btf/vmlinux");
	else
		line("btf", LIMITED, "none: hit times are kept in an LRU hash");
}

static const struct option_table table = {
	.command = "check",
	.examples = (const char *const[]){"mtbpf check", "sudo mtbpf check", NULL},
	.usage = "check",
	.summary = "One line a need: what is there, and what to do about what is not.",
};

int cmd_check(int argc, char **argv)
{
	int rest, err = options__parse(&table, NULL, argc, argv, &rest);
	bool pt, rest_ok;

	if (err)
		return exit_code_for_options(err);
	if (rest < argc)
		return refuse_word(&table, argv[rest]);
	check_kernel();
	pt = check_pt();
	rest_ok = check_uprobe();
	rest_ok &= check_bpf();
	rest_ok &= check_ptrace();
	check_paranoid();
	return pt && rest_ok ? EXIT_OK : EXIT_FAILED;
}
