// SPDX-License-Identifier: MIT
#include "selftest/bundle.h"

#include <cpuid.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/fs.h"
#include "util/log.h"

/* ---- what the machine says */

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

/* The lines of the text that have one of the words, up to a NULL. */
static void print_lines(FILE *f, const char *title, char *text, const char *const *words)
{
	char *rest = text;

	for (char *line = strsep(&rest, "\n"); line; line = strsep(&rest, "\n"))
		for (const char *const *word = words; *word; word++)
			if (strstr(line, *word)) {
				fprintf(f, "%s: %s\n", title, line);
				break;
			}
}

static void print_kernel_config(FILE *f, const char *release)
{
	static const char *const words[] = {"CONFIG_PERF_EVENTS",
					    "CONFIG_UPROBE",
					    "CONFIG_BPF",
					    "CONFIG_DEBUG_INFO_BTF",
					    "CONFIG_PREEMPT",
					    "CONFIG_HZ",
					    "CONFIG_PAGE_TABLE_ISOLATION",
					    NULL};
	_cleanup_free_ char *text = NULL;
	char path[PATH_MAX];
	size_t len;

	snprintf(path, sizeof(path), "/boot/config-%s", release);
	if (!fs__read(path, &text, &len))
		print_lines(f, "config", text, words);
}

/* Of the kernel's messages those about Intel PT, and of perf's limits. */
static void print_kernel_messages(FILE *f)
{
	enum { READ_ALL = 3, SIZE_BUFFER = 10 }; /* syslog(2) */
	static const char *const words[] = {"intel_pt", "Intel PT", "rtit", "perf: interrupt",
					    NULL};
	int size = klogctl(SIZE_BUFFER, NULL, 0), n;
	_cleanup_free_ char *text = size > 0 ? calloc(1, (size_t)size + 1) : NULL;

	n = text ? klogctl(READ_ALL, text, size) : -1;
	if (n > 0)
		print_lines(f, "dmesg", text, words);
}

int bundle__write_facts(const char *dir)
{
	static const char pmu[] = "/sys/bus/event_source/devices/intel_pt";
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
	print_kernel_config(f, name.release);
	print_kernel_messages(f);
	if (fclose(f))
		return -ENOMEM;
	snprintf(path, sizeof(path), "%s/facts.txt", dir);
	return fs__write(path, text, len);
}

/* ---- the archive */

/* Its exit code, or -errno. */
static int run_tar(const char *const *words)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

		umask(077);
		if (null >= 0)
			dup2(null, STDERR_FILENO);
		execvp("tar", (char *const *)words);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -EINTR;
}

static int explain(int code, const char *what, const char *bundle, const char *hint)
{
	if (!code)
		return 0;
	log__error("cannot %s %s: %s", what, bundle,
		   code == 127 ? "the program 'tar' is missing"
		   : code < 0  ? strerror(-code)
			       : "tar has failed");
	log__hint("%s", hint);
	return -EIO;
}

/* All recordings hold the same programs: a window larger than these finds that. */
#define COMPRESS "zstd -q --long=27"

int bundle__pack(const char *dir, const char *bundle)
{
	const char *const words[] = {"tar",  "-I", COMPRESS, "--owner=0", "--group=0", "-cf",
				     bundle, "-C", dir,	     ".",	  NULL};

	return explain(run_tar(words), "write", bundle,
		       "tar and zstd must be installed, and the folder writable");
}

int bundle__unpack(const char *bundle, const char *dir)
{
	const char *const words[] = {
		"tar", "--zstd", "--no-same-owner", "--no-same-permissions", "-xf", bundle, "-C",
		dir,   NULL};

	return explain(run_tar(words), "read", bundle,
		       "give a file that 'mtbpf selftest -bundle' has written; tar and zstd must "
		       "be installed");
}
