# SPDX-License-Identifier: MIT
# Whom is recorded: several processes, what they fork, containers and pods; and nobody else. There is no
# daemon: a container is a cgroup with a name, and what its runtime leaves on the disk.

load targets

@test "several processes: either triggers, both are recorded, a third is not" {
	start causes lock
	third=$target
	start causes read
	first=$target
	start causes branch
	mtbpf_run attach -pid "$first,$target" -symbol one_iter -duration-thresh 20ms -timeout 15s -o s.fxt
	[ "$status" -eq 0 ]
	"$O/mtbpf" decode s.mtbpf -format text | awk '{ print $1 }' | sort -u >seen
	grep -qx "$first" seen
	grep -qx "$target" seen
	for tid in $(threads_of "$third"); do
		! grep -qx "$tid" seen || false
	done
}

@test "who exits leaves the others; who is stopped does not trigger" {
	start causes branch
	first=$target
	start causes branch
	kill -STOP "$first"
	hits -pid "$first"
	[ "$hits" -eq 0 ]
	second=$target
	start causes lock
	kill -STOP "$second"
	hits -pid "$first,$second"
	[ "$hits" -eq 0 ]
	kill -CONT "$second"
	hits -pid "$first,$second"
	[ "$hits" -gt 0 ]
	kill -KILL "$target"
	target=$second
	attach_log=log
	"$O/mtbpf" attach -pid "$first,$target" -symbol one_iter -duration-thresh 100s -timeout 60s -o s.fxt \
		>log 2>&1 3>&- &
	attached=$!
	started+=("$attached")
	eventually 10 grep -q '^waiting' log
	kill -KILL "$target"
	eventually 5 gone "$target"
	sleep 1.5
	! gone "$attached" || false
	kill -KILL "$first"
	attach_ends 10
	[ "$status" -eq 0 ]
	says target-exited-snapshot
}

@test "-children: a child's call triggers, by a thread of it, and is recorded with its name" {
	start forks
	mtbpf_run attach -pid "$target" -symbol one_iter -duration-thresh 30ms -timeout 2s -o alone.fxt
	[ "$status" -ne 0 ]
	says not-called one_iter
	mtbpf_run attach -pid "$target" -children -symbol one_iter -duration-thresh 30ms -timeout 10s -o s.fxt
	[ "$status" -eq 0 ]
	[[ $output == *"iteration of one_iter took "* ]]
	[[ $output == *"[blocked] in "* ]]
	hit=$(sed -n 's/^call .* thread \([0-9]*\): took .*/\1/p' <<<"$output")
	[ "$hit" != "$target" ]
}

@test "-children: hits of what is forked later count, each of them" {
	start forks 40
	hits -pid "$target" -children
	[ "$hits" -ge 12 ]
	hits -pid "$target"
	[ "$hits" -eq 0 ]
}

@test "-children: where the memory is full, those that have ended make room: none is left out" {
	start forks
	# Five buffers are all that fit, and three are needed at a time. Each child has two threads, and 16 calls.
	mtbpf_run record -source sample -unwind fp -pid "$target" -children -symbol one_iter -delay-thresh 1000s \
		-snapshot-size 64K -max-memory 700K -max-hits 200 -o x.mtbpf
	[ "$status" -eq 3 ]
	[[ $output != *"not recorded"* ]]
}

@test "run -children" {
	mtbpf_run run -children -source sample -symbol one_iter -duration-thresh 30ms -o s.fxt -- "$O/programs/forks" 3
	[ "$status" -eq 0 ]
	[[ $output =~ pid\ ([0-9]+) ]]
	target=${BASH_REMATCH[1]}
	[[ $output =~ thread\ ([0-9]+):\ took ]]
	[ "${BASH_REMATCH[1]}" -ne "$target" ]
	"$O/mtbpf" decode s.mtbpf -format text | grep -q "^${BASH_REMATCH[1]} "
}

@test "a container by the shapes of its cgroup: its calls count, not those of its twin" {
	for shape in "docker-$id.scope" "cri-containerd-$id.scope" "crio-$id.scope" "libpod-$id.scope" \
		"docker/$id" "kubepods/burstable/pod$uid/$id"; do
		start causes lock
		twin=$target
		start_in "mtbpf-live-$$/$shape" causes read
		hits -container $short
		[ "$hits" -gt 0 ]
		kill -STOP "$target"
		hits -container $short
		[ "$hits" -eq 0 ]
		hits -pid "$twin"
		[ "$hits" -gt 0 ]
		end_started
		teardown
		cgroups=()
	done
}

