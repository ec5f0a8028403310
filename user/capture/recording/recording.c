// SPDX-License-Identifier: MIT
#include "capture/recording/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "target/maps.h"
#include "util/cleanup.h"
#include "util/fs.h"
#include "util/names.h"
#include "util/log.h"

/* The PT of one thread, or of one CPU. */

void rec_aux__fini(struct rec_aux *aux)
{
	if (!aux->is_mapped && aux->data)
		free(aux->data - aux->left_out);
	aux->data = NULL;
}

/* Smaller rings are not halved: leaving out their data would save little memory. */
#define WORTH_HALVING (64u << 10)

bool recording__leave_out_older_half(struct recording *rec)
{
	uint64_t sum = 0;

	VEC_EACH(&rec->aux, aux) {
		size_t half = aux->size < WORTH_HALVING ? 0 : aux->size / 2;

		aux->data += half;
		aux->size -= half;
		aux->left_out += half;
		aux->wrapped |= half > 0;
		sum += half;
	}
	rec->drops[DROP_LEFT_OUT] += sum;
	return sum;
}

int recording__add_aux(struct recording *rec, const struct rec_aux *aux)
{
	struct rec_aux dropped = *aux;
	int err = aux->size ? VEC_ADD(&rec->aux, *aux) : 0;

	if (err || !aux->size)
		rec_aux__fini(&dropped);
	return err;
}

void rec_kernel__fini(struct rec_kernel *kernel)
{
	if (kernel->kallsyms && kernel->kcore >= 0)
		close(kernel->kcore);
	free(kernel->kallsyms);
	free(kernel->modules);
	*kernel = (struct rec_kernel){0};
}

static void fini_file(struct rec_file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	if (file->debug_fd >= 0)
		close(file->debug_fd);
	free(file->path);
	free(file->name);
	free(file->debug_name);
}

void recording__init(struct recording *rec)
{
	*rec = (struct recording){0};
}

void recording__fini(struct recording *rec)
{
	VEC_FINI_EACH(&rec->maps, e, free(e->path));
	VEC_FINI_EACH(&rec->data_maps, e, free(e->path));
	VEC_FINI_EACH(&rec->aux, e, rec_aux__fini(e));
	VEC_FINI_EACH(&rec->spools, e, munmap(e->data, e->size));
	VEC_FINI_EACH(&rec->images, e, (free(e->path), free(e->data)));
	VEC_FINI_EACH(&rec->files, e, fini_file(e));
	VEC_FINI_EACH(&rec->perf_maps, e, free(e->text));
	VEC_FINI_EACH(&rec->stacks, e, free(e->data));
	VEC_FINI_EACH(&rec->sample_users, e, free(e->stack));
	VEC_FINI_EACH(&rec->open_files, e, free(e->path));
	VEC_FINI_EACH(&rec->quotas, e, free(e->text));
	VEC_FINI_EACH(&rec->labels, e, (free(e->key), free(e->value)));
	VEC_FINI_EACH(&rec->prints, e, free(*e));
	free(rec->key);
	VEC_FINI_EACH(&rec->roots, e, e->is_owner ? close(e->fd) : 0);
	VEC_FINI(&rec->stops);
	VEC_FINI(&rec->threads);
	VEC_FINI(&rec->losses);
	VEC_FINI(&rec->switches);
	VEC_FINI(&rec->hits);
	VEC_FINI(&rec->thread_states);
	VEC_FINI(&rec->state_ips);
	VEC_FINI(&rec->samples);
	VEC_FINI(&rec->sample_ips);
	VEC_FINI(&rec->scheds);
	VEC_FINI(&rec->sched_bys);
	VEC_FINI(&rec->taken);
	VEC_FINI(&rec->entries);
	if (rec->mapped.data)
		munmap(rec->mapped.data, rec->mapped.size);
	free(rec->source);
	free(rec->trigger);
	free(rec->command);
	free(rec->freeze);
	free(rec->os_release);
	rec_kernel__fini(&rec->kernel);
}

