// SPDX-License-Identifier: MIT
#include "capture/code/uprobes_page.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture/probe/uprobe_event.h"
#include "target/maps.h"
#include "target/process.h"
#include "util/cleanup.h"
#include "util/page.h"

static const struct mapping *find_path(const struct mappings *maps, const char *path)
{
	for (size_t i = 0; i < maps->n; i++)
		if (!strcmp(maps->v[i].path, path))
			return &maps->v[i];
	return NULL;
}

/* What we have mapped by that name. */
static size_t copy_own(const char *path, uint8_t *page, size_t size)
{
	_cleanup_mappings_ struct mappings maps = {0};
	const struct mapping *m;

	mappings__read(&maps, getpid());
	m = find_path(&maps, path);
	if (!m)
		return 0;
	if (m->end - m->start < size)
		size = m->end - m->start;
	memcpy(page, (const void *)(uintptr_t)m->start, size);
	return size;
}

/* Copies the page that the kernel maps under `path` for a probe on the function; 0 if it maps none.
 */
static size_t read_page_of(void (*function)(void), bool on_return, const char *path, uint8_t *page,
			   size_t size)
{
	const struct uprobe_group group = {.place = event_place__of_thread(0), .leader = -1};
	_cleanup_close_ int fd = -1;
	struct uprobe_spec spec;

	if (own_probe__spec_of(&spec, (uintptr_t)function))
		return 0;
	spec.on_return = on_return;
	fd = on_return ? uprobe_event__open(&spec) : uprobe_event__open_in_group(&spec, &group);
	if (fd < 0)
		return 0;
	/* From the first hit on an instruction may be optimised. */
	function();
	function();
	return copy_own(path, page, size);
}

size_t uprobes_page__read(uint8_t *page, size_t size)
{
	return read_page_of(own_probe__hit, true, "[uprobes]", page, size);
}

/*
 * What the kernel optimises: until 7.1 a nop of five bytes, from 7.2 on one of ten, which leaves
 * room to step over the red zone. Neither may cross a page.
 */
__asm__(".pushsection .text.uprobes_page, \"ax\", @progbits\n"
	".balign 16\n"
	".type nop_of_5, @function\n"
	"nop_of_5: .byte 0x0f, 0x1f, 0x44, 0, 0\n"
	"ret\n"
	".size nop_of_5, 6\n"
	".balign 16\n"
	".type nop_of_10, @function\n"
	"nop_of_10: .byte 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0\n"
	"ret\n"
	".size nop_of_10, 11\n"
	".popsection\n");
void nop_of_5(void) __attribute__((visibility("hidden")));
void nop_of_10(void) __attribute__((visibility("hidden")));

size_t uprobes_trampoline__read(uint8_t *page, size_t size)
{
	size_t n = read_page_of(nop_of_5, false, UPROBES_TRAMPOLINE, page, size);

	return n ? n : read_page_of(nop_of_10, false, UPROBES_TRAMPOLINE, page, size);
}

/* Its mapping, as if it had been there from time_ns on. 0 or -ENOMEM. */
static int add_map(struct recording *rec, pid_t pid, const struct mapping *m, uint64_t time_ns)
{
	for (size_t i = 0; i < rec->maps.n; i++)
		if (rec->maps.v[i].pid == pid && rec->maps.v[i].start == m->start &&
		    !strcmp(rec->maps.v[i].path, m->path))
			return 0;
	return recording__add_map(rec, &(struct rec_map){.time_ns = time_ns,
							 .start = m->start,
							 .len = m->end - m->start,
							 .pid = pid,
							 .tid = pid,
							 .path = m->path});
}

/* arch/x86/include/asm/uprobes.h: UPROBE_XOL_SLOT_BYTES; slot 0 is the trampoline's. */
#define SLOT_SIZE 128

/* kernel/events/uprobes.c: xol_add_vma() maps it as high as it can, below TASK_SIZE. */
static const struct mapping usual_place = {
	.start = 0x7fffffffe000, .end = 0x7ffffffff000, .path = (char *)"[uprobes]"};

static int add_page(struct recording *rec, const struct mapping *m, const uint8_t *own_page,
		    size_t own_page_len, const uint8_t *probed)
{
	uint8_t page[UPROBES_PAGE_SIZE] = {0};
	struct rec_image image = {
		.path = "[uprobes]", .start = m->start, .data = page, .size = sizeof(page)};

	memcpy(page, own_page, own_page_len < SLOT_SIZE ? own_page_len : SLOT_SIZE);
	for (size_t at = SLOT_SIZE; at < sizeof(page); at += SLOT_SIZE)
		memcpy(page + at, probed, UPROBES_INSN_SIZE);
	return recording__add_image(rec, &image);
}

int uprobes_page__add(struct recording *rec, pid_t pid, uint64_t time_ns, const uint8_t *own_page,
		      size_t own_page_len, const uint8_t probed[static UPROBES_INSN_SIZE])
{
	const struct mapping *m;
	_cleanup_mappings_ struct mappings maps = {0};
	int err = 0;

	mappings__read(&maps, pid);
	/* A process that has exited has none to show. */
	m = maps.n ? find_path(&maps, "[uprobes]") : &usual_place;
	if (m)
		err = add_map(rec, pid, m, time_ns);
	if (m && !err)
		err = add_page(rec, m, own_page, own_page_len, probed);
	return err;
}

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

	if (recording__add_image(rec, &image))
		return -ENOMEM;
	/* The kernel maps it at a hit, and sideband need not tell. */
	return add_map(rec, pid, m, 0);
}

/* Returns how many it added, 0 if their code is not known, or -ENOMEM. */
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
	_cleanup_mappings_ struct mappings maps = {0};
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
	return found;
}
