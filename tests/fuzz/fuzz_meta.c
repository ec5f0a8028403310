// SPDX-License-Identifier: MIT
/* libFuzzer: a recording's meta.json. What could be read is the same when it is written and read.
 */
#include "fuzz.h"

#include "capture/recording/recording.h"

static int read_image(void *ctx, const char *file, char **data, size_t *size)
{
	CHECK(file && !strstr(file, "..") && file[0] != '/');
	*data = strdup("\x90\xc3");
	*size = 2;
	return *data ? 0 : -12;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz__text(data, size), *first, *second;
	struct recording rec, again;

	recording__init(&rec);
	recording__init(&again);
	if (!recording_meta__parse(&rec, text, read_image, NULL)) {
		first = recording_meta__print(&rec);
		CHECK(first && !recording_meta__parse(&again, first, read_image, NULL));
		second = recording_meta__print(&again);
		CHECK(second && !strcmp(first, second));
		free(first);
		free(second);
	}
	recording__fini(&rec);
	recording__fini(&again);
	free(text);
	return 0;
}