int recording__add_image(struct recording *rec, const struct rec_image *image)
{
	struct rec_image copy = *image;

	if (VEC_FIND(&rec->images, known,
		     known->start == image->start && known->pid == image->pid &&
			     !strcmp(known->path, image->path)))
		return 0;
	copy.path = strdup(image->path);
	copy.data = malloc(image->size ? image->size : 1);
	if (!copy.path || !copy.data || VEC_ADD(&rec->images, copy)) {
		free(copy.path);
		free(copy.data);
		return -ENOMEM;
	}
	memcpy(copy.data, image->data, image->size);
	return 0;
}

int recording__add_file(struct recording *rec, const struct rec_file *file)
{
	struct rec_file *out = VEC_PUSH(&rec->files), failed = *file;

	if (!out) {
		failed.path = NULL;
		fini_file(&failed);
		return -ENOMEM;
	}
	*out = *file;
	out->path = strndup(file->path, mapping_path__length(file->path));
	if (out->path)
		return 0;
	fini_file(out);
	rec->files.n--;
	return -ENOMEM;
}

int recording__add_perf_map(struct recording *rec, pid_t pid, const char *text)
{
	struct rec_perf_map *known = VEC_FIND(&rec->perf_maps, e, e->pid == pid);
	char *copy = strdup(text);
	int err = copy ? 0 : -ENOMEM;

	if (!err && known) {
		free(known->text);
		known->text = copy;
	} else if (!err) {
		err = VEC_ADD(&rec->perf_maps, (struct rec_perf_map){pid, copy});
		if (err)
			free(copy);
	}
	return err;
}

const struct rec_file *recording__find_file(const struct recording *rec, const char *path,
					    uint64_t ino)
{
	size_t len = mapping_path__length(path);

	return VEC_FIND(&rec->files, file,
			file->ino == ino && mapping_path__length(file->path) == len &&
				!memcmp(file->path, path, len));
}

void recording__settle_build_ids(struct recording *rec)
{
	VEC_EACH(&rec->maps, map) {
		const struct rec_file *file = recording__find_file(rec, map->path, map->ino);

		if (file && file->build_id[0])
			memcpy(map->build_id, file->build_id, sizeof(map->build_id));
	}
}

void recording__drop_copies(struct recording *rec, pid_t pid)
{
	VEC_DROP_EACH(&rec->images, image, image->pid == pid,
		      (free(image->path), free(image->data)));
}

int recording__add_stack(struct recording *rec, const uint8_t *data, size_t size)
{
	struct rec_stack copy = {rec->hits.n - 1, malloc(size ? size : 1), size};

	if (!copy.data || VEC_ADD(&rec->stacks, copy)) {
		free(copy.data);
		return -ENOMEM;
	}
	memcpy(copy.data, data, size);
	return 0;
}

int recording__add_thread_state(struct recording *rec, const struct rec_thread_state *state,
				const uint64_t *ips)
{
	struct rec_thread_state *out = VEC_PUSH(&rec->thread_states);
	int err = out ? 0 : -ENOMEM;

	if (err)
		return err;
	*out = *state;
	out->first_ip = (uint32_t)rec->state_ips.n;
	label__clean_in_place(out->comm);
	for (uint32_t i = 0; i < state->n_ips && !err; i++)
		err = VEC_ADD(&rec->state_ips, ips[i]);
	if (err)
		out->n_ips = 0;
	return err;
}

struct rec_user recording__hit_user(const struct recording *rec, const struct mt_hit *hit)
{
	struct rec_user user = {
		.bx = hit->bx,
		.bp = hit->bp,
		.sp = hit->sp,
		.ip = hit->ip,
		.r12 = hit->r12,
		.r13 = hit->r13,
		.r14 = hit->r14,
		.r15 = hit->r15,
	};

	VEC_EACH(&rec->stacks, stack) {
		if (&rec->hits.v[stack->hit] == hit) {
			user.stack = stack->data;
			user.size = stack->size;
		}
	}
	return user;
}

bool recording__is_by_cpu(const struct recording *rec)
{
	return rec->aux.n && !rec->aux.v[0].tid;
}

