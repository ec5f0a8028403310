/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* Decides whether the probed conditional jump is taken: Intel SDM vol. 1, appendix B. */
#ifndef MTBPF_CONDITION_BPF_H
#define MTBPF_CONDITION_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "mtbpf_shared.h"

#define FLAG_CF (1 << 0)
#define FLAG_PF (1 << 2)
#define FLAG_ZF (1 << 6)
#define FLAG_SF (1 << 7)
#define FLAG_OF (1 << 11)

static __always_inline bool holds(u64 flags, u32 condition)
{
	bool less = !(flags & FLAG_SF) != !(flags & FLAG_OF), is_so = false;

	switch (condition >> 1 & 7) {
	case 0:
		is_so = flags & FLAG_OF;
		break;
	case 1:
		is_so = flags & FLAG_CF;
		break;
	case 2:
		is_so = flags & FLAG_ZF;
		break;
	case 3:
		is_so = flags & (FLAG_CF | FLAG_ZF);
		break;
	case 4:
		is_so = flags & FLAG_SF;
		break;
	case 5:
		is_so = flags & FLAG_PF;
		break;
	case 6:
		is_so = less;
		break;
	case 7:
		is_so = less || flags & FLAG_ZF;
		break;
	}
	return is_so != (condition & 1);
}

/* True if the condition of the probed jump holds, or if the probe is unconditional. */
static __always_inline bool condition_holds(struct pt_regs *ctx)
{
	u32 condition = bpf_get_attach_cookie(ctx) >> MT_CONDITION_SHIFT;

	return !(condition & MT_CONDITION) || holds(ctx->flags, condition);
}

#endif
