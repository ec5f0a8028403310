// SPDX-License-Identifier: MIT
/* Where a recording's directory goes, and what lies there already. */
#include "capture/recording/recording_dir.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/fs.h"
#include "util/interrupts.h"
#include "util/log.h"
#include "util/stop.h"

/* Nothing but recordings, whole or not, and files is moved out of the way. */
static bool may_go(const char *path)
{
	struct stat st;

	if (lstat(path, &st))
		return true;
	if (!S_ISDIR(st.st_mode))
		return S_ISREG(st.st_mode);
	/* At last an empty one, which nobody misses. */
	return recording_dir__has(path, "data") || recording_dir__has(path, "images") ||
	       recording_dir__has(path, "meta.json") || !rmdir(path);
}

/*
 * What was there before is kept once, as `old`, which is free then: nobody's only recording goes by
 * mistake. 1: there is something; 0; or -errno.
 */
static int make_way(const char *path, char old[static PATH_MAX])
{
	struct stat st;

	if (snprintf(old, PATH_MAX, "%s.old", path) >= PATH_MAX)
		return -ENAMETOOLONG;
	if (!may_go(path))
		return -EEXIST;
	if (lstat(path, &st))
		return errno == ENOENT ? 0 : -errno;
	if (!may_go(old))
		return -EEXIST;
	fs__remove_dir(old);
	return 1;
}

static int refuse(const char *path, int err)
{
	if (err == -EEXIST) {
		log__error(
			"cannot create the recording %s: that, or %s.old, is no recording, and is "
			"left as it is",
			path, path);
		log__hint("choose another name with -o");
		return err;
	}
	log__error("cannot create the recording %s: %s", path, strerror(-err));
	if (err == -ENOSPC || err == -EDQUOT)
		log__hint("the disk is full: -o chooses another place");
	else
		log__hint("choose another place with -o");
	return err;
}

int recording_dir__create(const char *path)
{
	char old[PATH_MAX];
	int err = make_way(path, old);

	if (err > 0)
		err = rename(path, old) ? -errno : 0;
	if (!err && mkdir(path, 0700))
		err = -errno;
	return err ? refuse(path, err) : 0;
}

/* Whoever is told to end knows of it from its first moment on. */
static int create_partial(const char *path, char partial[static PATH_MAX])
{
	sigset_t before;
	int err = 0;

	if (snprintf(partial, PATH_MAX, "%s.part.XXXXXX", path) >= PATH_MAX)
		return -ENAMETOOLONG;
	interrupts__block(&before);
	if (mkdtemp(partial))
		stop__set_partial(partial);
	else
		err = -errno;
	interrupts__unblock(&before);
	return err;
}

static int put_in_place(const char *partial, const char *path)
{
	char old[PATH_MAX];
	int err = make_way(path, old);

	return err < 0 ? err : fs__put_in_place(partial, path, old);
}

static int save(struct recording *rec, const char *partial, const char *path)
{
	sigset_t before;
	int err = recording_dir__save(rec, partial);

	/* From here on that name may be another's. */
	interrupts__block(&before);
	stop__set_partial(NULL);
	if (!err)
		err = put_in_place(partial, path);
	if (err)
		fs__remove_dir(partial);
	interrupts__unblock(&before);
	return err;
}

int recording__write_whole(struct recording *rec, const char *path)
{
	char partial[PATH_MAX];
	int err = create_partial(path, partial);

	if (!err)
		err = save(rec, partial, path);
	return err ? refuse(path, err) : 0;
}
