# SPDX-License-Identifier: MIT
# -key: from -start to -stop, and delays, by an object instead of by the thread; on a program whose requests change
# threads, and on nginx.

load ../helpers

setup() {
	[ -x "${O:?}/programs/requests" ] || skip "the sample programs are not built"
	[ "$(id -u)" -eq 0 ] || skip "needs root"
	cd "$BATS_TEST_TMPDIR"
	started=()
}

teardown() {
	end_started
}

request=(-start request_begin -stop request_end -key arg1,arg2)

# hits: how many watch counted.
hits() {
	[[ $output =~ ([0-9]+)\ hits ]]
	echo "${BASH_REMATCH[1]}"
}

# largest_ms: the largest value of watch, in ms.
largest_ms() {
	[[ $output =~ max\ ([0-9.]+)\ ([mun]?s) ]]
	awk -v n="${BASH_REMATCH[1]}" -v unit="${BASH_REMATCH[2]}" \
		'BEGIN { print int(n * (unit == "s" ? 1e3 : unit == "ms" ? 1 : unit == "us" ? 1e-3 : 1e-6)) }'
}

@test "requests that begin in one thread and end in another: the slow ones, by their objects" {
	start requests
	mtbpf_run attach -source sample -pid "$target" "${request[@]}" -duration-thresh 50ms -print arg2-\>at.number -o x.fxt
	[ "$status" -eq 0 ]
	[[ $output == *"a request lasts from request_begin to request_end, matched by -key arg1,arg2"* ]]
	[[ $output =~ hit\ [0-9]+\ of\ request_end,\ thread\ ([0-9]+):\ ([0-9]+)[0-9.]*\ ms\ after\ -start\ in\ thread\ ([0-9]+),\ key\ (0x[0-9a-f]+),\ arg2-\>at.number\ ([0-9]+) ]]
	local thread=${BASH_REMATCH[1]} ms=${BASH_REMATCH[2]} since=${BASH_REMATCH[3]} key=${BASH_REMATCH[4]} number=${BASH_REMATCH[5]}
	[ "$since" = "$target" ] && [ "$thread" != "$target" ]
	# It sleeps for 100 ms; of the others none takes so long.
	[ "$ms" -ge 99 ] && [ $((number % 20)) -eq 7 ]
	# Which of the threads' time was this request's is not known, and nothing is compared.
	[[ $output == *"the request with key $key took "*" from thread $since to thread $thread; what thread $thread did meanwhile"* ]]
	[[ $output == *"what thread $since did meanwhile"* ]]
	[[ $output == *"reason: not known: a thread may work for several requests at once"* ]]
	[[ $output != *"ordinary one"* ]]
	"$O/mtbpf" report x.mtbpf -json >x.json
	python3 - "$key" "$since" "$thread" <<-'END'
		import json, sys
		report = json.load(open('x.json'))
		hit = report['hit']
		assert (hit['key'], str(hit['since_tid']), str(hit['tid'])) == tuple(sys.argv[1:]), hit
		assert 'reason' not in report and report['ordinary_iterations'] == 0, report
	END
	# The trace alone knows it as well.
	"$O/mtbpf" report x.fxt >again
	grep "the request with key $key took .* from thread $since to thread $thread" again
	grep 'reason: not known' again
}

@test "watch: by threads there are no such requests; with a filter, and by a member" {
	start requests
	mtbpf_run watch -pid "$target" "${request[@]}" -timeout 3s
	[ "$status" -eq 0 ]
	[ "$(hits)" -gt 50 ] && [ "$(largest_ms)" -ge 99 ]
	[[ $output == *"-start request_begin -stop request_end -key arg1,arg2 -duration-thresh"* ]]
	[[ $output != *lost:* ]]
	mtbpf_run watch -pid "$target" -start request_begin -stop request_end -timeout 1s
	[ "$(hits)" -eq 0 ]
	mtbpf_run watch -pid "$target" -start request_begin -stop request_end -key 'arg2,arg2->at.number' \
		-if 'arg2->path.len > 20' -timeout 1s
	[ "$(hits)" -eq 0 ]
	mtbpf_run watch -pid "$target" -start request_begin -stop request_end -key 'arg2,arg2->at.number' \
		-if 'arg1 == 1 && arg2->at.number & 1' -timeout 2s
	[ "$(hits)" -gt 3 ]
}

