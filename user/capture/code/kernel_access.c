// SPDX-License-Identifier: MIT
#include "capture/code/kernel_access.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/fs.h"
#include "util/log.h"
#include "kernel/kallsyms.h"
#include "kernel/lockdown.h"

enum { NO_KALLSYMS, HIDDEN, HIDDEN_FROM_ALL, NO_KCORE, LOCKED, NO_RIGHT, UNREADABLE };

static const struct kernel_refusal refusals[] = {
	[NO_KALLSYMS] = {-ENODEV, "/proc/kallsyms cannot be read", "a kernel with CONFIG_KALLSYMS"},
	[HIDDEN] = {-EPERM, "/proc/kallsyms hides the addresses", "run as root (CAP_SYSLOG)"},
	[HIDDEN_FROM_ALL] = {-EPERM, "kptr_restrict 2 hides the kernel's addresses from everybody",
			     "sysctl kernel.kptr_restrict=1"},
	[NO_KCORE] = {-ENODEV, "there is no /proc/kcore", "a kernel with CONFIG_PROC_KCORE"},
	[LOCKED] = {-EPERM, "lockdown=confidentiality forbids reading /proc/kcore",
		    "boot with lockdown=integrity"},
	[NO_RIGHT] = {-EPERM, "/proc/kcore may not be read", "run as root (CAP_SYS_RAWIO)"},
	[UNREADABLE] = {-EIO, "/proc/kcore cannot be opened", "'mtbpf check' shows what is there"},
};

static const struct kernel_refusal *judge_kcore(const struct kernel_facts *facts)
{
	switch (-facts->kcore_err) {
	case 0:
		return NULL;
	case ENOENT:
		return &refusals[NO_KCORE];
	case EACCES:
		return &refusals[NO_RIGHT];
	case EPERM:
		/* fs/proc/kcore.c: open_kcore() asks for the capability first, then lockdown. */
		return &refusals[facts->lockdown == LOCKDOWN_CONFIDENTIALITY ? LOCKED : NO_RIGHT];
	default:
		return &refusals[UNREADABLE];
	}
}

/* Lockdown first: under it the addresses may be hidden too, and no sysctl helps. */
const struct kernel_refusal *kernel_access__judge(const struct kernel_facts *facts)
{
	const struct kernel_refusal *refusal = judge_kcore(facts);

	if (refusal == &refusals[LOCKED] || refusal == &refusals[NO_KCORE])
		return refusal;
	if (facts->kallsyms_err)
		return &refusals[NO_KALLSYMS];
	if (!facts->has_addresses)
		return &refusals[facts->kptr_restrict >= 2 ? HIDDEN_FROM_ALL : HIDDEN];
	return refusal;
}

/* The first symbols may lie at 0 in any case: those of the per-CPU section. */
static int look_for_addresses(bool *found)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/kallsyms", "re");
	char line[512];

	*found = false;
	if (!f)
		return -errno;
	while (!*found && fgets(line, sizeof(line), f)) {
		const char *text = line;
		struct kallsym sym;

		*found = kallsyms__next(&text, &sym) && sym.address >> 63;
	}
	return 0;
}

static int try_kcore(void)
{
	_cleanup_close_ int kcore = open("/proc/kcore", O_RDONLY | O_CLOEXEC);

	return kcore < 0 ? -errno : 0;
}

static const struct kernel_refusal *try(bool with_code)
{
	struct kernel_facts facts = {.kcore_err = with_code ? try_kcore() : 0,
				     .lockdown = lockdown__read()};

	facts.kptr_restrict = fs__read_number("/proc/sys/kernel/kptr_restrict", 0);
	facts.kallsyms_err = look_for_addresses(&facts.has_addresses);
	return kernel_access__judge(&facts);
}

const struct kernel_refusal *kernel_access__try(void)
{
	return try(true);
}

int kernel_access__refuse(bool with_code)
{
	const struct kernel_refusal *refusal = try(with_code);

	if (!refusal)
		return 0;
	log__error("cannot %s the kernel: %s", with_code ? "trace" : "sample", refusal->what);
	log__hint("%s; or leave -trace-include-kernel out", refusal->remedy);
	return refusal->err;
}
