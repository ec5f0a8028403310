// SPDX-License-Identifier: MIT
#include "pipeline/output_name.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/log.h"
#include "util/vec.h"

static const char *const trace_suffixes[] = {".fxt", ".fxt.gz", ".fxt.zst"};
/* A sixth of the size of .fxt; Perfetto reads it. */
#define DEFAULT_SUFFIX	 ".fxt.gz"
#define RECORDING_SUFFIX ".mtbpf"

/* The length of the name without the suffix; 0 if it lacks the suffix, or only a folder is left. */
static size_t stem(const char *name, const char *suffix)
{
	size_t n = strlen(name), s = strlen(suffix);

	if (n <= s || strcmp(name + n - s, suffix) || name[n - s - 1] == '/')
		return 0;
	return n - s;
}

int output_names__from(struct output_names *names, const char *output)
{
	size_t n;

	if (!output)
		output = "trace" DEFAULT_SUFFIX;
	if (strlen(output) + sizeof(DEFAULT_SUFFIX) > PATH_MAX) {
		log__error("the output name is too long: %zu bytes", strlen(output));
		log__hint("use at most %zu bytes: mtbpf may append " DEFAULT_SUFFIX,
			  PATH_MAX - sizeof(DEFAULT_SUFFIX));
		return -ENAMETOOLONG;
	}
	n = stem(output, RECORDING_SUFFIX);
	if (n) {
		snprintf(names->recording, PATH_MAX, "%s", output);
		snprintf(names->trace, PATH_MAX, "%.*s" DEFAULT_SUFFIX, (int)n, output);
		return 0;
	}
	for (size_t i = 0; i < sizeof(trace_suffixes) / sizeof(trace_suffixes[0]); i++) {
		n = stem(output, trace_suffixes[i]);
		if (!n)
			continue;
		snprintf(names->trace, PATH_MAX, "%s", output);
		snprintf(names->recording, PATH_MAX, "%.*s" RECORDING_SUFFIX, (int)n, output);
		return 0;
	}
	log__error("'%s' is not a valid output name", output);
	log__hint("the name must end in .fxt, .fxt.gz or .fxt.zst (the trace) or .mtbpf (the "
		  "recording)");
	return -EINVAL;
}

bool is_trace_name(const char *path)
{
	return ARRAY_FIND(trace_suffixes, suffix, stem(path, *suffix));
}
