#!/bin/sh
# ns-2 where packets arrive the instant others leave: one NewReno flow behind a buffer of 2, 3 or 5
# packets, at rates whose packets do not take whole nanoseconds. ns-2 keeps time in doubles, so their
# rounding breaks its ties; each case is therefore run at five round trips that differ by up to 10 ns.
# Writes crates/core/tests/golden/ns2_ties.txt: packets, round trip in ms, rate in Mb/s, and the least
# and the most throughput in Mb/s.
#
#   sh tools/ns_peers/ns2/ties.sh > crates/core/tests/golden/ns2_ties.txt
cd "$(dirname "$0")" || exit 1
for buffer in 2 3 5; do
    for rtt_ms in 31 77; do
        for rate in 5.3 6.7 7.1 7.7 8.0 8.1 8.9 9.7 11.3 13.9; do
            for offset_ps in 0 10 100 1000 10000; do
                rtt=$(awk "BEGIN { printf \"%.12f\", $rtt_ms / 1e3 + $offset_ps / 1e12 }")
                ns dumbbell.tcl rate="${rate}e6" rtt="$rtt" buffer=$buffer duration=100 sample=0 \
                    | sed -n 's/^{.*"wire_bytes":[0-9]*,"delivered_bytes":\([0-9]*\),.*/\1/p'
            done | sort -n | awk -v head="$buffer $rtt_ms $rate" '
                { mbps[NR] = $1 * 8e-6 / 100 }
                END { printf "%s %.4f %.4f\n", head, mbps[1], mbps[NR] }'
        done
    done
done
