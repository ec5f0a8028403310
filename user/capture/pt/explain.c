// SPDX-License-Identifier: MIT
#include "capture/pt/explain.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "capture/pt/pmu.h"
#include "util/cleanup.h"
#include "util/fs.h"
#include "util/log.h"
#include "util/units.h"

static bool cpuinfo_has(const char *word)
{
	_cleanup_free_ char *text = NULL;
	size_t len;

	return !fs__read("/proc/cpuinfo", &text, &len) && strstr(text, word);
}

void pt_explain__no_pmu(void)
{
	if (cpuinfo_has("hypervisor"))
		log__error("no Intel PT: this is a virtual machine, and hardly any hypervisor "
			   "hands PT to its guests");
	else if (!cpuinfo_has("GenuineIntel"))
		log__error("no Intel PT: this CPU is not Intel's");
	else
		log__error("no Intel PT: the kernel has no intel_pt PMU (" PT_PMU_PATH ")");
	log__hint("any machine can do -source sample: stacks by the clock, not every call; and "
		  "-source soft: every call, but the target runs about 10,000 times slower");
}

/* What memlock__check() let pass: buffers of the user's other processes count as well. */
static void explain_memlock(size_t aux_size)
{
	char size[UNITS_TEXT_SIZE], limit[UNITS_TEXT_SIZE];
	struct rlimit rlimit = {0};

	getrlimit(RLIMIT_MEMLOCK, &rlimit);
	log__error("cannot lock %s a thread for the trace: the limit is %s, and "
		   "kernel.perf_event_mlock_kb %ld a CPU",
		   units__format_size(size, aux_size), units__format_size(limit, rlimit.rlim_cur),
		   fs__read_number("/proc/sys/kernel/perf_event_mlock_kb", -1));
	log__hint("a smaller -snapshot-size fits; CAP_IPC_LOCK lifts the limit (or ulimit -l)");
}

void pt_explain__open(int err, size_t aux_size)
{
	char size[UNITS_TEXT_SIZE];

	switch (-err) {
	case EPERM:
		if (aux_size) {
			explain_memlock(aux_size);
			return;
		}
		/* fallthrough */
	case EACCES:
		log__error("cannot open Intel PT: %s", strerror(-err));
		log__hint("needs CAP_PERFMON, or kernel.perf_event_paranoid <= 1 (now %ld)",
			  fs__read_number("/proc/sys/kernel/perf_event_paranoid", -1));
		return;
	case EBUSY:
		log__error("Intel PT is in use already: EBUSY");
		log__hint(
			"another mtbpf, perf or debugger traces this thread or CPU; one at a time");
		return;
	case ESRCH:
		log__error("the process has exited");
		log__hint("start it again, and attach to its new pid");
		return;
	case ENOMEM:
		log__error("no memory for a trace of %s a thread",
			   units__format_size(size, aux_size));
		log__hint("a smaller -snapshot-size needs less");
		return;
	default:
		log__error("cannot record with Intel PT: %s", strerror(-err));
		log__hint("'mtbpf check' shows what this machine has");
	}
}

void pt_explain__no_controller(const char *path)
{
	log__error("the cgroup %s has no perf_event controller", path);
	log__hint("enabling any controller in its parent brings it: 'echo +cpu >%s/../"
		  "cgroup.subtree_control'; not where a v1 hierarchy has perf_event",
		  path);
}

void pt_explain__open_kernel(int err)
{
	switch (-err) {
	case EPERM:
	case EACCES:
		log__error("cannot trace the kernel: %s", strerror(-err));
		log__hint("needs CAP_PERFMON, or kernel.perf_event_paranoid <= 1 (now %ld); or "
			  "leave -trace-include-kernel out",
			  fs__read_number("/proc/sys/kernel/perf_event_paranoid", -1));
		return;
	case EOPNOTSUPP:
		log__error("cannot trace the kernel: this intel_pt PMU records user code only");
		log__hint("leave -trace-include-kernel out: the time in the kernel shows as "
			  "[syscall] and [untraced]");
		return;
	default:
		pt_explain__open(err, 0);
	}
}
