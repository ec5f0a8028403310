/* SPDX-License-Identifier: MIT */
/* What a test makes the code under it say on stderr. */
#ifndef MTBPF_TESTS_STDERR_CAPTURE_H
#define MTBPF_TESTS_STDERR_CAPTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct stderr_capture {
	int saved;
	FILE *file;
	char text[8192];
};

static inline void stderr_capture__begin(struct stderr_capture *capture)
{
	fflush(stderr);
	capture->file = tmpfile();
	capture->saved = dup(STDERR_FILENO);
	if (!capture->file || capture->saved < 0)
		abort();
	dup2(fileno(capture->file), STDERR_FILENO);
}

/* The text since begin. */
static inline const char *stderr_capture__end(struct stderr_capture *capture)
{
	size_t n;

	fflush(stderr);
	dup2(capture->saved, STDERR_FILENO);
	close(capture->saved);
	rewind(capture->file);
	n = fread(capture->text, 1, sizeof(capture->text) - 1, capture->file);
	capture->text[n] = '\0';
	fclose(capture->file);
	return capture->text;
}

#endif
