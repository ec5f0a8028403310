# SPDX-License-Identifier: MIT
# deploy/: what its files say of mtbpf is so, and they say the same.

load ../helpers

setup() {
	deploy=$BATS_TEST_DIRNAME/../../deploy
	unit=$deploy/systemd/mtbpf@.service
	cd "$BATS_TEST_TMPDIR"
}

# field KEY: of the unit, its lines joined.
field() {
	sed -e ':a' -e '/\\$/N; s/\\\n//; ta' "$unit" | sed -n "s/^$1=//p"
}

# Of a manifest's YAML as JSON, by a Python expression on d.
manifest() {
	/usr/bin/python3 -c '
import sys, yaml
d = yaml.safe_load(open(sys.argv[1]))
print(eval(sys.argv[2]))' "$deploy/kubernetes/$1" "$2"
}

need_yaml() {
	/usr/bin/python3 -c 'import yaml' 2>/dev/null || skip "python3-yaml is missing"
}

# are_options WORDS: each that begins with a dash is an option of record.
are_options() {
	local word help
	help=$("$O/mtbpf" record -help)
	for word; do
		[[ $word != -[a-z]* ]] || grep -Eq "(^|[ ,])$word([ ,=]|\$)" <<<"$help" ||
			{ echo "record has no $word"; return 1; }
	done
}

@test "the unit: systemd takes it, and record takes its options" {
	# shellcheck disable=SC2046
	are_options $(field ExecStart) $(sed -n 's/^OPTIONS=//p' "$deploy/systemd/web.conf")
	[[ $(field ExecStart) == *'-dir /var/lib/mtbpf/%i '* ]]
	[ "$(field StateDirectory)" = mtbpf/%i ]
	command -v systemd-analyze >/dev/null || skip "the rest needs systemd-analyze"
	sed "s|/usr/local/bin/mtbpf|$O/mtbpf|" "$unit" >mtbpf@web.service
	run systemd-analyze verify --man=no "$PWD/mtbpf@web.service"
	echo "$output"
	[ "$status" -eq 0 ]
	[ -z "$output" ]
}

@test "the unit and the DaemonSet give the same rights" {
	need_yaml
	add=$(manifest daemonset.yaml '" ".join("CAP_" + c for c in d["spec"]["template"]["spec"]["containers"][0]["securityContext"]["capabilities"]["add"])')
	[ "$add" = "$(field CapabilityBoundingSet)" ]
	[ "$(field NoNewPrivileges)" = yes ]
	! grep -q 'privileged: true' "$deploy"/kubernetes/daemonset.yaml || false
}

@test "the unit lets through the system calls that record makes" {
	command -v strace >/dev/null || skip "strace is missing"
	command -v systemd-analyze >/dev/null || skip "systemd-analyze is missing"
	[ "$(id -u)" -eq 0 ] || skip "needs root"
	[ -x "$O/programs/service" ] || skip "the sample programs are not built"
	started=()
	start service -scale native
	strace -f -qq -o calls "$O/mtbpf" record -pid "$target" -source sample -symbol one_iter \
		-delay-thresh 2ms -dir d -keep 1 -metrics "unix:$PWD/s" >log 2>&1 3>&- &
	started+=($!)
	eventually 60 grep -q '^20.*mtbpf$' log
	kill -TERM $(pgrep -P $!)
	eventually 60 gone $!
	end_started
	[ -n "$(ls d)" ]
	allowed() {
		for word; do
			case $word in
			@*) allowed $(systemd-analyze syscall-filter "$word" | sed -n 's/^    \([a-z0-9_@-]*\)$/\1/p') ;;
			*) echo "$word" ;;
			esac
		done
	}
	# shellcheck disable=SC2046
	allowed $(field SystemCallFilter) | sort -u >filter
	sed -n 's/^[0-9]* *\([a-z0-9_]*\)(.*/\1/p' calls | sort -u >made
	grep -qx bpf made
	run comm -13 filter made
	echo "not let through: $output"
	[ -z "$output" ]
}

@test "the DaemonSet: record takes its options, and the ConfigMap has what they name" {
	need_yaml
	args=$(manifest daemonset.yaml '"\n".join(d["spec"]["template"]["spec"]["containers"][0]["args"])')
	# shellcheck disable=SC2086
	are_options $args
	named=$(sed -n 's/^\$(\([A-Z_]*\))$/\1/p' <<<"$args" | sort)
	[ "$named" = "$(manifest configmap.yaml '"\n".join(sorted(d["data"]))')" ]
	[ "$(manifest configmap.yaml 'set(type(v).__name__ for v in d["data"].values())')" = "{'str'}" ]
}

@test "kustomize makes one of all its files" {
	for file in namespace configmap daemonset; do
		grep -q "  - $file.yaml" "$deploy/kubernetes/kustomization.yaml"
	done
	command -v kubectl >/dev/null || skip "the rest needs kubectl"
	run kubectl kustomize "$deploy/kubernetes"
	[ "$status" -eq 0 ]
	[ "$(grep -c '^kind: ' <<<"$output")" -eq 3 ]
	grep -q 'image: registry.example/mtbpf:latest' <<<"$output"
	# The sidecar is a patch for an overlay.
	cp -r "$deploy/kubernetes" base
	mv base/sidecar.yaml .
	printf 'resources: [base]\npatches:\n  - path: sidecar.yaml\n' >kustomization.yaml
	run kubectl kustomize .
	[ "$status" -eq 0 ]
	[ "$(grep -c '^ *image: ' <<<"$output")" -eq 2 ]
	[ "$(grep -c 'mountPath: /var/lib/mtbpf' <<<"$output")" -eq 2 ]
}
