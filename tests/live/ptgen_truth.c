// SPDX-License-Identifier: MIT
#include "ptgen_truth.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "truth_compare.h"
#include "util/fs.h"

size_t ptgen_truth__check(const char *command)
{
	const char *folder = getenv("O");
	char dir[] = "/tmp/mtbpf-test-XXXXXX", recording[64], truth[64], line[1024];
	size_t n;

	if (system("qemu-x86_64 -help 2>/dev/null | grep -qe -plugin")) {
		print_message("# skip: there is no qemu-x86_64 that takes plugins\n");
		skip();
	}
	folder = folder ? folder : "build";
	assert_non_null(mkdtemp(dir));
	snprintf(recording, sizeof(recording), "%s/r.mtbpf", dir);
	snprintf(truth, sizeof(truth), "%s/truth", dir);
	snprintf(line, sizeof(line),
		 "PATH=%s/tests/ptgen/programs:%s/programs:$PATH; "
		 "%s/tests/ptgen/ptgen -o %s -truth %s %s >%s/out 2>&1",
		 folder, folder, folder, recording, truth, command, dir);
	assert_int_equal(system(line), 0);
	n = truth_compare__recording(recording, truth);
	print_message("%s: %zu calls and returns, all as deep as they were\n", command, n);
	assert_int_equal(fs__remove_dir(dir), 0);
	return n;
}
