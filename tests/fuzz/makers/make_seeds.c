// SPDX-License-Identifier: MIT
/* make_seeds DIR: writes DIR/seeds-FUZZER/ for each. */
#include "seeds.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "util/fs.h"

static const char *folder;

void seed__write(const char *fuzzer, const char *name, const void *bytes, size_t size)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/seeds-%s", folder, fuzzer);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/seeds-%s/%s", folder, fuzzer, name);
	if (!fs__write(path, bytes, size))
		return;
	fprintf(stderr, "make_seeds: cannot write %s\n", path);
	exit(1);
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: make_seeds DIR\n");
		return 2;
	}
	folder = argv[1];
	seeds__decode();
	seeds__recordings();
	seeds__elf();
	seeds__texts();
	return 0;
}
