// SPDX-License-Identifier: MIT
#include "capture/code/live_code.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "capture/probe/uprobe_event.h"
#include "target/elf/debug_file.h"
#include "target/elf/elf_image.h"
#include "target/maps.h"
#include "target/process.h"
#include "target/symbols/live_image.h"
#include "util/cleanup.h"
#include "util/fs.h"
#include "util/log.h"
#include "util/page.h"
#include "util/units.h"

/* The code that the kernel makes for probes. */

static const struct mapping *find_path(const struct mappings *maps, const char *path)
{
	return VEC_FIND(maps, map, !strcmp(map->path, path));
}

/* Copies the page that the kernel maps under `path` for a probe on the function; 0 if it maps none.
 */
static size_t read_page_of(void (*function)(void), bool on_return, const char *path, uint8_t *page,
			   size_t size)
{
	const struct uprobe_group group = {.place = event_place__of_thread(0), .leader = -1};
	_cleanup_mappings_ struct mappings maps = {0};
	_cleanup_close_ int fd = -1;
	const struct mapping *m;
	struct uprobe_spec spec;

	if (own_probe__spec_of(&spec, (uintptr_t)function))
		return 0;
	spec.on_return = on_return;
	fd = on_return ? uprobe_event__open(&spec) : uprobe_event__open_in_group(&spec, &group);
	if (fd < 0)
		return 0;
	/* At the first hit, the kernel may replace the instruction by a call of the page. */
	function();
	function();
	mappings__read(&maps, getpid());
	m = find_path(&maps, path);
	if (!m)
		return 0;
	if (m->end - m->start < size)
		size = m->end - m->start;
	memcpy(page, (const void *)(uintptr_t)m->start, size);
	return size;
}

size_t uprobes_page__read(uint8_t *page, size_t size)
{
	return read_page_of(own_probe__hit, true, "[uprobes]", page, size);
}

/*
 * Nops that the kernel replaces when they are probed: five bytes until Linux 7.1, ten from 7.2 on,
 * which have room to step over the red zone. Neither may cross a page.
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

/* Adds the mapping `m` of the process from time_ns on, unless rec has it. 0 or -ENOMEM. */
static int add_map(struct recording *rec, pid_t pid, const struct mapping *m, uint64_t time_ns)
{
	const struct rec_map map = process_note__map(pid, m, time_ns);

	return VEC_FIND(&rec->maps, known,
			known->pid == pid && known->start == m->start &&
				!strcmp(known->path, m->path))
		       ? 0
		       : recording__add_map(rec, &map);
}

/* arch/x86/include/asm/uprobes.h: UPROBE_XOL_SLOT_BYTES; slot 0 is the trampoline's. */
#define SLOT_SIZE 128

/* kernel/events/uprobes.c: xol_add_vma() maps the page as high as possible, below TASK_SIZE. */
static const struct mapping usual_place = {
	.start = 0x7fffffffe000, .end = 0x7ffffffff000, .path = (char *)"[uprobes]"};

int uprobes_page__add(struct recording *rec, pid_t pid, uint64_t time_ns, const uint8_t *own_page,
		      size_t own_page_len, const uint8_t probed[static UPROBES_INSN_SIZE])
{
	uint8_t page[UPROBES_PAGE_SIZE] = {0};
	struct rec_image image = {.path = "[uprobes]", .data = page, .size = sizeof(page)};
	_cleanup_mappings_ struct mappings maps = {0};
	const struct mapping *m;
	int err;

	mappings__read(&maps, pid);
	/* /proc shows no mappings after an exit. */
	m = maps.n ? find_path(&maps, "[uprobes]") : &usual_place;
	if (!m)
		return 0;
	err = add_map(rec, pid, m, time_ns);
	image.start = m->start;
	memcpy(page, own_page, own_page_len < SLOT_SIZE ? own_page_len : SLOT_SIZE);
	for (size_t at = SLOT_SIZE; at < sizeof(page); at += SLOT_SIZE)
		memcpy(page + at, probed, UPROBES_INSN_SIZE);
	return err ? err : recording__add_image(rec, &image);
}

/* A "call rel32". Since Linux 7.2 a "lea -0x80(%rsp),%rsp" precedes it, to skip the red zone. */
#define CALL_SIZE 5
static const uint8_t over_red_zone[] = {0x48, 0x8d, 0x64, 0x24, 0x80};

