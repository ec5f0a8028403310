// SPDX-License-Identifier: MIT
#include "selftest/bundle.h"

#include <cpuid.h>
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/recording/recording.h"
#include "decode/images.h"
#include "decode/decode.h"
#include "util/cleanup.h"
#include "util/fs.h"
#include "util/log.h"
#include "util/vec.h"

/* ---- facts about the machine */

/* The leaves that describe the CPU's version, topology, frequencies, and Intel PT (14H). */
static void print_cpuid(FILE *f)
{
	static const unsigned int leaves[] = {0,    1,	  7,	      0x14,	  0x15,
					      0x16, 0x1a, 0x80000002, 0x80000003, 0x80000004};
	unsigned int a, b, c, d;

	for (size_t i = 0; i < sizeof(leaves) / sizeof(leaves[0]); i++)
		for (unsigned int sub = 0; sub < 2; sub++)
			if (__get_cpuid_count(leaves[i], sub, &a, &b, &c, &d))
				fprintf(f, "cpuid %08x/%u: %08x %08x %08x %08x\n", leaves[i], sub,
					a, b, c, d);
}

static void print_file(FILE *f, const char *folder, const char *name)
{
	_cleanup_free_ char *text = NULL;
	char path[PATH_MAX];
	size_t len;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	if (!fs__read(path, &text, &len))
		fprintf(f, "%s: %.*s\n", path, (int)strcspn(text, "\n"), text);
}

static void print_folder(FILE *f, const char *folder)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			print_file(f, folder, entry->d_name);
	if (dir)
		closedir(dir);
}

/*
 * Prints the lines that contain one of the words, which end in NULL; not the kernel's command line.
 * Changes the text.
 */
static void print_lines(FILE *f, const char *title, char *text, const char *const *words)
{
	char *rest = text;

	for (char *line = strsep(&rest, "\n"); line; line = strsep(&rest, "\n"))
		for (const char *const *word = words; *word; word++)
			if (strstr(line, *word) && !strstr(line, "ommand line")) {
				fprintf(f, "%s: %s\n", title, line);
				break;
			}
}

int bundle__write_facts(const char *dir)
{
	enum { READ_ALL = 3, SIZE_BUFFER = 10 }; /* syslog(2) */
	static const char pmu[] = "/sys/bus/event_source/devices/intel_pt";
	static const char *const options[] = {"CONFIG_PERF_EVENTS",
					      "CONFIG_UPROBE",
					      "CONFIG_BPF",
					      "CONFIG_DEBUG_INFO_BTF",
					      "CONFIG_PREEMPT",
					      "CONFIG_HZ",
					      "CONFIG_PAGE_TABLE_ISOLATION",
					      NULL};
	/* Kernel messages about Intel PT and about perf's limits have these. */
	static const char *const words[] = {"intel_pt", "Intel PT", "rtit", "perf: interrupt",
					    NULL};
	int size = klogctl(SIZE_BUFFER, NULL, 0);
	_cleanup_free_ char *messages = size > 0 ? calloc(1, (size_t)size + 1) : NULL;
	_cleanup_free_ char *config = NULL;
	_cleanup_free_ char *text = NULL;
	char path[PATH_MAX], folder[PATH_MAX];
	struct utsname name;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return -ENOMEM;
	uname(&name);
	fprintf(f, "mtbpf: %s\nkernel: %s %s %s\n", MTBPF_VERSION, name.sysname, name.release,
		name.version);
	print_cpuid(f);
	print_folder(f, pmu);
	snprintf(folder, sizeof(folder), "%s/caps", pmu);
	print_folder(f, folder);
	snprintf(folder, sizeof(folder), "%s/format", pmu);
	print_folder(f, folder);
	/* The types of cores of a hybrid CPU, as arch/x86/events/intel/core.c names them. */
	print_file(f, "/sys/devices/cpu_core", "cpus");
	print_file(f, "/sys/devices/cpu_atom", "cpus");
	print_file(f, "/sys/devices/cpu_lowpower", "cpus");
	snprintf(path, sizeof(path), "/boot/config-%s", name.release);
	if (!fs__read(path, &config, &len))
		print_lines(f, "config", config, options);
	if (messages && klogctl(READ_ALL, messages, size) > 0)
		print_lines(f, "dmesg", messages, words);
	if (fclose(f))
		return -ENOMEM;
	snprintf(path, sizeof(path), "%s/facts.txt", dir);
	return fs__write(path, text, len);
}

