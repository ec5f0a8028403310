// SPDX-License-Identifier: MIT
/* What a source that samples adds to a recording. */
#include "capture/recording/recording.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/label.h"

bool recording__is_sampled(const struct recording *rec)
{
	bool has_samples = rec->samples.n || rec->scheds.n || rec->entries.n;

	return !rec->aux.n &&
	       (has_samples || (rec->source && !strcmp(rec->source, "sample") && rec->hits.n));
}

/* All or none. */
static int add_ips(struct recording *rec, const uint64_t *ips, uint32_t n)
{
	size_t before = rec->sample_ips.n;

	if (before + n > UINT32_MAX)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		uint64_t *ip = VEC_PUSH(&rec->sample_ips);

		if (!ip) {
			rec->sample_ips.n = before;
			return -ENOMEM;
		}
		*ip = ips[i];
	}
	return 0;
}

int recording__add_sample(struct recording *rec, const struct rec_sample *sample,
			  const uint64_t *ips)
{
	struct rec_sample *out = VEC_PUSH(&rec->samples);
	int err;

	if (!out)
		return -ENOMEM;
	*out = *sample;
	out->first_ip = (uint32_t)rec->sample_ips.n;
	err = add_ips(rec, ips, sample->n_ips);
	if (err)
		rec->samples.n--;
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
	uint8_t *stack = malloc(user->size ? user->size : 1);
	struct rec_user *out = stack ? VEC_PUSH(&rec->sample_users) : NULL;

	if (!out) {
		free(stack);
		return -ENOMEM;
	}
	*out = *user;
	out->stack = stack;
	if (user->size)
		memcpy(stack, user->stack, user->size);
	rec->samples.v[rec->samples.n - 1].user = (uint32_t)rec->sample_users.n;
	return 0;
}

int recording__add_sched(struct recording *rec, const struct rec_sched *sched)
{
	struct rec_sched *out = VEC_PUSH(&rec->scheds);

	if (!out)
		return -ENOMEM;
	*out = *sched;
	return 0;
}

int recording__add_sched_by(struct recording *rec, const struct mt_sched *by)
{
	struct mt_sched *out = VEC_PUSH(&rec->sched_bys);

	if (!out)
		return -ENOMEM;
	*out = *by;
	return 0;
}

int recording__add_entry(struct recording *rec, const struct mt_entry *entry)
{
	struct mt_entry *out = VEC_PUSH(&rec->entries);

	if (!out)
		return -ENOMEM;
	*out = *entry;
	return 0;
}

const char *recording__find_open_file(const struct recording *rec, pid_t pid, int fd)
{
	for (size_t i = 0; i < rec->open_files.n; i++)
		if (rec->open_files.v[i].pid == pid && rec->open_files.v[i].fd == fd)
			return rec->open_files.v[i].path;
	return NULL;
}

int recording__add_open_file(struct recording *rec, pid_t pid, int fd, const char *path)
{
	struct rec_open_file file = {.pid = pid, .fd = fd}, *out;

	if (recording__find_open_file(rec, pid, fd))
		return 0;
	/* It is only shown. */
	file.path = strdup(path);
	if (file.path)
		label__clean_in_place(file.path);
	out = file.path ? VEC_PUSH(&rec->open_files) : NULL;
	if (!out) {
		free(file.path);
		return -ENOMEM;
	}
	*out = file;
	return 0;
}

const char *recording__find_quota(const struct recording *rec, pid_t pid)
{
	for (size_t i = 0; i < rec->quotas.n; i++)
		if (rec->quotas.v[i].pid == pid)
			return rec->quotas.v[i].text;
	return NULL;
}

int recording__set_quota(struct recording *rec, pid_t pid, const char *text)
{
	struct rec_quota *out;

	if (recording__find_quota(rec, pid))
		return 0;
	out = VEC_PUSH(&rec->quotas);
	if (!out)
		return -ENOMEM;
	*out = (struct rec_quota){.pid = pid, .text = strdup(text)};
	return out->text ? 0 : -ENOMEM;
}
