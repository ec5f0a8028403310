// SPDX-License-Identifier: MIT
#include "kernel/capability.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* include/linux/proc_ns.h: PROC_USER_INIT_INO */
#define INITIAL_USER_NS "user:[4026531837]"

bool capability__effective(int capability)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data))
		return false;
	return data[capability / 32].effective >> capability % 32 & 1;
}

/* The kernel asks for them there, whatever a namespace of its own shows. */
static bool in_initial_user_ns(void)
{
	char link[64] = "";

	if (readlink("/proc/self/ns/user", link, sizeof(link) - 1) < 0)
		return true;
	return !strcmp(link, INITIAL_USER_NS);
}

bool capability__has(int capability)
{
	return capability__effective(capability) && in_initial_user_ns();
}

/* By number: CAP_CHECKPOINT_RESTORE is not in the headers of 5.8. It reads /proc/PID/map_files. */
#define CHECKPOINT_RESTORE 40
#define BIT(capability)	   (1ull << (capability))

static const uint64_t of_our_files =
	BIT(CAP_DAC_OVERRIDE) | BIT(CAP_DAC_READ_SEARCH) | BIT(CAP_FOWNER);
static const uint64_t of_processes = BIT(CAP_SYS_PTRACE) | BIT(CHECKPOINT_RESTORE);

static int keep(uint64_t kept)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];

	/* execve(2) would give them all back to root. */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	if (syscall(SYS_capget, &header, data))
		return -errno;
	for (int i = 0; i < 2; i++, kept >>= 32) {
		data[i].permitted &= (uint32_t)kept;
		data[i].effective &= (uint32_t)kept;
		data[i].inheritable &= (uint32_t)kept;
	}
	return syscall(SYS_capset, &header, data) ? -errno : 0;
}

int capability__keep_for_files(void)
{
	return keep(of_our_files | of_processes);
}

int capability__keep_for_our_files(void)
{
	return keep(of_our_files);
}
