# SPDX-License-Identifier: MIT
# What scdoc writes as mandoc likes it: no empty paragraphs; and as groff does: options begin with a
# minus, not a hyphen, and no word is parted, an option least of all.
function flush_paragraph() {
	if (paragraph && !after_heading)
		print ".P"
	paragraph = after_heading = 0
}
$0 == ".P" || $0 == ".PP" { paragraph = 1; next }
$0 == ".RE" { print; next } # the paragraph comes behind it
/^\.S[HS] / { print; paragraph = 0; after_heading = 1; next }
/^\.TH / { gsub(/\\-/, "-"); print; print ".nh"; print ".ad l"; paragraph = 0; next }
/^\.nh$|^\.ad l$/ { next }
{
	flush_paragraph()
	# Newer versions of scdoc have done that already.
	gsub(/\\-/, "-")
	if (!/^\./)
		gsub(/-/, "\\-")
	print
}
