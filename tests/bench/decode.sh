#!/bin/bash
# SPDX-License-Identifier: MIT
# Packets to branches, ours against libipt's: makes recordings of real programs (tests/ptgen), once,
# and measures on them. INSTRUCTIONS=N: how long they are.
set -eu
O=$(realpath "${O:-build}")
out=$O/bench
n=${INSTRUCTIONS:-500000000}
mkdir -p "$out"
command -v qemu-x86_64 >/dev/null || { echo "qemu-x86_64 is missing (package qemu-user)" >&2; exit 1; }

cat >"$out/interpreter.py" <<'PY'
import json, re
class Table:
    def __init__(self, x): self.x, self.seen = x, {}
    def step(self, i):
        self.seen[i % 97] = self.x * i
        return sum(self.seen.values()) % 1000
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
table, out, i = Table(3), [], 0
while True:
    i += 1
    out.append(table.step(i))
    if i % 50 == 0: out.append(fib(9))
    if i % 100 == 0:
        text = json.dumps({'last': out[-20:], 'i': i})
        json.loads(text)
        re.findall(r'\d+', text)
        out = sorted(out[-100:])
PY
query='with recursive c(x) as (select 1 union all select x + 1 from c where x < 1000000000)
	select sum(x * x % 7), count(distinct x % 1000) from c;'

# make NAME OPTION... -- PROGRAM...
make() {
	[ -e "$out/$1-$n.mtbpf" ] ||
		"$O/tests/ptgen/ptgen" -o "$out/$1-$n.mtbpf" -instructions "$n" "${@:2}" >"$out/$1.log"
	recordings+=("$out/$1-$n.mtbpf")
}

recordings=()
for timing in tsc cyc; do
	make "python-$timing" -timing $timing -skip 50000000 -- /usr/bin/python3 "$out/interpreter.py"
done
[ ! -x /usr/bin/sqlite3 ] || make sqlite-cyc -timing cyc -- /usr/bin/sqlite3 :memory: "$query"
make cxx-mtc -timing mtc -- "$O/programs/cxx_service"
exec "$O/tests/bench/bench_decode" "${recordings[@]}"