/* ---- only what a decoder needs of the programs */

#define PAGE 4096

/* A file in a recording, and which of its pages hold code that ran or may have called what ran. */
struct kept_file {
	const struct rec_file *file;
	bool *pages;
	size_t n_pages;
	bool is_used; /* its code ran; false: only its notes are kept */
};

struct usage {
	const struct recording *rec;
	VEC(struct kept_file) files;
	const struct rec_map *last; /* the mapping that was found last */
	pid_t pid;
	uint64_t from; /* target of the thread's last branch; 0: not known */
	bool is_guess; /* the addresses that follow may not be addresses of code */
};

static bool is_in(const struct rec_map *map, uint64_t ip)
{
	return ip >= map->start && ip - map->start < map->len;
}

/*
 * The mapping at this address: the process's own or else another process's, such as the parent's of
 * a process that was forked. NULL: none.
 */
static const struct rec_map *find_map(struct usage *usage, uint64_t ip)
{
	const struct recording *rec = usage->rec;
	const struct rec_map *found = NULL;

	if (usage->last && is_in(usage->last, ip))
		return usage->last;
	for (size_t i = 0; i < rec->maps.n; i++)
		if (is_in(&rec->maps.v[i], ip) && (!found || rec->maps.v[i].pid == usage->pid))
			found = &rec->maps.v[i];
	if (found)
		usage->last = found;
	return found;
}

static void use_page(struct usage *usage, uint64_t ip)
{
	const struct rec_map *map = find_map(usage, ip);
	const struct rec_file *file =
		map ? recording__find_file(usage->rec, map->path, map->ino) : NULL;
	uint64_t page;

	if (!file)
		return;
	page = (ip - map->start + map->pgoff) / PAGE;
	VEC_EACH(&usage->files, kept) {
		if (kept->file != file || page >= kept->n_pages)
			continue;
		kept->pages[page] = true;
		kept->is_used |= !usage->is_guess;
	}
}

/*
 * Marks the pages from `from` to `to` as used, and 16 bytes more at both ends: an instruction may
 * reach into the next page, and a return address follows its call.
 */
static void use_code(struct usage *usage, uint64_t from, uint64_t to)
{
	if (from < 16 || to < 16 || to >> 48)
		return; /* no address of user code */
	if (to < from || to - from > 64 * PAGE)
		from = to; /* not one stretch of code */
	for (uint64_t page = (from - 16) / PAGE; page <= (to + 16) / PAGE; page++)
		use_page(usage, page * PAGE);
}

static int begin_thread(void *ctx, pid_t pid, pid_t tid, struct code_map *map)
{
	struct usage *usage = ctx;

	usage->pid = pid;
	usage->from = 0;
	usage->last = NULL;
	return 0;
}

static int use_branches(void *ctx, struct branch *v, size_t n)
{
	struct usage *usage = ctx;

	for (size_t i = 0; i < n; i++) {
		if (branch__is_entry(&v[i]))
			continue;
		if (v[i].from)
			use_code(usage, usage->from ?: v[i].from, v[i].from);
		usage->from = v[i].to;
	}
	return 0;
}

static int end_thread(void *ctx)
{
	return 0;
}

/* Any word of a stack may be a return address. */
static void use_stack(struct usage *usage, const uint8_t *stack, size_t size)
{
	usage->is_guess = true;
	for (size_t at = 0; at + 8 <= size; at += 8) {
		uint64_t word;

		memcpy(&word, stack + at, sizeof(word));
		use_code(usage, word, word);
	}
	usage->is_guess = false;
}

static void use_samples(struct usage *usage)
{
	const struct recording *rec = usage->rec;

	usage->pid = rec->pid;
	for (size_t i = 0; i < rec->sample_ips.n; i++)
		use_code(usage, rec->sample_ips.v[i], rec->sample_ips.v[i]);
	VEC_EACH(&rec->sample_users, user) {
		use_code(usage, user->ip, user->ip);
		use_stack(usage, user->stack, user->size);
	}
	for (size_t i = 0; i < rec->stacks.n; i++)
		use_stack(usage, rec->stacks.v[i].data, rec->stacks.v[i].size);
	for (size_t i = 0; i < rec->hits.n; i++)
		use_code(usage, rec->hits.v[i].ip, rec->hits.v[i].ip);
}

