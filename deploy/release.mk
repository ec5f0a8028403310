# SPDX-License-Identifier: MIT
# The version is in VERSION, what it brings in CHANGELOG.md, and make release steps both.
STEP ?= patch
RELEASE_EPOCH = $${SOURCE_DATE_EPOCH:-$$(deploy/release date)}

.PHONY: release
release:
	$(Q)deploy/release $(STEP)

# What is tried before a release: builds in clean roots of Debian, and the bundle in them. Needs root, debootstrap,
# 12 GB in /var/tmp, and an hour.
.PHONY: test-distros
test-distros:
	$(Q)O=$(O) TEST_TIMEOUT=3600 tests/run distros
