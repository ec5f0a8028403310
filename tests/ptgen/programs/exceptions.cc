// SPDX-License-Identifier: MIT
/*
 * C++ exceptions where it is not plain which frame takes them: of a recursion in which each level
 * catches something else, through clean-ups that throw and catch themselves, through C and through
 * libraries, out of constructors, in threads, and to their ends. Each way out is followed by a call
 * of back(), which is always as deep. An argument is the number of rounds.
 */
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <exception>
#include <future>
#include <pthread.h>
#include <string>
#include <thread>
#include <vector>

#include "lib/through.h"

namespace
{

const unsigned MAX_DEPTH = 9;
thread_local volatile unsigned taken;
decltype(&throw_in_plugin) plugin;

struct other_trouble {
};

struct unlike_trouble : other_trouble {
};

[[gnu::noinline]] void take(unsigned n)
{
	taken = taken + n;
}

struct cleaner {
	unsigned n;
	~cleaner()
	{
		take(n);
	}
};

/* The innermost frames of the recursion do not take what comes: their handlers are for others. */
[[gnu::noinline]] void choose(unsigned depth, unsigned taker)
{
	if (!depth)
		throw trouble{taker};
	if (depth == taker) {
		try {
			choose(depth - 1, taker);
		} catch (trouble &t) {
			take(t.depth);
		}
	} else if (depth % 3) {
		try {
			choose(depth - 1, taker);
		} catch (other_trouble &) {
			take(0);
		}
	} else {
		choose(depth - 1, taker);
	}
	__asm__ volatile("");
}

/* Clean-ups on the way that catch what they throw themselves. */
struct busy_cleaner {
	unsigned depth;
	~busy_cleaner()
	{
		choose(depth, depth);
	}
};

[[gnu::noinline]] void clean_up(unsigned depth)
{
	busy_cleaner c{depth % 4 + 1};

	if (!depth)
		throw unlike_trouble();
	clean_up(depth - 1);
}

[[gnu::noinline]] void throw_again(unsigned depth)
{
	cleaner c{depth};

	try {
		if (!depth)
			throw trouble{1};
		throw_again(depth - 1);
	} catch (trouble &t) {
		t.depth++;
		if (depth % 2)
			throw;
		throw trouble{t.depth};
	}
}

/* An exception within the handler of another one. */
[[gnu::noinline]] void nest(unsigned depth)
{
	try {
		choose(depth, MAX_DEPTH + 1);
	} catch (trouble &) {
		if (depth)
			nest(depth - 1);
		try {
			clean_up(depth);
		} catch (other_trouble &) {
			take(depth);
		}
		choose(depth + 1, depth + 1);
	}
}

int compare(const void *a, const void *b)
{
	int x = *static_cast<const int *>(a), y = *static_cast<const int *>(b);

	if (x + y == 13)
		throw trouble{13};
	return (x > y) - (x < y);
}

void sort_in_c(unsigned depth)
{
	int v[] = {9, 1, 8, 2, 7, 3, 6, 4, 5, 0};

	try {
		std::qsort(v, depth + 2, sizeof(v[0]), compare);
	} catch (trouble &t) {
		take(t.depth);
	}
}

void throw_back(unsigned depth)
{
	cleaner c{depth};

	throw trouble{depth};
}

void use_libraries(unsigned depth)
{
	try {
		through_library(throw_back, depth);
	} catch (trouble &t) {
		take(t.depth);
	}
	try {
		plugin(depth);
	} catch (...) {
		take(1);
	}
	try {
		through_library(plugin, depth);
	} catch (trouble &t) {
		take(t.depth);
	}
}

struct part {
	unsigned n;
	explicit part(unsigned depth) : n(depth)
	{
		if (!depth)
			throw other_trouble();
	}
	~part()
	{
		take(n);
	}
};

struct whole {
	part first, second;
	std::vector<part> more;
	explicit whole(unsigned depth)
	try : first(depth + 1), second(depth), more() {
		for (unsigned i = depth; i < 2 * depth; i--)
			more.emplace_back(i);
	} catch (other_trouble &) {
		take(2);
	}
};

void construct(unsigned depth)
{
	try {
		whole w(depth);
		take(w.second.n);
	} catch (other_trouble &) {
		take(3);
	}
}

/* What is thrown by way of exception_ptr, and by the library. */
[[gnu::noinline]] void hand_on(unsigned depth) noexcept
{
	std::exception_ptr held;

	try {
		if (depth % 2)
			throw_again(depth);
		else
			take(std::string("x").at(depth + 1));
	} catch (...) {
		held = std::current_exception();
	}
	try {
		std::rethrow_exception(held);
	} catch (std::exception &) {
		take(5);
	} catch (trouble &) {
		take(6);
	}
}

/* So that the compiler does not know that it never returns. */
void (*volatile leave)(void *) = pthread_exit;

[[gnu::noinline]] void leave_thread(unsigned depth)
{
	cleaner c{depth};

	if (depth)
		leave_thread(depth - 1);
	else
		leave(nullptr);
}

} // namespace

extern "C" [[gnu::noipa]] void back(void)
{
	__asm__ volatile("");
}

static void one_round(unsigned depth)
{
	for (unsigned i = 1; i <= depth; i++)
		choose(depth, i);
	back();
	nest(depth % 4);
	back();
	try {
		throw_again(depth);
	} catch (trouble &t) {
		take(t.depth);
	}
	back();
	sort_in_c(depth % 9);
	back();
	use_libraries(depth);
	back();
	construct(depth);
	back();
	hand_on(depth);
	back();
}

static void *in_thread(void *depth)
{
	unsigned n = static_cast<unsigned>(reinterpret_cast<uintptr_t>(depth));

	one_round(n);
	leave_thread(n);
	return nullptr;
}

static void use_threads(unsigned depth)
{
	pthread_t thread;
	auto result = std::async(std::launch::async, [depth] { throw_again(depth); });

	try {
		result.get();
	} catch (trouble &t) {
		take(t.depth);
	}
	back();
	if (pthread_create(&thread, nullptr, in_thread, reinterpret_cast<void *>(uintptr_t{depth})))
		std::abort();
	pthread_join(thread, nullptr);
	back();
}

int main(int argc, char **argv)
{
	unsigned long rounds = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : ~0ul;
	void *handle = dlopen("libplugin.so", RTLD_LAZY);

	if (!handle) {
		std::fprintf(stderr, "exceptions: %s\n", dlerror());
		return 1;
	}
	plugin = reinterpret_cast<decltype(plugin)>(dlsym(handle, "throw_in_plugin"));
	for (unsigned long i = 0; i < rounds; i++) {
		one_round(static_cast<unsigned>(i % (MAX_DEPTH + 1)));
		if (i % 16 == 0)
			use_threads(static_cast<unsigned>(i / 16 % (MAX_DEPTH + 1)));
	}
	return taken == 1;
}
