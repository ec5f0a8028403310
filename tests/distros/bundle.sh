# SPDX-License-Identifier: MIT
# What a server is to do with the one executable, in a root that has /mtbpf, /service and /busybox: that
# busybox's sh runs this in an empty folder, and it fails at the first thing that is not so.
set -eu
cd /work
b=/busybox
running=

finish() {
	[ -z "$running" ] || kill $running 2>/dev/null || :
}
trap finish EXIT

fail() {
	echo "$*"
	exit 1
}

# run FILE COMMAND...: what it prints goes into the file, and is shown if it fails.
run() {
	out=$1
	shift
	"$@" >"$out" 2>&1 || fail "$* ended with $?: $($b cat "$out")"
}

# names FILE: the function that triggers, and its caller, are in it.
names() {
	for function in one_iter main; do
		$b grep -qw $function "$1" || fail "there is no $function in $1: $($b cat "$1")"
	done
}

# Exit code 1 says that something is missing, such as Intel PT in a virtual machine.
status=0
/mtbpf check >check || status=$?
[ $status -le 1 ] || fail "check ended with $status"
for need in sample uprobe bpf; do
	$b grep -q "^$need  *ok " check || fail "check: $($b grep "^$need " check)"
done

/service -scale native -table-size 1500000 >service.log &
service=$!
running=$service
# Until then it may still be the shell.
until $b grep -q '^pid ' service.log; do
	kill -0 $service || fail "the service has ended: $($b cat service.log)"
	$b sleep 0.1
done
capture="-source sample -pid $service -symbol one_iter -delay-thresh 20ms -timeout 100s"

run attach /mtbpf attach $capture -o attached.fxt.zst
run report /mtbpf report attached.fxt.zst
$b grep -qw one_iter report || fail "the report names no function: $($b cat report)"

run record /mtbpf record $capture -o recorded.mtbpf
run decode /mtbpf decode -format text -o decoded.txt recorded.mtbpf
names decoded.txt
run decode /mtbpf decode -o decoded.fxt.gz recorded.mtbpf
$b gunzip -c decoded.fxt.gz >decoded.fxt || fail "decoded.fxt.gz is damaged"

# With a page of its own, since the port is any then. It is not compressed on its way.
run decode /mtbpf decode -o decoded.fxt.zst recorded.mtbpf
$b mkdir ui
echo "a page" >ui/index.html
/mtbpf view -no-open -q -ui ui decoded.fxt.zst >view 2>&1 &
running="$service $!"
tries=0
until $b grep -q url= view; do
	tries=$((tries + 1))
	[ $tries -lt 1000 ] || fail "view printed no address: $($b cat view)"
	$b usleep 20000
done
url=$($b sed -n 's/%3A/:/g; s/%2F/\//g; s/.*[?]url=\([^&]*\)&.*/\1/p' view)
run wget $b wget -q -O viewed.fxt "$url"
$b cmp decoded.fxt viewed.fxt || fail "the trace that view serves is another"
