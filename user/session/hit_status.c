// SPDX-License-Identifier: MIT
#include "session/hit_status.h"

struct status_view hit_status__view(const struct mt_stats *stats, uint64_t hits, uint64_t span_ns)
{
	return (struct status_view){
		.delay_ns = {mt_stats__percentile(stats, 50), mt_stats__percentile(stats, 99),
			     stats->max_ns},
		.hits = stats->hits,
		.let_pass = stats->let_pass,
		.hits_per_s = span_ns ? (double)hits * 1e9 / (double)span_ns : 0,
	};
}
