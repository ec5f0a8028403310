# SPDX-License-Identifier: MIT
# bats file_tags=slow
# Triggers on real programs that have no symbol for a request: PostgreSQL, nginx and redis by system calls, a crash by
# its signal, functions of Node and Java by their perf maps.

load ../helpers

setup() {
	[ "$(id -u)" -eq 0 ] || skip "needs root"
	# Also for other users: PostgreSQL does not run as root.
	dir=$(mktemp -d /var/tmp/mtbpf-services.XXXXXX)
	chmod 755 "$dir"
	cd "$dir"
	started=()
}

teardown() {
	end_started
	cd /
	rm -rf "$dir"
}

# background OUT COMMAND: $last is its pid.
background() {
	local out=$1
	shift
	begin_log "$out"
	"$@" </dev/null >"$out" 2>&1 3>&- &
	last=$!
	started+=("$last")
}

# record_slow COMMAND: records $target with the options in $trigger, runs the command once mtbpf waits, and shows the
# report. The command's end is not waited for: it may hang with its server.
record_slow() {
	rm -rf x.mtbpf
	background log "$O/mtbpf" record -source sample -pid "$target" "${trigger[@]}" -timeout 60s -o x.mtbpf
	recording=$last
	eventually 20 grep -q '^waiting for' log
	background command.log "$@"
	eventually 70 gone "$recording"
	cat log command.log
	grep -q '^triggered' log
	mtbpf_run report x.mtbpf
	[ "$status" -eq 0 ]
}

@test "PostgreSQL: the slow query, from the read of its text to the write of its answer" {
	bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -1)
	[ -n "$bin" ] || skip "PostgreSQL is not installed"
	install -d -o postgres pg
	chown postgres .
	runuser -u postgres -- "$bin/initdb" -D "$dir/pg" -A trust >/dev/null
	background pg.log runuser -u postgres -- "$bin/postgres" -D "$dir/pg" -k "$dir" -h '' -p 54331
	eventually 30 grep -q 'ready to accept' pg.log
	started+=("$(head -1 pg/postmaster.pid)")
	mkfifo queries
	background answers "$bin/psql" -h "$dir" -p 54331 -U postgres -At -f queries
	exec 4>queries
	echo 'select pg_backend_pid();' >&4
	eventually 20 grep -q '^[0-9]' answers
	target=$(head -1 answers)
	trigger=(-requests -duration-thresh 700ms)
	record_slow sh -c 'for i in 1 2 3 4 5; do echo "select $i;"; done >queries; echo "select pg_sleep(0.9);" >queries'
	exec 4>&-
	[[ $output =~ hit\ [0-9]+\ of\ syscall:sendto,\ thread\ $target:\ (9[0-9]+\ ms|1\.[0-9]+\ s)\ after\ -start ]]
	[[ $output == *"reason: blocked in "*"pg_sleep"* ]]
}

