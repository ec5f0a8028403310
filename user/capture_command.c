// SPDX-License-Identifier: MIT
#include "capture_command.h"

#include <errno.h>
#include <stdio.h>

#include "cmd.h"
#include "output_name.h"
#include "pipeline.h"
#include "util/fs.h"
#include "util/log.h"

static void say_end(enum session_end end)
{
	switch (end) {
	case SESSION_TRIGGERED:
		log__info("triggered: the trace is frozen, the target runs on");
		break;
	case SESSION_INTERRUPTED:
		log__info(
			"interrupted before a trigger: the snapshot is of now, the target runs on");
		break;
	case SESSION_TIMED_OUT:
		log__info("no trigger within the timeout: the snapshot is of now, the target runs "
			  "on");
		break;
	case SESSION_EXITED:
		log__info("the target has exited: the snapshot is of its last moments");
		break;
	}
}

static size_t recorded_bytes(const struct recording *rec)
{
	size_t bytes = 0;

	for (size_t i = 0; i < rec->aux.n; i++)
		bytes += rec->aux.v[i].size;
	return bytes;
}

static int make_trace(const struct recording *rec, const char *path)
{
	struct decoded decoded;
	int err = decoded__make(&decoded, rec);

	if (!err)
		err = decoded__write_trace(&decoded, rec, path);
	if (!err)
		decoded__summarise(&decoded, rec, stdout);
	decoded__fini(&decoded);
	return err;
}

static int exit_code(int err, enum session_end end)
{
	switch (-err) {
	case 0:
		return end == SESSION_TIMED_OUT ? EXIT_NO_TRIGGER : EXIT_OK;
	case EINVAL:
	case ESRCH:
	case ENOENT:
	case ENOTUNIQ:
	case ENODATA:
	case ENOEXEC:
	case ENODEV:
		return EXIT_USAGE;
	default:
		return EXIT_FAILED;
	}
}

int capture_command__run(const struct capture_options *options, const struct session_start *start,
			 bool decode)
{
	enum session_end end = SESSION_INTERRUPTED;
	struct output_names names;
	struct recording rec;
	int err = output_names__from(&names, options->output);

	if (err)
		return exit_code(err, end);
	recording__init(&rec);
	/* First of all: a place that cannot be written is no reason to have touched the target. */
	err = recording_dir__create(names.recording);
	if (err) {
		recording__fini(&rec);
		return EXIT_FAILED;
	}
	err = session__capture(options, start, &rec, &end);
	if (err) {
		fs__remove_dir(names.recording);
	} else {
		say_end(end);
		err = recording__write(&rec, names.recording);
	}
	if (!err && !recorded_bytes(&rec)) {
		log__error("nothing was recorded: the target ran no instruction");
		log__hint("was it asleep all the time? record again while it works");
		err = -ENOMSG;
	}
	if (!err)
		log__info("%s: the recording; 'perf script -i' reads it too", names.recording);
	if (!err && decode)
		err = make_trace(&rec, names.trace);
	recording__fini(&rec);
	return exit_code(err, end);
}
