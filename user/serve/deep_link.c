// SPDX-License-Identifier: MIT
#include "serve/deep_link.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernel/rights.h"
#include "trace/fxt_read.h"
#include "util/cleanup.h"
#include "util/json.h"
#include "util/log.h"
#include "util/meter.h"
#include "util/units.h"

/* Margin on both sides of the hit's slice: 1/MARGIN_SHARE of it; MARGIN_NS if that is 0. */
#define MARGIN_SHARE 8
#define MARGIN_NS    500000

static bool is_hit(const struct fxt_read *read)
{
	return read->kind == FXT_READ_EVENT && read->event == FXT_EVENT_COMPLETE &&
	       !strcmp(read->category, "hit") && read->end_ns >= read->time_ns;
}

static void look_at(struct shown_hit *hit, const struct fxt_read *read)
{
	const struct fxt_read_arg *tid = fxt_read__arg(read, "tid");

	hit->found = true;
	hit->begin_ns = read->time_ns;
	hit->end_ns = read->end_ns;
	hit->tid = tid ? tid->number : 0;
	snprintf(hit->name, sizeof(hit->name), "%s", read->name);
}

static int find(struct shown_hit *hit, struct fxt_reader *reader)
{
	struct fxt_read read;
	int err;

	while ((err = fxt_reader__next(reader, &read)) == 1) {
		if (!is_hit(&read))
			continue;
		hit->n_hits++;
		if (!hit->found || read.end_ns - read.time_ns > hit->end_ns - hit->begin_ns)
			look_at(hit, &read);
	}
	return hit->found ? 0 : err;
}

/*
 * Reads the trace and finds its slowest hit. Returns 0, also for a trace without hits; -EBADMSG if
 * the file is not an FXT trace, or is damaged before the first hit; or another -errno. Prints
 * nothing.
 */
static int find_slowest(struct shown_hit *hit, int trace_fd)
{
	struct fxt_reader *reader = fxt_reader__open(trace_fd);
	struct meter meter;
	int err;

	*hit = (struct shown_hit){0};
	if (!reader)
		return -errno;
	meter__begin_file(&meter, "reading", trace_fd);
	fxt_reader__count(reader, &meter);
	err = find(hit, reader);
	meter__end(&meter);
	fxt_reader__free(reader);
	return err;
}

struct answer {
	int err;
	struct shown_hit hit;
};

static void find_and_exit(struct answer *answer, int trace_fd, pid_t parent)
{
	int err;

	/* End with the parent, which reads the answer. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
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

static int find_apart(struct answer *answer, int trace_fd)
{
	pid_t parent = getpid(), pid;
	int status;

	answer->err = -EBADMSG;
	fflush(NULL);
	pid = fork();
	if (pid < 0)
		return -errno;
	if (!pid)
		find_and_exit(answer, trace_fd, parent);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return answer->err;
}

int shown_hit__find_apart(struct shown_hit *hit, int trace_fd)
{
	struct answer *answer = mmap(NULL, sizeof(*answer), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int err;

	if (answer == MAP_FAILED)
		return -errno;
	err = find_apart(answer, trace_fd);
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
static void add_pin(cJSON *commands, const struct shown_hit *hit)
{
	char regex[32];

	/* The hits' track is the last one of its process: pin it first. */
	json__append_text(add_command(commands, "dev.perfetto.PinTracksByRegex"), "^mtbpf hits ");
	snprintf(regex, sizeof(regex), " %" PRIu64 "$", hit->tid);
	json__append_text(add_command(commands, "dev.perfetto.PinTracksByRegex"), regex);
	json__append_text(add_command(commands, "dev.perfetto.ExpandTracksByRegex"), regex);
}

static void add_note(cJSON *commands, const struct shown_hit *hit)
{
	cJSON *args = add_command(commands, "dev.perfetto.AddNoteAtTimestamp");
	char time[24], text[sizeof(hit->name) + 48];

	snprintf(time, sizeof(time), "%" PRIu64, hit->end_ns);
	if (hit->end_ns > hit->begin_ns)
		snprintf(text, sizeof(text), "%s after %s", hit->name,
			 DURATION(hit->end_ns - hit->begin_ns));
	else
		snprintf(text, sizeof(text), "%s", hit->name);
	json__append_text(args, time);
	json__append_text(args, text);
}

static char *commands_of(const struct shown_hit *hit)
{
	cJSON *commands = cJSON_CreateArray();
	char *text;

	if (hit->tid)
		add_pin(commands, hit);
	add_note(commands, hit);
	text = cJSON_PrintUnformatted(commands);
	cJSON_Delete(commands);
	return text;
}

/* Characters that need no escape: RFC 3986, 2.3. */
static bool is_unreserved(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("-._~", c));
}

static void put_escaped(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (is_unreserved(*text))
			fputc(*text, out);
		else
			fprintf(out, "%%%02X", (unsigned char)*text);
	}
}

static bool put_view(FILE *out, const struct shown_hit *hit)
{
	uint64_t margin_ns = (hit->end_ns - hit->begin_ns) / MARGIN_SHARE ?: MARGIN_NS;
	_cleanup_free_ char *commands = commands_of(hit);

	if (!commands)
		return false;
	fprintf(out, "&visStart=%" PRIu64 "&visEnd=%" PRIu64 "&startupCommands=",
		hit->begin_ns > margin_ns ? hit->begin_ns - margin_ns : 0, hit->end_ns + margin_ns);
	put_escaped(out, commands);
	return true;
}

char *deep_link(const char *ui, const char *url, const struct shown_hit *hit)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	bool ok = true;

	if (!out)
		return NULL;
	fprintf(out, "%s#!/?url=", ui);
	put_escaped(out, url);
	if (hit->found)
		ok = put_view(out, hit);
	if (fclose(out) || !ok) {
		free(text);
		return NULL;
	}
	return text;
}
