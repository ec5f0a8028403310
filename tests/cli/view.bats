#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# mtbpf view: who gets the trace, who does not, and Perfetto's UI with it in a browser.

load ../messages

setup_file() {
	cd "$BATS_TEST_DIRNAME/../.."
	export O=$(realpath -m "${O:-build}")
	"$O/mtbpf" decode -q tests/golden/nest -o "$BATS_FILE_TMPDIR/t.fxt" 2>/dev/null
	"$O/mtbpf" decode -q tests/golden/nest -o "$BATS_FILE_TMPDIR/t.fxt.gz" 2>/dev/null
	"$O/mtbpf" decode -q tests/golden/nest -o "$BATS_FILE_TMPDIR/t.fxt.zst" 2>/dev/null
}

setup() {
	cd "$BATS_TEST_DIRNAME/../.."
	mtbpf=$O/mtbpf
	trace=$BATS_FILE_TMPDIR/t.fxt
	body=$BATS_TEST_TMPDIR/body
	server=
}

teardown() {
	[ -z "$server" ] || kill "$server" 2>/dev/null || true
}

# serve TRACE [OPTION...]: sets $link, what was printed, $url of the trace in it, and $root.
serve() {
	local i
	rm -f "$BATS_TEST_TMPDIR/link"
	"$mtbpf" view -no-open "$@" >"$BATS_TEST_TMPDIR/link" 2>"$BATS_TEST_TMPDIR/said" 3>&- &
	server=$!
	for ((i = 0; i < 250; i++)); do
		! grep -q "^http" "$BATS_TEST_TMPDIR/link" || break
		sleep 0.02
	done
	link=$(grep '^http' "$BATS_TEST_TMPDIR/link")
	url=${link#*url=}
	url=${url%%&*}
	url=$(printf '%b' "${url//%/\\x}")
	root=${url%/*/*}
}

# status ADDRESS [CURL OPTION...]: the body goes to $body.
status() {
	curl -s -o "$body" -w '%{http_code}' --max-time 20 "$@"
}

needs_curl() {
	command -v curl >/dev/null || skip "curl is missing"
}

# Of a folder that stands for a UI.
make_ui() {
	ui=$BATS_TEST_TMPDIR/ui
	mkdir -p "$ui/v1"
	echo '<p>ui' >"$ui/index.html"
	echo 'x' >"$ui/v1/a.wasm"
	echo secret >"$BATS_TEST_TMPDIR/secret"
	ln -s ../secret "$ui/secret"
}

@test "the trace, byte for byte, to Perfetto's page and to no other" {
	needs_curl
	serve "$trace" -port 0
	[[ "$link" = https://ui.perfetto.dev/#!/?url=* ]]
	[[ "$url" = http://127.0.0.1:9001/*/trace.fxt ]]
	[ "$(status "$url" -H 'Origin: https://ui.perfetto.dev' -D "$BATS_TEST_TMPDIR/headers")" = 200 ]
	cmp "$body" "$trace"
	grep -qi '^access-control-allow-origin: https://ui.perfetto.dev' "$BATS_TEST_TMPDIR/headers"
	grep -qi '^cache-control: no-store' "$BATS_TEST_TMPDIR/headers"
	[ "$(status "$url" -H 'Origin: https://ui.perfetto.dev.evil.example')" = 403 ]
	[ "$(stat -c %s "$body")" -lt 100 ]
	[ "$(status "$url" -H 'Origin: null')" = 403 ]
	[ "$(status "$url" -H 'Host: evil.example:9001')" = 403 ]
	[ "$(status "$url" -H 'Host: localhost:9001')" = 200 ]
	[ "$(status "$url" -X OPTIONS -H 'Origin: https://ui.perfetto.dev')" = 204 ]
}

@test "nothing else: no other path, no listing, nothing to write" {
	needs_curl
	serve "$trace"
	[ "$(status "$root/")" = 404 ]
	[ "$(status "$root/trace.fxt")" = 404 ]
	[ "$(status "${url%?}")" = 404 ]
	[ "$(status --path-as-is "$root/../../../../etc/passwd")" = 404 ]
	[ "$(status "$url" -X PUT -d x)" = 404 ]
	[ "$(status "$root/status" -X POST -d x)" = 404 ]
	! ss -ltn 2>/dev/null | grep ':9001 ' | grep -v 127.0.0.1 || false
}

