// SPDX-License-Identifier: MIT
/* Chooses the names of decode's output and writes it. */
#include "decode_command.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "util/cleanup.h"
#include "util/log.h"
#include "util/signals.h"

static bool ends_in(const char *name, const char *suffix)
{
	size_t n = strlen(name), s = strlen(suffix);

	return n >= s && !strcmp(name + n - s, suffix);
}

static bool is_text_name(const char *name)
{
	return ends_in(name, ".txt") || ends_in(name, ".txt.gz") || ends_in(name, ".txt.zst");
}

static bool wants_text(const struct decode_options *options)
{
	if (options->print == PRINT_CALLS || options->format == FORMAT_TEXT)
		return true;
	return options->format == FORMAT_BY_NAME && options->output &&
	       is_text_name(options->output);
}

bool decode_options__want_trace(const struct decode_options *options)
{
	return !options->portable && options->print == PRINT_NOTHING && !wants_text(options);
}

static int name_text(const struct decode_options *options, struct decode_output *output)
{
	if (options->print != PRINT_NOTHING || !options->output || !strcmp(options->output, "-"))
		return 0;
	output->path = options->output;
	if (is_text_name(output->path))
		return 0;
	log__error("'%s' is not a name for a text file", output->path);
	log__hint("it must end in .txt, .txt.gz or .txt.zst; -o - is stdout");
	return -EINVAL;
}

static int name_trace(const struct decode_options *options, const char *input,
		      struct decode_output *output)
{
	char trimmed[PATH_MAX];
	size_t n = strlen(input);

	*output = (struct decode_output){.is_text = wants_text(options), .is_whole = true};
	if (output->is_text)
		return name_text(options, output);
	if (options->output && !strcmp(options->output, "-")) {
		log__error("decode: a trace for Perfetto cannot be written to stdout");
		log__hint("use -o NAME.fxt.gz, or -format text");
		return -EINVAL;
	}
	if (options->output)
		return output_names__from(&output->names, options->output);
	while (n > 1 && input[n - 1] == '/')
		n--;
	snprintf(trimmed, sizeof(trimmed), "%.*s", (int)n, input);
	return output_names__from(&output->names,
				  n > 6 && ends_in(trimmed, ".mtbpf") ? trimmed : NULL);
}

static bool is_same(const char *a, const char *b)
{
	struct stat x, y;

	return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* Refuses to overwrite the input. */
static int refuse_same(const char *input, const char *output)
{
	if (!is_same(input, output))
		return 0;
	log__error("decode -portable: %s is the recording itself", output);
	log__hint("name the portable recording with -o NAME.mtbpf");
	return -EINVAL;
}

int decode_output__name(struct decode_output *output, const struct decode_options *options,
			const char *input)
{
	int err = name_trace(options, input, output);

	return err || !options->portable ? err : refuse_same(input, output->names.recording);
}

static int write_trace(struct decoded *decoded, const struct recording *rec,
		       const struct decode_output *output)
{
	if (output->is_text)
		return decoded__write_text_file(decoded, output->path);
	return decoded__write_trace(decoded, rec, output->names.trace);
}

const char *decode_output__file(const struct decode_output *output)
{
	return output->is_text ? output->path : output->names.trace;
}

void decode_output__begin_stoppable(const struct decode_output *output, const char *recording)
{
	const char *file = decode_output__file(output);
	_cleanup_free_ char *stopped = file ? stopped__format(recording, file) : NULL;

	if (file)
		stop__begin(stopped ?: "");
}

int decode_output__write(struct decode_output *output, struct decoded *decoded,
			 const struct recording *rec, struct phases *phases)
{
	int err;

	output->is_whole = decoded__is_whole(decoded, rec);
	phases__end(phases, "decoding");
	if (!decode_output__file(output))
		return decoded__write_text(decoded, stdout);
	err = write_trace(decoded, rec, output);
	phases__end(phases, "writing");
	return err;
}

void decode_output__summarise(const struct decode_output *output, const struct decoded *decoded,
			      const struct recording *rec, const struct phases *phases)
{
	if (!decode_output__file(output))
		return;
	phases__say(phases);
	decoded__summarise(decoded, rec, stdout, REPORT_ROWS);
}
