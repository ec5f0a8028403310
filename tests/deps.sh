#!/bin/bash
# SPDX-License-Identifier: MIT
# What mtbpf needs to be built and tested.
#
#   tests/deps.sh                install what is missing (Debian, Ubuntu)
#   tests/deps.sh build          install what the build alone needs: make demo
#   tests/deps.sh -check [test|bundle]   say what is missing for the build [and its tests, or make bundle];
#                                        install nothing
#   tests/deps.sh -has fuzzer    is libFuzzer there?
#
# Without the rows named "extra" a few tests skip; that they cannot be had is no failure.
# CC, CXX, CLANG, BPFTOOL, RUSTC and GO name other tools than the usual ones.
set -u
export PATH=$PATH:/usr/sbin:/sbin

cc=${CC:-gcc} cxx=${CXX:-g++} clang=${CLANG:-clang} bpftool=${BPFTOOL:-bpftool} rustc=${RUSTC:-rustc} go=${GO:-go}

# for | how to see that it is there | package (a/b: whichever exists) | upstream name | why
needs() {
	cat <<-END
	build|tool ${cc%% *}|gcc|GCC|compiles mtbpf
	build|tool make|make|GNU make|runs the build
	build|tool pkg-config|pkg-config|pkg-config|finds the libraries
	build|tool ${clang%% *}|clang|Clang|compiles the BPF programs
	build|tool ${bpftool%% *}|bpftool/linux-tools-generic|bpftool|makes the BPF skeleton
	build|pc libbpf|libbpf-dev|libbpf|loads the BPF programs
	build|header intel-pt.h|libipt-dev|libipt|decodes Intel PT packets
	build|pc libelf|libelf-dev|elfutils libelf|reads ELF files
	build|pc libdw|libdw-dev|elfutils libdw|reads DWARF
	build|header Zydis/Zydis.h|libzydis-dev|Zydis|decodes instructions
	build|pc libcjson|libcjson-dev|cJSON|reads and writes meta.json
	build|pc libmicrohttpd|libmicrohttpd-dev|libmicrohttpd|serves traces and metrics
	build|pc zlib|zlib1g-dev|zlib|writes .fxt.gz
	build|pc libzstd|libzstd-dev|zstd|writes .fxt.zst
	build|header libiberty/demangle.h|libiberty-dev|libiberty (binutils)|demangles C++ and Rust names
	build|header uthash.h|uthash-dev|uthash|hash tables
	test|tool ${cxx%% *}|g++|G++|compiles the C++ sample
	test|pc cmocka|libcmocka-dev|cmocka|unit tests
	test|tool bats|bats|bats-core|tests of the command line
	bundle|header bzlib.h|libbz2-dev|bzip2|is part of what make bundle makes
	bundle|header lzma.h|liblzma-dev|XZ Utils|is another part of it
	extra|tool ${go%% *}|golang-go|Go|compiles the goroutines in tests/ptgen
	extra|tool ${rustc%% *}|rustc|Rust|compiles what panics in tests/ptgen
	extra|tool perf|linux-perf/linux-tools-generic|perf|reads back what mtbpf recorded
	extra|tool node|nodejs npm|Node.js and npm|run Perfetto's trace processor
	extra|tool zstd|zstd|zstd|unpacks .fxt.zst
	extra|tool crun|crun|crun|starts the container in deploy/
	extra|tool buildah|buildah|Buildah|builds its image
	extra|yaml /usr/bin/python3|python3-yaml|PyYAML|reads the manifests in deploy/kubernetes
	extra|tool qemu-x86_64|qemu-user|QEMU user emulation|runs what Intel PT is generated of (tests/ptgen)
	extra|tool musl-gcc|musl-tools|musl-gcc|compiles a service against musl, as Alpine's containers have it
	extra|tool ocamlopt|ocaml-nox|OCaml|compiles the programs that raise exceptions
	extra|tool sqlite3|sqlite3|SQLite|is one of those programs
	extra|tool python3|python3|CPython|is another
	extra|tool dwz|dwz|dwz|puts debug info of several files apart, for tests
	extra|tool bpftrace|bpftrace|bpftrace|is what make bench compares a hit's cost with
	extra|tool curl|curl|asks mtbpf view for traces
	extra|tool prometheus|prometheus|Prometheus|scrapes the metrics of record -dir
	extra|module prometheus_client|python3-prometheus-client|its client for Python|parses them as OpenMetrics
	extra|tool redis-server|redis-server|redis|is a service that make bench-services measures
	extra|tool nginx|nginx-light|nginx|is a server whose requests are followed by their objects
	extra|tool pgbench|postgresql|PostgreSQL|is another
	extra|tool nginx|nginx-light|nginx|has no symbol for a request: tests/live/services.bats
	extra|tool javac|default-jdk-headless|a JDK|compiles the Java program there
	extra|tool chromium|chromium|shows one in Perfetto
	extra|tool scdoc|scdoc|scdoc|makes the man pages
	extra|tool groff|groff-base|groff|reads them
	extra|tool mandoc|mandoc|mandoc|finds fault with them
	extra|tool dpkg-shlibdeps|dpkg-dev|dpkg-dev|makes the Debian package
	extra|tool lintian|lintian|Lintian|finds fault with it
	extra|tool strace|strace|strace|says which system calls record makes
	extra|tool debootstrap|debootstrap|debootstrap|makes the roots of make test-distros
	extra|tool zsh|zsh|zsh|completes command lines
	extra|tool fish|fish|fish|completes command lines
	extra|fuzzer ${clang%% *}|libclang-rt-dev/libclang-rt-14-dev|libFuzzer|make fuzz
	extra|tool clang-format|clang-format|clang-format|make format-check
	END
}