@test "a folder with a UI: its files, none beside it, and a policy that lets nothing out" {
	needs_curl
	make_ui
	serve "$trace" -ui "$ui"
	[[ "$link" = "$root/#!/?url="* ]]
	[ "$(status "$root/" -D "$BATS_TEST_TMPDIR/headers")" = 200 ]
	grep -q '<p>ui' "$body"
	grep -qi '^content-type: text/html' "$BATS_TEST_TMPDIR/headers"
	grep -qi "^content-security-policy: default-src 'self'" "$BATS_TEST_TMPDIR/headers"
	[ "$(status "$root/v1/a.wasm" -D "$BATS_TEST_TMPDIR/headers")" = 200 ]
	grep -qi '^content-type: application/wasm' "$BATS_TEST_TMPDIR/headers"
	[ "$(status "$url" -H "Origin: $root")" = 200 ]
	[ "$(status "$url" -H 'Origin: https://ui.perfetto.dev')" = 403 ]
	for path in secret v1 v1/../../secret ../secret %2e%2e/secret; do
		[ "$(status --path-as-is "$root/$path")" = 404 ]
	done
}

@test "gzip goes as it is, zstd is unpacked: Perfetto reads no zstd" {
	needs_curl
	serve "$trace.gz"
	[[ "$url" = */trace.fxt.gz ]]
	status "$url"
	cmp "$body" "$trace.gz"
	kill "$server"
	wait "$server" || true
	serve "$trace.zst"
	[[ "$url" = */trace.fxt ]]
	[ "$(status "$url")" = 200 ]
	cmp "$body" "$trace"
}

@test "the address is unlike the last one, and shows the hit: time, thread, note" {
	serve "$trace"
	first=$url
	[[ "$link" =~ visStart=([0-9]+)\&visEnd=([0-9]+) ]]
	[ $((BASH_REMATCH[2] - BASH_REMATCH[1])) -ge 1000000 ] # a hit without a threshold has no length
	commands=$(printf '%b' "$(sed 's/.*startupCommands=//; s/%/\\x/g' <<<"$link")")
	[[ "$commands" = *'"dev.perfetto.PinTracksByRegex","args":["^mtbpf hits "]'*'"dev.perfetto.PinTracksByRegex","args":[" '*'$"]'* ]]
	[[ "$commands" = *'"dev.perfetto.AddNoteAtTimestamp"'*'"hit stop"'* ]]
	kill "$server"
	wait "$server" || true
	serve "$trace"
	[ "$url" != "$first" ]
}

@test "the trace that was opened, also when its name stands for another one" {
	needs_curl
	cp "$trace" "$BATS_TEST_TMPDIR/a.fxt"
	serve "$BATS_TEST_TMPDIR/a.fxt"
	echo other >"$BATS_TEST_TMPDIR/b"
	mv "$BATS_TEST_TMPDIR/b" "$BATS_TEST_TMPDIR/a.fxt"
	status "$url"
	cmp "$body" "$trace"
}

@test "what cannot be shown" {
	run "$mtbpf" view
	[ "$status" -eq 2 ]
	run "$mtbpf" view "$BATS_TEST_TMPDIR/none.fxt"
	[ "$status" -eq 2 ]
	complains cannot-read
	mkdir "$BATS_TEST_TMPDIR/empty"
	run "$mtbpf" view "$BATS_TEST_TMPDIR/empty"
	[ "$status" -ne 0 ]
	complains no-capture-shown
	run "$mtbpf" view README.md
	[ "$status" -eq 2 ]
	complains not-fxt
	run "$mtbpf" view -ui "$BATS_TEST_TMPDIR" "$trace"
	[ "$status" -eq 2 ]
	complains not-perfetto-ui
	run "$mtbpf" view -port 65536 "$trace"
	[ "$status" -eq 2 ]
}

@test "a port that is taken: said, with what to do" {
	serve "$trace"
	run timeout 10 "$mtbpf" view -no-open "$trace"
	[ "$status" -eq 1 ]
	[[ "$output" = *"9001"*"in use"*"hint: "*"-ui"* ]]
}

