// SPDX-License-Identifier: MIT
#include "capture/code/patched_code.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture/code/uprobes_page.h"
#include "target/process.h"
#include "util/cleanup.h"
#include "util/page.h"

/* "call rel32", behind "lea -0x80(%rsp),%rsp" from Linux 7.2 on: over the red zone. */
#define CALL_SIZE 5
static const uint8_t over_red_zone[] = {0x48, 0x8d, 0x64, 0x24, 0x80};

struct patch_search {
	struct recording *rec;
	pid_t pid;
	const struct mappings *maps;
	int pagemap;
};

static bool is_trampoline(const struct mapping *m)
{
	return !strcmp(m->path, UPROBES_TRAMPOLINE);
}

static bool calls_trampoline(const struct patch_search *s, const uint8_t *code, uint64_t ip)
{
	const struct mapping *m;
	int32_t distance;

	if (code[0] != 0xe8)
		return false;
	memcpy(&distance, code + 1, sizeof(distance));
	m = mappings__find(s->maps, ip + CALL_SIZE + (uint64_t)(int64_t)distance);
	return m && is_trampoline(m);
}

/* The page as it is in memory and in the file, both PAGE bytes long. 0 or -ENOMEM. */
static int compare_page(const struct patch_search *s, const struct mapping *m, uint64_t start,
			const uint8_t *now, const uint8_t *file)
{
	int err = 0;

	for (size_t at = 0; at + CALL_SIZE <= PAGE && !err; at++) {
		struct rec_image patch = {.path = m->path,
					  .start = start + at,
					  .data = (uint8_t *)now + at,
					  .size = CALL_SIZE,
					  .pid = s->pid};

		if (!memcmp(now + at, file + at, CALL_SIZE) ||
		    !calls_trampoline(s, now + at, start + at))
			continue;
		if (at >= sizeof(over_red_zone) && !memcmp(now + at - sizeof(over_red_zone),
							   over_red_zone, sizeof(over_red_zone))) {
			patch.start -= sizeof(over_red_zone);
			patch.data -= sizeof(over_red_zone);
			patch.size += sizeof(over_red_zone);
		}
		err = recording__add_image(s->rec, &patch);
	}
	return err;
}

/* A probed page is the process's own copy of the file's. */
static int search_page(const struct patch_search *s, const struct mapping *m, int fd,
		       uint64_t start)
{
	uint8_t now[PAGE], file[PAGE];
	uint64_t entry;

	if (pread(s->pagemap, &entry, 8, (off_t)(start / PAGE * 8)) != 8 ||
	    !(entry & PAGE_PRESENT) || entry & PAGE_FILE ||
	    pread(fd, file, PAGE, (off_t)(m->pgoff + start - m->start)) != PAGE ||
	    process__read_memory(s->pid, start, now, PAGE) != PAGE)
		return 0;
	return compare_page(s, m, start, now, file);
}

static int search_files(const struct patch_search *s)
{
	int err = 0;

	for (size_t i = 0; i < s->maps->n && !err; i++) {
		const struct mapping *m = &s->maps->v[i];
		const struct rec_file *file = NULL;

		if (m->prot & PROT_EXEC && m->path[0] == '/')
			file = recording__find_file(s->rec, m->path, m->ino);
		if (!file || file->fd < 0)
			continue;
		for (uint64_t at = m->start; at < m->end && !err; at += PAGE)
			err = search_page(s, m, file->fd, at);
	}
	return err;
}

static int add_trampoline(struct recording *rec, pid_t pid, const struct mapping *m,
			  const uint8_t *page, size_t size)
{
	struct rec_image image = {
		.path = m->path, .start = m->start, .data = (uint8_t *)page, .size = size};
	/* The kernel maps it at a hit, and sideband need not tell: as if it had always been there.
	 */
	struct rec_map map = {.start = m->start,
			      .len = m->end - m->start,
			      .pid = pid,
			      .tid = pid,
			      .path = m->path};

	if (recording__add_image(rec, &image))
		return -ENOMEM;
	for (size_t i = 0; i < rec->maps.n; i++)
		if (rec->maps.v[i].pid == pid && rec->maps.v[i].start == m->start &&
		    !strcmp(rec->maps.v[i].path, m->path))
			return 0;
	return recording__add_map(rec, &map);
}

/* How many there are whose code is known; or -ENOMEM. */
static int add_trampolines(struct recording *rec, pid_t pid, const struct mappings *maps)
{
	uint8_t page[UPROBES_PAGE_SIZE];
	size_t size = 0;
	int n = 0;

	for (size_t i = 0; i < maps->n; i++) {
		if (!is_trampoline(&maps->v[i]))
			continue;
		if (!size)
			size = uprobes_trampoline__read(page, sizeof(page));
		if (!size)
			return 0;
		if (add_trampoline(rec, pid, &maps->v[i], page, size))
			return -ENOMEM;
		n++;
	}
	return n;
}

int patched_code__take(struct recording *rec, pid_t pid)
{
	_cleanup_close_ int pagemap = -1;
	struct mappings maps;
	char path[64];
	int found;

	if (mappings__read(&maps, pid))
		return 0;
	found = add_trampolines(rec, pid, &maps);
	if (found > 0) {
		snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)pid);
		pagemap = open(path, O_RDONLY | O_CLOEXEC);
		found = search_files(&(struct patch_search){
			.rec = rec, .pid = pid, .maps = &maps, .pagemap = pagemap});
	}
	mappings__fini(&maps);
	return found;
}