/* Finds the pages that the recording's decoder reads. 0 or -errno. */
static int find_usage(struct usage *usage)
{
	const struct recording *rec = usage->rec;
	const struct branch_receiver receiver = {
		.begin = begin_thread, .take = use_branches, .end = end_thread, .ctx = usage};
	struct decode_totals totals = {0};
	struct images *images;
	struct stat st;
	int err = 0;

	for (size_t i = 0; i < rec->files.n && !err; i++) {
		struct kept_file kept = {.file = &rec->files.v[i]};

		if (!kept.file->name || fstat(kept.file->fd, &st))
			continue;
		kept.n_pages = (size_t)st.st_size / PAGE + 1;
		kept.pages = calloc(kept.n_pages, sizeof(*kept.pages));
		err = kept.pages ? VEC_ADD(&usage->files, kept) : -ENOMEM;
	}
	if (err)
		return err;
	use_samples(usage);
	images = images__new(rec);
	if (!images)
		return -ENOMEM;
	err = decode__threads(rec, images, true, &receiver, &totals);
	images__free(images);
	return err;
}

/* True for sections with functions' names, or with what unwinding needs. */
static bool is_needed(const char *section)
{
	static const char *const starts[] = {".symtab",	  ".strtab",	   ".shstrtab", ".dyn",
					     ".hash",	  ".gnu.hash",	   ".gnu.ver",	".rel",
					     ".eh_frame", ".gcc_except",   ".note",	".got",
					     ".plt",	  ".gnu_debuglink"};

	return ARRAY_FIND(starts, start, !strncmp(section, *start, strlen(*start)));
}

static void clear_unused(uint8_t *data, uint64_t from, uint64_t size, const struct kept_file *kept)
{
	for (uint64_t at = from; at < from + size;) {
		uint64_t end = (at / PAGE + 1) * PAGE;

		if (end > from + size)
			end = from + size;
		if (!kept->is_used || !kept->pages || !kept->pages[at / PAGE])
			memset(data + at, 0, end - at);
		at = end;
	}
}

/*
 * Clears sections that are not needed. They keep their place, so that offsets are right; zeroes
 * take no space once compressed. Sections of debug info become SHT_NOBITS, so that nobody reads
 * them. A file that is not a valid 64-bit ELF file is not changed.
 */
static void clear_sections(uint8_t *data, size_t size, const struct kept_file *kept)
{
	Elf64_Ehdr *elf = (Elf64_Ehdr *)data;
	Elf64_Shdr *sections, *names;

	if (size < sizeof(*elf) || memcmp(elf->e_ident, ELFMAG, SELFMAG) ||
	    elf->e_ident[EI_CLASS] != ELFCLASS64 || elf->e_shentsize != sizeof(*sections) ||
	    elf->e_shstrndx >= elf->e_shnum || elf->e_shoff % _Alignof(Elf64_Shdr) ||
	    elf->e_shoff > size || elf->e_shnum > (size - elf->e_shoff) / sizeof(*sections))
		return;
	sections = (Elf64_Shdr *)(data + elf->e_shoff);
	names = &sections[elf->e_shstrndx];
	if (names->sh_offset > size || names->sh_size > size - names->sh_offset ||
	    !names->sh_size || data[names->sh_offset + names->sh_size - 1])
		return;
	for (int i = 1; i < elf->e_shnum; i++) {
		Elf64_Shdr *s = &sections[i];
		const char *name;

		if (s->sh_type == SHT_NOBITS || s->sh_name >= names->sh_size ||
		    s->sh_offset > size || s->sh_size > size - s->sh_offset)
			continue;
		name = (const char *)data + names->sh_offset + s->sh_name;
		if (is_needed(name) && (kept->is_used || s == names || !strncmp(name, ".note", 5)))
			continue;
		if (s->sh_flags & SHF_EXECINSTR)
			clear_unused(data, s->sh_offset, s->sh_size, kept);
		else
			memset(data + s->sh_offset, 0, s->sh_size);
		if (!strncmp(name, ".debug", 6) || !strncmp(name, ".zdebug", 7))
			s->sh_type = SHT_NOBITS;
	}
}

/*
 * Writes a new file in place of the old one, which somebody may still have mapped. Pages of
 * zeroes become holes.
 */
static int write_sparse(const char *path, const uint8_t *data, size_t size)
{
	static const uint8_t zeros[PAGE];
	_cleanup_close_ int fd = -1;

	if (unlink(path))
		return -errno;
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, (off_t)size))
		return -errno;
	for (size_t at = 0; at < size; at += PAGE) {
		size_t n = size - at < PAGE ? size - at : PAGE;

		if (!memcmp(data + at, zeros, n))
			continue;
		if (pwrite(fd, data + at, n, (off_t)at) != (ssize_t)n)
			return -EIO;
	}
	return 0;
}