@test "a container is sampled, with a buffer a CPU: all of it, and nobody else" {
	start causes read
	twin=$target
	start_in "mtbpf-live-$$/docker-$id.scope" causes lock
	mtbpf_run attach -source sample -container $short -symbol one_iter -duration-thresh 20ms -timeout 15s -o s.fxt
	[ "$status" -eq 0 ]
	[[ $output == *"[blocked] in "*", woken by helper ("* ]]
	"$O/mtbpf" decode s.mtbpf -format text | awk '{ print $1 }' | sort -u >seen
	grep -qx "$target" seen
	! grep -qx "$twin" seen || false
}

@test "two containers with the same first digits" {
	cgroup "mtbpf-live-$$/docker-$id.scope"
	cgroup "mtbpf-live-$$/docker-$other.scope"
	mtbpf_run list -container $short
	[ "$status" -eq 2 ]
	complains ambiguous-container "$short" 2 container hint give-more-digits
}

# in_root ARGS: mtbpf where /var/lib, /run and /var/log hold what runtimes leave there.
in_root() {
	run unshare -m bash -c '
		for dir in /var/lib /var/log /run; do mount -t tmpfs none "$dir"; done
		put() { mkdir -p "$(dirname "$1")"; printf "%s" "$2" >"$1"; }
		put /var/lib/docker/containers/'"$id"'/config.v2.json '\''{"Name": "/web-docker"}'\''
		put /var/lib/containers/storage/overlay-containers/containers.json \
			'\''[{"id": "'"$id"'", "names": ["web-podman"]}]'\''
		put /run/containerd/io.containerd.runtime.v2.task/moby/'"$id"'/config.json \
			'\''{"annotations": {"nerdctl/name": "web-nerdctl"}}'\''
		mkdir -p /var/log/pods/shop_web-0_'"$uid"' /var/log/containers
		touch /var/log/containers/web-0_shop_app-'"$id"'.log
		exec timeout 20 "$@"' - "$O/mtbpf" "$@"
	printf '%s\n' "mtbpf $*" "$output" "-> $status"
}

@test "a container by its name, by what docker, podman and containerd leave on the disk" {
	start_in "mtbpf-live-$$/docker-$id.scope" causes read
	for name in web-docker web-podman web-nerdctl; do
		in_root list -container $name one_iter
		[ "$status" -eq 0 ]
		[[ $output == *one_iter* ]]
	done
	in_root list -container web-dockre one_iter
	[ "$status" -eq 2 ]
	complains container-not-running-here container web-dockre hint meant web-docker
	kill -KILL "$target"
	eventually 5 rmdir "$cgroup"
	in_root list -container web-docker one_iter
	[ "$status" -eq 2 ]
	complains container-stopped container web-docker
}

