# SPDX-License-Identifier: MIT
# The version is in VERSION, what it brings in CHANGELOG.md, and make release steps both.
STEP ?= patch
RELEASE_EPOCH = $${SOURCE_DATE_EPOCH:-$$(deploy/release date)}

.PHONY: release
release:
	$(Q)deploy/release $(STEP)
