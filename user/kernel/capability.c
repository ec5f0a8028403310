// SPDX-License-Identifier: MIT
#include "kernel/capability.h"

#include <linux/capability.h>
#include <string.h>
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
