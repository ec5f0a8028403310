# SPDX-License-Identifier: MIT
# mtbpf check finds BPF and uprobes.
. /tests/vm/lib.sh
mtbpf check >/tmp/check.txt
cat /tmp/check.txt
for need in uprobe bpf; do
	grep -Eqi "^$need +ok" /tmp/check.txt || fail "$need is not ok"
done
