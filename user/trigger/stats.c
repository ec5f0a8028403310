// SPDX-License-Identifier: MIT
#include "trigger/trigger.h"

void mt_stats__add(struct mt_stats *sum, const struct mt_stats *stats)
{
	sum->hits += stats->hits;
	sum->triggers += stats->triggers;
	sum->dropped += stats->dropped;
	sum->unarmed += stats->unarmed;
	sum->sum_ns += stats->sum_ns;
	if (stats->max_ns > sum->max_ns)
		sum->max_ns = stats->max_ns;
	for (int i = 0; i < MT_HIST_BUCKETS; i++)
		sum->hist[i] += stats->hist[i];
}

/* Bucket b holds [2^b, 2^(b+1)), and the first one 0 as well. */
static double bucket_start(int bucket)
{
	return bucket ? (double)(1ull << bucket) : 0;
}

static double bucket_end(int bucket)
{
	return (double)(1ull << (bucket + 1));
}

static uint64_t interpolate(const struct mt_stats *stats, int bucket, double fraction)
{
	double start = bucket_start(bucket), end = bucket_end(bucket);
	uint64_t value = (uint64_t)(start + (end - start) * fraction);

	/* The largest value is known exactly. */
	return value > stats->max_ns ? stats->max_ns : value;
}

uint64_t mt_stats__percentile(const struct mt_stats *stats, double percent)
{
	uint64_t total = 0, below = 0;
	double rank;

	for (int i = 0; i < MT_HIST_BUCKETS; i++)
		total += stats->hist[i];
	if (!total)
		return 0;
	percent = percent < 0 ? 0 : percent > 100 ? 100 : percent;
	rank = percent / 100 * (double)total;
	for (int i = 0; i < MT_HIST_BUCKETS; i++) {
		uint64_t count = stats->hist[i];

		if (count && rank <= (double)(below + count))
			return interpolate(stats, i, (rank - (double)below) / (double)count);
		below += count;
	}
	return stats->max_ns;
}