size_t recording__traced_bytes(const struct recording *rec)
{
	size_t bytes = rec->samples.n * sizeof(rec->samples.v[0]) +
		       rec->entries.n * sizeof(rec->entries.v[0]);

	/* Counts each hit: its stack is recorded even if nothing else is. */
	if (recording__is_sampled(rec))
		bytes += rec->hits.n * sizeof(rec->hits.v[0]);
	for (size_t i = 0; i < rec->aux.n; i++)
		bytes += rec->aux.v[i].size;
	return bytes;
}

bool rec_map__has(const struct rec_map *map, const struct rec_place *place, uint64_t *ip)
{
	bool is_file =
		map->ino == place->ino && ((!place->maj && !place->min) ||
					   (map->maj == place->maj && map->min == place->min));

	if (!place->ino) {
		*ip = place->offset;
		return *ip >= map->start && *ip - map->start < map->len;
	}
	if (!is_file || place->offset < map->pgoff || place->offset - map->pgoff >= map->len)
		return false;
	*ip = map->start + place->offset - map->pgoff;
	return true;
}

uint64_t recording__probe_of(const struct recording *rec, const struct mt_hit *hit)
{
	const struct rec_map *known = NULL;
	struct rec_place place;
	uint64_t ip;

	/* At a return, earlier versions wrote the hit's ip in place of the probe's address. */
	if (hit->probe_ip && (hit->reason != MT_HIT_DURATION || hit->probe_ip != hit->ip))
		return hit->probe_ip;
	/* `run` knows the address from the hit only. */
	if (!rec->probe_ip)
		return hit->ip;
	VEC_EACH(&rec->maps, map)
		if (map->pid == rec->pid && rec->probe_ip >= map->start &&
		    rec->probe_ip - map->start < map->len)
			known = map;
	if (!known || (pid_t)hit->tgid == rec->pid)
		return rec->probe_ip;
	place = (struct rec_place){.ino = known->ino,
				   .offset = rec->probe_ip - known->start + known->pgoff,
				   .maj = known->maj,
				   .min = known->min};
	for (size_t i = rec->maps.n; i-- > 0;)
		if (rec->maps.v[i].pid == (pid_t)hit->tgid &&
		    rec_map__has(&rec->maps.v[i], &place, &ip))
			return ip;
	return hit->ip;
}

/* Inserts after elements of the same time or earlier. */
#define ADD_BY_TIME(vec, ...)                                                                      \
	({                                                                                         \
		const __typeof__(*(vec)->v) item_ = (__VA_ARGS__);                                 \
		__typeof__((vec)->v) out_ = VEC_PUSH(vec);                                         \
                                                                                                   \
		for (; out_ > (vec)->v && out_[-1].time_ns > item_.time_ns; out_--)                \
			*out_ = out_[-1];                                                          \
		if (out_)                                                                          \
			*out_ = item_;                                                             \
		out_ ? 0 : -ENOMEM;                                                                \
	})

int recording__add_map(struct recording *rec, const struct rec_map *map)
{
	struct rec_map copy = *map;
	int err;

	copy.path = strdup(map->path);
	err = copy.path ? ADD_BY_TIME(&rec->maps, copy) : -ENOMEM;
	if (err)
		free(copy.path);
	return err;
}

int recording__add_loss(struct recording *rec, const struct rec_loss *loss)
{
	return ADD_BY_TIME(&rec->losses, *loss);
}

int recording__add_switch(struct recording *rec, const struct rec_switch *sw)
{
	return ADD_BY_TIME(&rec->switches, *sw);
}

/* The threads of a recording, and what they begin with. */

const struct rec_thread *recording__find_thread(const struct recording *rec, pid_t pid, pid_t tid)
{
	return VEC_FIND(&rec->threads, thread, thread->pid == pid && thread->tid == tid);
}

int recording__add_thread(struct recording *rec, const struct rec_thread *thread)
{
	struct rec_thread *known =
		(struct rec_thread *)recording__find_thread(rec, thread->pid, thread->tid);
	struct rec_thread named = *thread;

	label__clean_in_place(named.comm);
	if (!known)
		return VEC_ADD(&rec->threads, named);
	memcpy(known->comm, named.comm, sizeof(known->comm));
	return 0;
}

