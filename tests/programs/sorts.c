// SPDX-License-Identifier: MIT
/*
 * Sorts all the time: main, one_iter, sort_keys, the C library's qsort, compare_keys, weigh. Built
 * without frame pointers, against whichever C library: some have no unwind information of their
 * own.
 */
#include "sample.h"

static volatile uint64_t weight;

TRACED static int weigh(int key)
{
	for (int i = 0; i < 20000; i++)
		weight += (uint64_t)key;
	return key;
}

TRACED static int compare_keys(const void *a, const void *b)
{
	int x = weigh(*(const int *)a), y = weigh(*(const int *)b);

	return (x > y) - (x < y);
}

TRACED static void sort_keys(void)
{
	int keys[] = {4, 2, 9, 1, 7, 3, 8, 5};

	qsort(keys, sizeof(keys) / sizeof(keys[0]), sizeof(keys[0]), compare_keys);
	weight += (uint64_t)keys[0];
}

TRACED static void one_iter(void)
{
	sort_keys();
	weight++;
}

int main(void)
{
	printf("pid %d\n", (int)getpid());
	fflush(stdout);
	for (;;)
		one_iter();
	return 0;
}
