// SPDX-License-Identifier: MIT
#include "trigger/learner.h"

#include <math.h>

#include "trigger/histogram.h"
#include "util/units.h"

#define HALF_LIFE_NS 60e9
/* Old values keep their weight while their sum is below this many times `needed`. */
#define KEPT 10

void learner__init(struct learner *learner, double percent)
{
	*learner = (struct learner){.percent = percent, .needed = threshold__needed(percent)};
}

static double total(const struct learner *learner)
{
	double sum = 0;

	for (int i = 0; i < MT_FINE_BUCKETS; i++)
		sum += learner->counts[i];
	return sum;
}

static void forget(struct learner *learner, uint64_t elapsed_ns)
{
	double floor = (double)(KEPT * learner->needed), sum = total(learner);
	double keep = exp2(-(double)elapsed_ns / HALF_LIFE_NS);

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
