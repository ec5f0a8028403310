// SPDX-License-Identifier: MIT
/*
 * Leaves frames otherwise than by returning: exceptions through frames with and without clean-up,
 * caught, thrown again, and longjmp; from every depth up to MAX_DEPTH. Each way out is followed by
 * a call of back(), which is always as deep. An argument is the number of rounds.
 */
#include <csetjmp>
#include <cstdint>
#include <cstdlib>

namespace
{

const unsigned MAX_DEPTH = 12;

uint64_t cleaned;
std::jmp_buf home;

struct cleaner {
	unsigned depth;
	~cleaner()
	{
		cleaned += depth;
	}
};

struct trouble {
	unsigned depth;
};

[[gnu::noinline]] void plain(unsigned depth, unsigned how);

[[gnu::noinline]] void guarded(unsigned depth, unsigned how)
{
	cleaner c{depth};

	plain(depth - 1, how);
}

[[gnu::noinline]] void again(unsigned depth, unsigned how)
{
	try {
		plain(depth - 1, how);
	} catch (trouble &t) {
		t.depth++;
		throw;
	}
}

void plain(unsigned depth, unsigned how)
{
	if (!depth && how == 0)
		throw trouble{0};
	if (!depth && how == 1)
		std::longjmp(home, 1);
	if (!depth)
		return;
	if (how == 0 && depth % 3 == 0)
		again(depth, how);
	else if (how != 1 && depth % 2)
		guarded(depth, how);
	else
		plain(depth - 1, how);
	__asm__ volatile(""); /* no tail call */
}

} // namespace

extern "C" [[gnu::noipa]] void back(void)
{
	__asm__ volatile("");
}

static void one_round(unsigned depth)
{
	plain(depth, 2);
	back();
	try {
		plain(depth, 0);
	} catch (trouble &t) {
		cleaned += t.depth;
	}
	back();
	if (!setjmp(home))
		plain(depth, 1);
	back();
}

int main(int argc, char **argv)
{
	unsigned long rounds = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : ~0ul;

	for (unsigned long i = 0; i < rounds; i++)
		one_round(static_cast<unsigned>(i % (MAX_DEPTH + 1)));
	return cleaned == 1;
}
