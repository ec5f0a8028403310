// SPDX-License-Identifier: MIT
/*
 * Runs code that no file holds, as JIT compilers make it: in anonymous memory and in a memfd that
 * is mapped twice, with the names in /tmp/perf-PID.map. A slow iteration compiles one of the
 * functions anew, where it was before.
 */
#include <sys/mman.h>

#include "sample.h"

#define PAGE  4096
#define INNER 512 /* of jit_inner in its mapping; the functions that call it stand at the front */

#define OUTER_SIZE 26
#define INNER_SIZE 6

struct code {
	uint8_t *run;	/* where it runs */
	uint8_t *write; /* where it is written */
};

struct jit {
	struct sample options;
	struct code anonymous, shared;
	unsigned int version;
	char map_path[64];
	uint64_t sum;
};

/* As compilers do it: a line for each function that is finished, also where another was before. */
static void name_code(const struct jit *jit, const uint8_t *at, unsigned int size, const char *name)
{
	FILE *out = fopen(jit->map_path, "a");

	if (!out)
		abort();
	fprintf(out, "%lx %x %s\n", (unsigned long)(uintptr_t)at, size, name);
	fclose(out);
}

/* void outer(int n) { do inner(n); while (--n); } */
static void compile_outer(struct code *code)
{
	static const uint8_t outer[OUTER_SIZE] = {
		0x53,				    /* push %rbx */
		0x89, 0xfb,			    /* mov %edi,%ebx */
		0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, /* mov $inner,%rax */
		0x89, 0xdf,			    /* again: mov %ebx,%edi */
		0xe8, 0,    0, 0, 0,		    /* call inner */
		0xff, 0xcb,			    /* dec %ebx */
		0x75, 0xf5,			    /* jnz again */
		0x5b,				    /* pop %rbx */
		0xc3,				    /* ret */
	};
	uint64_t inner = (uint64_t)(uintptr_t)code->run + INNER;
	int32_t distance = INNER - 20;

	memcpy(code->write, outer, sizeof(outer));
	memcpy(code->write + 5, &inner, sizeof(inner));
	memcpy(code->write + 16, &distance, sizeof(distance));
}

static void compile_inner(struct code *code)
{
	static const uint8_t inner[INNER_SIZE] = {
		0x55,		  /* push %rbp */
		0x48, 0x89, 0xe5, /* mov %rsp,%rbp */
		0x5d,		  /* pop %rbp */
		0xc3,		  /* ret */
	};

	memcpy(code->write + INNER, inner, sizeof(inner));
}

static void *map(int fd, int prot, int flags)
{
	void *p = mmap(NULL, PAGE, prot, flags, fd, 0);

	if (p == MAP_FAILED)
		abort();
	return p;
}

static void map_code(struct jit *jit)
{
	int fd = memfd_create("jit", 0);

	if (fd < 0 || ftruncate(fd, PAGE))
		abort();
	jit->anonymous.run = jit->anonymous.write =
		map(-1, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS);
	jit->shared.run = map(fd, PROT_READ | PROT_EXEC, MAP_SHARED);
	jit->shared.write = map(fd, PROT_READ | PROT_WRITE, MAP_SHARED);
	close(fd);
}

TRACED void recompile(struct jit *jit)
{
	char name[32];

	snprintf(name, sizeof(name), "jit_outer_v%u", ++jit->version);
	compile_outer(&jit->anonymous);
	name_code(jit, jit->anonymous.run, OUTER_SIZE, name);
}

TRACED void one_iter(struct jit *jit)
{
	void (*outer)(int) = (void (*)(int))(uintptr_t)jit->anonymous.run;
	void (*shared)(int) = (void (*)(int))(uintptr_t)jit->shared.run;

	if (jit->options.done % jit->options.slow_every == 0)
		recompile(jit);
	outer((int)jit->options.batch);
	shared((int)jit->options.batch);
}

int main(int argc, char **argv)
{
	static const struct sample native = {
		.slow_every = 1000, .table_size = 1, .batch = 400, .pause_ns = 1000000};
	static const struct sample small = {
		.slow_every = 25, .table_size = 1, .batch = 2, .pause_ns = 1000000};
	struct jit jit = {0};

	sample__init(&jit.options, argv, &native, &small);
	snprintf(jit.map_path, sizeof(jit.map_path), "/tmp/perf-%d.map", (int)getpid());
	map_code(&jit);
	compile_outer(&jit.shared);
	compile_inner(&jit.anonymous);
	compile_inner(&jit.shared);
	recompile(&jit);
	name_code(&jit, jit.anonymous.run + INNER, INNER_SIZE, "jit_inner");
	name_code(&jit, jit.shared.run, OUTER_SIZE, "jit shared(int)");
	name_code(&jit, jit.shared.run + INNER, INNER_SIZE, "jit_shared_inner");
	sample__announce();
	while (sample__next(&jit.options))
		one_iter(&jit);
	unlink(jit.map_path);
	sample__fini(&jit.options);
	return 0;
}