static int slim_file(const char *recording, const char *name, const struct kept_file *kept)
{
	_cleanup_free_ char *data = NULL;
	char path[PATH_MAX];
	size_t size;
	int err;

	if (snprintf(path, sizeof(path), "%s/%s", recording, name) >= PATH_MAX)
		return -ENAMETOOLONG;
	err = fs__read(path, &data, &size);
	if (err)
		return err;
	clear_sections((uint8_t *)data, size, kept);
	return write_sparse(path, (const uint8_t *)data, size);
}

/* ---- removing the user's data */

/* Paths of a distribution's files stay; of other paths only "/NAME" is left. */
static void clean_path(char *path)
{
	static const char *const kept[] = {"/usr/", "/lib/", "/lib64/", "/memfd:", "/dev/"};
	const char *name = strrchr(path, '/');

	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		if (!strncmp(path, kept[i], strlen(kept[i])))
			return;
	if (path[0] == '/' && name[1])
		memmove(path, name, strlen(name) + 1);
}

/*
 * Leaves on a copied stack what leads to callers: addresses of code, and of the stack itself
 * (0x7f...). Stacks also hold paths and the environment.
 */
static void clean_stack(struct usage *usage, uint8_t *stack, size_t size)
{
	size_t at = 0;

	for (; at + 8 <= size; at += 8) {
		uint64_t word;

		memcpy(&word, stack + at, sizeof(word));
		if (word >> 40 != 0x7f && !find_map(usage, word))
			memset(stack + at, 0, sizeof(word));
	}
	if (at < size)
		memset(stack + at, 0, size - at);
}

static bool has_maps(const struct recording *rec, pid_t pid)
{
	return VEC_FIND(&rec->maps, map, map->pid == pid);
}

/* Removes names of other processes, of the host, of files that were open, and of cgroups. */
static void clean_names(struct recording *rec)
{
	VEC_EACH(&rec->sched_bys, by)
		if ((by->kind == MT_SCHED_WOKEN || by->kind == MT_SCHED_REPLACED) &&
		    by->by_comm[0] && !has_maps(rec, (pid_t)by->by_tgid))
			snprintf(by->by_comm, sizeof(by->by_comm), "other");
	for (size_t i = 0; i < rec->threads.n; i++)
		if (!has_maps(rec, rec->threads.v[i].pid))
			snprintf(rec->threads.v[i].comm, sizeof(rec->threads.v[i].comm), "other");
	for (size_t i = 0; i < rec->labels.n; i++) {
		free(rec->labels.v[i].key);
		free(rec->labels.v[i].value);
	}
	rec->labels.n = 0;
	for (size_t i = 0; i < rec->open_files.n; i++)
		free(rec->open_files.v[i].path);
	rec->open_files.n = 0;
	for (size_t i = 0; i < rec->quotas.n; i++)
		free(rec->quotas.v[i].text);
	rec->quotas.n = 0;
}

/* Writes the recording again, without the user's data. 0 or -errno. */
static int clean(struct usage *usage, struct recording *rec, const char *path)
{
	char data[PATH_MAX];

	for (size_t i = 0; i < rec->sample_users.n; i++)
		clean_stack(usage, rec->sample_users.v[i].stack, rec->sample_users.v[i].size);
	for (size_t i = 0; i < rec->stacks.n; i++)
		clean_stack(usage, rec->stacks.v[i].data, rec->stacks.v[i].size);
	clean_names(rec);
	for (size_t i = 0; i < rec->maps.n; i++)
		clean_path(rec->maps.v[i].path);
	for (size_t i = 0; i < rec->data_maps.n; i++)
		clean_path(rec->data_maps.v[i].path);
	for (size_t i = 0; i < rec->files.n; i++)
		clean_path(rec->files.v[i].path);
	for (size_t i = 0; i < rec->images.n; i++)
		clean_path(rec->images.v[i].path);
	/* The file is still mapped: the new one takes its place. */
	if (snprintf(data, sizeof(data), "%s/data", path) >= PATH_MAX)
		return -ENAMETOOLONG;
	return unlink(data) ? -errno : recording__save(rec, path);
}

