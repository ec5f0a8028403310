/* SPDX-License-Identifier: MIT */
/* Finds the Debian package that installed a file, in dpkg's database. */
#ifndef MTBPF_TARGET_SYMBOLS_DEB_PACKAGE_H
#define MTBPF_TARGET_SYMBOLS_DEB_PACKAGE_H

#define DEB_PACKAGE_SIZE 128

/*
 * The package below `root` ("" or "/proc/PID/root") that installed `path`, without its
 * architecture. Reads a bounded part of the database, which may be hostile. 0, or -ENOENT if no
 * package installed it or the root has no database.
 */
int deb_package__owning(const char *root, const char *path, char name[static DEB_PACKAGE_SIZE]);

#endif
