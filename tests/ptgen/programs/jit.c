// SPDX-License-Identifier: MIT
/* Runs code of no file, as a just-in-time compiler makes it: a loop that calls back. */
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

static int sum;

static __attribute__((noipa)) void add(int value)
{
	sum += value;
}

static const uint8_t code[] = {
	0x53,			/* push %rbx */
	0x41, 0x54,		/* push %r12 */
	0x48, 0x83, 0xec, 0x08, /* sub $8,%rsp */
	0x89, 0xfb,		/* mov %edi,%ebx */
	0x49, 0x89, 0xf4,	/* mov %rsi,%r12 */
	0x89, 0xdf,		/* again: mov %ebx,%edi */
	0x41, 0xff, 0xd4,	/* call *%r12 */
	0xff, 0xcb,		/* dec %ebx */
	0x75, 0xf7,		/* jnz again */
	0x48, 0x83, 0xc4, 0x08, /* add $8,%rsp */
	0x41, 0x5c,		/* pop %r12 */
	0x5b,			/* pop %rbx */
	0xc3,			/* ret */
};

int main(void)
{
	void *p = mmap(NULL, 2 * 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	/* Across a page's end. */
	uint8_t *at = (uint8_t *)p + 4096 - 16;

	if (p == MAP_FAILED)
		return 1;
	memcpy(at, code, sizeof(code));
	((void (*)(int, void (*)(int)))at)(100, add);
	return sum != 5050;
}
