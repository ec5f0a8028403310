// SPDX-License-Identifier: MIT
#include "perf/perf_text.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "perf/perf_line.h"
#include "util/cleanup.h"
#include "util/meter.h"

/* A line is a few hundred bytes; of C++ names a few thousand. */
#define BUFFER_SIZE (256u << 10)

/* Takes the place at ip from `rest` and moves `rest` past it. 0 or -ENOMEM. */
static int take_place(struct named_image *image, uint64_t ip, struct perf_span *rest,
		      bool *is_known)
{
	const struct named_spot *spot = ip ? named_image__spot(image, ip) : NULL;
	struct named_place place = {.ip = ip};
	size_t n = spot ? spot->label_len : 0;
	int err = 0;

	if (n && n <= rest->len && !memcmp(spot->label, rest->text, n) &&
	    (n == rest->len || rest->text[n] == ' ' || rest->text[n] == '\t')) {
		*is_known = spot->function && spot->is_followed;
	} else {
		n = perf_place__parse(&place, rest->text, rest->len);
		*is_known = false;
		if (ip)
			err = named_image__learn(image, &place, rest->text, n);
	}
	rest->text += n;
	rest->len -= n;
	return err;
}

static int take_branch(struct perf_threads *threads, struct perf_line *line,
		       struct perf_text_totals *totals)
{
	struct perf_branch branch = {.time_ns = line->time_ns, .from = line->from};
	bool from_known, to_known;
	struct perf_thread *thread;
	struct named_image *image;
	struct perf_extra extra;
	struct perf_words words;
	int err;

	perf_words__parse(&words, line->flags.text, line->flags.len);
	branch.flags = words.flags;
	if (words.flags & PERF_IS_NOT_TAKEN) {
		totals->not_taken++;
		return 0;
	}
	thread = perf_threads__find(threads, line->pid, line->tid);
	if (!thread && errno == EMFILE) {
		totals->left_out++;
		return 0;
	}
	if (!thread)
		return -ENOMEM;
	if (line->comm.len)
		perf_thread__set_comm(thread, line->comm.text, line->comm.len);
	image = perf_thread__image(thread);
	err = take_place(image, line->from, &line->rest, &from_known);
	if (err)
		return err;
	if (!perf_line__parse_target(&line->rest, &branch.to)) {
		totals->other++;
		return 0;
	}
	totals->unknown_flags += words.has_unknown || !words.flags;
	err = take_place(image, branch.to, &line->rest, &to_known);
	if (!err && (!from_known || !to_known))
		err = perf_thread__follow(thread, &branch);
	if (err)
		return err;
	if (line->rest.len) {
		perf_extra__parse(&extra, line->rest.text, line->rest.len);
		branch.n_insns = extra.n_insns;
		branch.insn_len = extra.insn_len;
	}
	return perf_threads__branch(threads, thread, &branch);
}

/* perf's numbers of its kinds of traces: 1 is one of instructions. */
#define ERROR_TYPE_INSTRUCTIONS 1

static int take_line(struct perf_text *to, const char *text, size_t len)
{
	enum perf_line_kind kind;
	struct perf_line line;
	int n = 0;

	to->totals.lines++;
	if (len && text[len - 1] == '\r')
		len--;
	kind = perf_line__parse(&line, text, len);
	if (kind == PERF_LINE_BRANCH)
		return take_branch(to->threads, &line, &to->totals);
	if (kind == PERF_LINE_ERROR)
		return perf_threads__lose(to->threads, line.pid, line.tid,
					  line.has_time ? line.time_ns : 0,
					  line.type == ERROR_TYPE_INSTRUCTIONS ? line.code : 0);
	/* Stacks between branches add nothing to what the branches tell. */
	if (!perf_threads__totals(to->threads)->decode.branches)
		n = perf_samples__take(to->samples, kind, &line, (struct perf_span){text, len});
	to->totals.sampled += n > 0;
	to->totals.other += !n && len;
	return n < 0 ? n : 0;
}

int perf_text__take(struct perf_text *to, const char *text, size_t len)
{
	int err = 0;

	while (len && !err) {
		const char *end = memchr(text, '\n', len);
		size_t n = end ? (size_t)(end - text) : len;

		err = take_line(to, text, n);
		n += end != NULL;
		text += n;
		len -= n;
	}
	return err;
}

bool perf_text__may_be(int fd)
{
	static const char magic[] = "PERFILE2";
	char start[4096];
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st))
		return false;
	if (!S_ISREG(st.st_mode))
		return S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode);
	n = pread(fd, start, sizeof(start), 0);
	if (n <= 0 || memchr(start, '\0', (size_t)n))
		return false;
	return (size_t)n < strlen(magic) || memcmp(start, magic, strlen(magic));
}

struct buffer {
	char *text;
	size_t n;
	bool is_skipping; /* the rest of a line that did not fit */
};

/* Takes the whole lines of the buffer and moves the rest to its front. */
static int take_lines(struct perf_text *to, struct buffer *buffer)
{
	char *start = buffer->text, *end = memrchr(start, '\n', buffer->n);
	char *first = end && buffer->is_skipping ? memchr(start, '\n', buffer->n) : NULL;
	int err;

	if (!end) {
		if (buffer->n == BUFFER_SIZE) {
			to->totals.too_long += !buffer->is_skipping;
			buffer->is_skipping = true;
		}
		if (buffer->is_skipping)
			buffer->n = 0;
		return 0;
	}
	if (first)
		start = first + 1;
	buffer->is_skipping = false;
	err = perf_text__take(to, start, (size_t)(end + 1 - start));
	buffer->n -= (size_t)(end + 1 - buffer->text);
	memmove(buffer->text, end + 1, buffer->n);
	return err;
}

int perf_text__read(struct perf_text *to, int fd, struct meter *meter)
{
	_cleanup_free_ char *text = malloc(BUFFER_SIZE);
	struct buffer buffer = {.text = text};
	ssize_t n = 1;
	int err = text ? 0 : -ENOMEM;

	while (!err && n) {
		n = read(fd, text + buffer.n, BUFFER_SIZE - buffer.n);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		to->totals.bytes += (uint64_t)n;
		meter__add(meter, (uint64_t)n);
		buffer.n += (size_t)n;
		if (n)
			err = take_lines(to, &buffer);
	}
	if (!err && !buffer.is_skipping)
		err = perf_text__take(to, text, buffer.n);
	return err;
}
