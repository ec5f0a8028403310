/* SPDX-License-Identifier: MIT */
/*
 * Where the code comes from that the traced process runs. Its addresses are those of the process
 * that it is emulated in, so that /proc/self/maps tells.
 */
#ifndef MTBPF_TESTS_PTGEN_GUEST_MAPS_H
#define MTBPF_TESTS_PTGEN_GUEST_MAPS_H

#include <stddef.h>
#include <stdint.h>

#include "shared.h"
#include "util/vec.h"

struct known_range {
	uint64_t start, end;
	bool is_file;
	bool is_gone; /* unmapped, or mapped over: look again */
};

struct guest_maps {
	struct ptgen_shared *shared;
	VEC(struct known_range) known;
	size_t last; /* index of the one that was looked for last */
};

/* Code of [start, end) has been translated: it becomes part of the recording. */
void guest_maps__add_code(struct guest_maps *maps, uint64_t start, uint64_t end);

/* [start, end) is something else now. */
void guest_maps__forget(struct guest_maps *maps, uint64_t start, uint64_t end);

#endif
