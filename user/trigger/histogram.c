// SPDX-License-Identifier: MIT
#include "trigger/histogram.h"
#include "util/units.h"

#include <math.h>

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
	/* Reached only after rounding errors. */
	return (double)histogram__start(MT_FINE_BUCKETS);
}

uint64_t mt_stats__percentile(const struct mt_stats *stats, double percent)
{
	double counts[MT_FINE_BUCKETS];
	uint64_t value;

	for (int i = 0; i < MT_FINE_BUCKETS; i++)
		counts[i] = (double)stats->fine[i];
	value = (uint64_t)histogram__percentile(counts, percent);
	/* Interpolation in a bucket may exceed the largest value, which max_ns has exactly. */
	return value > stats->max_ns ? stats->max_ns : value;
}

/* A shorter run of empty octaves may be chance. */
#define GAP_OCTAVES 3
/* More values above a gap than this share are not outliers. */
#define GAP_SHARE 10

uint64_t mt_stats__gap(const struct mt_stats *stats, uint64_t *above)
{
	uint64_t all = 0, below = 0;
	int empty = 0, longest = GAP_OCTAVES - 1, middle = 0;

	for (int i = 0; i < MT_HIST_BUCKETS; i++)
		all += stats->hist[i];
	for (int i = 0; i < MT_HIST_BUCKETS; i++) {
		if (!stats->hist[i]) {
			empty++;
			continue;
		}
		if (below && empty > longest && (all - below) * GAP_SHARE <= all) {
			longest = empty;
			middle = i - (empty + 1) / 2;
			*above = all - below;
		}
		below += stats->hist[i];
		empty = 0;
	}
	return middle ? 1ull << middle : 0;
}

void mt_stats__add(struct mt_stats *sum, const struct mt_stats *stats)
{
	sum->hits += stats->hits;
	sum->triggers += stats->triggers;
	sum->dropped += stats->dropped;
	sum->unarmed += stats->unarmed;
	sum->let_pass += stats->let_pass;
	sum->unmeasured += stats->unmeasured;
	sum->stalls += stats->stalls;
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

#define HALF_LIFE_NS 60e9
/* Old values keep their weight while their sum is below this many times `needed`. */
#define KEPT 10

void learner__init(struct learner *learner, double percent)
{
	*learner = (struct learner){.percent = percent, .needed = threshold__needed(percent)};
}

static void forget(struct learner *learner, uint64_t elapsed_ns)
{
	double floor = (double)(KEPT * learner->needed), sum = 0;
	double keep = exp2(-(double)elapsed_ns / HALF_LIFE_NS);

	for (int i = 0; i < MT_FINE_BUCKETS; i++)
		sum += learner->counts[i];

	if (sum <= floor)
		return;
	keep = fmax(keep, floor / sum);
	for (int i = 0; i < MT_FINE_BUCKETS; i++)
		learner->counts[i] *= keep;
}

uint64_t learner__update(struct learner *learner, const struct mt_stats *stats, uint64_t elapsed_ns)
{
	double threshold;

	forget(learner, elapsed_ns);
	for (int i = 0; i < MT_FINE_BUCKETS; i++) {
		uint64_t new = stats->fine[i] - learner->last[i];

		learner->counts[i] += (double)new;
		learner->learned += new;
		learner->last[i] = stats->fine[i];
	}
	if (learner->learned < learner->needed)
		return 0;
	threshold = histogram__percentile(learner->counts, learner->percent);
	return threshold < 1 ? 1 : (uint64_t)threshold;
}
