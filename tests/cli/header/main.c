/* SPDX-License-Identifier: MIT */
/* One of two files of a program that includes mtbpf.h; exits with the number of what is wrong. */
#include <mtbpf.h>

#include "other.h"

static volatile uint64_t nothing;

int main(void)
{
	if (mtbpf_min_duration(0))
		return 1; /* without a mark */
	other_mark();
	if (!mtbpf_min_duration(0) || !other_min_duration(0))
		return 2; /* one mark for both files */
	if (mtbpf_min_duration(UINT64_MAX) || mtbpf_min_duration(60000000000u))
		return 3;
	while (!mtbpf_min_duration(2000000))
		nothing = 1;
	if (other_stub() != mtbpf_hit)
		return 4; /* one stub */
	mtbpf_take_snapshot();
	mtbpf_take_snapshot_with_arg(0x1122334455667788u);
	if (other_thread_has_mark())
		return 5;
	mtbpf_mark_start();
	return mtbpf_min_duration(60000000000u) ? 6 : 0;
}
