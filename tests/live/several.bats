# SPDX-License-Identifier: MIT
# Several programs at once, and processes that are started again: who is probed then.

load targets

@test "several programs at once: the function is probed in each of them that has it, each hit counts once" {
	cp "$O/programs/manythreads" mtbpf-many
	start manythreads 10 30
	first=$target
	start manythreads 10 30
	second=$target
	./mtbpf-many 10 30 >third.log 2>&1 3>&- &
	third=$!
	started+=("$third")
	eventually 5 grep -q '^pid ' third.log
	# Each of them says once that it is done.
	env --default-signal=INT "$O/mtbpf" watch -pid "$first,$second,$third" -symbol one_iter,libc:puts \
		-timeout 60s >watch.log 2>&1 3>&- &
	watch=$!
	started+=("$watch")
	eventually 10 grep -q '^watching' watch.log
	kill -USR1 "$first" "$second" "$third"
	for log in manythreads.* third.log; do
		eventually 20 grep -q '^done' "$log"
	done
	kill -INT "$watch"
	wait "$watch"
	cat watch.log
	grep -q '^903 hits ' watch.log
}

@test "several programs at once: one function is in the first, another in the second" {
	start causes branch
	first=$target
	start service -scale small -pause 1ms -n 0
	mtbpf_run watch -pid "$first,$target" -symbol work_us,table_rehash -max-hits 1
	[ "$status" -eq 0 ]
	for symbol in work_us table_rehash; do
		mtbpf_run attach -source sample -pid "$first,$target" -symbol "$symbol" -timeout 15s -o x.fxt
		[ "$status" -eq 0 ]
		[[ $output == *"of $symbol, thread "* ]]
		says cannot-hit-it "*" "*" "$symbol"
	done
	mtbpf_run watch -pid "$first,$target" -symbol no_such_function -timeout 1s
	[ "$status" -eq 2 ]
	complains no-function-in-processes "the target" no_such_function hint list-shows-functions
}

@test "several programs at once: those that cannot hit the function are named" {
	start service -scale small
	first=$target
	start forks
	second=$target
	start signals -scale small
	mtbpf_run attach -pid "$first,$target" -source sample -symbol handle_request \
		-delay-thresh 100s -timeout 100ms -o x.fxt
	[ "$status" -ne 2 ]
	says cannot-hit-it "$target" signals handle_request
	mtbpf_run attach -pid "$first,$second,$target" -source sample -symbol handle_request \
		-delay-thresh 100s -timeout 100ms -o y.fxt
	[ "$status" -ne 2 ]
	says cannot-hit-them 2 "*" "*" handle_request
	# What all of them have mapped they can hit.
	mtbpf_run attach -pid "$first,$target" -source sample -symbol libc:clock_nanosleep -timeout 300ms -o z.fxt
	! says cannot-hit-it || false
}

@test "-name goes on with the next process of that name, and a new file of it" {
	cp "$O/programs/causes" "$me"
	serve "$me" lock
	wait_for_slow -name "$me" -duration-thresh 100s -max-hits 100000
	first=$target
	kill -KILL "$first"
	eventually 10 grep -q 'continuing when it is running again' "$attach_log"
	cp "$O/programs/causes" new
	mv new "$me"
	serve "$me" lock
	eventually 10 grep -q '^waiting for ' "$attach_log"
	eventually 10 grep -q "is process $target" "$attach_log"
	eventually 10 bash -c '[ "$(grep -c "^waiting for a call" "$1")" -eq 2 ]' - "$attach_log"
	runs_on "$target"
	interrupted_has_target
	! grep -qx "$first" seen || false
}

# bats test_tags=slow
@test "-name: one of several is started again, and is recorded from then on; from another file too" {
	cp "$O/programs/causes" "$me"
	serve "$me" lock
	first=$target
	serve "$me" lock
	limit=300s wait_for_slow -name "$me" -duration-thresh 100s
	kill -STOP "$target"
	for again in 2 3; do
		kill -KILL "$first"
		cp "$O/programs/causes" new
		mv new "$me"
		serve "$me" lock
		first=$target
		eventually 20 bash -c '[ "$(grep -c "^waiting for a call" "$1")" -eq '$again' ]' - "$attach_log"
	done
	grep -q 'some processes of .* were restarted: continuing with the processes that run now' "$attach_log"
	runs_on "$target"
	interrupted_has_target
}

@test "a container goes on when it is started again, in a cgroup that is made anew" {
	start_in "mtbpf-live-$$/docker-$id.scope" causes lock
	wait_for_slow -container $short -duration-thresh 100s
	kill -KILL "$target"
	eventually 10 grep -q 'continuing when it is running again' "$attach_log"
	eventually 5 rmdir "$cgroup"
	sleep 1
	start_in "mtbpf-live-$$/docker-$id.scope" causes lock
	eventually 10 bash -c '[ "$(grep -c "^waiting for a call" "$1")" -eq 2 ]' - "$attach_log"
	runs_on "$target"
	kill -INT "$attached"
	attach_ends 10
	[ "$status" -eq 0 ]
	"$O/mtbpf" decode s.mtbpf -format text | awk '{ print $1 }' | sort -u | grep -qx "$target"
}

# bats test_tags=slow
@test "in a container that lives on, a worker is started again from another file: a new probe" {
	cp "$O/programs/causes" mtbpf-worker
	start_in "mtbpf-live-$$/docker-$id.scope" forks
	serve mtbpf-worker lock
	echo "$target" >"$cgroup/cgroup.procs"
	symbol=work_us wait_for_slow -container $short -duration-thresh 100s
	kill -KILL "$target"
	cp "$O/programs/causes" new
	mv new mtbpf-worker
	serve mtbpf-worker lock
	echo "$target" >"$cgroup/cgroup.procs"
	eventually 20 bash -c '[ "$(grep -c "^waiting for a call" "$1")" -eq 2 ]' - "$attach_log"
	sleep 1
	kill -INT "$attached"
	attach_ends 10
	[ "$status" -eq 0 ]
	[[ $output =~ work_us:\ ([0-9]+)\ hits ]]
	[ "${BASH_REMATCH[1]}" -gt 0 ]
}

# bats test_tags=slow
@test "waiting for it to come back ends with the time, and with Ctrl-C" {
	cp "$O/programs/causes" "$me"
	serve "$me" lock
	wait_for_slow -name "$me" -duration-thresh 100s
	kill -KILL "$target"
	eventually 10 grep -q 'waiting for a process' "$attach_log"
	kill -INT "$attached"
	attach_ends 10
	[ "$status" -eq 1 ]
	complains interrupted-before "$me"
	[ ! -e s.mtbpf ]
	serve "$me" lock
	limit=3s wait_for_slow -name "$me" -duration-thresh 100s
	kill -KILL "$target"
	attach_ends 20
	[ "$status" -eq 1 ]
	says not-again-in-time
}
