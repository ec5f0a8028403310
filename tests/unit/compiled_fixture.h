/* SPDX-License-Identifier: MIT */
/* A folder to compile samples in, and the images that come out. */
#ifndef MTBPF_TESTS_COMPILED_FIXTURE_H
#define MTBPF_TESTS_COMPILED_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "target/elf/elf_image.h"
#include "util/fs.h"

struct compiled {
	char dir[40];
};

static inline int make_folder(void **state)
{
	struct compiled *f = calloc(1, sizeof(*f));

	strcpy(f->dir, "/tmp/test_compiled.XXXXXX");
	*state = f;
	return mkdtemp(f->dir) ? 0 : -1;
}

static inline int remove_folder(void **state)
{
	struct compiled *f = *state;
	int err = fs__remove_dir(f->dir);

	free(f);
	return err;
}

static inline void write_source(const struct compiled *f, const char *name, const char *text)
{
	char path[80];

	snprintf(path, sizeof(path), "%s/%s", f->dir, name);
	assert_int_equal(fs__write(path, text, strlen(text)), 0);
}

static inline bool has_tool(const char *name)
{
	char line[100];

	snprintf(line, sizeof(line), "command -v %s >/dev/null", name);
	return !system(line);
}

/* In the folder. What it says is shown where it fails. */
static inline void run_in_folder(const struct compiled *f, const char *command)
{
	char line[1000];

	snprintf(line, sizeof(line), "cd %s && { %s; } >said 2>&1 || { cat said; false; }", f->dir,
		 command);
	assert_int_equal(system(line), 0);
}

static inline struct elf_image *open_compiled(const struct compiled *f, const char *name)
{
	struct elf_image *image;
	char path[80];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", f->dir, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	image = elf_image__open(fd, path);
	close(fd);
	assert_non_null(image);
	return image;
}

/* The address of a symbol of the file, by nm. */
static inline uint64_t address_of(const struct compiled *f, const char *name, const char *symbol)
{
	unsigned long long vaddr = 0;
	char line[200];
	FILE *out;

	snprintf(line, sizeof(line), "nm %s/%s | awk '$3 == \"%s\" { print $1 }'", f->dir, name,
		 symbol);
	out = popen(line, "r");
	assert_int_equal(fscanf(out, "%llx", &vaddr), 1);
	pclose(out);
	return vaddr;
}

#endif
