/* SPDX-License-Identifier: MIT */
/* What a report of a bug begins with: the version, those of the libraries, what is found here. */
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

/* As the libraries say it themselves; features are tried. */
void version__init(struct version *version);

/* The version and the commit, where that is known, on a line. */
void version__print_title(FILE *out);
/* That line, and one a library and a feature. */
void version__print(const struct version *version, FILE *out);
/* The same as a JSON object: what is not there is null. The caller frees it; NULL: no memory. */
char *version__json(const struct version *version);

#endif
