// SPDX-License-Identifier: MIT
#include "target/maps.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "util/cleanup.h"
#include "util/fs.h"
#include "util/vec.h"

typedef VEC(struct mapping) mapping_vec;

/* Reads digits at *p up to the `end` character, and steps behind it. */
static bool take_number(const char **p, int base, char end, uint64_t *value)
{
	char *stop;

	/* strtoull() also takes blanks and signs, which a maps file never has here. */
	if (**p == ' ' || **p == '-' || **p == '+')
		return false;
	errno = 0;
	*value = strtoull(*p, &stop, base);
	if (errno || stop == *p || *stop != end)
		return false;
	*p = stop + 1;
	return true;
}

/* "r-xp " */
static bool take_prot(const char **p, uint32_t *prot)
{
	static const char letters[3] = {'r', 'w', 'x'};
	static const uint32_t bits[3] = {PROT_READ, PROT_WRITE, PROT_EXEC};

	*prot = 0;
	for (int i = 0; i < 3; i++, (*p)++) {
		if (**p == letters[i])
			*prot |= bits[i];
		else if (**p != '-')
			return false;
	}
	if (((*p)[0] != 'p' && (*p)[0] != 's') || (*p)[1] != ' ')
		return false;
	*p += 2;
	return true;
}

/* seq_path(m, file, "\n") in fs/proc/task_mmu.c escapes the newline, and nothing else. */
static char *unescape(const char *text, size_t len)
{
	char *path = malloc(len + 1), *out = path;

	if (!path)
		return NULL;
	for (size_t i = 0; i < len;) {
		if (len - i >= 4 && !memcmp(text + i, "\\012", 4)) {
			*out++ = '\n';
			i += 4;
		} else {
			*out++ = text[i++];
		}
	}
	*out = '\0';
	return path;
}

/* One line; `end` is its newline, or the end of the text. 0, -EINVAL or -ENOMEM. */
static int parse_line(const char *p, const char *end, struct mapping *m)
{
	uint64_t maj, min;

	if (!take_number(&p, 16, '-', &m->start) || !take_number(&p, 16, ' ', &m->end) ||
	    !take_prot(&p, &m->prot) || !take_number(&p, 16, ' ', &m->pgoff) ||
	    !take_number(&p, 16, ':', &maj) || !take_number(&p, 16, ' ', &min))
		return -EINVAL;
	m->maj = (uint32_t)maj;
	m->min = (uint32_t)min;
	/* Old kernels leave no blank behind the inode of an anonymous mapping. */
	if (!take_number(&p, 10, ' ', &m->ino)) {
		if (!take_number(&p, 10, *end, &m->ino))
			return -EINVAL;
		p = end;
	}
	if (p > end || m->end <= m->start)
		return -EINVAL;
	while (p < end && *p == ' ')
		p++;
	m->path = unescape(p, (size_t)(end - p));
	return m->path ? 0 : -ENOMEM;
}

int mappings__parse(struct mappings *maps, const char *text)
{
	mapping_vec vec = {0};
	int err = 0;

	while (*text && !err) {
		const char *end = strchrnul(text, '\n');
		struct mapping m, *slot;

		err = parse_line(text, end, &m);
		if (err)
			break;
		slot = VEC_PUSH(&vec);
		if (slot)
			*slot = m;
		else
			err = -ENOMEM;
		if (err)
			free(m.path);
		text = *end ? end + 1 : end;
	}
	maps->v = vec.v;
	maps->n = vec.n;
	if (err)
		mappings__fini(maps);
	return err;
}

int mappings__read(struct mappings *maps, pid_t pid)
{
	_cleanup_free_ char *text = NULL;
	char path[64];
	size_t len;
	int err;

	*maps = (struct mappings){0};
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	err = fs__read(path, &text, &len);
	if (err)
		return err == -ENOENT ? -ESRCH : err;
	return mappings__parse(maps, text);
}

void mappings__fini(struct mappings *maps)
{
	for (size_t i = 0; i < maps->n; i++)
		free(maps->v[i].path);
	free(maps->v);
	*maps = (struct mappings){0};
}

/* Of paths only those that no file's name can be: these come from mm/shmem.c and ipc/shm.c. */
bool mapping__is_memory(const struct mapping *mapping)
{
	static const char *const prefixes[] = {"[anon:",  "[anon_shmem:", "[heap]",
					       "[stack]", "/memfd:",	  "/dev/zero",
					       "/SYSV",	  "/dev/shm/",	  "//anon"};
	static const char deleted[] = " (deleted)";
	const char *path = mapping->path;
	size_t len = strlen(path), cut = sizeof(deleted) - 1;

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (!strncmp(path, prefixes[i], strlen(prefixes[i])))
			return true;
	return !len || (len > cut && !strcmp(path + len - cut, deleted));
}

const struct mapping *mappings__find(const struct mappings *maps, uint64_t addr)
{
	size_t n = VEC_PARTITION_POINT(maps, e, e->end <= addr);

	return n < maps->n && maps->v[n].start <= addr ? &maps->v[n] : NULL;
}
