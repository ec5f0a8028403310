/* SPDX-License-Identifier: MIT */
/* Which of Debian's packages a file is of, as dpkg has it written down. */
#ifndef MTBPF_TARGET_SYMBOLS_DEB_PACKAGE_H
#define MTBPF_TARGET_SYMBOLS_DEB_PACKAGE_H

#define DEB_PACKAGE_SIZE 128

/*
 * The package below `root` ("" or "/proc/PID/root") that installed `path`, without its
 * architecture. The database may be anybody's: only so much of it is read. 0, or -ENOENT: none, or
 * there is no such database.
 */
int deb_package__owning(const char *root, const char *path, char name[static DEB_PACKAGE_SIZE]);

#endif
