/* SPDX-License-Identifier: MIT */
/*
 * What CPUs get wrong in their streams (Intel's specification updates; libipt knows which CPU has
 * what), as far as the walk must know it. What it needs no flag for:
 *
 *   BDM70   a PSB+ in front of a TIP.PGE tells where a thread is that is not traced yet: what a PSB
 *           says is no branch before something happens there
 *   APL12   so does an OVF: the same
 *   APL11   a TIP.PGD behind an OVF: tracing is off, and the gap goes on
 *   SKD010  no FUP behind an OVF: the walk goes on at the next packet that tells an IP
 *   SKL168  a CYC lost in front of a PSB: time is counted from each PSB's TSC and TMA anew
 *
 * SKZ84 (TMA in a guest whose TSC is offset or scaled, and a byte that is no packet behind it) is a
 * bad packet here.
 */
#ifndef MTBPF_DECODE_ERRATA_H
#define MTBPF_DECODE_ERRATA_H

#include <stdbool.h>

#include "capture/recording/recording.h"

struct errata {
	bool bdm64;  /* before the FUP of a transaction's abort, a branch went elsewhere */
	bool skd007; /* an OVF may come in the middle of a CYC */
	bool skd022; /* a VM entry that ends tracing tells a FUP */
	bool skl014; /* a direct branch out of a filter's range does not tell where to */
};

/* Of the CPU that the stream is of; none where it is not known. */
void errata__of(struct errata *errata, const struct rec_pt_config *config);

#endif
