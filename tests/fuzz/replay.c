// SPDX-License-Identifier: MIT
/* replay FOLDER...: runs a fuzzer's target once with each file in them, where there is no
 * libFuzzer. */
#include "fuzz.h"

#include <dirent.h>
#include <limits.h>

#include "util/fs.h"

static void run_file(const char *path)
{
	char *bytes;
	uint8_t *copy;
	size_t size;

	CHECK(!fs__read(path, &bytes, &size));
	copy = fuzz__copy((const uint8_t *)bytes, size);
	free(bytes);
	LLVMFuzzerTestOneInput(copy, size);
	free(copy);
}

static size_t run_folder(const char *folder)
{
	struct dirent **entries;
	int n = scandir(folder, &entries, NULL, alphasort);
	size_t run = 0;

	CHECK(n >= 0);
	for (int i = 0; i < n; i++) {
		char path[PATH_MAX];

		snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);
		if (entries[i]->d_name[0] != '.') {
			run_file(path);
			run++;
		}
		free(entries[i]);
	}
	free(entries);
	return run;
}

int main(int argc, char **argv)
{
	size_t run = 0;

	for (int i = 1; i < argc; i++)
		run += run_folder(argv[i]);
	if (!run) {
		fprintf(stderr, "replay: no inputs\n");
		return 1;
	}
	printf("%zu inputs\n", run);
	return 0;
}
