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
 * Makes a recording fit to be sent: clears of its programs and libraries what decoders do not
 * read (code that did not run, data, debug info), and removes what is of the user (names of the
 * host and of other processes, folders, what stacks hold beside addresses). 0, or -errno, perhaps
 * after a line and a hint: it must not be sent.
 */
int bundle__prepare(const char *recording);

/* The folder's files into the bundle, without the user's paths in texts, or out of it. 0, or -errno
 * after a line and a hint. */
int bundle__pack(const char *dir, const char *bundle);
int bundle__unpack(const char *bundle, const char *dir);

#endif
