// SPDX-License-Identifier: MIT
#include "trigger/children.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "children.skel.h"
#include "trigger/trigger_internal.h"
#include "util/log.h"
#include "kernel/kernel.h"

struct children {
	struct children_bpf *skel;
};

static int load(struct children *children, int tgids_fd)
{
	int err;

	children->skel = children_bpf__open();
	if (!children->skel)
		return -errno;
	err = bpf_map__set_autocreate(children->skel->maps.target_cgroups, false);
	if (!err)
		err = bpf_map__reuse_fd(children->skel->maps.target_tgids, tgids_fd);
	if (!err)
		err = children_bpf__load(children->skel);
	return err ? err : children_bpf__attach(children->skel);
}

struct children *children__new(int tgids_fd)
{
	struct children *children;
	uint64_t dev, ino;
	int err;

	if (pid_namespace__is_own(&dev, &ino)) {
		log__error("-children: mtbpf runs in its own pid namespace and does not see the "
			   "host's pids");
		log__hint("run it on the host, or with the host's pids (hostPID, --pid=host)");
		errno = EOPNOTSUPP;
		return NULL;
	}
	children = calloc(1, sizeof(*children));
	if (!children)
		return NULL;
	libbpf_set_print(trigger__print_libbpf);
	err = load(children, tgids_fd);
	if (!err)
		return children;
	log__error("cannot follow forked processes: %s", strerror(-err));
	log__hint("this needs CAP_BPF, CAP_PERFMON and a kernel with CONFIG_DEBUG_INFO_BTF; "
		  "otherwise leave out -children");
	children__free(children);
	errno = -err;
	return NULL;
}

void children__free(struct children *children)
{
	if (!children)
		return;
	children_bpf__destroy(children->skel);
	free(children);
}
