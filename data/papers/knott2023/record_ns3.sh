#!/bin/sh
# Writes ns3.csv: what ns-3.37's CUBIC does in Knott 2023's transfers, for every rate, beta and C of the
# grid that is learned on. Needs libns3-dev and g++; takes about a minute.
set -eu
cd "$(dirname "$0")"
program=$(mktemp)
trap 'rm -f "$program"' EXIT
g++ -O2 -std=c++17 ../../../tools/ns_peers/ns3/writes.cc -o "$program" \
    -lns3-core -lns3-network -lns3-internet -lns3-point-to-point -lns3-traffic-control
{
    echo "# Made by record_ns3.sh with ns-3.37; one line is one transfer of 1000 writes."
    echo rate_mbps,beta,c,offered,refused,sent_packets,dropped_packets,retransmitted_packets,timeouts
    for rate in 4 6 8 12; do
        for c in 0.025 0.05 0.1 0.2 0.4 0.8 1.6 3.2 6.4; do
            for beta in $(seq -f %.2f 0.05 0.05 0.95); do
                "$program" "rate=${rate}e6" "beta=$beta" "c=$c" | sed -E \
                    's/.*"offered":([0-9]+).*"refused":([0-9]+).*"sent":([0-9]+),"retransmits":([0-9]+),"drops":([0-9]+),"timeouts":([0-9]+).*/'"$rate,$beta,$c"',\1,\2,\3,\5,\4,\6/'
            done
        done
    done
} > ns3.csv
