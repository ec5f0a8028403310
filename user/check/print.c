// SPDX-License-Identifier: MIT
/* The results as text and as JSON: the only place that knows how they look. */
#include <cjson/cJSON.h>
#include <string.h>

#include "check/check.h"

static const char *const state_names[] = {
	[CHECK_OK] = "ok", [CHECK_LIMITED] = "limited", [CHECK_MISSING] = "missing"};

void check_report__print(const struct check_report *report, FILE *out)
{
	int width = 0;

	for (size_t i = 0; i < report->n; i++)
		if ((int)strlen(report->results[i].name) > width)
			width = (int)strlen(report->results[i].name);
	for (size_t i = 0; i < report->n; i++) {
		const struct check_result *r = &report->results[i];

		fprintf(out, "%-*s  %-7s  %s%s%s\n", width, r->name, state_names[r->state],
			r->reason, r->remedy[0] ? "; " : "", r->remedy);
	}
}

static cJSON *facts_of(const struct check_result *result)
{
	cJSON *facts = cJSON_CreateObject();

	for (size_t i = 0; i < result->n_facts; i++) {
		const struct check_fact *fact = &result->facts[i];

		if (fact->text[0])
			cJSON_AddStringToObject(facts, fact->name, fact->text);
		else
			cJSON_AddNumberToObject(facts, fact->name, (double)fact->number);
	}
	return facts;
}

static cJSON *object_of(const struct check_result *result)
{
	cJSON *object = cJSON_CreateObject();

	cJSON_AddStringToObject(object, "name", result->name);
	cJSON_AddStringToObject(object, "state", state_names[result->state]);
	cJSON_AddStringToObject(object, "reason", result->reason);
	if (result->remedy[0])
		cJSON_AddStringToObject(object, "remedy", result->remedy);
	else
		cJSON_AddNullToObject(object, "remedy");
	cJSON_AddBoolToObject(object, "needed", result->needed);
	cJSON_AddItemToObject(object, "facts", facts_of(result));
	return object;
}

char *check_report__json(const struct check_report *report)
{
	cJSON *array = cJSON_CreateArray();
	char *text;

	for (size_t i = 0; i < report->n; i++)
		cJSON_AddItemToArray(array, object_of(&report->results[i]));
	text = cJSON_Print(array);
	cJSON_Delete(array);
	return text;
}
