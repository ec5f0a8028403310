/* SPDX-License-Identifier: MIT */
/* Opens the files of a web page below one folder. */
#ifndef MTBPF_SERVE_UI_FOLDER_H
#define MTBPF_SERVE_UI_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Opens the file that a request's path ("/", "/v55/a.js") names: a regular file in the folder,
 * without symbolic links. -ENOENT for anything else, or another -errno.
 */
int ui_folder__open(int folder_fd, const char *path);

/* The content type by the file's suffix. */
const char *ui_folder__content_type(const char *path);

#endif
