// SPDX-License-Identifier: MIT
#include "selftest/selftest.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "selftest/bundle.h"
#include "selftest/checks.h"
#include "util/cleanup.h"
#include "util/fs.h"
#include "util/json.h"
#include "util/log.h"
#include "util/signals.h"

struct selftest {
	const struct selftest_options *options;
	char dir[PATH_MAX];
	FILE *list;	 /* of the results, for the bundle; or NULL */
	cJSON *array;	 /* of the results; NULL: lines are printed */
	unsigned int *n; /* number of results, by verdict */
};

const char *const selftest_verdict_names[] = {
	[SELFTEST_PASSED] = "ok", [SELFTEST_FAILED] = "failed", [SELFTEST_SKIPPED] = "skipped"};
static void take_result(void *ctx, const struct selftest_result *result)
{
	const char *source = selftest_source_names[result->source];
	const char *verdict = selftest_verdict_names[result->verdict];
	bool has_failed = result->verdict == SELFTEST_FAILED;
	struct selftest *test = ctx;
	cJSON *object;

	test->n[result->verdict]++;
	/* results.txt: a line for each result, its parts separated by tabs. */
	if (test->list)
		fprintf(test->list, "%s\t%s\t%s\t%s\n", source, result->name, verdict,
			result->found);
	if (!test->array) {
		printf("%-6s  %-24s  %-7s  %s\n", source, result->name, verdict, result->found);
		if (has_failed)
			printf("%-6s  %-24s           effect: %s; until fixed: %s\n", "", "",
			       result->loss, result->meanwhile);
		fflush(stdout);
		return;
	}
	object = json__append_object(test->array);
	cJSON_AddStringToObject(object, "source", source);
	cJSON_AddStringToObject(object, "name", result->name);
	cJSON_AddStringToObject(object, "verdict", verdict);
	cJSON_AddStringToObject(object, "found", result->found);
	json__add_text_or_null(object, "loss", has_failed ? result->loss : NULL);
	json__add_text_or_null(object, "meanwhile", has_failed ? result->meanwhile : NULL);
}

static int make_folder(struct selftest *test)
{
	const char *tmp = getenv("TMPDIR");

	if (test->options->keep) {
		snprintf(test->dir, sizeof(test->dir), "%s", test->options->keep);
		if (!mkdir(test->dir, 0700) || errno == EEXIST)
			return 0;
	} else {
		snprintf(test->dir, sizeof(test->dir), "%s/mtbpf-selftest-XXXXXX", tmp ?: "/tmp");
		if (mkdtemp(test->dir))
			return 0;
	}
	log__error("cannot make the folder %s: %s", test->dir, strerror(errno));
	log__hint(test->options->keep ? "choose another folder with -keep" : "set TMPDIR");
	return -EINVAL;
}

static int test_sources(struct selftest *test)
{
	struct checks checks = {
		.options = test->options, .dir = test->dir, .on_result = take_result, .ctx = test};

	checks.log = mmap(NULL, sizeof(*checks.log), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (checks.log == MAP_FAILED) {
		log__error("cannot map %zu bytes for the checks' messages: %s", sizeof(*checks.log),
			   strerror(errno));
		log__hint("free memory, or raise its limit (ulimit -v)");
		return -ENOMEM;
	}
	for (int source = 0; source < SELFTEST_SOURCES; source++)
		if (test->options->sources[source])
			checks__run(&checks, (enum selftest_source)source);
	munmap(checks.log, sizeof(*checks.log));
	return 0;
}

static int begin_list(struct selftest *test)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%.*s/results.txt", PATH_MAX - 20, test->dir);
	test->list = fopen(path, "we");
	if (test->list)
		return 0;
	log__error("cannot write %s: %s", path, strerror(errno));
	log__hint("choose another folder with -keep");
	return -EIO;
}

static int write_bundle(struct selftest *test)
{
	int err = fclose(test->list) ? -errno : bundle__write_facts(test->dir);

	if (err) {
		log__error("cannot write into %s: %s", test->dir, strerror(-err));
		log__hint("choose another folder with -keep");
		return err;
	}
	return bundle__pack(test->dir, test->options->bundle);
}

/* Warns if the bundle is of another version, which may judge differently or have other checks. */
static void compare_versions(const struct selftest *test)
{
	_cleanup_free_ char *text = NULL;
	char path[PATH_MAX], version[32];
	size_t len;

	snprintf(path, sizeof(path), "%.*s/facts.txt", PATH_MAX - 20, test->dir);
	if (fs__read(path, &text, &len) || sscanf(text, "mtbpf: %31s", version) != 1)
		log__warn("the bundle does not tell which version of mtbpf has made it");
	else if (strcmp(version, MTBPF_VERSION) != 0)
		log__warn("the bundle is of mtbpf %s, which is %s than this one (%s): verdicts may "
			  "differ",
			  version, strverscmp(version, MTBPF_VERSION) < 0 ? "older" : "newer",
			  MTBPF_VERSION);
}

/*
 * Prints the results as JSON, or the counts of verdicts after the results' lines. Frees the JSON
 * array. 0, or -errno.
 */
static int end_results(struct selftest *test)
{
	const unsigned int *n = test->n;
	bool json = test->array;
	char *text = json ? json__finish(test->array) : NULL;

	if (json && !text)
		return -ENOMEM;
	if (json)
		puts(text);
	else
		printf("%u passed, %u failed, %u skipped\n", n[SELFTEST_PASSED], n[SELFTEST_FAILED],
		       n[SELFTEST_SKIPPED]);
	free(text);
	return fflush(stdout) ? -errno : 0;
}

int selftest__run(const struct selftest_options *options, bool json,
		  unsigned int n[static SELFTEST_VERDICTS])
{
	struct selftest test = {.options = options, .n = n};
	int err = make_folder(&test);

	if (err)
		return err;
	memset(n, 0, SELFTEST_VERDICTS * sizeof(*n));
	/* Ctrl-C removes the folder, too. */
	if (!options->keep) {
		stop__begin("");
		stop__set_partial(test.dir);
	}
	if (json)
		test.array = cJSON_CreateArray();
	if (options->replay)
		err = bundle__unpack(options->replay, test.dir);
	else if (options->bundle)
		err = begin_list(&test);
	if (options->replay && !err)
		compare_versions(&test);
	if (!err)
		err = test_sources(&test);
	if (!err && options->bundle)
		err = write_bundle(&test);
	if (!options->keep) {
		fs__remove_dir(test.dir);
		stop__set_partial(NULL);
		stop__end();
	}
	if (!err)
		return end_results(&test);
	cJSON_Delete(test.array);
	return err;
}
