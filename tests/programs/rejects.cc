// SPDX-License-Identifier: MIT
/*
 * A service that rejects every tenth request by an exception, which passes handle() and is caught
 * by its caller. It runs until it gets SIGTERM, and then prints how many it has handled and
 * rejected.
 */
#include <csignal>
#include <cstdio>
#include <stdexcept>
#include <unistd.h>

static volatile sig_atomic_t asked;

__attribute__((noipa)) static long parse(long i)
{
	if (i % 10 == 9)
		throw std::invalid_argument("bad request");
	return i;
}

extern "C" __attribute__((noipa)) long handle(long i)
{
	return parse(i) + 1;
}

/* It leaves by a jump or by a return. */
extern "C" __attribute__((noipa)) long forward(long i)
{
	return i < 0 ? -1 : handle(i);
}

int main()
{
	long handled = 0, rejected = 0;

	signal(SIGTERM, [](int) { asked = 1; });
	printf("pid %d\n", getpid());
	fflush(stdout);
	for (long i = 0; !asked; i++) {
		try {
			handled += forward(i) > 0;
		} catch (const std::invalid_argument &) {
			rejected++;
		}
		usleep(500);
	}
	printf("handled %ld rejected %ld\n", handled, rejected);
}
