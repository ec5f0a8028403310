# SPDX-License-Identifier: MIT
# The PMU looks like the real one.
. /tests/vm/lib.sh
need_pmu
cd /sys/bus/event_source/devices/intel_pt || exit 1
must grep -q '^[0-9]' type
must grep -qx 'config:24-27' format/psb_period
must grep -qx 'config:13' format/branch
must grep -qx 3f caps/psb_periods
must grep -qx config:31 format/event
must grep -qx 1 caps/event_trace
must grep -qx 1 caps/ptwrite
must grep -Eqx '[0-9]+' max_nonturbo_ratio
must grep -Eqx '[0-9]+:[0-9]+' tsc_art_ratio
