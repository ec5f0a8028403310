// SPDX-License-Identifier: MIT
#include "captures.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apart.h"
#include "input.h"
#include "mtbpf_shared.h"
#include "pipeline/output_name.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/fs.h"
#include "util/names.h"
#include "util/log.h"
#include "util/signals.h"
#include "util/text.h"
#include "util/vec.h"
#include "util/meter.h"
#include "view/pattern.h"

#define SUMMARY_FILE "summary.json"
/* Deeper folders are not searched. */
#define DEPTH_MAX   16
#define WORKERS_MAX 64

/* Finding captures. */

static bool has_file(const char *dir, const char *name)
{
	char path[PATH_MAX];

	return snprintf(path, sizeof(path), "%s/%s", dir, name) < PATH_MAX && !access(path, F_OK);
}

static bool is_recording_folder(const char *path)
{
	return has_file(path, "meta.json") || has_file(path, "data");
}

static int add_path(struct capture_paths *found, const char *path)
{
	char *copy = strdup(path);
	int err = copy ? VEC_ADD(&found->all, copy) : -ENOMEM;

	if (err)
		free(copy);
	return err;
}

/* True for a folder of captures. A recording that may not be read is recognized by its name. */
bool captures__is_folder(const char *path)
{
	struct stat st;
	bool is_named = (strcmp(path, ".mtbpf") && text__ends_in(path, ".mtbpf")) ||
			(strcmp(path, ".mtbpf/") && text__ends_in(path, ".mtbpf/"));

	return !stat(path, &st) && S_ISDIR(st.st_mode) && !is_recording_folder(path) && !is_named;
}

static int add_from(struct capture_paths *found, const char *dir, int depth);

static int add_entry(struct capture_paths *found, const char *path, int depth)
{
	const char *name = strrchr(path, '/') + 1, *suffix = strstr(name, ".fxt");
	char recording[PATH_MAX];
	struct stat st;

	if (name[0] == '.' || lstat(path, &st))
		return 0;
	if (S_ISDIR(st.st_mode) && is_recording_folder(path))
		/* A recording without meta.json is still being written. */
		return has_file(path, "meta.json") ? add_path(found, path) : 0;
	if (S_ISDIR(st.st_mode))
		return depth < DEPTH_MAX ? add_from(found, path, depth + 1) : 0;
	if (!S_ISREG(st.st_mode))
		return 0;
	if (!is_trace_name(name))
		return !strcmp(name, "perf.data") || text__ends_in(name, ".perf.data")
			       ? add_path(found, path)
			       : 0;
	/* A trace is left out if the recording that it was made of is there, too. */
	if (suffix &&
	    snprintf(recording, sizeof(recording), "%.*s.mtbpf", (int)(suffix - path), path) <
		    PATH_MAX &&
	    is_recording_folder(recording))
		return 0;
	return add_path(found, path);
}

