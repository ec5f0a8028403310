// SPDX-License-Identifier: MIT
#include "keep/quota.h"

#include <errno.h>
#include <stdlib.h>

int quota__init(struct quota *quota, size_t per_hour)
{
	*quota = (struct quota){.tokens = per_hour};
	if (!per_hour)
		return 0;
	quota->spent_ns = calloc(per_hour, sizeof(*quota->spent_ns));
	return quota->spent_ns ? 0 : -ENOMEM;
}

void quota__fini(struct quota *quota)
{
	free(quota->spent_ns);
	*quota = (struct quota){0};
}

uint64_t quota__next_ns(const struct quota *quota)
{
	uint64_t oldest = quota->tokens ? quota->spent_ns[quota->oldest] : 0;

	return oldest ? oldest + QUOTA_SPAN_NS : 0;
}

void quota__spend(struct quota *quota, uint64_t now_ns)
{
	if (!quota->tokens)
		return;
	quota->spent_ns[quota->oldest] = now_ns;
	quota->oldest = (quota->oldest + 1) % quota->tokens;
}
