// SPDX-License-Identifier: MIT
#include "session/probe/default_trigger.h"

#include <stddef.h>
#include <string.h>
#include <sys/user.h>

#include "target/symbols/symbols.h"
#include "util/log.h"

/* include/mtbpf.h: what mtbpf_take_snapshot() calls. */
#define OUR_STUB "mtbpf_hit"

/* Ours is preferred: it takes an argument and a mark. */
static const char *const stubs[] = {OUR_STUB, "magic_trace_stop_indicator"};

static const char *find_in(const struct symbols *symbols)
{
	for (size_t i = 0; i < sizeof(stubs) / sizeof(stubs[0]); i++)
		if (symbols__have(symbols, stubs[i]))
			return stubs[i];
	return NULL;
}

bool default_trigger__is_stub(const char *symbol)
{
	for (size_t i = 0; i < sizeof(stubs) / sizeof(stubs[0]); i++)
		if (!strcmp(symbol, stubs[i]))
			return true;
	return false;
}

const char *default_trigger__find(const struct process *process, const char *exec_path)
{
	enum log_level level = log__level();
	const char *found = NULL;
	struct symbols symbols;
	int err;

	log__set_level(LOG_SILENT);
	err = exec_path ? symbols__open_file(&symbols, exec_path)
			: symbols__open(&symbols, process);
	log__set_level(level);
	if (err)
		return NULL;
	found = find_in(&symbols);
	symbols__close(&symbols);
	return found;
}

const char *default_trigger__of(const struct programs *programs)
{
	for (size_t i = 0; i < sizeof(stubs) / sizeof(stubs[0]); i++)
		if (programs__have(programs, stubs[i]))
			return stubs[i];
	return NULL;
}

/* The first of three: the mark is the second, and the third says whether the first counts. */
bool default_trigger__is_library(const struct function *function, struct mt_args *args)
{
	if (strcmp(function->raw_name, OUR_STUB))
		return false;
	*args = (struct mt_args){
		.n = 1,
		.is_library = 1,
		.v = {{.kind = MT_ARG_REGISTER,
		       .base = offsetof(struct user_regs_struct, rdi),
		       .size = 8}},
	};
	return true;
}
