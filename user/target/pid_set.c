// SPDX-License-Identifier: MIT
#include "target/pid_set.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "util/vec.h"

void pid_set__fini(struct pid_set *set)
{
	VEC_FINI(set);
}

/* Where it is, or would be. */
static size_t place_of(const struct pid_set *set, pid_t pid)
{
	return VEC_PARTITION_POINT(set, e, *e < pid);
}

bool pid_set__has(const struct pid_set *set, pid_t pid)
{
	size_t at = place_of(set, pid);

	return at < set->n && set->v[at] == pid;
}

int pid_set__add(struct pid_set *set, pid_t pid)
{
	size_t at = place_of(set, pid);

	if (at < set->n && set->v[at] == pid)
		return 0;
	if (vec__grow(&set->v, &set->cap, set->n, sizeof(*set->v)))
		return -ENOMEM;
	memmove(&set->v[at + 1], &set->v[at], (set->n++ - at) * sizeof(*set->v));
	set->v[at] = pid;
	return 0;
}

void pid_set__remove(struct pid_set *set, pid_t pid)
{
	size_t at = place_of(set, pid);

	if (at < set->n && set->v[at] == pid)
		memmove(&set->v[at], &set->v[at + 1], (--set->n - at) * sizeof(*set->v));
}

int pid_set__add_all(struct pid_set *to, const struct pid_set *from)
{
	int err = 0;

	for (size_t i = 0; i < from->n && !err; i++)
		err = pid_set__add(to, from->v[i]);
	return err;
}

/* *text steps behind it. */
static int take_pid(const char **text, pid_t *pid)
{
	char *end;
	long value;

	if (!isdigit((unsigned char)**text))
		return -EINVAL;
	errno = 0;
	value = strtol(*text, &end, 10);
	if (*end && *end != ',')
		return -EINVAL;
	if (errno || value > INT_MAX)
		return -ERANGE;
	*text = end;
	*pid = (pid_t)value;
	return 0;
}

int pid_set__parse(struct pid_set *set, const char *text)
{
	for (;;) {
		pid_t pid;
		int err = take_pid(&text, &pid);

		if (!err && pid)
			err = pid_set__add(set, pid);
		if (err || !*text)
			return err;
		text++;
	}
}
