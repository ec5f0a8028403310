/* SPDX-License-Identifier: MIT */
/* Reads entries of a log that BPF programs may be writing: bpf/logs.bpf.h. */
#ifndef MTBPF_TRIGGER_LOG_ENTRY_H
#define MTBPF_TRIGGER_LOG_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Copies an entry that begins with its time, which is 0 while it is written. False if it was never
 * written, or is being written.
 */
bool log_entry__copy(void *out, const void *entry, size_t size);

#endif