@test "an object that is used again: its new request is measured, and the lost one is told of" {
	start requests -cancel
	mtbpf_run attach -source sample -pid "$target" "${request[@]}" -duration-thresh 1s -max-overhead none -timeout 5s -o x.fxt
	[ "$status" -eq 3 ]
	# An object that began once and was freed comes back 100 times a second: nothing takes a second.
	[[ $output =~ lost:\ ([0-9]+)\ requests?\ of\ -key:\ -start\ was\ hit\ again\ before\ -stop ]]
	[ "${BASH_REMATCH[1]}" -ge 1 ]
	mtbpf_run watch -pid "$target" "${request[@]}" -timeout 2s
	[ "$status" -eq 0 ]
	[[ $output =~ lost:\ ([0-9]+)\ requests?\ of\ -key:\ -start\ was\ hit\ again\ before\ -stop ]]
}

@test "more requests at once than there is room for: evicted ones are counted" {
	start requests -leak
	mtbpf_run watch -pid "$target" -start request_begin -stop request_end -key 'arg2,arg1' -timeout 8s
	[ "$status" -eq 0 ]
	[[ $output =~ lost:\ ([0-9]+)\ requests\ of\ -key:\ evicted ]]
	[ "${BASH_REMATCH[1]}" -gt 100 ]
}

@test "delays by an argument" {
	start requests
	# Each worker ends a request each 24 ms or so, and a slow one after 100 ms: the key is the worker's number.
	mtbpf_run attach -source sample -pid "$target" -symbol request_end -key arg1 -delay-thresh 90ms -o x.fxt
	[ "$status" -eq 0 ]
	[[ $output =~ of\ request_end,\ thread\ ([0-9]+):\ [0-9.]+\ ms\ after\ the\ one\ before\ it\ with\ this\ key\ in\ thread\ ([0-9]+),\ key\ (0x)?[0-2] ]]
	[ "${BASH_REMATCH[1]}" = "${BASH_REMATCH[2]}" ]
}

@test "soft: single-stepped threads as well" {
	start requests
	mtbpf_run attach -source soft -pid "$target" "${request[@]}" -duration-thresh 50ms -o x.fxt
	[ "$status" -eq 0 ]
	[[ $output =~ ms\ after\ -start\ in\ thread\ $target,\ key\ 0x ]]
}

@test "by the descriptor, without any symbol: system calls in two threads" {
	cat >server.py <<-'END'
		import os, queue, socket, threading, time
		print("pid", os.getpid(), flush=True)
		pairs = [socket.socketpair() for i in range(4)]
		work = queue.Queue()
		def read(ours):
		    while True:
		        work.put((ours, ours.recv(100)))
		def answer():
		    while True:
		        ours, asked = work.get()
		        time.sleep(0.2 if asked == b"late" else 0.001)
		        ours.send(asked)
		for ours, theirs in pairs:
		    threading.Thread(target=read, args=(ours,), daemon=True).start()
		threading.Thread(target=answer, daemon=True).start()
		for n in range(1 << 30):
		    theirs = pairs[n % 4][1]
		    os.write(theirs.fileno(), b"late" if n % 20 == 5 else b"soon")
		    os.read(theirs.fileno(), 100)
	END
	start_file python3 server.py
	mtbpf_run attach -source sample -pid "$target" -start 'syscall:recvfrom(socket)' -stop 'syscall:sendto(socket)' \
		-key '(int)arg1' -duration-thresh 150ms -print 'str(arg2, arg3)' -o x.fxt
	[ "$status" -eq 0 ]
	[[ $output =~ thread\ ([0-9]+):\ 2[0-9.]+\ ms\ after\ -start\ in\ thread\ ([0-9]+),\ key\ 0x ]]
	[ "${BASH_REMATCH[1]}" != "${BASH_REMATCH[2]}" ]
	[[ $output == *'str(arg2, arg3) "late"'* ]]
	# -if on a system call in -stop, and on one that triggers.
	mtbpf_run watch -pid "$target" -start 'syscall:recvfrom(socket)' -stop 'syscall:sendto(socket)' -key '(int)arg1' \
		-if 'arg3 > 4' -timeout 500ms
	[ "$(hits)" -eq 0 ]
	mtbpf_run watch -pid "$target" -symbol 'syscall:sendto' -if 'arg3 == 4' -timeout 500ms
	[ "$(hits)" -gt 1 ]
	mtbpf_run watch -pid "$target" -symbol 'syscall:sendto' -durations -if 'retval == 4' -max-hits 5
	[[ $output == *"5 hits"* ]]
	mtbpf_run watch -pid "$target" -symbol 'syscall:sendto' -durations -if 'retval < 0' -timeout 500ms
	[[ $output != *" : "* ]]
}

