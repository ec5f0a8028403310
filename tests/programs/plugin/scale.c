// SPDX-License-Identifier: MIT
/* The library that tailcalls loads, uses once and unloads: each time its first call out is bound
 * lazily. */
#include <stdlib.h>

long scale_value(const char *text);

long scale_value(const char *text)
{
	return strtol(text, NULL, 10) * 3;
}
