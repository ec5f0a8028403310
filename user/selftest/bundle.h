/* SPDX-License-Identifier: MIT */
/*
 * A file that shows somebody else what a selftest found: its recordings (of its own programs only),
 * its results, and what the machine says of its CPU, kernel and Intel PT. It is a tar archive,
 * compressed by zstd; tar(1) makes and unpacks it.
 */
#ifndef MTBPF_SELFTEST_BUNDLE_H
#define MTBPF_SELFTEST_BUNDLE_H

/* Writes what the machine says into the folder: facts.txt. 0 or -errno. */
int bundle__write_facts(const char *dir);

/*
 * Clears of the programs and libraries in a recording what its decoder does not read: code that did
 * not run, data, debug info. 0, or -errno, perhaps after a line and a hint.
 */
int bundle__slim(const char *recording);

/* The folder's files into the bundle, or out of it. 0, or -errno after a line and a hint. */
int bundle__pack(const char *dir, const char *bundle);
int bundle__unpack(const char *bundle, const char *dir);

#endif