static int add_from(struct capture_paths *found, const char *dir, int depth)
{
	struct dirent **entries;
	int n = scandir(dir, &entries, NULL, alphasort), err = n < 0 ? -errno : 0;
	char path[PATH_MAX];

	for (int i = 0; i < n; i++) {
		int length = snprintf(path, sizeof(path), "%s%s%s", dir,
				      text__ends_in(dir, "/") ? "" : "/", entries[i]->d_name);

		if (!err && length < PATH_MAX)
			err = add_entry(found, path, depth);
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
	/* The other folders are still read. */
	if (err == -EACCES && depth) {
		log__warn("cannot read the folder %s: %s", dir, strerror(EACCES));
		return 0;
	}
	return err;
}

static int refuse_word(const char *word, int err)
{
	log__error("cannot read %s: %s", word, strerror(-err));
	log__hint("give recordings (NAME.mtbpf), traces (NAME.fxt.gz), or folders of these");
	return err;
}

int captures__find(struct capture_paths *found, const char *const *words, size_t n)
{
	struct stat st;
	int err = 0;

	for (size_t i = 0; i < n && !err; i++) {
		if (stat(words[i], &st))
			return refuse_word(words[i], -errno);
		err = captures__is_folder(words[i]) ? add_from(found, words[i], 0)
						    : add_path(found, words[i]);
		if (err)
			return refuse_word(words[i], err);
	}
	return 0;
}

void capture_paths__fini(struct capture_paths *found)
{
	VEC_FINI_EACH(&found->all, e, free(*e));
}

/* The file that a recording's summary is kept in. */

static int open_dir(const char *path)
{
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static uint64_t data_size(int dir)
{
	struct stat st;

	return fstatat(dir, "data", &st, AT_SYMLINK_NOFOLLOW) ? 0 : (uint64_t)st.st_size;
}

/*
 * Reads a stored summary. 0, or -errno if it is missing or not valid; summary__fini() in any case.
 */
static int read_kept(struct summary *s, const char *path)
{
	/* A folder that others write to may have links in it. */
	const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW;
	_cleanup_close_ int dir = open_dir(path);
	_cleanup_close_ int fd = dir < 0 ? -1 : fs__only_regular(openat(dir, SUMMARY_FILE, flags));
	_cleanup_free_ char *text = NULL;
	size_t size;
	int err = fd < 0 ? -ENOENT : fs__read_fd(fd, SUMMARY_SIZE_MAX, &text, &size);

	*s = (struct summary){0};
	if (!err)
		err = summary__parse(s, path, text, data_size(dir));
	s->is_kept = true;
	return err;
}

/* Stores the summary in the recording: completely or not at all, and with the recording's owner. */
static int keep(const char *path, const char *text)
{
	_cleanup_close_ int dir = open_dir(path);
	_cleanup_close_ int fd = -1;
	char partial[64];
	struct stat st;
	int err;

	if (dir < 0 || fstatat(dir, "meta.json", &st, AT_SYMLINK_NOFOLLOW))
		return -errno;
	snprintf(partial, sizeof(partial), ".summary-%d", (int)getpid());
	fd = openat(dir, partial, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	err = fs__write_fd(fd, text, strlen(text));
	if (!err && st.st_uid != geteuid() && fchown(fd, st.st_uid, st.st_gid))
		log__debug("%s: its summary is not its owner's: %s", path, strerror(errno));
	if (!err && renameat(dir, partial, dir, SUMMARY_FILE))
		err = -errno;
	if (err)
		unlinkat(dir, partial, 0);
	return err;
}

/* Making a summary. */

static const char *explain_no_report(const struct decoded *decoded)
{
	const struct hit_mark *hit = NULL;

	for (size_t i = 0; i < decoded->hits.n; i++)
		if (decoded->hits.v[i].reason != MT_HIT_LAST)
			hit = &decoded->hits.v[i];
	if (!hit)
		return "no hit triggered the capture";
	if (hit->reason == MT_HIT_EVERY)
		return "the trigger had no threshold";
	return "the capture does not contain the whole iteration";
}

/* Further labels are left out; nobody has as many. */
#define LABELS_MAX 64

/* path: of the capture. NULL: no memory. */
static char *make_text(const struct decoded *decoded, const struct recording *rec, const char *path)
{
	struct summary_label labels[LABELS_MAX];
	struct report *report = decoded__report(decoded);
	const struct hit_mark *hit = decoded__slowest_hit(decoded);
	const struct rec_file *file = NULL;
	_cleanup_close_ int dir = open_dir(path);
	struct stat st;
	struct summary_facts facts = {
		.hit = hit,
		.no_report = report ? NULL : explain_no_report(decoded),
		.command = rec->command,
		.labels = labels,
	};
	char *text;

	if (rec->unix_zero_ns && rec->frozen_ns)
		facts.unix_ms = (rec->unix_zero_ns + rec->frozen_ns) / 1000000;
	if (dir >= 0)
		facts.data_bytes = data_size(dir);
	else if (!stat(path, &st))
		facts.data_bytes = (uint64_t)st.st_size;
	/* The program is the mapping that contains the trigger's probe. */
	for (size_t i = 0; hit && i < rec->maps.n; i++) {
		const struct rec_map *map = &rec->maps.v[i];

		if (map->pid != hit->pid || hit->ip < map->start ||
		    hit->ip - map->start >= map->len)
			continue;
		file = recording__find_file(rec, map->path, map->ino);
		facts.program = map->path;
		facts.build_id = file && file->build_id[0] ? file->build_id : map->build_id;
	}
	if (facts.build_id && !facts.build_id[0])
		facts.build_id = NULL;
	for (; facts.n_labels < rec->labels.n && facts.n_labels < LABELS_MAX; facts.n_labels++)
		labels[facts.n_labels] = (struct summary_label){
			rec->labels.v[facts.n_labels].key, rec->labels.v[facts.n_labels].value};
	text = summary__make(report, &facts);
	report__free(report);
	return text;
}

int captures__keep_summary(const struct decoded *decoded, const struct recording *rec,
			   const char *path)
{
	_cleanup_free_ char *text = make_text(decoded, rec, path);

	return text ? keep(path, text) : -ENOMEM;
}

static void refuse_capture(const char *path, const char *what, const char *why, bool needs_memory)
{
	log__error("%s: %s: %s", path, what, why);
	if (needs_memory)
		log__hint("'mtbpf report %s' decodes it alone, with more memory", path);
	else
		log__hint("'mtbpf report %s' shows the error in full", path);
}

/* One process per summary, so that a crash, or running out of memory, ends only that one. */

struct worker {
	pid_t pid; /* 0: idle */
	int fd;
	size_t index; /* of its capture */
	char *text;
	size_t size, cap;
};

struct summariser {
	const struct capture_paths *paths;
	const struct summarise_options *options;
	struct summaries *out;
	struct worker workers[WORKERS_MAX];
	size_t n_workers, next, done, total;
	uint64_t began_ns, said_ns, memory;
	VEC(size_t) todo; /* captures without a summary */
};

static void work_and_exit(const struct summariser *s, const char *path, int to)
{
	const struct input_options options = {.no_inline = s->options->no_inline};
	_cleanup_free_ char *text = NULL;
	struct input input;
	int err;

	/* This process prints errors, and no progress. */
	log__set_level(log__level() < LOG_QUIET ? log__level() : LOG_QUIET);
	memory_limit__set(s->memory);
	inputs__init(&input, &path, 1);
	err = inputs__open(&input, 1, &options);
	if (!err) {
		text = make_text(&input.decoded, &input.rec, path);
		err = text ? 0 : -ENOMEM;
	}
	inputs__fini(&input, 1);
	if (err && !log__has_error())
		refuse_capture(path, "it cannot be summarised", strerror(-err), err == -ENOMEM);
	if (!err)
		err = fs__write_fd(to, text, strlen(text));
	fflush(NULL);
	_exit(err != 0);
}

static int begin(struct summariser *s, struct worker *w)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	*w = (struct worker){.index = s->todo.v[s->next++], .fd = ends[0]};
	w->pid = child_process__fork();
	if (!w->pid)
		work_and_exit(s, s->paths->all.v[w->index], ends[1]);
	close(ends[1]);
	if (w->pid > 0)
		return 0;
	w->pid = 0;
	close(w->fd);
	return -errno;
}

/* Reads a piece of the worker's answer; false after the last one. */
static bool take(struct worker *w)
{
	ssize_t n;

	if (w->cap - w->size < 65536) {
		char *text = realloc(w->text, w->cap + 262144);

		if (!text)
			return false;
		w->text = text;
		w->cap += 262144;
	}
	n = read(w->fd, w->text + w->size, w->cap - w->size - 1);
	if (n > 0)
		w->size += (size_t)n;
	return n > 0 && w->size <= SUMMARY_SIZE_MAX;
}

/*
 * Counts the summary, and stores it with the capture. False if it is not stored: only a recording
 * can store one.
 */
static bool put(struct summariser *s, const char *path, const char *text)
{
	struct stat st;
	int err = stat(path, &st) || !S_ISDIR(st.st_mode) ? -ENOTDIR : keep(path, text);

	s->out->n_made++;
	s->out->n_unkept += err != 0;
	if (err && err != -ENOTDIR)
		log__debug("%s: its summary cannot be kept: %s", path, strerror(-err));
	return !err;
}

static int finish(struct summariser *s, struct worker *w)
{
	const char *path = s->paths->all.v[w->index];
	struct summary *summary;
	int status = 0, err = 0;

	close(w->fd);
	while (waitpid(w->pid, &status, 0) < 0 && errno == EINTR)
		;
	w->pid = 0;
	if (WIFSIGNALED(status))
		/* The kernel sends SIGKILL if it lacks memory. */
		refuse_capture(path, "decoding it was ended by a signal",
			       strsignal(WTERMSIG(status)), WTERMSIG(status) == SIGKILL);
	if (status || !w->size) {
		s->out->n_unread++;
		goto out;
	}
	w->text[w->size] = '\0';
	summary = VEC_PUSH(&s->out->all);
	if (!summary) {
		err = -ENOMEM;
		goto out;
	}
	err = summary__parse(summary, path, w->text, 0);
	if (err) {
		refuse_capture(path, "its summary cannot be read", strerror(-err), err == -ENOMEM);
		summary__fini(summary);
		s->out->all.n--;
		s->out->n_unread++;
		err = err == -ENOMEM ? err : 0;
	} else {
		summary->is_kept = put(s, path, w->text);
	}
out:
	free(w->text);
	*w = (struct worker){0};
	s->done++;
	return err;
}

/*
 * Shows the progress from this thread: a meter has a thread of its own, whose locks the forked
 * processes would inherit, but not the thread.
 */
static void show(struct summariser *s)
{
	const struct meter_work work = {"decoding", METER_CAPTURES, s->total};
	uint64_t now = clock__now_ns();
	bool has_line = log__has_line();
	char text[METER_TEXT_SIZE];

	if (now - s->said_ns < (has_line ? 150000000 : 3000000000))
		return;
	s->said_ns = now;
	meter__format(text, &work, s->done, now - s->began_ns, has_line);
	if (has_line)
		log__line(text);
	else
		log__info("%s", text);
}

static int wait_for_some(struct summariser *s)
{
	struct pollfd fds[WORKERS_MAX];
	int err = 0;

	for (size_t i = 0; i < s->n_workers; i++)
		fds[i] = (struct pollfd){.fd = s->workers[i].pid ? s->workers[i].fd : -1,
					 .events = POLLIN};
	if (poll(fds, s->n_workers, 100) < 0 && errno != EINTR)
		return -errno;
	for (size_t i = 0; i < s->n_workers && !err; i++)
		if (s->workers[i].pid && fds[i].revents && !take(&s->workers[i]))
			err = finish(s, &s->workers[i]);
	show(s);
	return err;
}

static void end_workers(struct summariser *s)
{
	for (size_t i = 0; i < s->n_workers; i++) {
		struct worker *w = &s->workers[i];

		if (!w->pid)
			continue;
		kill(w->pid, SIGKILL);
		close(w->fd);
		waitpid(w->pid, NULL, 0);
		free(w->text);
		w->pid = 0;
	}
}

static int make_missing(struct summariser *s)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	int err = 0;

	s->total = s->todo.n;
	s->n_workers = cpus < 1 ? 1 : cpus > WORKERS_MAX ? WORKERS_MAX : (size_t)cpus;
	s->n_workers = s->n_workers < s->total ? s->n_workers : s->total;
	memory_limit__set(s->options->max_memory);
	s->memory = memory_limit__get() / (s->n_workers ?: 1);
	s->began_ns = s->said_ns = clock__now_ns();
	while (!err && s->done < s->total) {
		for (size_t i = 0; i < s->n_workers && s->next < s->total && !err; i++)
			if (!s->workers[i].pid)
				err = begin(s, &s->workers[i]);
		if (!err)
			err = wait_for_some(s);
	}
	log__end_line();
	end_workers(s);
	return err;
}

static int read_known(struct summariser *s)
{
	uint64_t since_ms = s->options->since_ms;
	char meta[PATH_MAX];
	struct stat st;
	int err = 0;

	for (size_t i = 0; i < s->paths->all.n && !err; i++) {
		const char *path = s->paths->all.v[i];
		struct summary summary = {0};

		/* If a recording was written before that time, its hit is even older. */
		snprintf(meta, sizeof(meta), "%s/meta.json", path);
		if (since_ms && !stat(meta, &st) && (uint64_t)st.st_mtime * 1000 + 1000 < since_ms)
			continue;
		err = s->options->again ? -ENOENT : read_kept(&summary, path);
		if (!err)
			err = VEC_ADD(&s->out->all, summary);
		else
			summary__fini(&summary);
		if (err && err != -ENOMEM)
			err = VEC_ADD(&s->todo, i);
	}
	return err;
}

ORDER(by_path, struct summary, strcmp(x->path, y->path))

int captures__summarise(struct summaries *out, const struct capture_paths *paths,
			const struct summarise_options *options)
{
	struct summariser s = {.paths = paths, .options = options, .out = out};
	int err;

	*out = (struct summaries){0};
	confine__reading();
	err = read_known(&s);
	if (!err)
		err = make_missing(&s);
	VEC_FINI(&s.todo);
	if (err) {
		log__error("cannot read the captures: %s", strerror(-err));
		log__hint("give fewer of them, or a larger -max-memory");
		return err;
	}
	VEC_DROP_EACH(&out->all, summary, summary->unix_ms < options->since_ms,
		      summary__fini(summary));
	VEC_SORT(&out->all, by_path);
	return 0;
}

void summaries__fini(struct summaries *summaries)
{
	VEC_FINI_EACH(&summaries->all, e, summary__fini(e));
}

/*
 * The most memory for a summary on a machine that captures, which needs its memory for other work.
 */
#define KEPT_MEMORY (512u << 20)

static void tell_cause(struct metrics_cause *to, const struct summary *summary,
		       const struct summary_cause *cause)
{
	size_t n = cause->path.n;
	char *function = pattern__function(n ? cause->path.v[n - 1].name : "");

	*to = (struct metrics_cause){
		.ns = cause->ns,
		.n = 1,
		.exemplar = {.unix_ms = summary->unix_ms, .ns = cause->ns},
	};
	if (summary->trace_id && strspn(summary->trace_id, "0123456789abcdef") == 32)
		snprintf(to->exemplar.trace_id, sizeof(to->exemplar.trace_id), "%s",
			 summary->trace_id);
	snprintf(to->kind, sizeof(to->kind), "%s", cause_kinds[cause->kind].key);
	snprintf(to->function, sizeof(to->function), "%s", function ?: "");
	label__clean_in_place(to->function);
	free(function);
}

int captures__summarise_kept(const char *path, struct metrics_cause causes[static KEEP_CAUSES_MAX])
{
	const struct summarise_options options = {.max_memory = KEPT_MEMORY};
	struct capture_paths paths = {0};
	struct summaries found = {0};
	int n = 0, err;

	/* Prints no errors: the recording is whole, even if it cannot be decoded here. */
	log__set_level(LOG_SILENT);
	err = captures__find(&paths, &path, 1);
	if (!err)
		err = captures__summarise(&found, &paths, &options);
	if (!err && found.all.n)
		for (; n < KEEP_CAUSES_MAX && (size_t)n < found.all.v[0].causes.n; n++)
			tell_cause(&causes[n], &found.all.v[0], &found.all.v[0].causes.v[n]);
	summaries__fini(&found);
	capture_paths__fini(&paths);
	return err ? err : n;
}