static int slim_files(const struct usage *usage, const char *recording)
{
	int err = 0;

	VEC_EACH_WHILE(&usage->files, kept, !err) {
		/* Separate debug files do not contain code. */
		const struct kept_file debug = {.file = kept->file, .is_used = kept->is_used};

		err = slim_file(recording, kept->file->name, kept);
		if (!err && kept->file->debug_name)
			err = slim_file(recording, kept->file->debug_name, &debug);
	}
	return err;
}

int bundle__prepare(const char *recording)
{
	struct recording rec;
	struct usage usage = {.rec = &rec};
	int err;

	recording__init(&rec);
	err = recording__read(&rec, recording);
	/*
	 * If the recording cannot be decoded, its files stay whole: they are needed to find out
	 * why.
	 */
	if (!err && !find_usage(&usage))
		err = slim_files(&usage, recording);
	if (!err)
		err = clean(&usage, &rec, recording);
	VEC_FINI_EACH(&usage.files, e, free(e->pages));
	recording__fini(&rec);
	return err;
}

/* Replaces each occurrence of `what`, unless it is shorter than three characters, by "...". */
static void cut_out(char *text, const char *what)
{
	size_t len = strlen(what);

	for (char *at = text; len >= 3 && (at = strstr(at, what)); at += 3) {
		memcpy(at, "...", 3);
		memmove(at + 3, at + len, strlen(at + len) + 1);
	}
}

/*
 * Removes the user's paths from a file with messages of `mtbpf record`, or with results that quote
 * them.
 */
static int clean_text(const char *dir, const char *name)
{
	_cleanup_free_ char *text = NULL;
	char path[PATH_MAX], own[PATH_MAX] = "";
	const char *home = getenv("HOME");
	size_t len;
	int err;

	if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= PATH_MAX)
		return -ENAMETOOLONG;
	err = fs__read(path, &text, &len);
	if (err)
		return err;
	if (readlink("/proc/self/exe", own, sizeof(own) - 1) < 0)
		own[0] = '\0';
	else
		*strrchr(own, '/') = '\0';
	cut_out(text, dir);
	cut_out(text, own);
	cut_out(text, home ?: "");
	return fs__write(path, text, strlen(text));
}

/* Cleans the folder's *.log files and results.txt. */
static int clean_texts(const char *dir)
{
	DIR *entries = opendir(dir);
	struct dirent *entry;
	int err = entries ? 0 : -errno;

	while (!err && (entry = readdir(entries))) {
		const char *end = strrchr(entry->d_name, '.');

		if (end && (!strcmp(end, ".log") || !strcmp(entry->d_name, "results.txt")))
			err = clean_text(dir, entry->d_name);
	}
	if (entries)
		closedir(entries);
	return err;
}

/* ---- the archive */

/* Runs tar on the bundle. 0, or -EIO after a message of what cannot be done and this hint. */
static int run_tar(const char *const *words, const char *what, const char *bundle, const char *hint)
{
	const char *why = "tar has failed";
	pid_t pid = fork();
	int status = 0;

	if (!pid) {
		int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

		umask(077);
		if (null >= 0)
			dup2(null, STDERR_FILENO);
		execvp("tar", (char *const *)words);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		why = strerror(errno);
	else if (!status)
		return 0;
	else if (!WIFEXITED(status))
		why = strerror(EINTR);
	else if (WEXITSTATUS(status) == 127)
		why = "the program 'tar' is missing";
	log__error("cannot %s %s: %s", what, bundle, why);
	log__hint("%s", hint);
	return -EIO;
}

/*
 * --long=27: all recordings contain the same programs, and zstd finds such repetitions only within
 * a window that is larger than a recording.
 */
#define COMPRESS "zstd -q -15 --long=27"

int bundle__pack(const char *dir, const char *bundle)
{
	const char *const words[] = {"tar", "-S",   "-I", COMPRESS, "--owner=0", "--group=0",
				     "-cf", bundle, "-C", dir,	    ".",	 NULL};
	int err = clean_texts(dir);

	if (err) {
		log__error("cannot read %s: %s", dir, strerror(-err));
		log__hint("choose another folder with -keep");
		return err;
	}
	return run_tar(words, "write", bundle,
		       "tar and zstd must be installed, and the folder writable");
}

int bundle__unpack(const char *bundle, const char *dir)
{
	const char *const words[] = {
		"tar", "--zstd", "--no-same-owner", "--no-same-permissions", "-xf", bundle, "-C",
		dir,   NULL};

	return run_tar(words, "read", bundle,
		       "give a file that 'mtbpf selftest -bundle' has written; tar and zstd must "
		       "be installed");
}
