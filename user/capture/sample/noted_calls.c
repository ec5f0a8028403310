// SPDX-License-Identifier: MIT
#include "capture/sample/noted_calls.h"

#include <stdbool.h>
#include <string.h>

/* A call instruction is no longer, with a prefix, REX, SIB and a displacement. */
#define CALL_LEN_MAX 9

/* The upper half is the kernel's: a branch filter that lets one in has made no call of ours. */
static bool is_user(uint64_t ip)
{
	return ip && ip >> 63 == 0;
}

/* Which of the return addresses belongs to that call; n_ips: none. */
static uint32_t find_return(const uint64_t *ips, uint32_t n_ips, uint64_t call_ip)
{
	uint32_t i = 1;

	while (i < n_ips && (ips[i] <= call_ip || ips[i] - call_ip > CALL_LEN_MAX))
		i++;
	return i;
}

uint32_t noted_calls__join(const struct perf_branch_entry *calls, size_t n, uint64_t *ips,
			   uint32_t n_ips, uint32_t room, uint32_t *n_calls)
{
	uint32_t rest, left;

	*n_calls = 0;
	for (size_t i = 0; i < n && i < NOTED_CALLS_MAX && is_user(calls[i].from); i++)
		++*n_calls;
	if (!*n_calls || !n_ips || room <= *n_calls) {
		*n_calls = 0;
		return n_ips;
	}
	/* Frame pointers that lead elsewhere have nothing to add. */
	rest = find_return(ips, n_ips, calls[*n_calls - 1].from);
	left = rest < n_ips ? n_ips - rest - 1 : 0;
	if (left > room - 1 - *n_calls)
		left = room - 1 - *n_calls;
	memmove(ips + 1 + *n_calls, ips + rest + (left ? 1 : 0), left * sizeof(*ips));
	for (uint32_t i = 0; i < *n_calls; i++)
		ips[1 + i] = calls[i].from;
	return 1 + *n_calls + left;
}
