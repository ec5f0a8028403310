# SPDX-License-Identifier: MIT
# put_into_page BEGIN END TABLE: the table replaces what is between these two comments of docs/dev/stacks.md.
put_into_page() {
	local page=docs/dev/stacks.md new
	new=$(mktemp) || return
	awk -v from="<!-- $1 -->" -v to="<!-- $2 -->" -v table="$3" '
		index($0, from) { print; while ((getline line < table) > 0) print line; skip = 1; next }
		index($0, to) { skip = 0 }
		!skip' "$page" >"$new" && cp "$new" "$page"
	rm -f "$new"
}
