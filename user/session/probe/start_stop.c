// SPDX-License-Identifier: MIT
#include "session/probe/start_stop.h"

#include <errno.h>
#include <sys/stat.h>

#include "util/log.h"

static int find(struct probes *probes, const char *name, const struct probe_source *source)
{
	struct selectors selectors = {0};
	int err = selectors__add(&selectors, name);

	if (!err)
		err = probes__find(probes, &selectors, source);
	selectors__fini(&selectors);
	return err;
}

/* What is to be run is mapped nowhere yet, and its file system may show another device then. */
static struct rec_place place_of(const struct probe *probe, const char *exec_path)
{
	struct rec_place place = {.ino = probe->file.ino,
				  .offset = probe->offset,
				  .maj = probe->file.maj,
				  .min = probe->file.min};
	struct stat st;

	if (exec_path && !stat(exec_path, &st))
		place.ino = st.st_ino;
	return place;
}

static bool has_place(const struct probes *probes, const struct probe *probe, const char *exec_path)
{
	const struct rec_place place = place_of(probe, exec_path);

	for (size_t i = 0; i < probes->all.n; i++) {
		const struct rec_place other = place_of(&probes->all.v[i], exec_path);

		if (place.ino == other.ino && place.offset == other.offset)
			return true;
	}
	return false;
}

static int check_places(const struct start_stop *r, const struct capture_options *options,
			const char *exec_path)
{
	for (size_t i = 0; i < r->starts.all.n; i++) {
		if (!has_place(&r->stops, &r->starts.all.v[i], exec_path))
			continue;
		log__error("-start %s and -stop %s are the same place", options->start,
			   options->stop);
		log__hint("stop at what comes behind it: a function that is called then, or a line "
			  "(line:FILE:N)");
		return -EINVAL;
	}
	return 0;
}

static int add_places(struct start_stop *r, const char *exec_path)
{
	for (size_t i = 0; i < r->starts.all.n; i++) {
		struct rec_place *place = VEC_PUSH(&r->start_places);

		if (!place)
			return -ENOMEM;
		*place = place_of(&r->starts.all.v[i], exec_path);
	}
	for (size_t i = 0; i < r->stops.all.n; i++) {
		struct rec_place *place = VEC_PUSH(&r->stop_places);

		if (!place)
			return -ENOMEM;
		*place = place_of(&r->stops.all.v[i], exec_path);
	}
	return 0;
}

int start_stop__find(struct start_stop *r, const struct capture_options *options,
		     const struct probe_source *source)
{
	int err;

	if (!options->start)
		return 0;
	r->stop_triggers = !options->symbols.n;
	err = find(&r->starts, options->start, source);
	if (!err)
		err = find(&r->stops, options->stop, source);
	if (!err)
		err = check_places(r, options, source->exec_path);
	return err ? err : add_places(r, source->exec_path);
}

void start_stop__fini(struct start_stop *r)
{
	probes__fini(&r->starts);
	probes__fini(&r->stops);
	VEC_FINI(&r->start_places);
	VEC_FINI(&r->stop_places);
}