@test "nginx: the slow request, from its read to its answer" {
	nginx=$(PATH=$PATH:/usr/sbin command -v nginx) || skip "nginx is not installed"
	# PCRE tries each way to divide the letters.
	cat >nginx.conf <<-END
		daemon off; pid $dir/nginx.pid; error_log $dir/error.log;
		events {}
		http {
			access_log off;
			client_body_temp_path $dir; proxy_temp_path $dir; fastcgi_temp_path $dir; uwsgi_temp_path $dir;
			scgi_temp_path $dir;
			server {
				listen 127.0.0.1:18099;
				location ~ ^/(a+)+\$ { return 200 slow; }
				location / { return 200 quick; }
			}
		}
	END
	chmod 777 .
	background nginx.log "$nginx" -c "$dir/nginx.conf" -e "$dir/error.log"
	master=$last
	eventually 20 curl -s -o /dev/null http://127.0.0.1:18099/
	target=$(pgrep -P "$master" | head -1)
	trigger=(-requests -duration-thresh 20ms)
	record_slow sh -c 'for i in 1 2 3 4 5; do curl -s http://127.0.0.1:18099/; done
		curl -s "http://127.0.0.1:18099/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"'
	[[ $output =~ hit\ [0-9]+\ of\ syscall:(writev|write|sendto),\ thread\ $target:\ .*\ after\ -start ]]
	[[ $output =~ (ngx_http|pcre|\[nginx) ]]
}

@test "redis: the slow command by system calls; and what led to its crash" {
	command -v redis-server >/dev/null || skip "redis is not installed"
	background redis.log redis-server --port 63801 --bind 127.0.0.1 --save '' --dir "$dir" \
		--enable-debug-command yes
	target=$last
	eventually 20 redis-cli -p 63801 ping
	trigger=(-requests -duration-thresh 700ms)
	record_slow sh -c 'for i in 1 2 3 4 5; do redis-cli -p 63801 get x; done; redis-cli -p 63801 debug sleep 0.9'
	[[ $output =~ hit\ [0-9]+\ of\ syscall:write,\ thread\ $target:\ (9[0-9]+\ ms|1\.[0-9]+\ s)\ after\ -start ]]
	[[ $output == *"reason: blocked in "*debugCommand* || $output == *"reason: blocked in "*nanosleep* ]]
	trigger=(-symbol signal:SEGV)
	record_slow redis-cli -p 63801 debug segfault
	[[ $output == *"hit 1 of signal:SEGV, thread $target, in "* ]]
	[[ $output == *debugCommand* || $output == *redis-server* ]]
}

@test "a function that Node has compiled: the slow iteration; its new place when it is compiled again is said" {
	take_breakpoints
	command -v node >/dev/null || skip "node is not installed"
	cat >s.js <<-'END'
		console.log("pid", process.pid);
		function handleRequest(n) { let x = 0; for (let i = 0; i < n; i++) x += i % 7; return x; }
		let k = 0, s = 0;
		function loop() {
			for (let j = 0; j < 5; j++) s += handleRequest(1000);
			if (++k % 100 == 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 900);
			setTimeout(loop, 5);
		}
		for (let i = 0; i < 20000; i++) s += handleRequest(100);
		loop();
	END
	# What is inlined is not called.
	background node.log node --max-inlined-bytecode-size=0 --perf-basic-prof s.js
	target=$last
	started+=("$target")
	eventually 20 grep -qs 'JS:\*handleRequest' "/tmp/perf-$target.map"
	mtbpf_run list -pid "$target" 'jit:handleReq*'
	[ "$status" -ne 0 ]
	mtbpf_run list -pid "$target" jit:handleRequest
	[ "$status" -eq 0 ]
	[[ $output == *" jit:JS:handleRequest $dir/s.js:2:23"* ]]
	trigger=(-symbol jit:handleRequest -delay-thresh 700ms)
	record_slow true
	[[ $output =~ hit\ [0-9]+\ of\ JS:.handleRequest\ .*:\ (9[0-9]+\ ms|1\.[0-9]+\ s)\ after\ the\ one\ before ]]
	mtbpf_run record -source sample -pid "$target" -symbol jit:noSuchFunction -o y.mtbpf
	[ "$status" -eq 2 ]
	complains "no function of process $target matches 'jit:noSuchFunction'" "mtbpf list -pid $target"
	# A JIT that has put the function elsewhere, as far as its map says.
	address=$(sed -n 's/^\([0-9a-f]*\) [0-9a-f]* JS:\*handleRequest.*/\1/p' "/tmp/perf-$target.map" | tail -1)
	background log "$O/mtbpf" record -source sample -pid "$target" -symbol jit:handleRequest -delay-thresh 1h -o y.mtbpf
	recording=$last
	eventually 20 grep -q '^waiting for' log
	# As another file: Node goes on to write where its own last line ended, and would write over what is added there.
	{
		cat "/tmp/perf-$target.map"
		printf '%x 10 JS:*handleRequest %s/s.js:2:23\n' $((0x$address + 0x400)) "$dir"
	} >map
	mv map "/tmp/perf-$target.map"
	eventually 60 grep -q 'has compiled .* again, at' log
	kill -INT "$recording"
	rm -f "/tmp/perf-$target.map"
}

# Starts a service of Node; each 100th request waits. A request of "go" makes V8 drop the code while it runs.
start_requests() {
	cat >s.js <<-'END'
		const fs = require("fs");
		console.log("pid", process.pid);
		const cell = new Int32Array(new SharedArrayBuffer(4));
		function waitFor(ms) { if (ms) Atomics.wait(cell, 0, 0, ms); }
		function handleRequest(n, ms) { let x = 0; for (let i = 0; i < n; i++) x += i % 7; waitFor(ms); return x; }
		function finish(x) { return x + 1; }
		let k = 0, s = 0;
		const late = Number(process.argv[2]);
		function loop() {
			for (let j = 0; j < 5; j++) s = finish(s + handleRequest(1000, 0));
			s = finish(s + handleRequest(1000, ++k % 100 ? 1 : late));
			if (fs.existsSync("go")) {
				fs.unlinkSync("go");
				for (let j = 0; j < 3; j++) handleRequest({ valueOf() { return 1000; } }, 1500);
				waitFor(1500);
				fs.writeFileSync("done", "");
			}
			setTimeout(loop, 5);
		}
		for (let i = 0; i < 20000; i++) s = finish(s + handleRequest(100, 0));
		loop();
	END
	rm -f go done
	background node.log node --max-inlined-bytecode-size=0 --perf-basic-prof "$@" s.js "$late"
	target=$last
	started+=("$target")
	eventually 20 grep -qs 'JS:\*handleRequest' "/tmp/perf-$target.map"
	eventually 20 grep -qs 'JS:\*finish' "/tmp/perf-$target.map"
}

# How many calls watch has measured.
measured() {
	awk -F ' : ' '/ - / { n += $2 } END { print n + 0 }' <<<"$output"
}

@test "calls of a function that Node has compiled: their duration, a stall, a region, and what is refused" {
	take_breakpoints
	command -v node >/dev/null || skip "node is not installed"
	late=900 start_requests --no-sparkplug
	mtbpf_run watch -pid "$target" -symbol jit:handleRequest -durations -timeout 4s
	[ "$status" -eq 0 ]
	hits=$(sed -n 's/ hits .*//p' <<<"$output")
	[ "$hits" -gt 100 ]
	# One call may be open when it ends, and one when it begins.
	[ "$hits" -le $(($(measured) + 1)) ] && [ "$(measured)" -le "$hits" ]
	[[ $output == *' max 9'[0-9][0-9]' ms'* || $output == *' max 1.'[0-9]*' s'* ]]
	trigger=(-symbol jit:handleRequest -duration-thresh 700ms)
	record_slow true
	[[ $output =~ call\ [0-9]+\ of\ JS:.handleRequest\ .*:\ took\ (9[0-9]+\ ms|1\.[0-9]+\ s) ]]
	[[ $output == *"reason: blocked in "*AtomicsWait* ]]
	trigger=(-symbol jit:handleRequest -stall-thresh 500ms)
	record_slow true
	# A clock looks at it, when its CPU has time for that: not before the threshold.
	[[ $output =~ thread\ $target\ has\ been\ in\ call\ [0-9]+\ of\ JS:.handleRequest\ .*\ for\ [5-9][0-9][0-9]\ ms ]]
	trigger=(-start jit:handleRequest -stop jit:finish -duration-thresh 700ms)
	record_slow true
	[[ $output =~ hit\ [0-9]+\ of\ JS:.finish\ .*:\ (9[0-9]+\ ms|1\.[0-9]+\ s)\ after\ -start ]]
	trigger=(-start syscall:futex -stop jit:finish)
	record_slow true
	[[ $output =~ hit\ [0-9]+\ of\ JS:.finish\ .*\ after\ -start ]]
	mtbpf_run watch -pid "$target" -start jit:handleRequest -stop jit:handleRequest -timeout 1s
	[ "$status" -eq 2 ]
	complains same-place
	mtbpf_run watch -pid "$target" -symbol jit:handleRequest,jit:finish -durations -timeout 1s
	[ "$status" -eq 2 ]
	complains jit-calls-breakpoints "*" 2 '*' 4 hint jit-entries-only
	mtbpf_run watch -pid "$target" -children -symbol jit:handleRequest -timeout 1s
	[ "$status" -eq 2 ]
	complains jit-in-one-process
	# The code is dropped in a call, which then lasts for long: nothing has seen its end.
	background log "$O/mtbpf" record -source sample -pid "$target" -symbol jit:handleRequest \
		-duration-thresh 1300ms -stall-thresh 1300ms -timeout 60s -o z.mtbpf
	recording=$last
	eventually 20 grep -q '^waiting for' log
	touch go
	eventually 30 test -e done
	kill -INT "$recording"
	eventually 20 gone "$recording"
	cat log
	! grep -q '^triggered' log
	rm -f "/tmp/perf-$target.map"
}

@test "calls of code that V8 has not optimised are refused" {
	take_breakpoints
	command -v node >/dev/null || skip "node is not installed"
	late=1 start_requests --always-sparkplug
	grep -q 'JS:^handleRequest' "/tmp/perf-$target.map" || skip "this node compiles no baseline code"
	mtbpf_run watch -pid "$target" -symbol jit:handleRequest -durations -timeout 1s
	[ "$status" -eq 2 ]
	complains jit-not-optimised "*" hint jit-delays
	rm -f "/tmp/perf-$target.map"
}

@test "a function of Python, by the map of -X perf: the slow iteration; without a map, how to get one" {
	take_breakpoints
	background old.log python3 -c 'import time; print("ready", flush=True); time.sleep(1000)'
	eventually 20 grep -q '^ready' old.log
	mtbpf_run list -pid "$last" 'jit:*'
	[[ $output == *"process $last does not write /tmp/perf-$last.map"* && $output == *"hint: "*Python*perf* ]] ||
		[[ $output == *"hint: start it as 'python3."*" -X perf'"* ]]
	python_perf || skip "no Python 3.12 or later is installed"
	cat >s.py <<-'END'
		import time
		class Shop:
		    def handle(self, i):
		        if i % 100 == 99: time.sleep(0.9)
		def handle_other(i): return i + 1
		print("ready", flush=True)
		shop, i = Shop(), 0
		while True:
		    shop.handle(i)
		    i = handle_other(i)
		    time.sleep(0.005)
	END
	background without.log "$python" s.py
	eventually 20 grep -q '^ready' without.log
	mtbpf_run record -source sample -pid "$last" -symbol jit:Shop.handle -o y.mtbpf
	[ "$status" -eq 2 ]
	complains "process $last does not write /tmp/perf-$last.map" "-X perf', or with PYTHONPERFSUPPORT=1"
	background with.log "$python" -X perf s.py
	target=$last
	eventually 20 grep -q '^ready' with.log
	mtbpf_run list -pid "$target" 'jit:py::*handle*'
	[ "$status" -eq 0 ]
	[[ $output == *" jit:py::Shop.handle:"*"s.py"* && $output == *" jit:py::handle_other:"*"s.py"* ]]
	# By a word, a glob, and the whole name with its path.
	local name
	name=$(sed -n 's/.* jit:\(py::Shop.handle:.*\)/\1/p' <<<"$output")
	for symbol in Shop.handle 'py::*.handle:*' "$name"; do
		mtbpf_run watch -pid "$target" -symbol "jit:$symbol" -max-hits 5
		[ "$status" -eq 0 ]
		[[ $output =~ [5-9]\ hits ]]
	done
	mtbpf_run watch -pid "$target" -symbol 'jit:*handle*' -timeout 1s
	[ "$status" -eq 2 ]
	complains "matches several functions" "give more of the name"
	trigger=(-symbol jit:Shop.handle -delay-thresh 700ms)
	record_slow true
	[[ $output =~ hit\ [0-9]+\ of\ py::Shop.handle:.*s\.py,\ .*:\ (9[0-9]+\ ms|1\.[0-9]+\ s)\ after\ the\ one\ before ]]
	rm -f "/tmp/perf-$target.map"
}

@test "a function that Java has compiled: the slow iteration" {
	take_breakpoints
	command -v javac >/dev/null && command -v jcmd >/dev/null || skip "no JDK is installed"
	cat >S.java <<-'END'
		public class S {
			long total;
			long handleRequest(int n) { long x = 0; for (int i = 0; i < n; i++) x += i % 7; total += x; return x; }
			public static void main(String[] a) throws Exception {
				S s = new S();
				for (int i = 0; i < 200000; i++) s.handleRequest(100);
				System.out.println("ready");
				for (int k = 1;; k++) {
					for (int j = 0; j < 5; j++) s.handleRequest(1000);
					Thread.sleep(k % 100 == 0 ? 900 : 5);
				}
			}
		}
	END
	javac S.java
	background java.log java -XX:CompileCommand=dontinline,S::handleRequest -cp . S
	target=$last
	eventually 30 grep -q '^ready' java.log
	# The compiler is a thread of its own, and later than the loop.
	is_compiled() {
		jcmd "$target" Compiler.perfmap >/dev/null && grep -q 'S.handleRequest' "/tmp/perf-$target.map"
	}
	eventually 30 is_compiled
	mtbpf_run watch -pid "$target" -symbol jit:handleRequest -durations -timeout 3s
	[ "$status" -eq 0 ]
	hits=$(sed -n 's/ hits .*//p' <<<"$output")
	[ "$hits" -gt 20 ] && [ "$(measured)" -ge $((hits - 1)) ] && [ "$(measured)" -le "$hits" ]
	trigger=(-symbol jit:handleRequest -delay-thresh 700ms)
	record_slow true
	[[ $output =~ hit\ [0-9]+\ of\ .*S.handleRequest.*:\ (9[0-9]+\ ms|1\.[0-9]+\ s)\ after\ the\ one\ before ]]
	[[ $output == *"reason: blocked in "*"JavaThread::sleep"* ]]
	# As if it had been compiled twice more: other code has its name.
	{
		grep S.handleRequest "/tmp/perf-$target.map"
		sed -n 's/^\(0x[0-9a-f]* 0x[0-9a-f]*\) [a-z]* java.lang.String.*/\1 long S.handleRequest(int)/p' "/tmp/perf-$target.map" |
			tail -2
	} >map
	cat map
	mv map "/tmp/perf-$target.map"
	mtbpf_run watch -pid "$target" -symbol jit:handleRequest -durations -timeout 1s
	[ "$status" -eq 2 ]
	complains jit-calls-breakpoints hint jit-copies-fewer
	rm -f "/tmp/perf-$target.map"
}
