// SPDX-License-Identifier: MIT
#include "capture/code/kernel_copy.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernel/kernel.h"
#include "kernel/rights.h"
#include "util/cleanup.h"
#include "util/fs.h"
#include "util/log.h"
#include "util/page.h"

/* The kernel's image and its modules: Documentation/arch/x86/x86_64/mm.rst. */
#define TEXT_AREA 0xffffffff80000000ull
/* The largest modules are graphics drivers, of some 20 MB. */
#define MODULE_MAX (64ull << 20)
#define TEXT_MAX   (256ull << 20)
/*
 * The bytes that are copied for each symbol of is_made(), since kallsyms lacks sizes: far more than
 * most BPF programs have. The bytes after their end are zeroes.
 */
#define MADE_MAX (64ull << 10)

static int add_range(kernel_range_vec *ranges, uint64_t start, uint64_t end)
{
	const struct kernel_range range = {start & -PAGE, (end + PAGE - 1) & -PAGE};

	/* The end of the last page of the address space would wrap to 0. */
	if (start < TEXT_AREA || end <= start || range.end <= range.start)
		return 0;
	return VEC_ADD(ranges, range);
}

/* True for code that the kernel makes: of BPF programs, and ftrace's and kprobes' trampolines. */
static bool is_made(const struct kallsym *sym)
{
	static const char *const makers[] = {"bpf", "__builtin__ftrace", "__builtin__kprobes"};

	return sym->module && ARRAY_FIND(makers, maker,
					 strlen(*maker) == sym->module_len &&
						 !memcmp(*maker, sym->module, sym->module_len));
}

int kernel_ranges__find(const char *kallsyms, const char *modules, kernel_range_vec *ranges)
{
	uint64_t start, end;
	struct kallsym sym;
	size_t out = 0;
	int err;

	if (!kallsyms__find(kallsyms, "_stext", &start) ||
	    !kallsyms__find(kallsyms, "_etext", &end) || start < TEXT_AREA || end <= start ||
	    end - start > TEXT_MAX)
		return -ENODATA;
	err = add_range(ranges, start, end);
	/* "name 16384 1 user, Live 0xffffffffc0000000": kernel/module/procfs.c: m_show(). */
	while (!err && *modules) {
		const char *eol = strchrnul(modules, '\n');
		unsigned long long size, address;

		if (sscanf(modules, "%*s %llu %*s %*s %*s %llx", &size, &address) == 2 &&
		    address >= TEXT_AREA)
			err = add_range(ranges, address,
					address + (size < MODULE_MAX ? size : MODULE_MAX));
		modules = *eol ? eol + 1 : eol;
	}
	while (!err && kallsyms__next(&kallsyms, &sym))
		if (is_made(&sym) && kallsym__is_code(&sym) && sym.address <= UINT64_MAX - MADE_MAX)
			err = add_range(ranges, sym.address, sym.address + MADE_MAX);
	/* Ranges that touch become one. */
	VEC_SORT_BY(ranges, start);
	for (size_t i = 0; i < ranges->n; i++) {
		struct kernel_range range = ranges->v[i], *last = out ? &ranges->v[out - 1] : NULL;

		if (!last || range.start > last->end)
			ranges->v[out++] = range;
		else if (range.end > last->end)
			last->end = range.end;
	}
	ranges->n = out;
	return err;
}

enum { NO_KALLSYMS, HIDDEN, HIDDEN_FROM_ALL, NO_KCORE, LOCKED, NO_RIGHT, UNREADABLE };

static const struct kernel_refusal refusals[] = {
	[NO_KALLSYMS] = {-ENODEV, "/proc/kallsyms cannot be read", "a kernel with CONFIG_KALLSYMS"},
	[HIDDEN] = {-EPERM, "/proc/kallsyms hides the addresses", "run as root (CAP_SYSLOG)"},
	[HIDDEN_FROM_ALL] = {-EPERM, "kptr_restrict 2 hides the kernel's addresses from everybody",
			     "sysctl kernel.kptr_restrict=1"},
	[NO_KCORE] = {-ENODEV, "/proc/kcore is missing", "a kernel with CONFIG_PROC_KCORE"},
	[LOCKED] = {-EPERM, "lockdown=confidentiality forbids reading /proc/kcore",
		    "boot with lockdown=integrity"},
	[NO_RIGHT] = {-EPERM, "/proc/kcore may not be read", "run as root (CAP_SYS_RAWIO)"},
	[UNREADABLE] = {-EIO, "/proc/kcore cannot be opened",
			"'mtbpf check' shows what is "
			"missing"},
};

/* Reports lockdown first: it may hide the addresses, too, and no sysctl helps then. */
const struct kernel_refusal *kernel_access__judge(const struct kernel_facts *facts)
{
	int err = facts->kcore_err;

	if (err == -ENOENT)
		return &refusals[NO_KCORE];
	/* fs/proc/kcore.c: open_kcore() asks for the capability first, then lockdown. */
	if (err == -EPERM && facts->lockdown == LOCKDOWN_CONFIDENTIALITY)
		return &refusals[LOCKED];
	if (facts->kallsyms_err)
		return &refusals[NO_KALLSYMS];
	if (!facts->has_addresses)
		return &refusals[facts->kptr_restrict >= 2 ? HIDDEN_FROM_ALL : HIDDEN];
	if (err == -EPERM || err == -EACCES)
		return &refusals[NO_RIGHT];
	return err ? &refusals[UNREADABLE] : NULL;
}

