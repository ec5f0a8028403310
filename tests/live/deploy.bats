# SPDX-License-Identifier: MIT
# deploy/: the image's root, started by an OCI runtime as the DaemonSet says; which rights it needs, by
# taking each away; the systemd unit. No registry, no daemon, no cluster.

load ../helpers

setup_file() {
	export image=$BATS_FILE_TMPDIR/image
	mkdir "$image"
	"$BATS_TEST_DIRNAME/../../deploy/image-root" "${O:?}/mtbpf" "$image/root"
	cp "$BATS_TEST_DIRNAME/../../deploy/Containerfile" "$image"
}

setup() {
	deploy=$BATS_TEST_DIRNAME/../../deploy
	cd "$BATS_TEST_TMPDIR"
	mkdir data bundle
	log=$BATS_TEST_TMPDIR/container.log
	started=()
}

teardown() {
	end_started
}

# Why no container can be started here, or nothing.
why_no_container() {
	[ "$(id -u)" -eq 0 ] || echo "needs root"
	command -v crun >/dev/null || echo "crun is missing"
	/usr/bin/python3 -c 'import yaml' 2>/dev/null || echo "python3-yaml is missing"
	[ -x "$O/programs/service" ] || echo "the sample programs are not built"
}

# bundle ARGS: for oci_bundle.py.
bundle() {
	local seccomp=/usr/share/containers/seccomp.json
	[ ! -e "$seccomp" ] || set -- -seccomp "$seccomp" "$@"
	/usr/bin/python3 "$BATS_TEST_DIRNAME/oci_bundle.py" bundle "$image/root" \
		-volume "recordings=$PWD/data" -set DELAY_THRESH=2ms -set MAX_PER_HOUR=0 "$@"
}

# contain: crun, as a service of a node: with the v2 hierarchy alone, which it insists on. In $container.
contain() {
	begin_log "$log"
	unshare -m --propagation private bash -c '
		findmnt -t cgroup2 /sys/fs/cgroup >/dev/null ||
			{ umount -R /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup; }
		exec timeout -k 5 40 crun --root "$PWD/crun" --cgroup-manager=disabled run -b bundle "mtbpf-$$"
	' >"$log" 2>&1 3>&- &
	container=$!
	started+=("$container")
}

contained_ends() {
	eventually 20 gone "$container"
	status=0
	wait "$container" || status=$?
	cat "$log"
}

# As another user, of whose files root without capabilities may not read all.
start_for_nobody() {
	local folder=$BATS_TEST_TMPDIR/${1:-open}
	mkdir "$folder"
	# A name that nobody else here has: some choose by it.
	cp "$O/programs/service" "$folder/svc-$$"
	chown -R 65534:65534 "$folder"
	[ "${1:-open}" = open ] || chmod 700 "$folder"
	chmod 755 "$BATS_TEST_TMPDIR" "$BATS_RUN_TMPDIR" "$BATS_FILE_TMPDIR" "${BATS_TEST_TMPDIR%/*}" 2>/dev/null || true
	setpriv --reuid 65534 --regid 65534 --clear-groups "$folder/svc-$$" -scale native \
		>service.log 2>&1 3>&- &
	started+=($!)
	eventually 5 grep -q '^pid ' service.log
	target=$(sed -n 's/^pid //p' service.log)
}

captured() {
	[ "$(grep -c '^20.*\.mtbpf$' "$log")" -ge "$1" ]
}

# record_args: what the manifest says, of one process.
record_args() {
	echo record -source sample -pid "$target" -symbol one_iter -delay-thresh 2ms -dir /var/lib/mtbpf \
		-max-per-hour 0
}

# fails_with TEXT OPTION...: the container ends by itself, with that.
fails_with() {
	local text=$1
	shift
	# shellcheck disable=SC2046
	bundle "$@" -- $(record_args)
	contain
	contained_ends
	[ "$status" -ne 0 ]
	grep -qF -- "$text" "$log"
	[ -z "$(ls data)" ]
}

# runs OPTION...: it captures; $inside is its process.
runs() {
	# shellcheck disable=SC2046
	bundle "$@" -- $(record_args)
	contain
	eventually 20 captured 2
	inside=$(pgrep -P "$(pgrep -P "$container")" | head -1)
}