int recording__add_fork(struct recording *rec, const struct rec_thread *child, pid_t parent_pid,
			pid_t parent_tid)
{
	const struct rec_thread *parent = recording__find_thread(rec, parent_pid, parent_tid);
	struct rec_thread named = *child;
	size_t n = child->pid == parent_pid ? 0 : rec->maps.n;
	int err;

	if (parent)
		memcpy(named.comm, parent->comm, sizeof(named.comm));
	err = recording__add_thread(rec, &named);
	/* Each copy is inserted after all mappings that are to be copied: these stay below n. */
	for (size_t i = 0; i < n && !err && rec->maps.v[i].time_ns <= child->start_ns; i++) {
		struct rec_map map = rec->maps.v[i];

		if (map.pid != parent_pid)
			continue;
		map.pid = map.tid = child->pid;
		map.time_ns = child->start_ns;
		err = recording__add_map(rec, &map);
	}
	return err;
}

/* Samples, context switches, and system calls. */

bool recording__is_sampled(const struct recording *rec)
{
	bool has_samples = rec->samples.n || rec->scheds.n || rec->entries.n;

	return !rec->aux.n &&
	       (has_samples || (rec->source && !strcmp(rec->source, "sample") && rec->hits.n));
}

/* Adds all addresses or none. 0 or -ENOMEM. */
static int add_ips(struct recording *rec, const uint64_t *ips, uint32_t n)
{
	size_t before = rec->sample_ips.n;

	if (before + n > UINT32_MAX)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		if (VEC_ADD(&rec->sample_ips, ips[i])) {
			rec->sample_ips.n = before;
			return -ENOMEM;
		}
	return 0;
}

int recording__add_sample(struct recording *rec, const struct rec_sample *sample,
			  const uint64_t *ips)
{
	struct rec_sample copy = *sample;
	int err;

	copy.first_ip = (uint32_t)rec->sample_ips.n;
	err = VEC_ADD(&rec->samples, copy);
	if (err)
		return err;
	err = add_ips(rec, ips, sample->n_ips);
	rec->samples.n -= err != 0;
	return err;
}

int recording__add_sample_kernel(struct recording *rec, const uint64_t *ips, uint32_t n)
{
	struct rec_sample *sample = &rec->samples.v[rec->samples.n - 1];
	size_t first = rec->sample_ips.n;
	int err = add_ips(rec, ips, n);

	if (err)
		return err;
	sample->first_kernel = (uint32_t)first;
	sample->n_kernel = n;
	return 0;
}

int recording__add_sample_user(struct recording *rec, const struct rec_user *user)
{
	struct rec_user copy = *user;

	copy.stack = malloc(user->size ? user->size : 1);
	if (!copy.stack || VEC_ADD(&rec->sample_users, copy)) {
		free(copy.stack);
		return -ENOMEM;
	}
	if (user->size)
		memcpy(copy.stack, user->stack, user->size);
	rec->samples.v[rec->samples.n - 1].user = (uint32_t)rec->sample_users.n;
	return 0;
}

int recording__add_sched_by(struct recording *rec, const struct mt_sched *by)
{
	return VEC_ADD(&rec->sched_bys, *by);
}

const char *recording__find_open_file(const struct recording *rec, pid_t pid, int fd)
{
	const struct rec_open_file *file =
		VEC_FIND(&rec->open_files, e, e->pid == pid && e->fd == fd);

	return file ? file->path : NULL;
}

int recording__add_open_file(struct recording *rec, pid_t pid, int fd, const char *path)
{
	struct rec_open_file file = {.pid = pid, .fd = fd};

	if (recording__find_open_file(rec, pid, fd))
		return 0;
	file.path = strdup(path);
	if (!file.path || VEC_ADD(&rec->open_files, file)) {
		free(file.path);
		return -ENOMEM;
	}
	/* The path is only shown, never opened. */
	label__clean_in_place(file.path);
	return 0;
}

const char *recording__find_quota(const struct recording *rec, pid_t pid, bool of_memory)
{
	const struct rec_quota *quota =
		VEC_FIND(&rec->quotas, e, e->pid == pid && e->of_memory == of_memory);

	return quota ? quota->text : NULL;
}

