// SPDX-License-Identifier: MIT
/* What the golden recordings are of: calls of calls, some of them inlined. It needs no library. */
#define INLINE	static inline __attribute__((always_inline))
#define OUTLINE __attribute__((noinline, noclone))

static volatile int sink;

OUTLINE int leaf(int a)
{
	sink += a;
	return sink;
}

OUTLINE int twice(int a)
{
	return leaf(a) + leaf(a + 1);
}

INLINE int inner(int a)
{
	return leaf(a) * twice(a);
}

INLINE int outer(int a)
{
	int b = leaf(a) + 1;

	return inner(b) + leaf(b);
}

/* Ends in a tail call. */
OUTLINE int last(int a)
{
	sink = a;
	return twice(a);
}

OUTLINE int work(int n)
{
	int sum = 0;

	for (int i = 0; i < n; i++)
		sum += outer(i);
	return sum + inner(n) + last(sum);
}

/* Time in which nothing is called. */
OUTLINE void spin(int n)
{
	for (int i = 0; i < n; i++)
		__asm__ volatile("");
}

static long system_call(long nr, const void *a)
{
	__asm__ volatile("syscall" : "+a"(nr) : "D"(a), "S"(0) : "rcx", "r11", "memory");
	return nr;
}

/* The trigger. Its process lives on for long enough to be looked at. */
OUTLINE void stop(void)
{
	static const long half_a_second[] = {0, 500000000};

	system_call(35, half_a_second); /* nanosleep */
	system_call(231, 0);		/* exit_group */
}

OUTLINE void begin(void)
{
	for (int i = 0; i < 3; i++) {
		work(2 - i);
		spin(400);
	}
	stop();
}

__asm__(".globl _start\n.type _start, @function\n_start: call begin\nud2\n.size _start, . - "
	"_start\n");
