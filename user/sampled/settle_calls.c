// SPDX-License-Identifier: MIT
#include "sampled/settle_calls.h"

#include <errno.h>

#include "util/insn.h"

static uint64_t behind_call(struct code_map *map, uint64_t ip)
{
	uint8_t code[INSN_MAX_LEN];
	size_t n = code_map__read(map, ip, code, sizeof(code));
	struct insn insn;

	if (!n || insn__decode(code, n, ip, &insn) ||
	    (insn.cls != INSN_CALL && insn.cls != INSN_CALL_INDIRECT))
		return ip + 1;
	return ip + insn.len;
}

static void settle_sample(struct recording *rec, struct rec_sample *sample, struct code_map *map)
{
	uint64_t *ips = &rec->sample_ips.v[sample->first_ip];

	for (uint32_t i = 1; i <= sample->n_calls && i < sample->n_ips; i++)
		ips[i] = behind_call(map, ips[i]);
	sample->n_calls = 0;
}

/* All samples of one process, as its mappings were in the end. */
static int settle_process(struct recording *rec, struct images *images, pid_t pid)
{
	struct code_map *map = code_map__new();
	size_t next = 0;
	int err = map ? images__apply(images, pid, UINT64_MAX, &next, map) : -ENOMEM;

	for (size_t i = 0; i < rec->samples.n && !err; i++)
		if (rec->samples.v[i].pid == pid && rec->samples.v[i].n_calls)
			settle_sample(rec, &rec->samples.v[i], map);
	code_map__free(map);
	return err;
}

int settle_calls(struct recording *rec, struct images *images)
{
	int err = 0;

	for (size_t i = 0; i < rec->samples.n && !err; i++)
		if (rec->samples.v[i].n_calls)
			err = settle_process(rec, images, rec->samples.v[i].pid);
	return err;
}
