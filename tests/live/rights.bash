# SPDX-License-Identifier: MIT
# What the tests of rights share: a folder of nobody's, and a service of nobody's and one of root's.

nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups)

# Why capabilities cannot be tried here, or nothing.
why_not() {
	local tool
	[ "$(id -u)" -eq 0 ] || echo "needs root"
	for tool in setpriv setcap; do
		command -v "$tool" >/dev/null || echo "$tool is missing"
	done
	[ -x "$O/programs/service" ] || echo "the sample programs are not built"
	[ "$(cat /proc/sys/kernel/yama/ptrace_scope 2>/dev/null || echo 0)" = 0 ] || echo "yama restricts ptrace"
}

# The folder is $folder; this goes on in the part of it that nobody may write.
enter_folder() {
	folder=$(mktemp -d /tmp/mtbpf-rights.XXXXXX)
	chmod 711 "$folder"
	cp "$O/programs/service" "$folder"
	mkdir "$folder/out"
	chown 65534:65534 "$folder/out"
	cd "$folder/out" || return
	started=()
}

# serve COMMAND...: the sample service, started by it; its pid is $served.
serve() {
	: >../log
	"$@" ../service -scale small >../log 2>&1 3>&- &
	served=$!
	started+=("$served")
	eventually 10 grep -q '^pid ' ../log
}

serve_both() {
	serve "${nobody[@]}"
	own=$served
	serve env
	roots=$served
}