const struct kernel_refusal *kernel_access__try(bool with_code)
{
	_cleanup_close_ int kcore = with_code ? open("/proc/kcore", O_RDONLY | O_CLOEXEC) : -1;
	struct kernel_facts facts = {.kcore_err = with_code && kcore < 0 ? -errno : 0,
				     .lockdown = lockdown__read()};
	_cleanup_fclose_ FILE *f = fopen("/proc/kallsyms", "re");
	char line[512];

	facts.kallsyms_err = f ? 0 : -errno;
	/* The first symbols, those of the per-CPU section, may be 0 even if addresses are shown. */
	while (f && !facts.has_addresses && fgets(line, sizeof(line), f)) {
		const char *text = line;
		struct kallsym sym;

		facts.has_addresses = kallsyms__next(&text, &sym) && sym.address >> 63;
	}
	facts.kptr_restrict = fs__read_number("/proc/sys/kernel/kptr_restrict", 0);
	return kernel_access__judge(&facts);
}

int kernel_access__refuse(bool with_code)
{
	const struct kernel_refusal *refusal = kernel_access__try(with_code);

	if (!refusal)
		return 0;
	log__error("cannot %s the kernel: %s", with_code ? "trace" : "sample", refusal->what);
	log__hint("%s; or leave out -trace-include-kernel or -trace-kernel-only", refusal->remedy);
	return refusal->err;
}

#define CHUNK	  (64u << 10)
#define MAX_PHDRS 4096

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

/*
 * Reads bytes at vaddr; unmapped ones are zeroes. Returns their number, 0 outside the segments, or
 * -errno.
 */
static ssize_t kcore__read(const struct kcore *kcore, uint64_t vaddr, uint8_t *buf, size_t len)
{
	for (size_t i = 0; i < kcore->n; i++) {
		const Elf64_Phdr *p = &kcore->phdrs[i];
		uint64_t at = vaddr - p->p_vaddr;
		ssize_t n;

		if (p->p_type != PT_LOAD || vaddr < p->p_vaddr || at >= p->p_filesz)
			continue;
		n = pread(kcore->fd, buf, p->p_filesz - at < len ? p->p_filesz - at : len,
			  (off_t)(p->p_offset + at));
		return n < 0 ? -errno : n;
	}
	return 0;
}

/* Gaps in the kernel's memory become holes of the file, whose whole length is set first. */
static int copy_range(const struct kcore *kcore, struct kernel_range range, int out,
		      uint64_t offset)
{
	uint8_t buf[CHUNK];
	uint64_t at = range.start;
	bool any = false;

	while (at < range.end) {
		size_t want = range.end - at < sizeof(buf) ? range.end - at : sizeof(buf);
		ssize_t n = kcore__read(kcore, at, buf, want), put;

		if (n <= 0) {
			/* Pages that cannot be read do not contain code. */
			at += PAGE - at % PAGE;
			continue;
		}
		any = true;
		put = !buf[0] && !memcmp(buf, buf + 1, (size_t)n - 1)
			      ? n
			      : pwrite(out, buf, (size_t)n, (off_t)(offset + (at - range.start)));
		if (put < n)
			return put < 0 ? -errno : -ENOSPC;
		at += (uint64_t)n;
	}
	return any ? 0 : -ENODATA;
}

/* Writes the headers as `perf record --kcore` does, so that perf can read the file. */
static int write_headers(const kernel_range_vec *ranges, int out, uint64_t *data)
{
	size_t headers = sizeof(Elf64_Ehdr) + ranges->n * sizeof(Elf64_Phdr);
	uint64_t offset = (headers + PAGE - 1) / PAGE * PAGE;
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

	*data = offset;
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

static int read_text(const char *proc, const char *name, char **text)
{
	char path[PATH_MAX];
	size_t len;

	snprintf(path, sizeof(path), "%s/%s", proc, name);
	return fs__read(path, text, &len);
}

/* Without the code, the file is a hole after its headers. */
static int make_file(const char *proc, bool with_code, struct rec_kernel *kernel)
{
	/* A copy in memory would double what the capture needs: it goes to a disk with room. */
	static const char *const folders[] = {"/var/tmp", "/tmp", "."};
	struct kcore kcore = {.fd = -1};
	struct spool spool = SPOOL_NONE;
	kernel_range_vec ranges = {0};
	bool any = !with_code;
	char path[PATH_MAX];
	int spool_err = -ENOENT, err;
	uint64_t offset;

	err = kernel_ranges__find(kernel->kallsyms, kernel->modules, &ranges);
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]) && !err && spool_err; i++)
		spool_err = spool__open(&spool, folders[i]);
	if (!err)
		err = spool_err;
	kernel->kcore = spool.fd;
	snprintf(path, sizeof(path), "%s/kcore", proc);
	if (!err && with_code)
		err = kcore__open(&kcore, path);
	if (!err)
		err = write_headers(&ranges, kernel->kcore, &offset);
	for (size_t i = 0; i < ranges.n && !err && with_code; i++) {
		err = copy_range(&kcore, ranges.v[i], kernel->kcore, offset);
		any |= !err;
		if (err == -ENODATA)
			err = 0;
		offset += ranges.v[i].end - ranges.v[i].start;
	}
	if (!err && !any)
		err = -ENODATA;
	if (kcore.fd >= 0)
		close(kcore.fd);
	free(kcore.phdrs);
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
	/* A kernel without module support lacks /proc/modules. */
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
	log__hint(err == -ENOSPC ? "free 50 MB in /var/tmp"
				 : "without -trace-include-kernel this copy is not needed");
	return err;
}
