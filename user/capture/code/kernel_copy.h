/* SPDX-License-Identifier: MIT */
/* The kernel's code as it is now, copied from /proc/kcore. */
#ifndef MTBPF_CAPTURE_CODE_KERNEL_COPY_H
#define MTBPF_CAPTURE_CODE_KERNEL_COPY_H

#include "capture/recording/recording.h"

/*
 * Copies what executes into an ELF file without a name, and the texts of kallsyms and modules;
 * without the code that file says where it was, and has none. `proc` is "/proc"; modules may be
 * missing there. 0, or -errno after one line and a hint; `kernel` is empty then.
 */
int kernel_copy__make(const char *proc, bool with_code, struct rec_kernel *kernel);

#endif