int recording__set_quota(struct recording *rec, pid_t pid, bool of_memory, const char *text)
{
	struct rec_quota quota = {.pid = pid, .of_memory = of_memory};

	if (recording__find_quota(rec, pid, of_memory))
		return 0;
	quota.text = strdup(text);
	if (quota.text && !VEC_ADD(&rec->quotas, quota))
		return 0;
	free(quota.text);
	return -ENOMEM;
}

int recording__set_label(struct recording *rec, const char *key, const char *value)
{
	struct rec_label label = {.key = strdup(key), .value = strdup(value)};

	if (!label.key || !label.value)
		goto no_memory;
	label__clean_in_place(label.key);
	label__clean_in_place(label.value);
	VEC_EACH(&rec->labels, known) {
		if (!strcmp(known->key, label.key)) {
			free(known->value);
			known->value = label.value;
			free(label.key);
			return 0;
		}
	}
	if (!VEC_ADD(&rec->labels, label))
		return 0;
no_memory:
	free(label.key);
	free(label.value);
	return -ENOMEM;
}

int recording__add_print(struct recording *rec, const char *name)
{
	char *copy = strdup(name);

	if (!copy || VEC_ADD(&rec->prints, copy)) {
		free(copy);
		return -ENOMEM;
	}
	label__clean_in_place(copy);
	return 0;
}

static const struct {
	const char *name, *one, *many, *why;
} drops[DROPS] = {
	[DROP_TRIGGERS] = {"triggers", "trigger", "triggers", "the kernel's buffer was full"},
	[DROP_BUSY] = {"busy", "trigger", "triggers",
		       "the previous snapshot was still being taken"},
	[DROP_UNMEASURED] =
		{"unmeasured", "hit", "hits",
		 "not measured (hit in an interrupt, too many nested calls, or no memory)"},
	[DROP_KEYS] = {"keys", "request", "requests",
		       "of -key: evicted, since there were too many at once"},
	[DROP_KEYLESS] = {"keyless", "hit", "hits", "the value of -key could not be read"},
	[DROP_RESTARTED] = {"restarted", "request", "requests",
			    "of -key: -start was hit again before -stop"},
	[DROP_MISSED] = {"missed", "hit", "hits", "the kernel did not run the BPF program"},
	[DROP_THROTTLED] = {"throttled", "pause", "pauses",
			    "the kernel throttled sampling; a lower -sample-rate avoids that"},
	[DROP_THREADS] = {"threads", "thread", "threads", "not recorded: there were too many"},
	[DROP_HITS] = {"unrecorded_hits", "hit", "hits",
		       "not recorded: its thread had just begun, or needs -multi-thread"},
	[DROP_MAPPINGS] = {"mappings", "mapping", "mappings",
			   "not recorded: code in them shows as gaps"},
	[DROP_RECORDS] = {"records", "record", "records",
			  "of mappings and threads: code of those is not known"},
	[DROP_TRACE] = {"trace", "part", "parts",
			"of a thread's trace, as the kernel or the CPU reported"},
	[DROP_DISK] = {"disk", "thread", "threads",
		       "not recorded to the end: writing to the "
		       "disk failed"},
	[DROP_LEFT_OUT] = {"left_out", "byte", "bytes",
			   "of trace, the oldest: to decode them takes more than -max-memory"},
};

const char *drop__name(enum drop drop)
{
	return drops[drop].name;
}

const char *drop__format(char buf[static DROP_TEXT_SIZE], enum drop drop, uint64_t n)
{
	const char *what = n == 1 ? drops[drop].one : drops[drop].many;
	const char *colon = strncmp(drops[drop].why, "of ", 3) ? ": " : " ";

	snprintf(buf, DROP_TEXT_SIZE, "%" PRIu64 " %s%s%s", n, what, colon, drops[drop].why);
	return buf;
}

