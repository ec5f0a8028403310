// SPDX-License-Identifier: MIT
/* libFuzzer: what /proc says. The first byte tells which file it is. */
#include "fuzz.h"

#include <limits.h>

#include "target/cgroup.h"
#include "target/container.h"
#include "target/maps.h"
#include "target/process.h"
#include "kernel/kernel.h"

static void take_maps(const char *text)
{
	struct mappings maps;

	if (mappings__parse(&maps, text))
		return;
	for (size_t i = 0; i < maps.n; i++) {
		const struct mapping *m = &maps.v[i];

		CHECK(m->path && m->start < m->end);
		mappings__find(&maps, m->start);
		mapping__is_memory(m);
	}
	mappings__fini(&maps);
}

static void take_mountinfo(const char *text)
{
	struct layer_paths paths = {0};
	char path[PATH_MAX];

	cgroup__locate(text, "a/b", path);
	CHECK(!overlay__lower_paths(&paths, text, "/usr/bin/true"));
	free(paths.v);
}

static void take_kallsyms(const char *text)
{
	const char *at = text;
	struct kallsym sym;
	uint64_t address;

	while (kallsyms__next(&at, &sym)) {
		CHECK(sym.name >= text && sym.name_len <= strlen(sym.name));
		CHECK(!sym.module || sym.module_len <= strlen(sym.module));
	}
	kallsyms__find(text, "_stext", &address);
}

static void take_status(const char *text)
{
	struct task_status status;

	if (!task_status__parse(&status, text))
		CHECK(strlen(status.comm) < sizeof(status.comm));
}

static void take_cgroup(const char *text)
{
	container_cgroup__is(text, "0123456789abcdef");
	container_cgroup__is_pod(text, "0-1-2");
}

static void take_offsets(const char *text)
{
	time_namespace__parse(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const takers[])(const char *text) = {
		take_maps, take_mountinfo, take_status, take_kallsyms, take_cgroup, take_offsets};
	char *text;

	if (!size)
		return 0;
	text = fuzz__text(data + 1, size - 1);
	takers[data[0] % (sizeof(takers) / sizeof(takers[0]))](text);
	free(text);
	return 0;
}
