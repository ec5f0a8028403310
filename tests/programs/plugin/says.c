// SPDX-License-Identifier: MIT
/* A library with a stub of its own: it was built without the program. */
#include <mtbpf.h>

void says(uint64_t number);
void says(uint64_t number)
{
	mtbpf_take_snapshot_with_arg(number);
}
