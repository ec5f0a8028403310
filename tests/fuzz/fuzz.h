/* SPDX-License-Identifier: MIT */
/* What the fuzzers share: inputs in the shapes that readers take, and what must be true of output.
 */
#ifndef MTBPF_TESTS_FUZZ_H
#define MTBPF_TESTS_FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "util/names.h"
#include "util/log.h"

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);            \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Messages are the callers' concern; their formatting still runs where a fuzzer raises the level.
 */
__attribute__((constructor)) static inline void fuzz__be_silent(void)
{
	log__set_level(LOG_SILENT);
}

/* Of exactly this size, so that reading past it shows. The caller frees it. */
static inline uint8_t *fuzz__copy(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);

	CHECK(copy);
	if (size)
		memcpy(copy, data, size);
	return copy;
}

/* The same, ended by a NUL: as fs__read() gives files. */
static inline char *fuzz__text(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	CHECK(text);
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	return text;
}

/* A file that holds it, at its beginning. The caller closes it. */
static inline int fuzz__file(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	CHECK(lseek(fd, 0, SEEK_SET) == 0);
	return fd;
}

/* Cut off the input: so many of its bytes, or what there is of them. */
static inline const uint8_t *fuzz__take(const uint8_t **data, size_t *size, size_t n)
{
	const uint8_t *taken = *data;

	CHECK(n <= *size);
	*data += n;
	*size -= n;
	return taken;
}

/* Lines that go to a terminal: well-formed UTF-8 without control characters. */
static inline void fuzz__check_lines(char *lines)
{
	char buf[LABEL_SIZE], *rest = NULL;

	for (char *line = strtok_r(lines, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		size_t len;

		if (strlen(line) <= LABEL_MAX)
			CHECK(label__clean(buf, line, &len) == line);
	}
}

#endif
