# SPDX-License-Identifier: MIT
# -print: what a hit reads is on the hit, in the trace, the report and the recording; on our programs, on PostgreSQL and
# on redis.

load ../helpers

setup() {
	[ -x "${O:?}/programs/requests" ] || skip "the sample programs are not built"
	[ "$(id -u)" -eq 0 ] || skip "needs root"
	cd "$BATS_TEST_TMPDIR"
	started=()
}

teardown() {
	end_started
	[ -z "${data:-}" ] || rm -rf "$data"
}

@test "a call's strings and numbers, read at its entry, through the recording to the report" {
	start requests
	mtbpf_run attach -source sample -pid "$target" -symbol answer -duration-thresh 50ms \
		-print 'str(arg1->path.data, arg1->path.len), str(arg1->method), arg3, retval' -o x.fxt
	[ "$status" -eq 0 ]
	# The size is 100 more than the number, and so is what it returns; odd numbers get.
	[[ $output =~ of\ answer,\ thread\ [0-9]+:\ took\ 1[0-9.]+\ ms,\ str\(arg1-\>path.data,\ arg1-\>path.len\)\ \"/slow/([0-9]+)\",\ str\(arg1-\>method\)\ \"GET\",\ arg3\ ([0-9]+),\ retval\ ([0-9]+), ]]
	[ "${BASH_REMATCH[2]}" -eq $((BASH_REMATCH[1] + 100)) ]
	[ "${BASH_REMATCH[3]}" -eq "${BASH_REMATCH[2]}" ]
	local line
	line=$(grep '^call ' <<<"$output")
	"$O/mtbpf" report x.mtbpf | grep -qF "$line"
	"$O/mtbpf" report x.mtbpf -json >x.json
	python3 - <<-'END'
		import json
		hit = json.load(open('x.json'))['hit']['print']
		assert list(hit) == ['str(arg1->path.data, arg1->path.len)', 'str(arg1->method)', 'arg3', 'retval'], hit
		path, method, size, back = hit.values()
		assert path.startswith('/slow/') and method == 'GET' and size == back == 100 + int(path[6:]), hit
		meta = json.load(open('x.mtbpf/meta.json'))
		assert meta['prints'] == list(hit), meta['prints']
	END
	"$O/mtbpf" decode x.mtbpf -o again.fxt
	cmp x.fxt again.fxt
	zcat -f x.fxt | strings | grep -q '^"/slow/'
	"$O/mtbpf" report x.fxt | grep -qF "${line#*, }"
	"$O/mtbpf" report x.fxt -json >fxt.json
	python3 -c 'import json; a, b = (json.load(open(f))["hit"]["print"] for f in ("x.json", "fxt.json")); assert a == b, (a, b)'
}

@test "retval is not known at the entry of a call that ends the wait" {
	start requests
	# The first call triggers and is the last that -max-hits allows: the entry of the next one ends it.
	mtbpf_run attach -source sample -pid "$target" -symbol answer -duration-thresh 1us -max-hits 1 -multi-snapshot 2 \
		-print 'arg3, retval' -o x.fxt
	[[ $output =~ of\ answer,\ thread\ [0-9]+:\ the\ last\ of\ -max-hits,\ arg3\ [0-9]+,\ retval\ unknown, ]]
}

@test "hostile strings are harmless wherever they are shown" {
	start requests
	mkdir kept
	timeout -s INT 8 "$O/mtbpf" record -source sample -pid "$target" -symbol answer -duration-thresh 50ms -dir kept \
		-print 'str(arg1->hostile), str((char *)arg1->before), arg1->at.number' -min-interval 1h >log 2>&1 3>&- || true
	cat log
	grep -F 'str(arg1->hostile) "a\x1b[31mb\"<b>&\xff\xe2\x80\xae\né", str((char *)arg1->before) unknown, arg1->at.number ' log
	! grep -q $'\x1b\\[31m' log
	local recording
	recording=$(echo kept/*.mtbpf)
	"$O/mtbpf" report "$recording" >report
	"$O/mtbpf" report kept >many
	"$O/mtbpf" report kept -json >many.json
	"$O/mtbpf" report kept -html page.html
	python3 - <<-'END'
		for name in ['report', 'many', 'many.json', 'log', 'page.html']:
		    text = open(name, encoding='utf-8').read()
		    assert '\x1b[31m' not in text and '\u202e' not in text, name
		    assert name != 'page.html' or '<b>&' not in text, name
		for name in ['report', 'many.json', 'page.html']:
		    assert 'x1b[31mb' in open(name).read(), name
	END
}

@test "without DWARF: types and members by the BTF of gcc -gbtf" {
	# The compiler's BTF is that of one source file.
	"${CC:-gcc}" -std=gnu11 -D_GNU_SOURCE -O2 -gbtf -fno-omit-frame-pointer -o by-btf \
		"$BATS_TEST_DIRNAME/../programs/requests.c" -pthread || skip "the compiler does not know -gbtf"
	readelf -SW by-btf | grep -q '[.]BTF' || skip "the compiler makes no BTF"
	! readelf -SW by-btf | grep -q '[.]debug_info'
	start_file ./by-btf
	mtbpf_run attach -source sample -pid "$target" -symbol answer -duration-thresh 50ms \
		-print 'str(arg1->path.data, arg1->path.len), str(arg1->method), arg3, retval' -o x.fxt
	[ "$status" -eq 0 ]
	[[ $output =~ str\(arg1-\>path.data,\ arg1-\>path.len\)\ \"/slow/([0-9]+)\",\ str\(arg1-\>method\)\ \"GET\",\ arg3\ ([0-9]+),\ retval\ ([0-9]+), ]]
	[ "${BASH_REMATCH[2]}" -eq $((BASH_REMATCH[1] + 100)) ] && [ "${BASH_REMATCH[3]}" -eq "${BASH_REMATCH[2]}" ]
	mtbpf_run watch -pid "$target" -start request_begin -stop request_end -key 'arg2,arg2->at.number' \
		-if 'arg1 == 1 && arg2->at.number & 1' -timeout 2s
	[ "$status" -eq 0 ]
	[[ $output =~ ([0-9]+)\ hits ]] && [ "${BASH_REMATCH[1]}" -gt 3 ]
	mtbpf_run attach -pid "$target" -symbol answer -print 'arg1->nothing'
	[ "$status" -eq 2 ]
	complains "'nothing' is not a member of the type"
	mtbpf_run attach -pid "$target" -symbol answer -print arg2
	[ "$status" -eq 2 ]
	complains "it is neither an integer nor a pointer"
	# A program whose BTF is damaged has none.
	end_started
	objcopy --dump-section .BTF=btf by-btf
	head -c 20 btf >cut
	objcopy --update-section .BTF=cut by-btf cut-btf
	start_file ./cut-btf
	mtbpf_run attach -pid "$target" -symbol answer -print 'arg1->at.number'
	[ "$status" -eq 2 ]
	complains "or BTF that has this function"
}

@test "arguments that the function overwrites at once: what it was called with" {
	# Moves between the registers of arguments, and then a call or a jump, which would be the cheap place.
	cat >moves.c <<-'END'
		#include <stdio.h>
		#include <unistd.h>
		struct request { int id; };
		__asm__(".text\n.globl handle\n.type handle, @function\nhandle: sub $8, %rsp\n mov %esi, %edx\n mov %rdi, %rsi\n"
			" mov $0, %edi\n call done\n add $8, %rsp\n ret\n.size handle, .-handle\n"
			".type submit, @function\n.globl submit\nsubmit: mov %esi, %edx\n mov %rdi, %rsi\n mov $0, %edi\n jmp done\n"
			".size submit, .-submit\n");
		void handle(struct request *request, int n), submit(struct request *request, int n);
		void done(const char *text, struct request *request, int n) { (void)text, (void)request, (void)n; }
		int main(void)
		{
			struct request request = {4711};

			printf("pid %d\n", getpid()), fflush(stdout);
			for (;;) {
				handle(&request, 2);
				submit(&request, 3);
				usleep(10000);
			}
		}
	END
	"${CC:-gcc}" -O1 -o moves moves.c
	start_file ./moves
	for symbol in handle submit; do
		[ $symbol = handle ] && n=2 || n=3
		mtbpf_run attach -source sample -pid "$target" -symbol $symbol -if "(int)arg2 == $n" \
			-print '(int)arg1->0, (int)arg2' -timeout 10s -o x.fxt
		[ "$status" -eq 0 ]
		[[ $output == *"(int)arg1->0 4711, (int)arg2 $n,"* ]]
	done
}

@test "C++: this, a reference, members of a base class, an argument behind a double" {
	start methods
	mtbpf_run attach -source sample -pid "$target" -symbol shop::Order::handle -duration-thresh 20ms \
		-if 'arg1->kind == 3 && arg4 == 4' -o x.fxt -print \
		'str(arg1->customer._M_dataplus._M_p, arg1->customer._M_string_length), str(arg2._M_dataplus._M_p), arg1->id, arg4'
	[ "$status" -eq 0 ]
	[[ $output =~ \"customer\ with\ a\ long\ name,\ number\ ([0-9]*4)\",\ str\(arg2._M_dataplus._M_p\)\ \"clerk\",\ arg1-\>id\ ([0-9]+),\ arg4\ 4 ]]
	[ "${BASH_REMATCH[1]}" = "${BASH_REMATCH[2]}" ]
	mtbpf_run attach -source sample -pid "$target" -symbol shop::Order::handle -print 'str(arg1)' -o y.fxt
	[ "$status" -eq 2 ]
	complains "its type is not char *"
	mtbpf_run attach -source sample -pid "$target" -symbol shop::Order::handle -print arg3 -o y.fxt
	[ "$status" -eq 2 ]
	complains "it is neither an integer nor a pointer"
}

@test "PostgreSQL: the query of query__start" {
	local bin
	bin=$(printf '%s\n' /usr/lib/postgresql/*/bin | tail -n 1)
	[ -x "$bin/initdb" ] && command -v psql >/dev/null || skip "no PostgreSQL"
	readelf -n "$bin/postgres" | grep -q query__start || skip "it has no USDT probes"
	# It refuses to run as root, and its user may not come into the test's folder.
	data=$(mktemp -d)
	chown nobody "$data"
	as_nobody=(setpriv --reuid nobody --regid nogroup --clear-groups)
	(cd "$data" && "${as_nobody[@]}" "$bin/initdb" -D "$data/db" -A trust -U tests) >initdb.log 2>&1
	(cd "$data" && exec "${as_nobody[@]}" "$bin/postgres" -D "$data/db" -k "$data" -c listen_addresses= -c jit=off) \
		>postgres.log 2>&1 3>&- &
	started+=("$!")
	eventually 30 "$bin/pg_isready" -q -h "$data"
	mkfifo into
	psql -XqAt -h "$data" -U tests postgres <into >out 2>&1 3>&- &
	started+=("$!")
	exec 7>into
	echo 'select pg_backend_pid();' >&7
	eventually 10 grep -q . out
	target=$(head -n 1 out)
	(
		for i in 1 2 3 4 5 6 7 8 9 10; do
			sleep 1
			echo "select pg_sleep(0.3), 'number 42';"
			echo 'select 1;'
		done >&7
	) 3>&- &
	started+=("$!")
	mtbpf_run attach -source sample -pid "$target" -start usdt:postgresql:query__start -stop usdt:postgresql:query__done \
		-duration-thresh 200ms -print 'str(arg1)' -timeout 60s -o x.fxt
	exec 7>&-
	[ "$status" -eq 0 ]
	[[ $output == *"str(arg1) \"select pg_sleep(0.3), 'number 42';\""* ]]
	# A query is told of by its own string, where no time is measured, too.
	! grep -q 'str(arg1) unknown' <<<"$output"
}

@test "redis: the slow command and its argument, by the numbers of its members" {
	command -v redis-server >/dev/null && command -v redis-cli >/dev/null || skip "no redis"
	[[ $(redis-server --version) == *"v=7.0."* ]] || skip "another redis has its members elsewhere"
	redis-server --port 0 --unixsocket "$PWD/socket" --save '' >redis.log 2>&1 3>&- &
	target=$!
	started+=("$target")
	eventually 10 test -S socket
	(
		for i in 1 2 3 4 5 6 7 8 9 10; do
			sleep 1
			redis-cli -s socket set key$i $i
			redis-cli -s socket eval 'local x = 0 for i = 1, 8000000 do x = x + 1 end return x' 0
		done >/dev/null 2>&1
	) 3>&- &
	started+=("$!")
	# Of client->argv[0]->ptr; its executable tells no types.
	mtbpf_run attach -source sample -pid "$target" -symbol call -duration-thresh 40ms \
		-print 'str(arg1->0x50->0->8), str(arg1->0x50->8->8), (int)arg2' -timeout 60s -o x.fxt
	[ "$status" -eq 0 ]
	[[ $output == *'str(arg1->0x50->0->8) "eval", str(arg1->0x50->8->8) "local x = 0 for i = 1, 8000000'* ]]
	mtbpf_run attach -pid "$target" -symbol call -print 'str(arg1->argv)'
	[ "$status" -eq 2 ]
	complains "need the program's debug info"
}

@test "a thread that still is in its call: what its entry has read" {
	start requests
	mtbpf_run attach -source sample -pid "$target" -symbol answer -stall-thresh 60ms \
		-print 'str(arg1->path.data, arg1->path.len)' -o x.fxt
	[ "$status" -eq 0 ]
	[[ $output =~ has\ been\ in\ call\ [0-9]+\ of\ answer\ for\ .*\"/slow/[0-9]+\" ]]
}

@test "what is refused: the program's memory with -no-stack-copy, and what is not there" {
	start requests
	mtbpf_run attach -pid "$target" -symbol answer -no-stack-copy -print 'str(arg1->path.data)'
	[ "$status" -eq 2 ]
	complains "-no-stack-copy stores no memory of the program, and -print reads some" "leave out one"
	mtbpf_run attach -source sample -pid "$target" -symbol answer -no-stack-copy -print arg3 -duration-thresh 50ms -o x.fxt
	[ "$status" -eq 0 ]
	[[ $output =~ ,\ arg3\ [0-9]+, ]]
	local print
	for print in '' 'str(arg1' arg1-\>nothing 'arg1->path' 'arg1,arg1,arg1,arg1,arg1' arg4 'arg1->method'; do
		mtbpf_run attach -pid "$target" -symbol answer -print "$print"
		[ "$status" -eq 2 ]
		complains "-print: "
	done
	mtbpf_run attach -pid "$target" -symbol answer -delay-thresh 1ms -print retval
	[ "$status" -eq 2 ]
	complains "retval is known only when a call returns"
}