@test "nginx: a slow request by its ngx_http_request_t, among others in the same thread" {
	command -v nginx >/dev/null || skip "no nginx"
	command -v curl >/dev/null || skip "no curl"
	head -c 600000 /dev/zero >big
	echo hello >small
	chmod 755 . ..
	cat >nginx.conf <<-END
		daemon off; master_process off; pid nginx.pid; error_log stderr;
		events { worker_connections 64; }
		http {
			access_log off;
			client_body_temp_path b; proxy_temp_path p; fastcgi_temp_path f; scgi_temp_path s; uwsgi_temp_path u;
			server { listen unix:$PWD/socket; root $PWD; location /big { limit_rate 300k; } }
		}
	END
	nginx -p "$PWD" -c "$PWD/nginx.conf" -e stderr >nginx.log 2>&1 3>&- &
	target=$!
	started+=("$target")
	eventually 5 test -S socket
	(
		while curl -sf --unix-socket socket http://x/small -o /dev/null; do sleep 0.02; done
	) 3>&- &
	started+=("$!")
	(
		while curl -sf --unix-socket socket http://x/big -o /dev/null; do :; done
	) 3>&- &
	started+=("$!")
	mtbpf_run attach -source sample -pid "$target" -start ngx_http_process_request -stop ngx_http_free_request \
		-key '(long)arg1' -duration-thresh 500ms -timeout 60s -o x.fxt
	[ "$status" -eq 0 ]
	[[ $output =~ of\ ngx_http_free_request,\ thread\ $target:\ ([0-9.]+)\ s\ after\ -start\ in\ thread\ $target,\ key\ 0x ]]
	[[ $output == *"what thread $target did meanwhile, for this request or for others"* ]]
	# By the thread it would be the time since any request began last, or nothing.
	mtbpf_run watch -pid "$target" -start ngx_http_process_request -stop ngx_http_free_request -key '(long)arg1' -timeout 5s
	[ "$(hits)" -gt 10 ]
}

@test "-key goroutine: requests to a Go server, whose goroutines change threads" {
	command -v go >/dev/null || skip "go is not installed"
	# Each 20th waits 200 ms for its answer, in whichever thread; all others 2 ms.
	cat >server.go <<-'END'
		package main

		import (
			"fmt"
			"net"
			"os"
			"time"
		)

		func handle(c net.Conn) {
			line := make([]byte, 64)
			for {
				n, err := c.Read(line)
				if err != nil || n == 0 {
					return
				}
				wait := 2 * time.Millisecond
				if line[0] == 's' {
					wait = 200 * time.Millisecond
				}
				time.Sleep(wait)
				c.Write(line[:n])
			}
		}

		func ask(address string, k int) {
			c, err := net.Dial("tcp", address)
			if err != nil {
				panic(err)
			}
			answer := make([]byte, 64)
			for i := 0; ; i++ {
				if i%20 == k {
					c.Write([]byte("slow"))
				} else {
					c.Write([]byte("fast"))
				}
				c.Read(answer)
			}
		}

		func main() {
			if len(os.Args) > 1 {
				for k := 1; k < 4; k++ {
					go ask(os.Args[1], k)
				}
				ask(os.Args[1], 0)
			}
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				panic(err)
			}
			fmt.Println("at", l.Addr())
			fmt.Println("pid", os.Getpid())
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go handle(c)
			}
		}
	END
	GOCACHE=${GOCACHE:-$PWD/cache} GOFLAGS=-mod=mod go build -o server server.go || skip "go does not build here"
	./server >server.log 2>&1 3>&- &
	started+=("$!")
	eventually 20 grep -q '^pid ' server.log
	target=$(sed -n 's/^pid //p' server.log)
	./server "$(sed -n 's/^at //p' server.log)" >/dev/null 2>&1 3>&- &
	started+=("$!")
	mtbpf_run watch -pid "$target" -requests -key goroutine -timeout 4s
	[ "$status" -eq 0 ]
	# One of twenty is slow, and none is shorter than it can be: by threads there are many.
	[[ $output =~ ([0-9]+)\ hits ]]
	local all=${BASH_REMATCH[1]}
	[ "$all" -gt 40 ]
	awk -v all="$all" -F '[ :]+' '
		/ - / { unit = $6 == "us" ? 1 : $6 == "ms" ? 1e3 : $6 == "s" ? 1e6 : 1e-3 }
		/ - / { n = $7; if ($2 * ($3 == "us" ? 1 : $3 == "ms" ? 1e3 : $3 == "s" ? 1e6 : 1e-3) >= 131000) slow += n; if ($5 * unit < 2000) short += n }
		END { print slow + 0, "slow,", short + 0, "short of", all; exit !(slow >= all / 40 && slow <= all / 8 && !short) }' <<<"$output"
	mtbpf_run attach -source sample -pid "$target" -requests -key goroutine -duration-thresh 150ms -timeout 30s -o x.fxt
	[ "$status" -eq 0 ]
	[[ $output =~ hit\ [0-9]+\ of\ syscall:write,\ thread\ [0-9]+:\ [0-9.]+\ m?s\ after\ -start\ in\ thread\ [0-9]+,\ key\ 0xc0 ]]
}

