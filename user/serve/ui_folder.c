// SPDX-License-Identifier: MIT
#include "serve/ui_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
	const char *suffix, *type;
} types[] = {
	{".html", "text/html; charset=utf-8"},
	{".js", "text/javascript; charset=utf-8"},
	{".mjs", "text/javascript; charset=utf-8"},
	{".css", "text/css; charset=utf-8"},
	{".json", "application/json"},
	{".wasm", "application/wasm"}, /* browsers compile it while it loads only with this type */
	{".png", "image/png"},
	{".svg", "image/svg+xml"},
	{".woff2", "font/woff2"},
	{".ttf", "font/ttf"},
};

/* The file's path within the folder. */
static const char *name_of(const char *path)
{
	while (*path == '/')
		path++;
	return *path ? path : "index.html";
}

const char *ui_folder__content_type(const char *path)
{
	size_t len;

	path = name_of(path);
	len = strlen(path);
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		size_t n = strlen(types[i].suffix);

		if (len > n && !strcmp(path + len - n, types[i].suffix))
			return types[i].type;
	}
	return "application/octet-stream";
}

int ui_folder__open(int folder_fd, const char *path)
{
	struct open_how how = {
		.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS,
	};
	struct stat st;
	int fd;

	fd = (int)syscall(SYS_openat2, folder_fd, name_of(path), &how, sizeof(how));
	if (fd < 0)
		return errno == EMFILE || errno == ENFILE ? -errno : -ENOENT;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		close(fd);
		return -ENOENT;
	}
	return fd;
}
