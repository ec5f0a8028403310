// SPDX-License-Identifier: MIT
#include "serve/deep_link.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernel/rights.h"
#include "trace/fxt_read.h"
#include "util/cleanup.h"
#include "util/json.h"
#include "util/log.h"
#include "util/meter.h"
#include "util/signals.h"
#include "util/units.h"

/* Margin on both sides of the hit's slice: 1/MARGIN_SHARE of it; MARGIN_NS if that is 0. */
#define MARGIN_SHARE 8
#define MARGIN_NS    500000

/*
 * Reads the trace and finds its slowest hit. Returns 0, also for a trace without hits; -EBADMSG if
 * the file is not an FXT trace, or is damaged before the first hit; or another -errno. Prints
 * nothing.
 */
static int find_slowest(struct shown_hit *hit, int trace_fd)
{
	struct fxt_reader *reader = fxt_reader__open(trace_fd);
	const struct fxt_read_arg *tid;
	struct fxt_read read;
	struct meter meter;
	int err;

	*hit = (struct shown_hit){0};
	if (!reader)
		return -errno;
	meter__begin_file(&meter, "reading", trace_fd);
	fxt_reader__count(reader, &meter);
	while ((err = fxt_reader__next(reader, &read)) == 1) {
		if (read.kind != FXT_READ_EVENT || read.event != FXT_EVENT_COMPLETE ||
		    strcmp(read.category, "hit") || read.end_ns < read.time_ns)
			continue;
		hit->n_hits++;
		if (hit->found && read.end_ns - read.time_ns <= hit->end_ns - hit->begin_ns)
			continue;
		tid = fxt_read__arg(&read, "tid");
		hit->found = true;
		hit->begin_ns = read.time_ns;
		hit->end_ns = read.end_ns;
		hit->tid = tid ? tid->number : 0;
		snprintf(hit->name, sizeof(hit->name), "%s", read.name);
	}
	meter__end(&meter);
	fxt_reader__free(reader);
	return hit->found ? 0 : err;
}

struct answer {
	int err;
	struct shown_hit hit;
};

int shown_hit__find_apart(struct shown_hit *hit, int trace_fd)
{
	struct answer *answer = mmap(NULL, sizeof(*answer), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid;
	int err, status;

	if (answer == MAP_FAILED)
		return -errno;
	/* This value stays if the child crashes. */
	answer->err = -EBADMSG;
	pid = child_process__fork();
	err = pid < 0 ? -errno : 0;
	if (!pid) {
		err = landlock__confine(NULL, false, NULL, 0);
		if (!err)
			err = capability__keep_for_our_files();
		else
			capability__keep_for_files();
		if (err)
			log__debug("reading is not confined: %s", strerror(-err));
		answer->err = find_slowest(&answer->hit, trace_fd);
		_exit(0);
	}
	while (!err && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (!err)
		err = answer->err;
	*hit = answer->hit;
	hit->name[sizeof(hit->name) - 1] = '\0';
	munmap(answer, sizeof(*answer));
	return err;
}

static cJSON *add_command(cJSON *commands, const char *id)
{
	cJSON *command = json__append_object(commands);

	cJSON_AddStringToObject(command, "id", id);
	return cJSON_AddArrayToObject(command, "args");
}

/* In Perfetto, the title of a thread's track is the thread's name and its id. */
static char *commands_of(const struct shown_hit *hit)
{
	cJSON *commands = cJSON_CreateArray(), *note;
	char regex[32], time[24], text[sizeof(hit->name) + 48], *out;

	/* The hits' track is the last one of its process: pin it first. */
	snprintf(regex, sizeof(regex), " %" PRIu64 "$", hit->tid);
	if (hit->tid) {
		json__append_text(add_command(commands, "dev.perfetto.PinTracksByRegex"),
				  "^mtbpf hits ");
		json__append_text(add_command(commands, "dev.perfetto.PinTracksByRegex"), regex);
		json__append_text(add_command(commands, "dev.perfetto.ExpandTracksByRegex"), regex);
	}
	snprintf(time, sizeof(time), "%" PRIu64, hit->end_ns);
	if (hit->end_ns > hit->begin_ns)
		snprintf(text, sizeof(text), "%s after %s", hit->name,
			 DURATION(hit->end_ns - hit->begin_ns));
	else
		snprintf(text, sizeof(text), "%s", hit->name);
	note = add_command(commands, "dev.perfetto.AddNoteAtTimestamp");
	json__append_text(note, time);
	json__append_text(note, text);
	out = cJSON_PrintUnformatted(commands);
	cJSON_Delete(commands);
	return out;
}

static void put_escaped(FILE *out, const char *text)
{
	/* Characters that need no escape: RFC 3986, 2.3. */
	static const char unreserved[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					 "0123456789-._~";

	for (; *text; text++) {
		if (strchr(unreserved, *text))
			fputc(*text, out);
		else
			fprintf(out, "%%%02X", (unsigned char)*text);
	}
}

char *deep_link(const char *ui, const char *url, const struct shown_hit *hit)
{
	uint64_t margin_ns = (hit->end_ns - hit->begin_ns) / MARGIN_SHARE ?: MARGIN_NS;
	_cleanup_free_ char *commands = hit->found ? commands_of(hit) : NULL;
	char *text = NULL;
	size_t size;
	FILE *out = hit->found && !commands ? NULL : open_memstream(&text, &size);

	if (!out)
		return NULL;
	fprintf(out, "%s#!/?url=", ui);
	put_escaped(out, url);
	if (hit->found) {
		fprintf(out, "&visStart=%" PRIu64 "&visEnd=%" PRIu64 "&startupCommands=",
			hit->begin_ns > margin_ns ? hit->begin_ns - margin_ns : 0,
			hit->end_ns + margin_ns);
		put_escaped(out, commands);
	}
	if (!fclose(out))
		return text;
	free(text);
	return NULL;
}
