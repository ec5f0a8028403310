// SPDX-License-Identifier: MIT
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "util/log.h"
#include "util/meter.h"

#define S_NS 1000000000ull
/* More than any of these takes, however loaded the machine is. */
#define PATIENCE_MS 20000

static const struct meter_work decoding = {"decoding", METER_BYTES, 4 << 20};

static void assert_text(struct meter_work work, uint64_t done, uint64_t elapsed_ns, bool with_bar,
			const char *expected)
{
	char text[METER_TEXT_SIZE];

	assert_ptr_equal(meter__format(text, &work, done, elapsed_ns, with_bar), text);
	assert_string_equal(text, expected);
}

static void test_text(void **state)
{
	const struct meter_work writing = {"writing", METER_CALLS, 2000};
	const struct meter_work reading = {"reading", METER_BYTES, 0};

	assert_text(decoding, 1 << 20, S_NS, false, "decoding  25 %  1.0 MiB of 4.0 MiB, 3 s left");
	assert_text(decoding, 1 << 20, S_NS, true,
		    "decoding  25 % [######                  ] 1.0 MiB of 4.0 MiB, 3 s left");
	assert_text(writing, 2000, S_NS, true,
		    "writing 100 % [########################] 2000 of 2000 calls");
	assert_text(decoding, 0, S_NS, true,
		    "decoding   0 % [                        ] 0 B of 4.0 MiB");
	/* More than was to be expected, and nothing to be expected. */
	assert_text(writing, 2001, S_NS, false, "writing 100 %  2000 of 2000 calls");
	assert_text(reading, 3 << 20, S_NS, true, "reading 3.0 MiB");
	assert_text(reading, 3 << 20, S_NS, false, "reading 3.0 MiB");
}

/* stderr is another file until restore(). */
struct screen {
	int saved, fd;
	size_t n;
	char text[8192];
};

static void screen__begin(struct screen *screen, int fd, int other)
{
	*screen = (struct screen){.saved = dup(STDERR_FILENO), .fd = fd};
	dup2(other, STDERR_FILENO);
	close(other);
}

static void screen__begin_terminal(struct screen *screen, unsigned short columns)
{
	struct winsize size = {.ws_row = 24, .ws_col = columns};
	int fd, other;

	assert_int_equal(openpty(&fd, &other, NULL, NULL, &size), 0);
	screen__begin(screen, fd, other);
}

static void screen__begin_pipe(struct screen *screen)
{
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	screen__begin(screen, fds[0], fds[1]);
}

/* Until that stands on it. */
static bool screen__shows(struct screen *screen, const char *text)
{
	struct pollfd fd = {.fd = screen->fd, .events = POLLIN};

	while (!strstr(screen->text, text)) {
		ssize_t n;

		if (screen->n + 1 == sizeof(screen->text) || poll(&fd, 1, PATIENCE_MS) <= 0)
			return false;
		n = read(screen->fd, screen->text + screen->n,
			 sizeof(screen->text) - screen->n - 1);
		if (n <= 0)
			return false;
		screen->n += (size_t)n;
		screen->text[screen->n] = '\0';
	}
	return true;
}

static void screen__end(struct screen *screen)
{
	dup2(screen->saved, STDERR_FILENO);
	close(screen->saved);
	close(screen->fd);
}

static bool ends_in(const char *text, const char *end)
{
	size_t n = strlen(text), e = strlen(end);

	return n >= e && !strcmp(text + n - e, end);
}

static void test_a_bar_on_a_terminal_and_nothing_is_left_of_it(void **state)
{
	struct screen screen;
	struct meter meter;

	screen__begin_terminal(&screen, 80);
	meter__begin_every(&meter, &decoding, 1);
	meter__add(&meter, 1 << 20);
	assert_true(screen__shows(&screen, "\r\033[Kdecoding  25 % [######      "));
	log__info("a message");
	/* The terminal makes \r\n of a newline. The bar is gone before the message comes. */
	assert_true(screen__shows(&screen, "\r\033[Ka message\r\n"));
	meter__next(&meter, &(struct meter_work){"writing", METER_CALLS, 8});
	assert_true(screen__shows(&screen, "writing   0 %"));
	meter__end(&meter);
	fprintf(stderr, "end");
	assert_true(screen__shows(&screen, "end"));
	assert_true(ends_in(screen.text, "\r\033[Kend"));
	screen__end(&screen);
}

static void test_a_bar_is_no_longer_than_the_terminal_is_wide(void **state)
{
	struct screen screen;
	struct meter meter;

	screen__begin_terminal(&screen, 20);
	meter__begin_every(&meter, &decoding, 1);
	assert_true(screen__shows(&screen, "decoding   0 % [   "));
	meter__end(&meter);
	fprintf(stderr, "end");
	assert_true(screen__shows(&screen, "decoding   0 % [   \r\033[Kend"));
	screen__end(&screen);
}

static void test_lines_elsewhere(void **state)
{
	struct screen screen;
	struct meter meter;

	screen__begin_pipe(&screen);
	meter__begin_every(&meter, &decoding, 20);
	meter__add(&meter, 2 << 20);
	assert_true(screen__shows(&screen, "decoding  50 %  2.0 MiB of 4.0 MiB\n"));
	meter__end(&meter);
	assert_null(strchr(screen.text, '\033'));
	screen__end(&screen);
}

static void test_short_work_and_quiet_say_nothing(void **state)
{
	struct screen screen;
	struct meter meter;

	screen__begin_terminal(&screen, 80);
	meter__begin_every(&meter, &decoding, 1000000);
	meter__add(&meter, 4 << 20);
	meter__end(&meter);
	log__set_level(LOG_QUIET);
	meter__begin_every(&meter, &decoding, 1);
	meter__add(&meter, 1 << 20);
	assert_int_equal(meter.done, 1 << 20);
	assert_false(meter.has_thread);
	meter__end(&meter);
	log__set_level(LOG_NORMAL);
	fprintf(stderr, "end");
	assert_true(screen__shows(&screen, "end"));
	assert_string_equal(screen.text, "end");
	screen__end(&screen);
}

static void test_no_meter_is_fine(void **state)
{
	meter__add(NULL, 1);
	meter__next(NULL, &decoding);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_a_bar_on_a_terminal_and_nothing_is_left_of_it),
		cmocka_unit_test(test_a_bar_is_no_longer_than_the_terminal_is_wide),
		cmocka_unit_test(test_lines_elsewhere),
		cmocka_unit_test(test_short_work_and_quiet_say_nothing),
		cmocka_unit_test(test_no_meter_is_fine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
