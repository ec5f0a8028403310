// SPDX-License-Identifier: MIT
#include "util/json.h"

#include <errno.h>

void json__add_number(cJSON *object, const char *key, uint64_t number)
{
	cJSON_AddNumberToObject(object, key, (double)number);
}

void json__add_text(cJSON *object, const char *key, const char *text)
{
	if (text)
		cJSON_AddStringToObject(object, key, text);
}

void json__add_text_or_null(cJSON *object, const char *key, const char *text)
{
	if (text)
		cJSON_AddStringToObject(object, key, text);
	else
		cJSON_AddNullToObject(object, key);
}

cJSON *json__append_object(cJSON *list)
{
	cJSON *object = cJSON_CreateObject();

	cJSON_AddItemToArray(list, object);
	return object;
}

void json__append_text(cJSON *list, const char *text)
{
	cJSON_AddItemToArray(list, cJSON_CreateString(text));
}

const cJSON *json__item(const cJSON *object, const char *key)
{
	return cJSON_GetObjectItemCaseSensitive(object, key);
}

const char *json__text(const cJSON *object, const char *key)
{
	return cJSON_GetStringValue(json__item(object, key));
}

char *json__finish(cJSON *root)
{
	char *text = cJSON_Print(root);

	cJSON_Delete(root);
	return text;
}

int json__print_line(FILE *out, cJSON *root)
{
	char *text = cJSON_PrintUnformatted(root);

	cJSON_Delete(root);
	if (!text)
		return -ENOMEM;
	fprintf(out, "%s\n", text);
	cJSON_free(text);
	return 0;
}
