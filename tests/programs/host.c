// SPDX-License-Identifier: MIT
/* Loads two libraries that include mtbpf.h, and calls the first, or with -exit only the second. */
#include "sample.h"

#include <dlfcn.h>

typedef void (*say_fn)(uint64_t number);

static say_fn load(const char *library, const char *function)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);

	if (handle)
		return (say_fn)dlsym(handle, function);
	fprintf(stderr, "%s\n", dlerror());
	exit(1);
}

int main(int argc, char **argv)
{
	static const struct sample scale = {.slow_every = 1, .table_size = 1, .pause_ns = 1000000};
	say_fn says = load("libsays.so", "says"), says_too = load("libsays_too.so", "says_too");
	struct sample options;

	sample__init(&options, argv, &scale, &scale);
	sample__announce();
	while (sample__next(&options))
		(options.exit_early ? says_too : says)(options.done);
	return 0;
}
