// SPDX-License-Identifier: MIT
/*
 * A service that stalls in its next request once it gets SIGUSR1, in the way that its argument
 * says:
 *
 *   deadlock   two threads, which each want the other's std::mutex
 *   spin       one computes for ever
 *   read       one waits for a pipe that nobody writes to
 *   throws     one leaves the request by an exception, and sleeps
 *   slow       the request takes half a second
 */
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <unistd.h>

#define TRACED __attribute__((noipa, noinline))

static volatile sig_atomic_t asked;
static const char *mode;
static int pipes[2];

struct account {
	std::mutex lock;
	long money = 1000;
};

static account accounts[2];

static void nap(int ms)
{
	std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

extern "C" {
TRACED void request_begin(void)
{
	__asm__ volatile("nop");
}

TRACED void request_end(void)
{
	__asm__ volatile("nop");
}

/* Locks in its own order: with two threads, in both directions. */
TRACED void transfer(account *from, account *to, bool slowly)
{
	std::lock_guard<std::mutex> first(from->lock);

	if (slowly)
		nap(100);
	std::lock_guard<std::mutex> second(to->lock);

	from->money--;
	to->money++;
}

TRACED void spin(void)
{
	for (volatile unsigned long n = 0;; n++)
		;
}

TRACED void handle(bool stalls)
{
	char byte;

	if (!stalls)
		return nap(1);
	if (!strcmp(mode, "spin"))
		spin();
	else if (!strcmp(mode, "read"))
		(void)!read(pipes[0], &byte, 1);
	else if (!strcmp(mode, "throws"))
		throw std::runtime_error("left");
	else
		nap(500);
	__asm__ volatile("");
}
}

static void serve(bool stalls)
{
	request_begin();
	if (stalls && !strcmp(mode, "throws"))
		request_end();
	handle(stalls);
	request_end();
}

static void trade(int number)
{
	for (;;) {
		bool stalls = asked;

		request_begin();
		if (stalls || number % 2 == 0)
			transfer(&accounts[number % 2], &accounts[1 - number % 2], stalls);
		request_end();
		nap(2);
	}
}

static void on_ask(int)
{
	asked = 1;
}

int main(int argc, char **argv)
{
	mode = argc > 1 ? argv[1] : "deadlock";
	if (pipe(pipes))
		return 1;
	signal(SIGUSR1, on_ask);
	printf("pid %d\n", (int)getpid());
	fflush(stdout);
	if (!strcmp(mode, "deadlock")) {
		std::thread others[] = {std::thread(trade, 0), std::thread(trade, 1)};

		for (;;)
			pause();
	}
	for (;;) {
		bool stalls = asked;

		try {
			serve(stalls);
		} catch (const std::exception &) {
			for (;;)
				pause();
		}
		if (stalls)
			asked = 0;
	}
}
