// SPDX-License-Identifier: MIT
/* Another one. */
#include <mtbpf.h>

void says_too(uint64_t number);
void says_too(uint64_t number)
{
	mtbpf_take_snapshot_with_arg(number);
}
