/* SPDX-License-Identifier: MIT */
/* A recording as the bytes of its perf.data. */
#ifndef MTBPF_TESTS_FUZZ_RECORDING_BYTES_H
#define MTBPF_TESTS_FUZZ_RECORDING_BYTES_H

#include "fuzz.h"

#include "capture/recording/perf_data.h"

/* The caller frees them. */
static inline uint8_t *recording_bytes(const struct recording *rec, size_t *size)
{
	int fd = memfd_create("data", MFD_CLOEXEC);
	FILE *out = fdopen(fd, "w+");
	uint8_t *bytes;
	long end;

	CHECK(out);
	perf_data__write(rec, out);
	CHECK(!ferror(out) && !fseek(out, 0, SEEK_END) && (end = ftell(out)) > 0);
	*size = (size_t)end;
	bytes = malloc(*size);
	rewind(out);
	CHECK(bytes && fread(bytes, 1, *size, out) == *size);
	fclose(out);
	return bytes;
}

#endif