struct patch_search {
	struct recording *rec;
	pid_t pid;
	const struct mappings *maps;
	int pagemap;
};

/* Adds the calls to a trampoline in a page of the file's mapping `m`. 0 or -ENOMEM. */
static int search_page(const struct patch_search *s, const struct mapping *m, int fd,
		       uint64_t start)
{
	uint8_t now[PAGE], file[PAGE];
	uint64_t entry;
	int err = 0;

	/*
	 * Skips pages that are still the file's: the kernel gives the process its own copy of a
	 * probed page.
	 */
	if (pread(s->pagemap, &entry, 8, (off_t)(start / PAGE * 8)) != 8 ||
	    !(entry & PAGE_PRESENT) || entry & PAGE_FILE ||
	    pread(fd, file, PAGE, (off_t)(m->pgoff + start - m->start)) != PAGE ||
	    process__read_memory(s->pid, start, now, PAGE) != PAGE)
		return 0;
	for (size_t at = 0; at + CALL_SIZE <= PAGE && !err; at++) {
		struct rec_image patch = {.path = m->path,
					  .start = start + at,
					  .data = now + at,
					  .size = CALL_SIZE,
					  .pid = s->pid};
		const struct mapping *called;
		int32_t distance;

		if (now[at] != 0xe8 || !memcmp(now + at, file + at, CALL_SIZE))
			continue;
		memcpy(&distance, now + at + 1, sizeof(distance));
		called = mappings__find(s->maps,
					start + at + CALL_SIZE + (uint64_t)(int64_t)distance);
		if (!called || strcmp(called->path, UPROBES_TRAMPOLINE))
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

/*
 * Adds the process's [uprobes-trampoline] pages. Returns their number, 0 if their code is not
 * known, or -ENOMEM.
 */
static int add_trampolines(struct recording *rec, pid_t pid, const struct mappings *maps)
{
	uint8_t page[UPROBES_PAGE_SIZE];
	size_t size = 0;
	int n = 0;

	VEC_EACH(maps, m) {
		struct rec_image image = {.path = m->path, .start = m->start, .data = page};

		if (strcmp(m->path, UPROBES_TRAMPOLINE))
			continue;
		if (!size)
			size = uprobes_trampoline__read(page, sizeof(page));
		if (!size)
			return 0;
		image.size = size;
		/* The kernel maps the page at a hit, maybe without a sideband record. */
		if (recording__add_image(rec, &image) || add_map(rec, pid, m, 0))
			return -ENOMEM;
		n++;
	}
	return n;
}

/*
 * The kernel has turned probes, of any tool, into calls: the code that runs there differs from the
 * file. Adds the [uprobes-trampoline] pages of process pid, valid from time 0 on, and the current
 * calls of these pages in the files that it has mapped. Call this after code_copy__take(), which
 * drops the result of an earlier call. 0 or -ENOMEM.
 */
static int take_patched_code(struct recording *rec, pid_t pid)
{
	_cleanup_close_ int pagemap = -1;
	_cleanup_mappings_ struct mappings maps = {0};
	struct patch_search search = {.rec = rec, .pid = pid, .maps = &maps};
	char path[64];
	int found, err = 0;

	if (mappings__read(&maps, pid))
		return 0;
	found = add_trampolines(rec, pid, &maps);
	if (found <= 0)
		return found;
	snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)pid);
	search.pagemap = pagemap = open(path, O_RDONLY | O_CLOEXEC);
	VEC_EACH_WHILE(&maps, m, !err) {
		const struct rec_file *file = NULL;

		if (m->prot & PROT_EXEC && m->path[0] == '/')
			file = recording__find_file(rec, m->path, m->ino);
		if (!file || file->fd < 0)
			continue;
		for (uint64_t at = m->start; at < m->end && !err; at += PAGE)
			err = search_page(&search, m, file->fd, at);
	}
	return err;
}

/* Entries of a pagemap that are read at once. */
#define ENTRIES 512

struct copier {
	struct recording *rec;
	pid_t pid;
	int pagemap; /* -1: cannot be read; all pages count as present */
	size_t left; /* bytes that may still be copied */
	size_t cut;  /* bytes beyond the limit, which were not copied */
};