# works OPTION...: and it ends when it is told to.
works() {
	[ "$*" = "-go-on" ] || runs "$@"
	kill "$inside"
	contained_ends
	[ "$status" -eq 0 ]
	[ "$(find data -name meta.json | wc -l)" -ge 2 ]
	rm -r data/*
}

@test "the image is built without a registry, and holds the program and its libraries only" {
	skip_with_sanitizers
	[ "$("$image/root/lib64/ld-linux-x86-64.so.2" --version | head -1)" ]
	[ "$(chroot "$image/root" /usr/bin/mtbpf -version)" = "$("$O/mtbpf" -version)" ]
	chroot "$image/root" /usr/bin/mtbpf decode no.such 2>&1 | grep -q '^hint:'
	[ -z "$(find "$image/root" -type f ! -name mtbpf ! -name '*.so*')" ]
	command -v buildah >/dev/null || skip "the rest needs buildah"
	b=(buildah --storage-driver vfs --root "$PWD/storage" --runroot "$PWD/run")
	"${b[@]}" bud -q --isolation chroot -t mtbpf "$image" >bud.log 2>&1 || { cat bud.log; false; }
	[ "$("${b[@]}" inspect --type image --format '{{.OCIv1.Config.Entrypoint}}' mtbpf)" = "[/usr/bin/mtbpf]" ]
	"${b[@]}" push -q mtbpf "oci:$PWD/oci" >/dev/null
	layer=$(ls -S oci/blobs/sha256 | head -1)
	tar -tzf "oci/blobs/sha256/$layer" | grep -v '/$' | sort >in_image
	(cd "$image/root" && find . -type f -printf '%P\n' | sort) >in_root
	diff in_root in_image
}

@test "the DaemonSet's container captures another user's process on the node, and is no more than it says" {
	why=$(why_no_container)
	[ -z "$why" ] || skip "$why"
	start_for_nobody
	runs
	grep -q '^NoNewPrivs:[[:space:]]*1$' "/proc/$inside/status"
	[ ! -e /usr/share/containers/seccomp.json ] || grep -q '^Seccomp:[[:space:]]*2$' "/proc/$inside/status"
	# DAC_READ_SEARCH 2, IPC_LOCK 14, SYS_PTRACE 19, SYS_ADMIN 21: all there is, now and ever.
	for set in Prm Eff Bnd; do
		grep -q "^Cap$set:[[:space:]]*0000000000284004$" "/proc/$inside/status"
	done
	! touch "/proc/$inside/root/x" 2>/dev/null || false
	works -go-on
}

@test "each of its capabilities is needed" {
	why=$(why_no_container)
	[ -z "$why" ] || skip "$why"
	start_for_nobody private
	fails_with "with CAP_SYS_PTRACE" -without SYS_PTRACE
	fails_with "hint:" -without SYS_ADMIN
	fails_with "no function 'one_iter'" -without DAC_READ_SEARCH
	fails_with "CAP_IPC_LOCK" -without IPC_LOCK -memlock 65536
	works -memlock 65536
}

@test "the manifest as it is: by name, with its ConfigMap; metrics in the pod, not on the node" {
	why=$(why_no_container)
	[ -z "$why" ] || skip "$why"
	start_for_nobody
	bundle -set "TARGET_NAME=svc-$$"
	contain
	eventually 20 captured 2
	inside=$(pgrep -P "$(pgrep -P "$container")" | head -1)
	nsenter -t "$inside" -n curl -sf http://127.0.0.1:9464/metrics >metrics
	grep -q '^mtbpf_attached 1$' metrics
	grep -Eq '^mtbpf_captures_total [1-9]' metrics
	! curl -sf -m 2 http://127.0.0.1:9464/metrics || false
	kill "$inside"
	contained_ends
	[ "$status" -eq 0 ]
}

@test "the unit's command, with its capabilities, on a service's cgroup: also when that is started again" {
	[ "$(id -u)" -eq 0 ] || skip "needs root"
	[ -x "$O/programs/service" ] || skip "the sample programs are not built"
	root=$(findmnt -n -t cgroup2 -o TARGET | head -1)
	[ -n "$root" ] || skip "no cgroup v2 hierarchy is mounted"
	mkdir -p "$root/system.slice" 2>/dev/null || skip "no cgroup can be made here"
	name=mtbpf-test-$$
	mkdir "$root/system.slice/$name.service"
	unit=$(sed -e ':a' -e '/\\$/N; s/\\\n//; ta' "$deploy/systemd/mtbpf@.service")
	SYMBOL=$(sed -n 's/^SYMBOL=//p' "$deploy/systemd/web.conf")
	OPTIONS=$(sed -n 's/^OPTIONS=//p' "$deploy/systemd/web.conf")
	command=$(sed -n 's/^ExecStart=//p' <<<"$unit")
	command=${command//%i/$name} command=${command//\$\{SYMBOL\}/$SYMBOL} command=${command//\$OPTIONS/$OPTIONS}
	command=${command/\/usr\/local\/bin\/mtbpf/$O/mtbpf} command=${command//\/var\/lib\/mtbpf/$PWD/data}
	command=${command//\/run\/mtbpf-$name/$PWD} command=${command/-delay-thresh 50ms/-delay-thresh 2ms}
	caps=$(sed -n 's/^CapabilityBoundingSet=//p' <<<"$unit" | sed 's/CAP_/+/g; s/ /,/g' | tr A-Z a-z)
	# shellcheck disable=SC2086
	timeout 60 setpriv --bounding-set "-all,$caps" --inh-caps=-all --no-new-privs $command >"$log" 2>&1 3>&- &
	container=$!
	started+=("$container")
	for round in 1 2; do
		bash -c 'echo $$ >"$0/cgroup.procs"; exec "$1" -scale native' "$root/system.slice/$name.service" \
			"$O/programs/service" >/dev/null 2>&1 3>&- &
		service=$!
		started+=("$service")
		eventually 20 captured_of "$service" 2
		kill "$service"
		eventually 5 gone "$service"
	done
	[ -S metrics.sock ]
	grep -q "^CapBnd:[[:space:]]*0000000000284004$" "/proc/$(pgrep -P "$container")/status"
	kill "$(pgrep -P "$container")"
	contained_ends
	rmdir "$root/system.slice/$name.service"
	rmdir "$root/system.slice" 2>/dev/null || true # it may be systemd's
	[ "$status" -eq 0 ]
	[ "$(find "data/$name" -name meta.json | wc -l)" -ge 4 ]
}

@test "without the node's process ids nobody is there" {
	why=$(why_no_container)
	[ -z "$why" ] || skip "$why"
	start_for_nobody
	fails_with "no process with pid $target" -own-pids
}
