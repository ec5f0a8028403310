// SPDX-License-Identifier: MIT
#include "target/go_runtime.h"

#include <stddef.h>
#include <stdint.h>

/*
 * The first version of each layout, up to the one before the next. Go 1.17 is the first whose
 * functions get their arguments, and their g, in registers; 1.27 is the last that was looked at.
 */
static const unsigned int since[] = {17, 20, 23, 24, 25, 26, 28};

#define LAYOUTS (sizeof(since) / sizeof(since[0]) - 1)

/* Returns LAYOUTS if the version is not known. */
static size_t find_layout(unsigned int minor)
{
	for (size_t i = 0; i < LAYOUTS; i++)
		if (minor >= since[i] && minor < since[i + 1])
			return i;
	return LAYOUTS;
}

/*
 * runtime/runtime2.go: waitReason, those that calls from programs pass to gopark(). 0: the version
 * lacks this reason.
 */
static const struct {
	const char *text;
	uint8_t number[LAYOUTS];
} reasons[] = {
	/* since                       1.17 1.20 1.23 1.24 1.25 1.26 */
	{"GC assist marking", {1, 1, 1, 1, 1, 1}},
	{"IO wait", {2, 2, 2, 2, 2, 2}},
	{"chan receive (nil chan)", {3, 3, 3, 3, 3, 15}},
	{"chan send (nil chan)", {4, 4, 4, 4, 4, 16}},
	{"garbage collection", {6, 6, 6, 6, 6, 4}},
	{"garbage collection scan", {7, 7, 7, 7, 7, 5}},
	{"panicwait", {8, 8, 8, 8, 8, 6}},
	{"select", {9, 9, 9, 9, 9, 18}},
	{"select (no cases)", {10, 10, 10, 10, 10, 17}},
	{"GC assist wait", {11, 11, 11, 11, 11, 7}},
	{"GC sweep wait", {12, 12, 12, 12, 12, 8}},
	{"chan receive", {14, 14, 14, 14, 14, 19}},
	{"chan send", {15, 15, 15, 15, 15, 20}},
	{"semacquire", {18, 18, 18, 18, 19, 13}},
	{"sleep", {19, 19, 19, 19, 20, 14}},
	{"sync.Cond.Wait", {20, 20, 20, 20, 21, 21}},
	{"sync.Mutex.Lock", {0, 21, 21, 21, 22, 22}},
	{"sync.RWMutex.RLock", {0, 22, 22, 22, 23, 23}},
	{"sync.RWMutex.Lock", {0, 23, 23, 23, 24, 24}},
	{"sync.WaitGroup.Wait", {0, 0, 0, 24, 25, 25}},
	{"wait for GC cycle", {23, 25, 25, 26, 27, 27}},
	{"GC weak to strong wait", {0, 0, 37, 38, 39, 39}},
};

const char *go_runtime__wait_reason(unsigned int minor, unsigned int number)
{
	size_t layout = find_layout(minor);

	for (size_t i = 0; layout < LAYOUTS && number && i < sizeof(reasons) / sizeof(reasons[0]);
	     i++)
		if (reasons[i].number[layout] == number)
			return reasons[i].text;
	return NULL;
}

bool go_runtime__offsets(unsigned int minor, struct mt_go_offsets *offsets)
{
	size_t layout = find_layout(minor);
	/*
	 * struct g and struct m, which both have a gobuf: 1.23 adds g.syscallbp, 1.25 takes
	 * gobuf.ret away.
	 */
	static const struct mt_go_offsets all[LAYOUTS + 1] = {
		{.goid = 152, .m = 48, .curg = 192}, {.goid = 152, .m = 48, .curg = 192},
		{.goid = 160, .m = 48, .curg = 192}, {.goid = 160, .m = 48, .curg = 192},
		{.goid = 152, .m = 48, .curg = 184}, {.goid = 152, .m = 48, .curg = 184},
	};

	*offsets = all[layout];
	return layout < LAYOUTS;
}