static int add_run(struct copier *c, const struct mapping *m, uint64_t start, size_t size)
{
	struct rec_image image = {.path = m->path, .start = start, .pid = c->pid};
	ssize_t n;
	int err = 0;

	if (size > c->left) {
		c->cut += size - c->left;
		size = c->left;
	}
	if (!size)
		return 0;
	image.data = malloc(size);
	if (!image.data)
		return -ENOMEM;
	n = process__read_memory(c->pid, start, image.data, size);
	image.size = n > 0 ? (size_t)n : 0;
	if (image.size)
		err = recording__add_image(c->rec, &image);
	c->left -= image.size;
	free(image.data);
	return err;
}

static size_t read_entries(const struct copier *c, uint64_t start, size_t n,
			   uint64_t entries[static ENTRIES])
{
	ssize_t got;

	if (n > ENTRIES)
		n = ENTRIES;
	got = c->pagemap < 0
		      ? -1
		      : pread(c->pagemap, entries, 8 * n, (off_t)(start / PAGE * sizeof(*entries)));
	if (got >= 8)
		return (size_t)got / 8;
	for (size_t i = 0; i < n; i++)
		entries[i] = PAGE_PRESENT;
	return n;
}

/* Copies runs of pages that are present: memory that a JIT has only reserved takes no space. */
static int copy_mapping(struct copier *c, const struct mapping *m)
{
	uint64_t entries[ENTRIES], at = m->start, run = 0;
	int err = 0;

	while (at < m->end && !err) {
		size_t n = read_entries(c, at, (m->end - at) / PAGE, entries);

		for (size_t i = 0; i < n && !err; i++, at += PAGE) {
			bool is_there = entries[i] & (PAGE_PRESENT | PAGE_SWAPPED);

			if (is_there && !run)
				run = at;
			if (!is_there && run) {
				err = add_run(c, m, run, at - run);
				run = 0;
			}
		}
	}
	return err || !run ? err : add_run(c, m, run, m->end - run);
}

static int copy_perf_map(const struct copier *c)
{
	size_t left = PERF_MAPS_MAX;
	_cleanup_free_ char *text = NULL;

	for (size_t i = 0; i < c->rec->perf_maps.n; i++) {
		size_t size = strlen(c->rec->perf_maps.v[i].text);

		if (c->rec->perf_maps.v[i].pid != c->pid)
			left -= size < left ? size : left;
	}
	text = perf_map__read(c->pid, left);
	return text ? recording__add_perf_map(c->rec, c->pid, text) : 0;
}

int code_copy__take(struct recording *rec, pid_t pid, size_t limit)
{
	_cleanup_close_ int pagemap = -1;
	struct copier copier = {.rec = rec, .pid = pid, .left = limit};
	char path[64];
	_cleanup_mappings_ struct mappings maps = {0};
	size_t before;
	int err = 0;

	if (mappings__read(&maps, pid))
		return 0;
	/* After an exit /proc shows no mappings: keep the earlier copies. */
	if (maps.n)
		recording__drop_copies(rec, pid);
	snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)pid);
	copier.pagemap = pagemap = open(path, O_RDONLY | O_CLOEXEC);
	before = rec->images.n;
	VEC_EACH_WHILE(&maps, m, !err) {
		/*
		 * True for executable memory that is neither the kernel's own page nor read from a
		 * file.
		 */
		bool is_in_memory = m->path[0] == '/' ? !recording__find_file(rec, m->path, m->ino)
						      : mapping__is_memory(m);

		if (m->prot & PROT_EXEC && is_in_memory)
			err = copy_mapping(&copier, m);
	}
	if (!err && rec->images.n > before)
		err = copy_perf_map(&copier);
	if (copier.cut)
		log__warn("process %d has more code outside of files (JIT) than the limit of %s: "
			  "%s of this code are not recorded and show as gaps",
			  (int)pid, BYTES(limit), BYTES(copier.cut));
	return err;
}

/*
 * Opens the regular file at path as file->fd, and its debug file as file->debug_fd, if it is the
 * file that was mapped.
 */
static bool try_path(struct rec_file *file, const struct rec_map *map, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct elf_image *image = NULL;
	const char *build_id = "";
	struct stat st;
	bool is_it;

	if (fd < 0)
		return false;
	is_it = !fstat(fd, &st) && S_ISREG(st.st_mode);
	if (is_it)
		image = elf_image__open(fd, path);
	if (image)
		build_id = elf_image__build_id(image);
	if (map->build_id[0])
		is_it = is_it && !strcmp(build_id, map->build_id);
	else if (map->ino)
		is_it = is_it && st.st_ino == map->ino;
	if (!is_it) {
		close(fd);
	} else {
		file->fd = fd;
		snprintf(file->build_id, sizeof(file->build_id), "%s", build_id);
		if (image)
			file->debug_fd = debug_file__open(image, path, NULL);
	}
	elf_image__free(image);
	return is_it;
}

