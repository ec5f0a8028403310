// SPDX-License-Identifier: MIT
#include "capture/code/kernel_copy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "kernel/rights.h"

static const struct kernel_facts good = {.has_addresses = true, .kptr_restrict = 1};

static void assert_refused(const struct kernel_facts *facts, int err, const char *what,
			   const char *remedy)
{
	const struct kernel_refusal *refusal = kernel_access__judge(facts);

	assert_non_null(refusal);
	assert_int_equal(refusal->err, err);
	assert_non_null(strstr(refusal->what, what));
	assert_non_null(strstr(refusal->remedy, remedy));
}

static void test_all_is_well(void **state)
{
	struct kernel_facts facts = good;

	assert_null(kernel_access__judge(&facts));
	/* What may be read may be read, whatever the settings are called. */
	facts.kptr_restrict = 2;
	facts.lockdown = LOCKDOWN_CONFIDENTIALITY;
	assert_null(kernel_access__judge(&facts));
}

static void test_hidden_addresses(void **state)
{
	struct kernel_facts facts = good;

	facts.has_addresses = false;
	assert_refused(&facts, -EPERM, "kallsyms hides", "CAP_SYSLOG");
	facts.kptr_restrict = 2;
	assert_refused(&facts, -EPERM, "kptr_restrict 2", "kptr_restrict=1");
	facts.kallsyms_err = -ENOENT;
	assert_refused(&facts, -ENODEV, "kallsyms cannot", "CONFIG_KALLSYMS");
}

static void test_kcore_that_cannot_be_opened(void **state)
{
	struct kernel_facts facts = good;

	facts.kcore_err = -EPERM;
	assert_refused(&facts, -EPERM, "may not be read", "CAP_SYS_RAWIO");
	facts.kcore_err = -EACCES;
	assert_refused(&facts, -EPERM, "may not be read", "root");
	facts.kcore_err = -ENOENT;
	assert_refused(&facts, -ENODEV, "/proc/kcore is missing", "CONFIG_PROC_KCORE");
	facts.kcore_err = -ENXIO;
	assert_refused(&facts, -EIO, "cannot be opened", "mtbpf check");
}

static void test_lockdown_is_named_before_what_follows_from_it(void **state)
{
	struct kernel_facts facts = {.kcore_err = -EPERM, .lockdown = LOCKDOWN_CONFIDENTIALITY};

	assert_refused(&facts, -EPERM, "lockdown=confidentiality", "lockdown=integrity");
	facts.lockdown = LOCKDOWN_INTEGRITY;
	assert_refused(&facts, -EPERM, "kallsyms hides", "root");
	facts.has_addresses = true;
	assert_refused(&facts, -EPERM, "may not be read", "root");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_is_well),
		cmocka_unit_test(test_hidden_addresses),
		cmocka_unit_test(test_kcore_that_cannot_be_opened),
		cmocka_unit_test(test_lockdown_is_named_before_what_follows_from_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