tool() {
	command -v "$1" >/dev/null
}

pc() {
	tool pkg-config && pkg-config --exists "$1"
}

header() {
	[ -e "/usr/include/$1" ] || echo "#include <$1>" | $cc -E - >/dev/null 2>&1
}

yaml() {
	"$1" -c 'import yaml' 2>/dev/null
}

# Debian's own interpreter has Debian's modules.
module() {
	/usr/bin/python3 -c "import $1" 2>/dev/null
}

# Never with -o /dev/null: as root, a linker removes that first.
fuzzer() {
	local out status
	tool "$1" && out=$(mktemp) || return
	echo 'int LLVMFuzzerTestOneInput(const char *d, long n) { return 0; }' |
		"$1" -x c -fsanitize=fuzzer,address -o "$out" - >/dev/null 2>&1
	status=$?
	rm -f "$out"
	return "$status"
}

# The rows that this machine does not meet, of one use or, with none given, of all.
missing() {
	local use probe rest
	needs | while IFS='|' read -r use probe rest; do
		[ -z "${1:-}" ] || [ "$use" = "$1" ] || continue
		$probe || printf '%s|%s|%s\n' "$use" "$probe" "$rest"
	done
}

# One line a row: "libdw: reads DWARF".
list_upstream() {
	local use probe package upstream why
	while IFS='|' read -r use probe package upstream why; do
		echo "  $upstream: $why"
	done <<<"$1"
}

required() {
	missing build
	[ -z "${1:-}" ] || missing "$1"
}

check() {
	local rows
	rows=$(required "${1:-}")
	[ -n "$rows" ] || return 0
	{
		echo "missing:"
		list_upstream "$rows"
		echo "run 'make deps'"
	} >&2
	return 1
}

is_debian() {
	tool apt-get && grep -Eq '^ID(_LIKE)?=.*(debian|ubuntu)' "${OS_RELEASE:-/etc/os-release}"
}

# Which of these packages this release has: one answer for all, since apt-cache takes half a second to begin.
has_packages() {
	apt-cache policy "$@" 2>/dev/null | awk '
		/^[^ ]/ { name = $1; sub(/:$/, "", name) }
		/^ +Candidate: [^(]/ { print name }'
}

# Of "a/b" the first that is among the lines of $2; nothing where neither is.
choose_package() {
	local name names
	IFS=/ read -ra names <<<"$1"
	for name in "${names[@]}"; do
		if grep -qxF "$name" <<<"$2"; then
			echo "$name"
			return
		fi
	done
}

# Fills `packages` and says why each is wanted.
choose_packages() {
	local use probe package upstream why chosen available
	packages=()
	# shellcheck disable=SC2046
	available=$(has_packages $(cut -d'|' -f3 <<<"$1" | tr '/ ' '\n\n'))
	while IFS='|' read -r use probe package upstream why; do
		for package in $package; do
			chosen=$(choose_package "$package" "$available")
			if [ -n "$chosen" ]; then
				echo "deps: $chosen: $why"
				packages+=("$chosen")
			else
				echo "deps: there is no package $package here: $why" >&2
			fi
		done
	done <<<"$1"
}

# run_quietly WHAT COMMAND...: a fresh machine gets some 2,000 lines about 400 packages from apt-get,
# which are of use only where it failed.
run_quietly() {
	local log status=0
	log=$(mktemp) || return 1
	echo "$1"
	shift
	"$@" >"$log" 2>&1 || { status=$?; cat "$log" >&2; }
	rm -f "$log"
	return "$status"
}

# install_missing [USE]
install_missing() {
	local rows packages root=() apt=(env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300)
	rows=$(missing "${1:-}")
	if [ -z "$rows" ]; then
		echo "deps: everything${1:+ for the $1} is there"
		return 0
	fi
	if ! is_debian; then
		echo "deps: this is not Debian or Ubuntu; install by hand:" >&2
		list_upstream "$rows" >&2
		return 1
	fi
	if [ "$(id -u)" != 0 ]; then
		if ! tool sudo; then
			choose_packages "$rows"
			echo "deps: not root, and there is no sudo; run as root:" >&2
			echo "  apt-get update && apt-get install -y --no-install-recommends ${packages[*]}" >&2
			return 1
		fi
		root=(sudo)
	fi
	"${root[@]}" "${apt[@]}" update -qq || echo "deps: apt-get update failed; going on without" >&2
	choose_packages "$rows"
	[ ${#packages[@]} -eq 0 ] || run_quietly "deps: installing them; this takes a minute or two" \
		"${root[@]}" "${apt[@]}" install -y -qq --no-install-recommends "${packages[@]}"
	rows=$(required "${1:-test}")
	[ -z "$rows" ] || { echo "deps: still missing:"; list_upstream "$rows"; } >&2
}

case "${1:-}" in
-check) check "${2:-}" ;;
-has) [ "${2:-}" = fuzzer ] && fuzzer "${clang%% *}" ;;
build)
	install_missing build
	[ -z "$(required)" ]
	;;
'')
	install_missing
	[ -z "$(required test)" ]
	;;
*)
	echo "usage: tests/deps.sh [build | -check [test|bundle] | -has fuzzer]" >&2
	exit 2
	;;
esac
