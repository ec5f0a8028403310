// SPDX-License-Identifier: MIT
/* Recordings with something of everything in them, and traces. */
#include "recording_fixture.h"

#include "capture/recording/recording.h"
#include "recording_bytes.h"
#include "seeds.h"

static void write_recording(const char *name, struct recording *rec)
{
	char *meta = recording_meta__print(rec);
	size_t size;
	uint8_t *bytes = recording_bytes(rec, &size);

	seed__write("perf_data", name, bytes, size);
	seed__write("meta", name, meta, strlen(meta));
	free(bytes);
	free(meta);
	recording__fini(rec);
}

static void add_samples(struct recording *rec)
{
	static const uint64_t ips[] = {0x410000, 0x410100, 0x410200};

	rec->sample_period_ns = 1000000;
	for (uint32_t i = 0; i < 8; i++) {
		struct rec_sample sample = {.time_ns = 100 * i,
					    .pid = 100,
					    .tid = 100,
					    .n_ips = i % 4,
					    .at_switch = i % 3 == 2,
					    .in_kernel = i == 5,
					    .faults = i == 6};
		struct rec_sched sched = {.time_ns = 100 * i + 50,
					  .pid = 100,
					  .tid = 100,
					  .what = (enum rec_sched_what)(i % 3)};

		assert_int_equal(recording__add_sample(rec, &sample, ips), 0);
		assert_int_equal(VEC_ADD(&rec->scheds, sched), 0);
	}
}

void seeds__recordings(void)
{
	struct recording rec;

	recording__fill(&rec, 5);
	write_recording("threads", &rec);
	recording__fill_by_cpu(&rec);
	write_recording("cpus", &rec);
	recording__fill(&rec, 1);
	add_hit_with_stack(&rec, 3, 100);
	write_recording("stacks", &rec);
	recording__fill(&rec, 0);
	add_samples(&rec);
	write_recording("samples", &rec);
}
