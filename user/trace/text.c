// SPDX-License-Identifier: MIT
#include "trace/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "target/symbols/live_image.h"
#include "util/names.h"
#include "trace/sink.h"
#include "trace/timeline.h"
#include "kernel/kernel.h"

/* Functions of kernel modules need no suffix: their names contain "[module]". */
static const char *suffix(const struct call *call)
{
	bool is_kernel = call->function && address__is_kernel(call->entry_ip) &&
			 !strcmp(call->function->module, KERNEL_MODULE);

	if (call->kind == CALL_INLINED)
		return " [inlined]";
	return is_kernel ? " " KERNEL_MODULE : "";
}

int trace_text__tree(FILE *out, const struct call_tree *tree, uint64_t base_ns)
{
	char buf[LABEL_SIZE], name[CALL_NAME_SIZE], thread[32];
	size_t len;

	/* A thread's id, or "id.number" for a coroutine. */
	if (tree->coroutine)
		snprintf(thread, sizeof(thread), "%d.%" PRIu32, tree->tid, tree->coroutine);
	else
		snprintf(thread, sizeof(thread), "%d", tree->tid);
	VEC_EACH(&tree->calls, call) {
		if (call->depth >= TIMELINE_MAX_DEPTH)
			continue;
		errno = 0;
		if (fprintf(out, "%s %" PRIu32 " %" PRIu64 " %" PRIu64 " %s%s\n", thread,
			    call->depth, timeline__relative(base_ns, call->start_ns),
			    timeline__relative(base_ns, call->end_ns),
			    label__clean(buf, call__full_name(call, name), &len), suffix(call)) < 0)
			return errno ? -errno : -EIO;
	}
	return 0;
}

static ssize_t write_to_sink(void *sink, const char *text, size_t len)
{
	sink__write(sink, text, len);
	return sink__error(sink) ? 0 : (ssize_t)len;
}

int trace_text__write(const char *path, text_format_fn format, const struct call_tree *trees,
		      size_t n, uint64_t base_ns, uint64_t *bytes)
{
	struct sink *sink = sink__open(path);
	FILE *out = sink ? fopencookie(sink, "w", (cookie_io_functions_t){.write = write_to_sink})
			 : NULL;
	int err = 0;

	if (!sink)
		return -errno;
	if (!out)
		sink__fail(sink, -ENOMEM);
	/* sink__close() reports what could not be written. */
	for (size_t i = 0; i < n && out && !err; i++)
		err = format(out, &trees[i], base_ns);
	if (out && fclose(out) && !err)
		err = -errno;
	if (err)
		sink__fail(sink, err);
	return sink__close(sink, bytes);
}
