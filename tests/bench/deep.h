/* SPDX-License-Identifier: MIT */
/* A stack of frame pointers of an ordinary depth. */
#ifndef MTBPF_TESTS_DEEP_H
#define MTBPF_TESTS_DEEP_H

#define DEEP 18

/* Calls work(ctx) from that far down. What stands behind the call keeps it from becoming a loop. */
__attribute__((noipa, optimize("no-omit-frame-pointer"))) static void
deep__run(int depth, void (*work)(void *ctx), void *ctx)
{
	if (depth)
		deep__run(depth - 1, work, ctx);
	else
		work(ctx);
	__asm__ volatile("" : : "r"(depth));
}

#endif
