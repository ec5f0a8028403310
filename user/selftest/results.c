// SPDX-License-Identifier: MIT
#include "selftest/results.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const selftest_verdict_names[] = {
	[SELFTEST_PASSED] = "ok", [SELFTEST_FAILED] = "failed", [SELFTEST_SKIPPED] = "skipped"};

struct selftest_results {
	cJSON *array; /* NULL: lines are printed */
	unsigned int n[SELFTEST_VERDICTS];
};

struct selftest_results *selftest_results__new(bool json)
{
	struct selftest_results *results = calloc(1, sizeof(*results));

	if (results && json)
		results->array = cJSON_CreateArray();
	return results;
}

void selftest_results__free(struct selftest_results *results)
{
	if (!results)
		return;
	cJSON_Delete(results->array);
	free(results);
}

static void print_line(const struct selftest_result *result)
{
	printf("%-6s  %-24s  %-7s  %s\n", selftest_source_names[result->source], result->name,
	       selftest_verdict_names[result->verdict], result->found);
	if (result->verdict == SELFTEST_FAILED)
		printf("%-6s  %-24s           %s\n", "", "", result->loss);
	fflush(stdout);
}

void selftest_results__take(void *ctx, const struct selftest_result *result)
{
	struct selftest_results *results = ctx;
	cJSON *object;

	results->n[result->verdict]++;
	if (!results->array) {
		print_line(result);
		return;
	}
	object = cJSON_CreateObject();
	cJSON_AddStringToObject(object, "source", selftest_source_names[result->source]);
	cJSON_AddStringToObject(object, "name", result->name);
	cJSON_AddStringToObject(object, "verdict", selftest_verdict_names[result->verdict]);
	cJSON_AddStringToObject(object, "found", result->found);
	if (result->verdict == SELFTEST_FAILED)
		cJSON_AddStringToObject(object, "loss", result->loss);
	else
		cJSON_AddNullToObject(object, "loss");
	cJSON_AddItemToArray(results->array, object);
}

int selftest_results__finish(const struct selftest_results *results,
			     unsigned int n[static SELFTEST_VERDICTS])
{
	char *text = results->array ? cJSON_Print(results->array) : NULL;

	memcpy(n, results->n, sizeof(results->n));
	if (results->array && !text)
		return -ENOMEM;
	if (text)
		puts(text);
	else
		printf("%u passed, %u failed, %u skipped\n", n[SELFTEST_PASSED], n[SELFTEST_FAILED],
		       n[SELFTEST_SKIPPED]);
	free(text);
	return fflush(stdout) ? -errno : 0;
}
