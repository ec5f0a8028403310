# SPDX-License-Identifier: MIT
# A bundle of mtbpf selftest with Intel PT: its replay gives the same verdicts and figures, and it names neither the host
# nor other processes.
# only: 6.12
. /tests/vm/lib.sh
need_pmu
cd /tmp || exit 1
mkdir -p secretuser content
cp /build/mtbpf secretuser/
hostname secrethost
clean_up() { hostname vm; }
checks=(-only calls -only "system calls" -only "any thread" -only cgroup -only events -only ptwrite)
# verdicts FILE
verdicts() {
	grep '^pt ' "$1" | sort
}
SECRET=secretenv TMPDIR=/tmp/secretuser secretuser/mtbpf selftest -source pt "${checks[@]}" -bundle pt.tar.zst >made ||
	fail "status $?: $(cat made)"
cat made
mtbpf selftest -replay pt.tar.zst "${checks[@]}" >replayed 2>replayed.err || fail "replay: status $?: $(cat replayed replayed.err)"
[ ! -s replayed.err ] || fail "$(cat replayed.err)"
diff <(verdicts made) <(verdicts replayed) || fail "the replay differs"
tar --zstd -C content -xf pt.tar.zst
! grep -raE 'secret(user|host|env)' content || fail "the bundle has what is the user's"
