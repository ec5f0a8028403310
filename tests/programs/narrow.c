// SPDX-License-Identifier: MIT
/* 32-bit code without a library: waits again and again, thirty calls below its first function. */
#ifdef __i386__
static long system_call(long number, long a, long b, long c)
{
	long result;

	__asm__ volatile("int $0x80"
			 : "=a"(result)
			 : "a"(number), "b"(a), "c"(b), "d"(c)
			 : "memory");
	return result;
}

/* arch/x86/entry/syscalls/syscall_32.tbl: poll */
__attribute__((noipa)) static void wait_for_nothing(void)
{
	system_call(168, 0, 0, 5);
	__asm__ volatile("");
}

__attribute__((noipa)) static void nest(int depth)
{
	if (depth > 1)
		nest(depth - 1);
	else
		wait_for_nothing();
	__asm__ volatile("");
}

__attribute__((used)) static void begin(void)
{
	for (;;)
		nest(30);
}

__asm__(".globl _start\n_start: xor %ebp, %ebp\n call begin\n");
#else
int main(void)
{
	return 1;
}
#endif
