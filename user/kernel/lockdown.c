// SPDX-License-Identifier: MIT
#include "kernel/lockdown.h"

#include <errno.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/fs.h"

int lockdown__parse(const char *text)
{
	static const char *const names[] = {[LOCKDOWN_NONE] = "[none]",
					    [LOCKDOWN_INTEGRITY] = "[integrity]",
					    [LOCKDOWN_CONFIDENTIALITY] = "[confidentiality]"};

	for (int i = LOCKDOWN_NONE; i <= LOCKDOWN_CONFIDENTIALITY; i++)
		if (strstr(text, names[i]))
			return i;
	return -EINVAL;
}

int lockdown__read(void)
{
	_cleanup_free_ char *text = NULL;
	size_t len;
	int err = fs__read(LOCKDOWN_PATH, &text, &len);

	return err ? err : lockdown__parse(text);
}