static int add_found(struct recording *rec, const struct rec_map *map)
{
	struct rec_file file = {.path = map->path, .ino = map->ino, .fd = -1, .debug_fd = -1};
	struct rec_file *old = (struct rec_file *)recording__find_file(rec, map->path, map->ino);
	char path[PATH_MAX];
	bool found;

	if (old && old->fd >= 0)
		return 0;
	found = try_path(&file, map, map->path);
	for (unsigned int i = 0; !found && !build_id__path(map->build_id, i, path, sizeof(path));
	     i++)
		found = try_path(&file, map, path);
	if (!found) {
		log__warn(
			"the original file of %s was not found: the recording does not contain it",
			map->path);
		log__hint("put the original file (build ID %s) back at that path",
			  map->build_id[0] ? map->build_id : "not known");
	}
	if (!old)
		return recording__add_file(rec, &file);
	old->fd = file.fd;
	old->debug_fd = file.debug_fd;
	return 0;
}

int found_files__add(struct recording *rec)
{
	int err = 0;

	rec->portable = true;
	/* Files that were in the recording before are written again, under new names. */
	for (size_t i = 0; i < rec->files.n; i++) {
		free(rec->files.v[i].name);
		free(rec->files.v[i].debug_name);
		rec->files.v[i].name = rec->files.v[i].debug_name = NULL;
	}
	fs__allow_open_files(2 * rec->maps.n);
	VEC_EACH_WHILE(&rec->maps, map, !err) {
		const struct rec_map *first = rec->maps.v;

		/* Each file is looked for once, so that a missing one is reported once. */
		while (first->ino != map->ino || strcmp(first->path, map->path))
			first++;
		if (map->path[0] == '/' && first == map)
			err = add_found(rec, map);
	}
	return err;
}

int vdso_image__add(struct recording *rec, const struct process *process)
{
	_cleanup_mappings_ struct mappings own = {0};
	const struct mappings *maps = process ? &process->maps : &own;
	pid_t pid = process ? process->pid : getpid();
	int err = process ? 0 : mappings__read(&own, pid);

	VEC_EACH_WHILE(maps, m, !err) {
		struct rec_image image = {.path = "[vdso]", .start = m->start, .is_elf = true};
		ssize_t n;

		if (strcmp(m->path, "[vdso]"))
			continue;
		image.data = malloc(m->end - m->start);
		n = image.data ? process__read_memory(pid, m->start, image.data, m->end - m->start)
			       : -ENOMEM;
		image.size = n > 0 ? (size_t)n : 0;
		if (n > 0)
			err = recording__add_image(rec, &image);
		free(image.data);
	}
	return err;
}

int vdso_image__add_running(struct recording *rec)
{
	const struct rec_map *map = VEC_FIND(&rec->maps, e, !strcmp(e->path, "[vdso]"));
	struct elf_image *image = NULL;
	struct recording own;
	struct utsname name;
	bool is_ours = false;
	int err;

	if (!map || VEC_FIND(&rec->images, known, !strcmp(known->path, "[vdso]")))
		return 0;
	recording__init(&own);
	err = vdso_image__add(&own, NULL);
	if (own.images.n && map->build_id[0]) {
		image = elf_image__from_bytes(own.images.v->data, own.images.v->size, "[vdso]");
		is_ours = image && !strcmp(elf_image__build_id(image), map->build_id);
		elf_image__free(image);
	} else if (own.images.n && rec->os_release && !uname(&name)) {
		is_ours = !strcmp(name.release, rec->os_release);
	}
	if (!err && is_ours)
		err = recording__add_image(rec, own.images.v);
	recording__fini(&own);
	return err;
}

int process_note__thread(struct recording *rec, pid_t pid, pid_t tid, uint64_t time_ns)
{
	struct rec_thread thread = {.pid = pid, .tid = tid, .start_ns = time_ns};

	process__thread_name(pid, tid, thread.comm);
	return recording__add_thread(rec, &thread);
}

