// SPDX-License-Identifier: MIT
/* What sockets of this process, and of a child, are called. */
#include "target/socket_name.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

static int find(pid_t pid, int fd, char name[static SOCKET_NAME_SIZE])
{
	char path[64], link[64];
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
	len = readlink(path, link, sizeof(link) - 1);
	assert_true(len > 0);
	link[len] = '\0';
	return socket_name__find(pid, fd, link, name);
}

static void assert_name(int fd, const char *expected)
{
	char name[SOCKET_NAME_SIZE];

	assert_int_equal(find(getpid(), fd, name), 0);
	assert_string_equal(name, expected);
}

static uint16_t port_of(int fd)
{
	struct sockaddr_storage address;
	socklen_t size = sizeof(address);

	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
	return ntohs(address.ss_family == AF_INET ? ((struct sockaddr_in *)&address)->sin_port
						  : ((struct sockaddr_in6 *)&address)->sin6_port);
}

static void test_tcp(void **state)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
	int server, none = socket(AF_INET, SOCK_STREAM, 0);
	char text[128];

	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(listener, 1), 0);
	address.sin_port = htons(port_of(listener));
	assert_int_equal(connect(client, (struct sockaddr *)&address, sizeof(address)), 0);
	server = accept(listener, NULL, NULL);
	snprintf(text, sizeof(text), "TCP 127.0.0.1:%u, listening", port_of(listener));
	assert_name(listener, text);
	snprintf(text, sizeof(text), "TCP 127.0.0.1:%u to 127.0.0.1:%u", port_of(client),
		 port_of(listener));
	assert_name(client, text);
	snprintf(text, sizeof(text), "TCP 127.0.0.1:%u to 127.0.0.1:%u", port_of(listener),
		 port_of(client));
	assert_name(server, text);
	assert_name(none, "TCP 0.0.0.0:0");
	close(listener);
	close(client);
	close(server);
	close(none);
}

/* Whoever listens does not take any more, so that it goes on to connect. */
static void test_one_that_connects(void **state)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	int listener = socket(AF_INET, SOCK_STREAM, 0), all[8];
	char text[128];
	int last = -1;

	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(listener, 0), 0);
	address.sin_port = htons(port_of(listener));
	for (int i = 0; i < 8; i++) {
		all[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		connect(all[i], (struct sockaddr *)&address, sizeof(address));
		last = all[i];
	}
	snprintf(text, sizeof(text), "TCP 127.0.0.1:%u, connecting", port_of(last));
	assert_name(last, text);
	for (int i = 0; i < 8; i++)
		close(all[i]);
	close(listener);
}

static void test_udp(void **state)
{
	struct sockaddr_in there = {
		.sin_family = AF_INET, .sin_port = htons(53), .sin_addr = {htonl(INADDR_LOOPBACK)}};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	char text[128];

	assert_name(fd, "UDP 0.0.0.0:0");
	assert_int_equal(connect(fd, (struct sockaddr *)&there, sizeof(there)), 0);
	snprintf(text, sizeof(text), "UDP 127.0.0.1:%u to 127.0.0.1:53", port_of(fd));
	assert_name(fd, text);
	close(fd);
}

static void test_both_versions(void **state)
{
	struct sockaddr_in6 there = {.sin6_family = AF_INET6, .sin6_port = htons(53)};
	int fd = socket(AF_INET6, SOCK_DGRAM, 0);
	char text[128];

	if (fd < 0)
		skip();
	assert_name(fd, "UDP [::]:0");
	assert_int_equal(inet_pton(AF_INET6, "::ffff:127.0.0.1", &there.sin6_addr), 1);
	assert_int_equal(connect(fd, (struct sockaddr *)&there, sizeof(there)), 0);
	snprintf(text, sizeof(text), "UDP 127.0.0.1:%u to 127.0.0.1:53", port_of(fd));
	assert_name(fd, text);
	close(fd);
}

static void test_a_pair_does_not_know_who_has_the_other_end(void **state)
{
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	assert_name(fds[0], "Unix socket");
	close(fds[0]);
	close(fds[1]);
}

static void serve(const struct sockaddr_un *address, socklen_t size, int ready)
{
	int listener = socket(AF_UNIX, SOCK_STREAM, 0);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "the server");
	if (bind(listener, (const struct sockaddr *)address, size) || listen(listener, 1) ||
	    write(ready, "", 1) != 1)
		_exit(1);
	accept(listener, NULL, NULL);
	pause();
	_exit(0);
}

static void expect_unix(const char *path, const char *shown)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path) + 1);
	char name[SOCKET_NAME_SIZE], expected[256], byte;
	int ready[2], client, peer;
	socklen_t peer_size = sizeof(peer);
	bool is_told;
	pid_t child;

	/* An abstract one begins with 0, and has no 0 at its end. */
	memcpy(address.sun_path, path, strlen(path));
	if (path[0] == '@') {
		address.sun_path[0] = '\0';
		size--;
	}
	assert_int_equal(pipe(ready), 0);
	child = fork();
	if (!child)
		serve(&address, size, ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	client = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(connect(client, (struct sockaddr *)&address, size), 0);
	is_told = !getsockopt(client, SOL_SOCKET, SO_PEERPIDFD, &peer, &peer_size);
	if (is_told)
		close(peer);
	snprintf(expected, sizeof(expected), "Unix socket %s", shown);
	if (is_told)
		snprintf(expected + strlen(expected), sizeof(expected) - strlen(expected),
			 ", peer the server (%d)", (int)child);
	assert_name(client, expected);
	/* Its listening end, by its number there, which is ours of then. */
	assert_int_equal(find(child, client, name), 0);
	snprintf(expected, sizeof(expected), "Unix socket %s, listening", shown);
	assert_string_equal(name, expected);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	/* Whoever it was is gone: the number may be another's by now. */
	snprintf(expected, sizeof(expected), "Unix socket %s", shown);
	assert_name(client, expected);
	close(client);
	close(ready[0]);
	close(ready[1]);
}

static void test_unix(void **state)
{
	char path[64], abstract[64];

	snprintf(path, sizeof(path), "/tmp/test_socket_name.%d", (int)getpid());
	snprintf(abstract, sizeof(abstract), "@test_socket_name.%d", (int)getpid());
	expect_unix(path, path);
	unlink(path);
	expect_unix(abstract, abstract);
}

static void test_what_has_no_name(void **state)
{
	char name[SOCKET_NAME_SIZE];
	int fd = socket(AF_INET, SOCK_DGRAM, 0), fds[2];

	assert_int_equal(pipe(fds), 0);
	assert_int_equal(socket_name__find(getpid(), fd, "socket:[1]", name), -ESTALE);
	assert_int_equal(find(getpid(), fds[0], name), -ESTALE);
	close(fd);
	assert_int_equal(socket_name__find(getpid(), 900, "socket:[1]", name), -EBADF);
	assert_int_equal(socket_name__find(0x3ffffff, 0, "socket:[1]", name), -ESRCH);
	fd = socket(AF_NETLINK, SOCK_RAW, 0);
	if (fd >= 0)
		assert_int_equal(find(getpid(), fd, name), -EAFNOSUPPORT);
	close(fd);
	close(fds[0]);
	close(fds[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tcp),
		cmocka_unit_test(test_one_that_connects),
		cmocka_unit_test(test_udp),
		cmocka_unit_test(test_both_versions),
		cmocka_unit_test(test_a_pair_does_not_know_who_has_the_other_end),
		cmocka_unit_test(test_unix),
		cmocka_unit_test(test_what_has_no_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
