#!/usr/bin/env bash
# build.sh FOLDER: compiles congestion controllers of Linux, unmodified, into FOLDER/linux.so.
#
# Their sources come from the Debian package that LINUX_SOURCE names (linux-source-6.1 by default), installed or not, or
# from a folder with a kernel's sources. The library is a work under the GPL, version 2: it is for who builds it.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source=${LINUX_SOURCE:-linux-source-6.1}
if [ -d "$source" ]; then source=$(cd "$source" && pwd); fi
mkdir -p "$1" && cd "$1"
controllers=(bbr cubic illinois vegas) # and reno, of tcp_cong.c
compiled=(lib/win_minmax.c)
for name in "${controllers[@]}"; do compiled+=("net/ipv4/tcp_$name.c"); done
wanted=(include/linux/win_minmax.h include/net/tcp.h net/ipv4/tcp_cong.c net/ipv4/tcp_vegas.h "${compiled[@]}")

if [[ $source == */* && ! -d $source ]]; then
  echo "guests: LINUX_SOURCE=$source: No such folder; allowed is one with a kernel's sources, or a package such as linux-source-6.1" >&2
  exit 2
fi
if [ ! -d "$source" ]; then
  if ! (cd "sources/$source" 2>/dev/null && ls "${wanted[@]}" >/dev/null 2>&1); then
    rm -rf "sources/$source" sources/new && mkdir -p sources/new
    archive=/usr/src/$source.tar.xz
    if [ ! -f "$archive" ]; then
      echo "guests: $source, from the package of this name (139 MB)" >&2
      (cd sources/new && apt-get -qq download "$source" 2>/dev/null && dpkg-deb -x ./*.deb .) ||
        { echo "guests: no $archive, and apt-get cannot download $source: apt-get install $source, or LINUX_SOURCE=FOLDER" >&2 && exit 2; }
      archive=sources/new/usr/src/$source.tar.xz
    fi
    mkdir sources/new/files
    tar -xJf "$archive" -C sources/new/files --strip-components=1 --wildcards "${wanted[@]/#/*/}"
    mv sources/new/files "sources/$source" && rm -rf sources/new
  fi
  source=sources/$source
fi
for file in "${wanted[@]}"; do
  [ -f "$source/$file" ] || { echo "guests: $source/$file: No such file; allowed is a kernel's sources" >&2 && exit 2; }
done

# The definitions of functions, in the order of the file.
functions() { # FILE NAME...
  local file=$1 && shift
  awk -v names="$*" 'BEGIN { for (n = split(names, list, " "); n; n--) wanted[list[n]] }
    /^[a-z_].*\(/ { split($0, part, "("); n = split(part[1], word, /[ *]+/); is_wanted = word[n] in wanted && !/;$/ }
    is_wanted { print } /^}/ { is_wanted = 0 }' "$source/$file"
}
work=sources/shim && rm -rf "$work" && mkdir -p "$work"
functions include/net/tcp.h tcp_min_rtt tcp_stamp_us_delta tcp_left_out tcp_packets_in_flight tcp_snd_cwnd \
  tcp_snd_cwnd_set tcp_in_slow_start tcp_in_cwnd_reduction tcp_current_ssthresh tcp_is_cwnd_limited >"$work/tcp_inline.h"
{ echo '#include "shim.h"' && functions net/ipv4/tcp_cong.c tcp_slow_start tcp_cong_avoid_ai tcp_reno_cong_avoid \
  tcp_reno_ssthresh tcp_reno_undo_cwnd; } \
  >"$work/tcp_cong.c"
# Every header that a file includes is the shim.
for header in linux/types.h $(sed -n 's/^#include <\(.*\)>$/\1/p' "${compiled[@]/#/$source/}"); do
  mkdir -p "$work/$(dirname "$header")" && echo '#include "shim.h"' >"$work/$header"
done
cp "$source/include/linux/win_minmax.h" "$work/win_minmax.h"
flags=(-O2 -g -fPIC -shared -fvisibility=hidden -Wl,--no-undefined -Wall -Wno-unused-function -Wno-sign-compare -Werror=implicit-function-declaration -I"$work" -I"$here")
if grep -q 'void bbr_main(struct sock \*sk, u32 ack' "$source/net/ipv4/tcp_bbr.c"; then
  flags+=(-DCONG_CONTROL_TAKES_ACK)
fi
"${CC:-cc}" "${flags[@]}" -o linux.so.new "$here/host.c" "$work/tcp_cong.c" \
  "${compiled[@]/#/$source/}"
mv linux.so.new linux.so
echo "$PWD/linux.so"