struct rec_map process_note__map(pid_t pid, const struct mapping *m, uint64_t time_ns)
{
	return (struct rec_map){.time_ns = time_ns,
				.start = m->start,
				.len = m->end - m->start,
				.pgoff = m->pgoff,
				.ino = m->ino,
				.maj = m->maj,
				.min = m->min,
				.pid = pid,
				.tid = pid,
				.path = m->path};
}

int process_note__maps(struct recording *rec, pid_t pid, uint64_t time_ns)
{
	_cleanup_mappings_ struct mappings maps = {0};
	int err = mappings__read(&maps, pid);

	if (err)
		return err;
	VEC_EACH_WHILE(&maps, m, !err) {
		struct rec_map map = process_note__map(pid, m, time_ns);

		if (m->prot & PROT_EXEC)
			err = recording__add_map(rec, &map);
	}
	return err;
}

static int note_mapping(struct recording *rec, pid_t pid, const struct mapping *m)
{
	struct rec_file file = {.path = m->path, .ino = m->ino, .debug_fd = -1};
	struct elf_image *image;
	char root[32];

	file.fd = process__open_mapping(pid, m);
	if (file.fd < 0) {
		log__debug("%s cannot be opened: %s", m->path, strerror(-file.fd));
		return 0;
	}
	image = elf_image__open(file.fd, m->path);
	snprintf(root, sizeof(root), "/proc/%d/root", (int)pid);
	if (image)
		snprintf(file.build_id, sizeof(file.build_id), "%s", elf_image__build_id(image));
	if (image && rec->portable)
		file.debug_fd = debug_file__open(image, file.path, root);
	/* Named memory that is not an ELF file may change: code_copy__take() copies it. */
	if (!image && mapping__is_memory(m)) {
		close(file.fd);
		return 0;
	}
	elf_image__free(image);
	return recording__add_file(rec, &file);
}

int code_files__note(struct recording *rec, pid_t pid)
{
	_cleanup_mappings_ struct mappings maps = {0};
	int err = 0;

	if (mappings__read(&maps, pid))
		return 0;
	fs__allow_open_files(rec->files.n * 2 + maps.n);
	VEC_EACH_WHILE(&maps, m, !err)
		if (m->prot & PROT_EXEC && m->ino && m->path[0] == '/' &&
		    !recording__find_file(rec, m->path, m->ino))
			err = note_mapping(rec, pid, m);
	return err;
}

int data_maps__take(struct recording *rec, pid_t pid)
{
	_cleanup_mappings_ struct mappings maps = {0};

	if (mappings__read(&maps, pid))
		return 0;
	VEC_EACH(&maps, m) {
		struct rec_map map = process_note__map(pid, m, 0);
		bool is_known = false;

		if ((m->prot & (PROT_READ | PROT_EXEC)) != PROT_READ || !m->ino ||
		    !recording__find_file(rec, m->path, m->ino))
			continue;
		VEC_EACH(&rec->data_maps, known)
			is_known |= known->pid == pid && known->start == m->start &&
				    known->ino == m->ino;
		if (is_known)
			continue;
		map.path = strdup(m->path);
		if (!map.path || VEC_ADD(&rec->data_maps, map)) {
			free(map.path);
			return -ENOMEM;
		}
	}
	return 0;
}

int live_code__take(struct recording *rec, const struct pid_set *pids, const struct cgroup *cgroup)
{
	_cleanup_free_ pid_t *in_it = NULL;
	size_t n = pids->n;
	int err = cgroup ? cgroup__processes(cgroup, &in_it, &n) : 0;

	/* The cgroup may have been removed, after all of its processes have ended. */
	if (err)
		return err == -ENOMEM ? err : 0;
	for (size_t i = 0; !err && i < n; i++) {
		pid_t pid = cgroup ? in_it[i] : pids->v[i];
		size_t left = CODE_COPY_MAX;

		err = code_files__note(rec, pid);
		/* Only recordings with copied stacks are unwound, which needs the files' data. */
		if (!err && rec->stacks.n)
			err = data_maps__take(rec, pid);
		VEC_EACH(&rec->images, image)
			if (image->pid && image->pid != pid)
				left -= image->size < left ? image->size : left;
		if (!err)
			err = code_copy__take(rec, pid, left);
		if (!err)
			err = take_patched_code(rec, pid);
	}
	return err;
}
