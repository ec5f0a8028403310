// SPDX-License-Identifier: MIT
#include "trigger/histogram.h"

uint64_t histogram__start(int bucket)
{
	int octave = bucket / MT_HIST_SUBS;
	uint64_t sub = bucket % MT_HIST_SUBS;

	return octave ? (MT_HIST_SUBS + sub) << (octave - 1) : sub;
}

int histogram__octave(int bucket)
{
	uint64_t start = histogram__start(bucket);

	return start ? 63 - __builtin_clzll(start) : 0;
}

double histogram__percentile(const double counts[static MT_FINE_BUCKETS], double percent)
{
	double total = 0, below = 0, rank;

	for (int b = 0; b < MT_FINE_BUCKETS; b++)
		total += counts[b];
	if (total <= 0)
		return 0;
	percent = percent < 0 ? 0 : percent > 100 ? 100 : percent;
	rank = percent / 100 * total;
	for (int i = 0; i < MT_FINE_BUCKETS; i++) {
		double start = (double)histogram__start(i), end = (double)histogram__start(i + 1);

		if (counts[i] > 0 && rank <= below + counts[i])
			return start + (end - start) * (rank - below) / counts[i];
		below += counts[i];
	}
	/* Only after rounding errors. */
	return (double)histogram__start(MT_FINE_BUCKETS);
}

uint64_t mt_stats__percentile(const struct mt_stats *stats, double percent)
{
	double counts[MT_FINE_BUCKETS];
	uint64_t value;

	for (int i = 0; i < MT_FINE_BUCKETS; i++)
		counts[i] = (double)stats->fine[i];
	value = (uint64_t)histogram__percentile(counts, percent);
	/* max_ns is exact. */
	return value > stats->max_ns ? stats->max_ns : value;
}

void mt_stats__add(struct mt_stats *sum, const struct mt_stats *stats)
{
	sum->hits += stats->hits;
	sum->triggers += stats->triggers;
	sum->dropped += stats->dropped;
	sum->unarmed += stats->unarmed;
	sum->let_pass += stats->let_pass;
	sum->unmeasured += stats->unmeasured;
	sum->evicted += stats->evicted;
	sum->restarted += stats->restarted;
	sum->keyless += stats->keyless;
	sum->missed += stats->missed;
	sum->sum_ns += stats->sum_ns;
	if (stats->max_ns > sum->max_ns)
		sum->max_ns = stats->max_ns;
	for (int i = 0; i < MT_HIST_BUCKETS; i++)
		sum->hist[i] += stats->hist[i];
	for (int i = 0; i < MT_FINE_BUCKETS; i++)
		sum->fine[i] += stats->fine[i];
}
