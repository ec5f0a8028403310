// SPDX-License-Identifier: MIT
#include "kernel/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/cleanup.h"

/* include/uapi/linux/landlock.h, which older systems lack, or have an older one of. */
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

/* All that this kernel can forbid. */
static int handled(struct ruleset *rules)
{
	long version = syscall(CREATE_RULESET, NULL, 0, CREATE_RULESET_VERSION);

	if (version < 0)
		return -errno;
	*rules = (struct ruleset){.fs = FS_FIRST};
	if (version >= 3)
		rules->fs |= FS_TRUNCATE;
	if (version >= 4)
		rules->net = NET_TCP;
	if (version >= 6)
		rules->scoped = SCOPED;
	return 0;
}

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
	struct ruleset rules;
	_cleanup_close_ int ruleset = -1;
	int err = handled(&rules);

	if (err)
		return err;
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
