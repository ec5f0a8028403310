// SPDX-License-Identifier: MIT
/* The pt source: Intel PT through perf. */
#include "capture/source.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/fs.h"
#include "util/log.h"

#define PMU "/sys/bus/event_source/devices/intel_pt"

static bool cpuinfo_has(const char *word)
{
	_cleanup_free_ char *text = NULL;
	size_t len;

	return !fs__read("/proc/cpuinfo", &text, &len) && strstr(text, word);
}

/* The most likely reason why there is no PMU, and what helps. */
static void explain_no_pmu(void)
{
	if (cpuinfo_has("hypervisor"))
		log__error("no Intel PT: this is a virtual machine, and no hypervisor hands PT to "
			   "its guests");
	else if (!cpuinfo_has("GenuineIntel"))
		log__error("no Intel PT: this CPU is not Intel's");
	else
		log__error("no Intel PT: the kernel has no intel_pt PMU (" PMU ")");
	log__hint("-source soft works on any machine, but single-steps the target: it runs about "
		  "10,000 times slower while mtbpf waits");
}

static int read_type(uint32_t *type)
{
	_cleanup_free_ char *text = NULL;
	size_t len;
	int err = fs__read(PMU "/type", &text, &len);

	if (!err)
		*type = (uint32_t)strtoul(text, NULL, 10);
	return err;
}

static int open_event(uint32_t type)
{
	struct perf_event_attr attr = {
		.type = type,
		.size = sizeof(attr),
		.config = 1u << 13 | 1u << 10 | 1u, /* branch, tsc, pt */
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};

	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static void explain_open(int err)
{
	_cleanup_free_ char *paranoid = NULL;
	size_t len = 0;

	fs__read("/proc/sys/kernel/perf_event_paranoid", &paranoid, &len);
	log__error("cannot open Intel PT: %s", strerror(err));
	if (err == EACCES || err == EPERM)
		log__hint("needs CAP_PERFMON, or kernel.perf_event_paranoid <= 1 (now %.*s)",
			  paranoid ? (int)strcspn(paranoid, "\n") : 1, paranoid ? paranoid : "?");
	else if (err == EBUSY)
		log__hint("another tool uses Intel PT: one at a time");
	else
		log__hint("'mtbpf check' shows what this machine has");
}

static int pt__probe(void)
{
	uint32_t type;
	int fd;

	if (read_type(&type)) {
		explain_no_pmu();
		return -ENODEV;
	}
	fd = open_event(type);
	if (fd < 0) {
		int err = errno;

		explain_open(err);
		return -err;
	}
	close(fd);
	return 0;
}

static struct source *pt__open(const struct source_config *config)
{
	log__error("capturing with Intel PT is not built into this version");
	log__hint("-source soft works on any machine, but is far slower");
	errno = ENOSYS;
	return NULL;
}

const struct source_ops source_pt = {
	.name = "pt",
	.about = "Intel Processor Trace: the target runs at full speed",
	.probe = pt__probe,
	.open = pt__open,
};