@test "a descriptor as the key of system calls, and the stepper" {
	cat >server.py <<-'END'
		import os, socket, threading, time
		print("pid", os.getpid(), flush=True)
		pairs = [socket.socketpair() for i in range(2)]
		def ask():
		    while True:
		        for n, (ours, theirs) in enumerate(pairs):
		            ours.send(b"x" * (n + 1))
		            ours.recv(100)
		threading.Thread(target=ask, daemon=True).start()
		while True:
		    for ours, theirs in pairs:
		        asked = theirs.recv(100)
		        if len(asked) == 2: time.sleep(0.3)
		        theirs.send(asked)
	END
	start_file python3 server.py
	local source
	for source in sample soft; do
		mtbpf_run attach -source $source -pid "$target" -start syscall:recvfrom -stop syscall:sendto -key arg1 \
			-duration-thresh 250ms -timeout 90s -o $source.fxt
		[ "$status" -eq 0 ]
		[[ $output =~ hit\ [0-9]+\ of\ syscall:sendto,\ thread\ [0-9]+:\ [0-9.]+\ m?s\ after\ -start\ in\ thread\ [0-9]+,\ key\ (0x[0-9a-f]+|[0-9]+), ]]
		# It is the descriptor of a socket, which is the call's first argument.
		[[ $(readlink "/proc/$target/fd/$((BASH_REMATCH[1]))") == socket:* ]]
		[[ $output == *"arg1 $((BASH_REMATCH[1]))"* ]]
	done
}

@test "what has no key is refused" {
	start requests
	mtbpf_run attach -pid "$target" -symbol answer -key arg1 -duration-thresh 1ms
	[ "$status" -eq 2 ]
	complains "-key is for -delay-thresh, or for the time from -start to -stop" "-start A -stop B -key arg1"
	mtbpf_run attach -pid "$target" "${request[@]}" -stall-thresh 1s
	[ "$status" -eq 2 ]
	complains "which measure threads"
	mtbpf_run attach -pid "$target" "${request[@]}" -cpu-thresh 1ms
	[ "$status" -eq 2 ]
	mtbpf_run attach -pid "$target" -start request_begin -stop request_end -key arg3
	[ "$status" -eq 2 ]
	complains "-key: arg3 of request_end: the function has fewer arguments"
	mtbpf_run attach -pid "$target" -start request_begin -stop request_end -key retval
	[ "$status" -eq 2 ]
	mtbpf_run attach -pid "$target" -start request_begin -stop request_end -key 'arg1->at,arg2->at'
	[ "$status" -eq 2 ]
	complains "it is neither an integer nor a pointer"
	mtbpf_run watch -pid "$target" -symbol answer -durations -key arg1
	[ "$status" -eq 2 ]
	complains "which measure threads"
	local command
	for command in "attach -delay-thresh 1ms" watch; do
		# shellcheck disable=SC2086
		mtbpf_run $command -pid "$target" -symbol request_end -key arg1,arg2
		[ "$status" -eq 2 ]
		complains "-key: the second value is read at -stop, but no -stop is given" "name one value"
	done
}
