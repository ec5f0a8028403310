// SPDX-License-Identifier: MIT
#include <intel-pt.h>
#include <stdio.h>

#include "decode/decode.h"

void decode__library_version(char *text, size_t size)
{
	struct pt_version version = pt_library_version();

	snprintf(text, size, "%u.%u.%u", version.major, version.minor, version.build);
}