@test "a pod by its namespace and name, and one container of it" {
	pod=mtbpf-live-$$/kubepods-burstable-pod${uid//-/_}.slice
	start_in "$pod/cri-containerd-$other.scope" causes read
	start_in "$pod/cri-containerd-$id.scope" causes read
	for name in shop/web-0 shop/web-0/app; do
		in_root watch -k8s-pod $name -symbol one_iter -timeout 200ms
		[ "$status" -eq 0 ]
		[[ $output =~ ([0-9]+)\ hits ]]
		[ "${BASH_REMATCH[1]}" -gt 0 ]
	done
	kill -STOP "$target"
	in_root watch -k8s-pod shop/web-0/app -symbol one_iter -timeout 200ms
	[[ $output == *$'\n'"0 hits"* ]]
	in_root list -k8s-pod shop/web-1
	[ "$status" -eq 2 ]
	complains container-not-running-here pod shop/web-1 hint meant shop/web-0
}

@test "a pod and its container in each layout that a kubelet makes: by driver, class of service and runtime" {
	start causes read
	u=${uid//-/_}
	for layout in "kubepods.slice/kubepods-pod$u.slice cri-containerd-$id.scope" \
		"kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod$u.slice crio-$id.scope/container" \
		"kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod$u.slice docker-$id.scope" \
		"kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod$u.slice cri-containerd-$id.scope" \
		"kubepods/pod$uid $id" "kubepods/burstable/pod$uid crio-$id" "kubepods/besteffort/pod$uid $id"; do
		read -r pod container <<<"$layout"
		cgroup "mtbpf-live-$$/$pod/$container"
		echo "$target" >"$cgroup/cgroup.procs"
		top=${cgroup%"/$pod/$container"}
		in_root list -k8s-pod shop/web-0 one_iter
		[ "$status" -eq 0 ]
		[[ $output == *"shop/web-0: the cgroup $top/$pod"$'\n'*" one_iter"* ]]
		in_root list -k8s-pod shop/web-0/app one_iter
		[[ $output == *"shop/web-0/app: the cgroup $top/$pod/${container%/container}"$'\n'*" one_iter"* ]]
		# As kubectl shows an ID.
		mtbpf_run list -container "containerd://$id" one_iter
		[[ $output == *"/$pod/${container%/container}"$'\n'*" one_iter"* ]]
		echo "$target" >"${top%/*}/cgroup.procs"
		for ((i = ${#cgroups[@]} - 1; i > 0; i--)); do
			rmdir "${cgroups[i]}"
			unset "cgroups[i]"
		done
	done
}

# count_calls ARGS: watch, while all threads of manythreads call as fast as they can; its lines are in watch.log.
count_calls() {
	begin_log watch.log
	env --default-signal=INT "$O/mtbpf" watch -pid "$target" -symbol one_iter -timeout 120s "$@" >watch.log 2>&1 3>&- &
	watch=$!
	started+=("$watch")
	eventually 10 grep -q '^watching' watch.log
	kill -USR1 "$target"
	eventually 60 grep -q '^done' manythreads.*
	kill -INT "$watch"
	wait "$watch"
	cat watch.log
}

# all_counted ARGS: as watch takes them; $measured and $unmeasured are of delays, or durations.
all_counted() {
	start manythreads 6 200000
	count_calls "$@"
	grep -h '^done' manythreads.* # how fast that was
	rm manythreads.*
	grep -q '^1200000 hits ' watch.log
	! grep -q 'the kernel did not run' watch.log || false
	measured=$(awk '$6 == ":" { n += $7 } END { print n }' watch.log)
	unmeasured=$(sed -n 's/.*lost: \([0-9]*\) hits\?: not measured.*/\1/p' watch.log)
	end_started
}

# bats test_tags=slow
@test "several threads hit it as fast as they can: each hit is counted, each delay and duration measured" {
	all_counted
	[ $((measured + ${unmeasured:-0})) -eq $((1200000 - 6)) ] # a thread's first has no delay
	all_counted -durations
	[ $((measured + ${unmeasured:-0})) -eq 1200000 ]
}

# bats test_tags=slow
@test "ten thousand threads: no hit is lost; they are recorded, by a ring per CPU, of a cgroup and of a process" {
	cgroup "mtbpf-live-$$/many"
	start manythreads 10000 20 || skip "10,000 threads are more than this machine allows"
	echo "$target" >"$cgroup/cgroup.procs"
	count_calls
	grep -q '^200000 hits ' watch.log
	mtbpf_run record -source sample -cgroup "$cgroup" -timeout 500ms -o c.mtbpf
	[ "$status" -eq 1 ]
	complains no-stack-recorded "any of the processes" hint asleep-all
	LIMIT=60 mtbpf_run record -source sample -unwind fp -pid "$target" -timeout 500ms -o p.mtbpf
	[ "$status" -eq 1 ]
	complains no-stack-recorded "process $target" hint asleep
}

@test "mtbpf where neither cgroups nor names are mounted: those of the first process are looked at" {
	cgroup "mtbpf-live-$$/docker-$id.scope"
	cat >first <<-EOF
		mount -t tmpfs none /var/lib
		mkdir -p /var/lib/docker/containers/$id
		echo '{"Name": "/web"}' >/var/lib/docker/containers/$id/config.v2.json
		"$O/programs/causes" lock >log 2>&1 3>&- &
		echo \$! >"$cgroup/cgroup.procs"
		unshare --mount bash -c '
			umount -l "${cgroup%/mtbpf-live*}" /var/lib
			exec timeout 20 "$O/mtbpf" watch -container web -symbol one_iter -timeout 500ms'
		kill %1
	EOF
	run unshare --pid --fork --mount --mount-proc --kill-child bash first
	printf '%s\n' "$output"
	[[ $output == *"web: the cgroup /proc/1/root/"* ]]
	[[ $output =~ ([0-9]+)\ hits ]]
	[ "${BASH_REMATCH[1]}" -gt 0 ]
}

@test "a container whose cgroup is of version 1" {
	v1=$(awk '{ for (i = 6; i < NF; i++) if ($i == "-" && $(i + 1) == "cgroup") { print $5; exit } }' \
		/proc/self/mountinfo)
	[ -n "$v1" ] && mkdir "$v1/$id" 2>/dev/null || skip "no cgroup of version 1 can be made here"
	cgroups+=("$v1/$id")
	start causes lock
	if ! echo "$target" >"$v1/$id/cgroup.procs"; then
		skip "nothing can be put into a cgroup of version 1 here"
	fi
	hits -container $short
	[ "$hits" -gt 0 ]
	kill -STOP "$target"
	hits -container $short
	[ "$hits" -eq 0 ]
}
