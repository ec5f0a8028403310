/* SPDX-License-Identifier: MIT */
/* Versions of mtbpf and its libraries, and features found here, for bug reports. */
#ifndef MTBPF_VERSION_VERSION_H
#define MTBPF_VERSION_VERSION_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

#define VERSION_LIBRARIES 8
#define VERSION_FEATURES  6

struct version_row {
	const char *name; /* static */
	char text[PATH_MAX];
	bool there;
};

struct version {
	struct version_row libraries[VERSION_LIBRARIES], features[VERSION_FEATURES];
};

/* Asks the libraries for their versions, and tries the features. */
void version__init(struct version *version);

/* Prints one line with the version and, if known, the commit. */
void version__print_title(FILE *out);
/* Prints that line and one line per library and feature. */
void version__print(const struct version *version, FILE *out);
/* Like version__print(), as a JSON object; missing values are null. The caller frees it; NULL: no
 * memory. */
char *version__json(const struct version *version);

#endif
