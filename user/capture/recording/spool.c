// SPDX-License-Identifier: MIT
#include "capture/recording/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "util/fs.h"
#include "util/log.h"

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
	struct rec_spool *kept;
	void *data;

	rec->drops[DROP_DISK] += spool->err != 0;
	if (!spool->size)
		return 0;
	data = mmap(NULL, spool->size, PROT_READ, MAP_PRIVATE, spool->fd, 0);
	if (data == MAP_FAILED)
		return -errno;
	kept = VEC_PUSH(&rec->spools);
	if (!kept) {
		munmap(data, spool->size);
		return -ENOMEM;
	}
	*kept = (struct rec_spool){data, spool->size};
	aux->data = data;
	aux->size = spool->size;
	aux->is_mapped = true;
	return recording__add_aux(rec, aux);
}
