// SPDX-License-Identifier: MIT
/* How much trace the limits of locked memory let a user keep. */
#include "capture/perf/perf_ring.h"
#include "capture/pt/pt_ring.h"
#include "session/capture_options.h"
#include "check/subjects.h"
#include "util/units.h"

static void explain_limit(struct check_result *result, uint64_t fits)
{
	char size[UNITS_TEXT_SIZE], snapshot[UNITS_TEXT_SIZE];
	uint64_t threads = fits / pt_ring__locked_size(SNAPSHOT_SIZE_DEFAULT, false);

	units__format_size(size, fits);
	units__format_size(snapshot, SNAPSHOT_SIZE_DEFAULT);
	check_result__add_number(result, "fits", (int64_t)fits);
	check_result__add_number(result, "threads", (int64_t)threads);
	check_result__set(result, threads ? CHECK_LIMITED : CHECK_MISSING,
			  "%s fit: %llu thread%s of %s", size, (unsigned long long)threads,
			  threads == 1 ? "" : "s", snapshot);
	check_result__remedy(result, "CAP_IPC_LOCK, ulimit -l%s",
			     threads ? "" : ", or a smaller -snapshot-size");
}

void check_memlock(const struct check *check, struct check_result *result)
{
	struct memlock_limits limits;
	uint64_t fits;

	memlock__read(&limits);
	fits = memlock__fits(&limits);
	check_result__add_number(result, "perf_event_mlock_kb", (int64_t)limits.mlock_kb);
	if (limits.rlimit == UINT64_MAX)
		check_result__add_text(result, "rlimit_memlock", "unlimited");
	else
		check_result__add_number(result, "rlimit_memlock", (int64_t)limits.rlimit);
	if (fits == UINT64_MAX)
		check_result__set(result, CHECK_OK, "as much trace as there is memory%s",
				  limits.ipc_lock ? ": CAP_IPC_LOCK lifts the limit" : "");
	else
		explain_limit(result, fits);
}
