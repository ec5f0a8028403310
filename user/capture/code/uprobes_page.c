// SPDX-License-Identifier: MIT
#include "capture/code/uprobes_page.h"

#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "capture/probe/uprobe_event.h"
#include "target/maps.h"

/* What the return probe is set on; the asm keeps the compiler from dropping the call. */
static __attribute__((noinline)) void probed_function(void)
{
	__asm__ volatile("nop" ::: "memory");
}

static const struct mapping *find_path(const struct mappings *maps, const char *path)
{
	for (size_t i = 0; i < maps->n; i++)
		if (!strcmp(maps->v[i].path, path))
			return &maps->v[i];
	return NULL;
}

/* A probe of the code at this address of ours. 0 or -ENOENT. */
static int find_own(uint64_t address, struct uprobe_spec *spec)
{
	struct mappings maps;
	const struct mapping *m;
	int err = mappings__read(&maps, getpid());

	if (err)
		return err;
	m = mappings__find(&maps, address);
	if (m)
		*spec = (struct uprobe_spec){.path = "/proc/self/exe",
					     .offset = address - m->start + m->pgoff,
					     .pid = getpid()};
	mappings__fini(&maps);
	return m ? 0 : -ENOENT;
}

/* What we have mapped by that name. */
static size_t copy_own(const char *path, uint8_t *page, size_t size)
{
	const struct mapping *m;
	struct mappings maps;
	size_t n = 0;

	if (mappings__read(&maps, getpid()))
		return 0;
	m = find_path(&maps, path);
	if (m) {
		n = m->end - m->start < size ? m->end - m->start : size;
		memcpy(page, (const void *)(uintptr_t)m->start, n);
	}
	mappings__fini(&maps);
	return n;
}

size_t uprobes_page__read(uint8_t *page, size_t size)
{
	struct uprobe_spec spec;
	size_t n;
	int fd;

	if (find_own((uint64_t)(uintptr_t)probed_function, &spec))
		return 0;
	spec.on_return = true;
	fd = uprobe_event__open(&spec);
	if (fd < 0)
		return 0;
	probed_function();
	n = copy_own("[uprobes]", page, size);
	close(fd);
	return n;
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

/* The trampoline that a probe on the function makes the kernel map; 0 if it maps none. */
static size_t read_trampoline_of(void (*function)(void), uint8_t *page, size_t size)
{
	const struct uprobe_group group = {.place = event_place__of_thread(0), .leader = -1};
	struct uprobe_spec spec;
	size_t n;
	int fd;

	if (find_own((uint64_t)(uintptr_t)function, &spec))
		return 0;
	fd = uprobe_event__open_in_group(&spec, &group);
	if (fd < 0)
		return 0;
	/* The first hit optimises it. */
	function();
	function();
	n = copy_own(UPROBES_TRAMPOLINE, page, size);
	close(fd);
	return n;
}

size_t uprobes_trampoline__read(uint8_t *page, size_t size)
{
	size_t n = read_trampoline_of(nop_of_5, page, size);

	return n ? n : read_trampoline_of(nop_of_10, page, size);
}

/* arch/x86/include/asm/uprobes.h: UPROBE_XOL_SLOT_BYTES; slot 0 is the trampoline's. */
#define SLOT_SIZE 128

static bool is_known(const struct recording *rec, pid_t pid, uint64_t start)
{
	for (size_t i = 0; i < rec->maps.n; i++)
		if (rec->maps.v[i].pid == pid && rec->maps.v[i].start == start &&
		    !strcmp(rec->maps.v[i].path, "[uprobes]"))
			return true;
	return false;
}

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
	struct mappings maps;
	int err = 0;

	if (mappings__read(&maps, pid))
		maps = (struct mappings){0};
	/* A process that has exited has none to show. */
	m = maps.n ? find_path(&maps, "[uprobes]") : &usual_place;
	if (m && !is_known(rec, pid, m->start))
		err = recording__add_map(rec, &(struct rec_map){.time_ns = time_ns,
								.start = m->start,
								.len = m->end - m->start,
								.pid = pid,
								.tid = pid,
								.path = m->path});
	if (m && !err)
		err = add_page(rec, m, own_page, own_page_len, probed);
	mappings__fini(&maps);
	return err;
}
