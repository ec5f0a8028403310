/* SPDX-License-Identifier: MIT */
/*
 * A file with which a selftest's result can be examined on another machine: its recordings (only of
 * its own programs), its results, and facts about the CPU, kernel and Intel PT. It is a tar
 * archive, compressed by zstd; tar(1) makes and unpacks it.
 */
#ifndef MTBPF_SELFTEST_BUNDLE_H
#define MTBPF_SELFTEST_BUNDLE_H

/* Writes facts about the machine into the folder's facts.txt. 0 or -errno. */
int bundle__write_facts(const char *dir);

/*
 * Prepares a recording for sending. Clears those parts of programs and libraries that decoders do
 * not read (code that did not run, data, debug info). Removes what belongs to the user (names of
 * the host and of other processes, folders, contents of stacks except addresses). 0, or -errno,
 * perhaps after a message and a hint: the recording must not be sent.
 */
int bundle__prepare(const char *recording);

/*
 * Packs the folder's files into the bundle, without the user's paths in texts, or unpacks them. 0,
 * or -errno after a line and a hint.
 */
int bundle__pack(const char *dir, const char *bundle);
int bundle__unpack(const char *bundle, const char *dir);

#endif
