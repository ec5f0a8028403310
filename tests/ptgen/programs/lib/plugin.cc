// SPDX-License-Identifier: MIT
#include "through.h"

void throw_in_plugin(unsigned depth)
{
	if (depth % 2)
		throw trouble{depth};
	try {
		throw_in_plugin(depth + 1);
	} catch (trouble &t) {
		throw trouble{t.depth + 1};
	}
}
