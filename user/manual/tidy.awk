# SPDX-License-Identifier: MIT
# Changes scdoc's output: empty paragraphs are removed, about which mandoc complains; hyphens become
# minus signs, with which options begin; and groff may not hyphenate words, least of all options.
function flush_paragraph() {
	if (paragraph && !after_heading)
		print ".P"
	paragraph = after_heading = 0
}
$0 == ".P" || $0 == ".PP" { paragraph = 1; next }
$0 == ".RE" { print; next } # a paragraph that is due is printed after it
/^\.S[HS] / { print; paragraph = 0; after_heading = 1; next }
/^\.TH / { gsub(/\\-/, "-"); print; print ".nh"; print ".ad l"; paragraph = 0; next }
/^\.nh$|^\.ad l$/ { next }
{
	flush_paragraph()
	# Newer versions of scdoc have escaped the hyphens already.
	gsub(/\\-/, "-")
	if (!/^\./)
		gsub(/-/, "\\-")
	print
}
