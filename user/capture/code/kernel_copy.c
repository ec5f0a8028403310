// SPDX-License-Identifier: MIT
#include "capture/code/kernel_copy.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/code/kernel_ranges.h"
#include "util/cleanup.h"
#include "util/fs.h"
#include "util/log.h"
#include "util/page.h"

#define CHUNK	   (64u << 10)
#define MAX_PHDRS  4096
#define NO_SEGMENT UINT64_MAX

/* An ELF core file whose segments are the kernel's areas: fs/proc/kcore.c. */
struct kcore {
	int fd;
	size_t n;
	Elf64_Phdr *phdrs;
};

static int read_at(int fd, void *buf, size_t len, uint64_t offset)
{
	ssize_t n = pread(fd, buf, len, (off_t)offset);

	return n < 0 ? -errno : (size_t)n < len ? -EIO : 0;
}

static int kcore__open(struct kcore *kcore, const char *path)
{
	Elf64_Ehdr ehdr;
	int err;

	*kcore = (struct kcore){.fd = open(path, O_RDONLY | O_CLOEXEC)};
	if (kcore->fd < 0)
		return -errno;
	err = read_at(kcore->fd, &ehdr, sizeof(ehdr), 0);
	if (!err && (memcmp(ehdr.e_ident, ELFMAG, SELFMAG) || ehdr.e_phnum > MAX_PHDRS ||
		     ehdr.e_phentsize != sizeof(Elf64_Phdr)))
		err = -EIO;
	if (err)
		return err;
	kcore->n = ehdr.e_phnum;
	kcore->phdrs = calloc(kcore->n + 1, sizeof(*kcore->phdrs));
	if (!kcore->phdrs)
		return -ENOMEM;
	return read_at(kcore->fd, kcore->phdrs, kcore->n * sizeof(*kcore->phdrs), ehdr.e_phoff);
}

static void kcore__close(struct kcore *kcore)
{
	if (kcore->fd >= 0)
		close(kcore->fd);
	free(kcore->phdrs);
}

/* Where vaddr is in the file, and how much of the segment follows. */
static uint64_t kcore__offset(const struct kcore *kcore, uint64_t vaddr, uint64_t *left)
{
	for (size_t i = 0; i < kcore->n; i++) {
		const Elf64_Phdr *p = &kcore->phdrs[i];

		if (p->p_type != PT_LOAD || vaddr < p->p_vaddr || vaddr - p->p_vaddr >= p->p_filesz)
			continue;
		*left = p->p_filesz - (vaddr - p->p_vaddr);
		return p->p_offset + (vaddr - p->p_vaddr);
	}
	return NO_SEGMENT;
}

/* Bytes at vaddr; zeroes where nothing is mapped. How many: 0 in no segment; or -errno. */
static ssize_t kcore__read(const struct kcore *kcore, uint64_t vaddr, uint8_t *buf, size_t len)
{
	uint64_t left, offset = kcore__offset(kcore, vaddr, &left);
	ssize_t n;

	if (offset == NO_SEGMENT)
		return 0;
	n = pread(kcore->fd, buf, left < len ? left : len, (off_t)offset);
	return n < 0 ? -errno : n;
}

static int write_at(int fd, const uint8_t *buf, size_t len, uint64_t offset)
{
	ssize_t n = pwrite(fd, buf, len, (off_t)offset);

	return n < 0 ? -errno : (size_t)n < len ? -ENOSPC : 0;
}

static bool is_zero(const uint8_t *p, size_t len)
{
	return !p[0] && !memcmp(p, p + 1, len - 1);
}

/* Holes of the kernel's become holes of the file, which takes its whole length before. */
static int copy_range(const struct kcore *kcore, struct kernel_range range, int out,
		      uint64_t offset)
{
	uint8_t buf[CHUNK];
	uint64_t at = range.start;
	bool any = false;
	int err;

	while (at < range.end) {
		size_t want = range.end - at < sizeof(buf) ? range.end - at : sizeof(buf);
		ssize_t n = kcore__read(kcore, at, buf, want);

		if (n <= 0) {
			/* A page that cannot be read is one without code. */
			at += PAGE - at % PAGE;
			continue;
		}
		any = true;
		err = is_zero(buf, (size_t)n)
			      ? 0
			      : write_at(out, buf, (size_t)n, offset + (at - range.start));
		if (err)
			return err;
		at += (uint64_t)n;
	}
	return any ? 0 : -ENODATA;
}

static size_t headers_size(const kernel_range_vec *ranges)
{
	return sizeof(Elf64_Ehdr) + ranges->n * sizeof(Elf64_Phdr);
}

static uint64_t data_offset(const kernel_range_vec *ranges)
{
	return (headers_size(ranges) + PAGE - 1) / PAGE * PAGE;
}

