// SPDX-License-Identifier: MIT
#include "kernel/rights.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/fs.h"

/* include/linux/proc_ns.h: PROC_USER_INIT_INO */
#define INITIAL_USER_NS "user:[4026531837]"

bool capability__effective(int capability)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data))
		return false;
	return data[capability / 32].effective >> capability % 32 & 1;
}

bool capability__has(int capability)
{
	char link[64] = "";

	if (!capability__effective(capability))
		return false;
	/*
	 * The kernel checks capabilities in the initial namespace, whatever our own namespace
	 * shows.
	 */
	if (readlink("/proc/self/ns/user", link, sizeof(link) - 1) < 0)
		return true;
	return !strcmp(link, INITIAL_USER_NS);
}

/*
 * By number: headers of Linux 5.8 lack CAP_CHECKPOINT_RESTORE, which allows reading
 * /proc/PID/map_files.
 */
#define CHECKPOINT_RESTORE 40
#define BIT(capability)	   (1ull << (capability))

static const uint64_t of_our_files =
	BIT(CAP_DAC_OVERRIDE) | BIT(CAP_DAC_READ_SEARCH) | BIT(CAP_FOWNER);
static const uint64_t of_processes = BIT(CAP_SYS_PTRACE) | BIT(CHECKPOINT_RESTORE);

static int keep(uint64_t kept)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];

	/* Otherwise execve(2) would give all capabilities back to root. */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	if (syscall(SYS_capget, &header, data))
		return -errno;
	for (int i = 0; i < 2; i++, kept >>= 32) {
		data[i].permitted &= (uint32_t)kept;
		data[i].effective &= (uint32_t)kept;
		data[i].inheritable &= (uint32_t)kept;
	}
	return syscall(SYS_capset, &header, data) ? -errno : 0;
}

int capability__keep_for_files(void)
{
	return keep(of_our_files | of_processes);
}

int capability__keep_for_our_files(void)
{
	return keep(of_our_files);
}

int lockdown__parse(const char *text)
{
	static const char *const names[] = {[LOCKDOWN_NONE] = "[none]",
					    [LOCKDOWN_INTEGRITY] = "[integrity]",
					    [LOCKDOWN_CONFIDENTIALITY] = "[confidentiality]"};

	for (int i = LOCKDOWN_NONE; i <= LOCKDOWN_CONFIDENTIALITY; i++)
		if (strstr(text, names[i]))
			return i;
	return -EINVAL;
}

int lockdown__read(void)
{
	_cleanup_free_ char *text = NULL;
	size_t len;
	int err = fs__read(LOCKDOWN_PATH, &text, &len);

	return err ? err : lockdown__parse(text);
}

/* From include/uapi/linux/landlock.h, which is missing or older on older systems. */
#define CREATE_RULESET 444
#define ADD_RULE       445
#define RESTRICT_SELF  446

#define CREATE_RULESET_VERSION 1u
#define RULE_PATH_BENEATH      1

#define FS_WRITE_FILE  (1u << 1)
#define FS_READ_FILE   (1u << 2)
#define FS_READ_DIR    (1u << 3)
#define FS_REMOVE_DIR  (1u << 4)
#define FS_REMOVE_FILE (1u << 5)
#define FS_MAKE_DIR    (1u << 7)
#define FS_MAKE_REG    (1u << 8)
#define FS_TRUNCATE    (1u << 14)
#define FS_FIRST       ((1u << 13) - 1) /* those of the first version */
#define NET_TCP	       3u		/* to bind, and to connect */
#define SCOPED	       3u		/* abstract sockets, and signals */

#define TO_READ	 (FS_READ_FILE | FS_READ_DIR)
#define TO_WRITE (TO_READ | FS_WRITE_FILE | FS_REMOVE_FILE | FS_MAKE_REG | FS_TRUNCATE)
#define FOLDERS	 (FS_MAKE_DIR | FS_REMOVE_DIR)

struct ruleset {
	uint64_t fs, net, scoped;
};

struct path_beneath {
	uint64_t allowed;
	int32_t folder;
} __attribute__((packed));

static int allow(int ruleset, int folder, uint64_t allowed)
{
	struct path_beneath rule = {.allowed = allowed, .folder = folder};

	return syscall(ADD_RULE, ruleset, RULE_PATH_BENEATH, &rule, 0) ? -errno : 0;
}

static int allow_path(int ruleset, const char *path, uint64_t allowed)
{
	_cleanup_close_ int folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	return folder < 0 ? -errno : allow(ruleset, folder, allowed);
}

int landlock__confine(const char *written, bool with_folders, const int *roots, size_t n_roots)
{
	const uint64_t to_write = with_folders ? TO_WRITE | FOLDERS : TO_WRITE;
	struct ruleset rules = {.fs = FS_FIRST};
	_cleanup_close_ int ruleset = -1;
	long version = syscall(CREATE_RULESET, NULL, 0, CREATE_RULESET_VERSION);
	int err;

	if (version < 0)
		return -errno;
	/* Everything that this kernel can forbid. */
	if (version >= 3)
		rules.fs |= FS_TRUNCATE;
	if (version >= 4)
		rules.net = NET_TCP;
	if (version >= 6)
		rules.scoped = SCOPED;
	ruleset = (int)syscall(CREATE_RULESET, &rules, sizeof(rules), 0);
	if (ruleset < 0)
		return -errno;
	err = allow_path(ruleset, "/", TO_READ);
	if (!err && written)
		err = allow_path(ruleset, written, to_write & rules.fs);
	for (size_t i = 0; i < n_roots && !err; i++)
		err = allow(ruleset, roots[i], TO_READ);
	if (!err && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		err = -errno;
	if (!err && syscall(RESTRICT_SELF, ruleset, 0))
		err = -errno;
	return err;
}