@test "decode -view ends in it; without a trace there is nothing to show" {
	run "$mtbpf" decode -view -format text tests/golden/nest
	[ "$status" -eq 2 ]
	[[ "$output" = *"-view"*"hint: "* ]]
	"$mtbpf" decode -q -view tests/golden/nest -o "$BATS_TEST_TMPDIR/n.fxt" >"$BATS_TEST_TMPDIR/said" 2>/dev/null 3>&- &
	server=$!
	for ((i = 0; i < 500; i++)); do
		! grep -q '^http' "$BATS_TEST_TMPDIR/said" || break
		sleep 0.02
	done
	grep -q '^https://ui.perfetto.dev/#!/?url=' "$BATS_TEST_TMPDIR/said"
	kill -INT "$server"
	wait "$server"
	server=
}

@test "a recording is decoded first, once" {
	needs_curl
	cp -r tests/golden/nest "$BATS_TEST_TMPDIR/n.mtbpf"
	for i in 1 2; do
		serve -q "$BATS_TEST_TMPDIR/n.mtbpf"
		ino[i]=$(stat -c %i "$BATS_TEST_TMPDIR/n.fxt.gz")
		kill -INT "$server"
		wait "$server"
		server=
	done
	[[ $link == https://ui.perfetto.dev/*trace.fxt.gz* ]]
	[ "${ino[1]}" = "${ino[2]}" ]
}

@test "a folder: its page, whose captures open in Perfetto; only who has the address gets them" {
	needs_curl
	mkdir "$BATS_TEST_TMPDIR/d"
	cp -r tests/golden/nest "$BATS_TEST_TMPDIR/d/n.mtbpf"
	cp "$BATS_FILE_TMPDIR/t.fxt.zst" "$BATS_TEST_TMPDIR/d/t.fxt.zst"
	mkdir "$BATS_TEST_TMPDIR/tmp"
	TMPDIR=$BATS_TEST_TMPDIR/tmp serve -port 9083 "$BATS_TEST_TMPDIR/d"
	[ "$(status "$link")" = 200 ]
	grep -q '<title>mtbpf: why it was slow' "$body"
	for i in 0 1; do
		[ "$(status "${link}open/$i" -D "$BATS_TEST_TMPDIR/headers")" = 302 ]
		where=$(tr -d '\r' <"$BATS_TEST_TMPDIR/headers" | sed -n 's/^Location: .*url=\([^&]*\).*/\1/p')
		where=$(printf '%b' "${where//%/\\x}")
		[ "$(status "$where" -H 'Origin: https://ui.perfetto.dev')" = 200 ]
		{ gzip -dc "$body" 2>/dev/null || cat "$body"; } >"$BATS_TEST_TMPDIR/trace.fxt"
		"$mtbpf" report -q "$BATS_TEST_TMPDIR/trace.fxt" | grep -q 'hit 1 of stop'
		[ "$(status "$where" -H 'Origin: https://example.org')" = 403 ]
	done
	[ "$(status "${link}open/2")" = 404 ]
	[ "$(status "${link}open/../../x")" = 404 ]
	[ "$(status "http://127.0.0.1:9083/")" = 404 ]
	[ "$(status "http://127.0.0.1:9083/0123/open/0")" = 404 ]
	[ "$(status "$link" -H 'Host: example.org')" = 403 ]
	kill -INT "$server"
	wait "$server"
	server=
	[ -z "$(ls "$BATS_TEST_TMPDIR/tmp")" ]
}

@test "Ctrl-C ends it" {
	serve "$trace"
	kill -INT "$server"
	wait "$server"
	server=
}

# The screenshot stays in the build folder, to be looked at.
@test "Perfetto's UI shows the trace in Chromium, and asks nobody else for anything" {
	local said tool
	for tool in chromium node; do
		command -v "$tool" >/dev/null || skip "$tool is missing"
	done
	said=$(tests/perfetto/get-ui.sh "$O/perfetto-ui" 2>&1) || skip "cannot fetch Perfetto's UI: ${said##*$'\n'}"
	serve "$trace" -ui "$O/perfetto-ui"
	timeout 120 node tests/perfetto/browse.js "$link" \
		"document.querySelectorAll('.track').length > 1 && document.querySelector('.omnibox input').placeholder == 'Search'" \
		"document.querySelectorAll('.track').length" "$O/view.png" 100 >"$BATS_TEST_TMPDIR/found"
	[[ "$(cat "$BATS_TEST_TMPDIR/found")" = '{"result":2,'* ]] # the thread's, and that of the hits
	grep -q "$url" "$BATS_TEST_TMPDIR/found"
	! grep -o '"http[^"]*' "$BATS_TEST_TMPDIR/found" | grep -v "^\"$root/" || false
	[ -s "$O/view.png" ]
}