/* As `perf record --kcore` makes it, so that perf reads it. */
static int write_headers(const kernel_range_vec *ranges, int out)
{
	size_t headers = headers_size(ranges);
	uint64_t offset = data_offset(ranges);
	_cleanup_free_ uint8_t *buf = calloc(1, headers);
	Elf64_Ehdr ehdr = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			    EV_CURRENT},
		.e_type = ET_CORE,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(ehdr),
		.e_ehsize = sizeof(ehdr),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = (Elf64_Half)ranges->n,
	};

	if (!buf)
		return -ENOMEM;
	memcpy(buf, &ehdr, sizeof(ehdr));
	for (size_t i = 0; i < ranges->n; i++) {
		struct kernel_range range = ranges->v[i];
		Elf64_Phdr phdr = {
			.p_type = PT_LOAD,
			.p_flags = PF_R | PF_X,
			.p_offset = offset,
			.p_vaddr = range.start,
			.p_paddr = range.start,
			.p_filesz = range.end - range.start,
			.p_memsz = range.end - range.start,
			.p_align = PAGE,
		};

		memcpy(buf + sizeof(ehdr) + i * sizeof(phdr), &phdr, sizeof(phdr));
		offset += phdr.p_filesz;
	}
	if (ftruncate(out, (off_t)offset))
		return -errno;
	return fs__write_fd(out, buf, headers);
}

/* In memory it would be as large again as all else: on a disk, where there is room. */
static int open_nameless(void)
{
	static const char *const folders[] = {"/var/tmp", "/tmp", "."};
	int err = -ENOENT;

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		char path[64];
		int fd;

		snprintf(path, sizeof(path), "%s/mtbpf-kcore.XXXXXX", folders[i]);
		fd = mkostemp(path, O_CLOEXEC);
		if (fd >= 0) {
			unlink(path);
			return fd;
		}
		err = -errno;
	}
	return err;
}

static int copy_all(const struct kcore *kcore, const kernel_range_vec *ranges, int out)
{
	uint64_t offset = data_offset(ranges);
	bool any = false;
	int err = write_headers(ranges, out);

	for (size_t i = 0; i < ranges->n && !err; i++) {
		err = copy_range(kcore, ranges->v[i], out, offset);
		any |= !err;
		if (err == -ENODATA)
			err = 0;
		offset += ranges->v[i].end - ranges->v[i].start;
	}
	return err ? err : any ? 0 : -ENODATA;
}

static int read_text(const char *proc, const char *name, char **text)
{
	char path[PATH_MAX];
	size_t len;

	snprintf(path, sizeof(path), "%s/%s", proc, name);
	return fs__read(path, text, &len);
}

static int copy_code(const char *proc, const kernel_range_vec *ranges, int out)
{
	struct kcore kcore = {.fd = -1};
	char path[PATH_MAX];
	int err;

	snprintf(path, sizeof(path), "%s/kcore", proc);
	err = kcore__open(&kcore, path);
	if (!err)
		err = copy_all(&kcore, ranges, out);
	kcore__close(&kcore);
	return err;
}

/* Without the code: all of it a hole. */
static int make_file(const char *proc, bool with_code, struct rec_kernel *kernel)
{
	kernel_range_vec ranges = {0};
	int err = kernel_ranges__find(kernel->kallsyms, kernel->modules, &ranges);

	if (!err) {
		kernel->kcore = open_nameless();
		err = kernel->kcore < 0 ? kernel->kcore : 0;
	}
	if (!err)
		err = with_code ? copy_code(proc, &ranges, kernel->kcore)
				: write_headers(&ranges, kernel->kcore);
	VEC_FINI(&ranges);
	return err;
}

int kernel_copy__make(const char *proc, bool with_code, struct rec_kernel *kernel)
{
	int err;

	*kernel = (struct rec_kernel){.kcore = -1};
	err = read_text(proc, "kallsyms", &kernel->kallsyms);
	if (!err)
		err = read_text(proc, "modules", &kernel->modules);
	/* A kernel without modules. */
	if (err == -ENOENT && kernel->kallsyms) {
		kernel->modules = strdup("");
		err = kernel->modules ? 0 : -ENOMEM;
	}
	if (!err)
		err = make_file(proc, with_code, kernel);
	if (!err)
		return 0;
	rec_kernel__fini(kernel);
	log__error("cannot copy the kernel's %s from %s/%s: %s", with_code ? "code" : "symbols",
		   proc, with_code ? "kcore" : "kallsyms", strerror(-err));
	log__hint(err == -ENOSPC ? "some 50 MB in /var/tmp are needed"
				 : "without -trace-include-kernel it is not needed");
	return err;
}