uint64_t recording__drops(const struct recording *rec, uint64_t counts[static DROPS])
{
	uint64_t sum = 0;

	memcpy(counts, rec->drops, sizeof(rec->drops));
	for (size_t i = 0; i < rec->losses.n; i++) {
		counts[DROP_RECORDS] += rec->losses.v[i].records;
		counts[DROP_TRACE] += rec->losses.v[i].aux_flags != 0;
	}
	for (int i = 0; i < DROPS; i++)
		sum += counts[i];
	return sum;
}

static const struct rec_root *find_root(const struct recording *rec, pid_t pid)
{
	return VEC_FIND(&rec->roots, root, root->pid == pid);
}

static void format_root(pid_t pid, char path[static REC_ROOT_SIZE])
{
	snprintf(path, REC_ROOT_SIZE, "/proc/%d/root", (int)pid);
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/*
 * Holds the root folder of a process, if it is still running and has another one than ours.
 * Processes of one container share a descriptor.
 */
static int add_root(struct recording *rec, pid_t pid)
{
	struct rec_root root = {.pid = pid, .is_owner = true};
	_cleanup_close_ int fd = -1;
	struct stat st, other;
	char path[REC_ROOT_SIZE];

	format_root(pid, path);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) || stat("/", &other) || is_same(&st, &other))
		return 0;
	root.fd = fd;
	VEC_EACH(&rec->roots, held) {
		/* A copy: VEC_ADD() may move what `held` points to. */
		const struct rec_root shared = {.pid = pid, .fd = held->fd};

		if (held->is_owner && !fstat(held->fd, &other) && is_same(&st, &other))
			return VEC_ADD(&rec->roots, shared);
	}
	if (VEC_ADD(&rec->roots, root))
		return -ENOMEM;
	fd = -1;
	return 0;
}

int recording__hold_roots(struct recording *rec)
{
	pid_t last = 0;
	int err = 0;

	fs__allow_open_files(rec->files.n * 2 + 256);
	for (size_t i = 0; i < rec->maps.n && !err; i++) {
		pid_t pid = rec->maps.v[i].pid;

		if (pid != last && !find_root(rec, pid))
			err = add_root(rec, pid);
		last = pid;
	}
	return err;
}

void recording__root_path(const struct recording *rec, pid_t pid, char path[static REC_ROOT_SIZE])
{
	const struct rec_root *held = find_root(rec, pid);

	if (held)
		snprintf(path, REC_ROOT_SIZE, "/proc/self/fd/%d", held->fd);
	else
		format_root(pid, path);
}

int spool__open(struct spool *spool, const char *dir)
{
	char path[PATH_MAX];

	*spool = (struct spool)SPOOL_NONE;
	spool->fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (spool->fd >= 0)
		return 0;
	/* Not every file system has files without a name. */
	snprintf(path, sizeof(path), "%s/.mtbpf-XXXXXX", dir);
	spool->fd = mkostemp(path, O_CLOEXEC);
	if (spool->fd < 0)
		return -errno;
	unlink(path);
	return 0;
}

void spool__close(struct spool *spool)
{
	if (spool->fd >= 0)
		close(spool->fd);
	*spool = (struct spool)SPOOL_NONE;
}

void spool__write(struct spool *spool, const void *bytes, size_t n)
{
	if (spool->err)
		return;
	spool->err = fs__write_fd(spool->fd, bytes, n);
	if (spool->err)
		log__warn("cannot write more of the trace: %s; the rest of it is lost",
			  strerror(-spool->err));
	else
		spool->size += n;
}

int spool__finish(struct spool *spool, struct rec_aux *aux, struct recording *rec)
{
	struct rec_spool kept = {.size = spool->size};

	rec->drops[DROP_DISK] += spool->err != 0;
	if (!spool->size)
		return 0;
	kept.data = mmap(NULL, spool->size, PROT_READ, MAP_PRIVATE, spool->fd, 0);
	if (kept.data == MAP_FAILED)
		return -errno;
	if (VEC_ADD(&rec->spools, kept)) {
		munmap(kept.data, kept.size);
		return -ENOMEM;
	}
	aux->data = kept.data;
	aux->size = kept.size;
	aux->is_mapped = true;
	return recording__add_aux(rec, aux);
}
