/* SPDX-License-Identifier: MIT */
/* The files of a web page, below a folder and nowhere else. */
#ifndef MTBPF_SERVE_UI_FOLDER_H
#define MTBPF_SERVE_UI_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Opens what a request's path ("/", "/v55/a.js") names: a regular file in the folder, reached
 * through no symbolic link. -ENOENT for anything else, another -errno.
 */
int ui_folder__open(int folder_fd, const char *path);

/* By the suffix. */
const char *ui_folder__content_type(const char *path);

#endif
