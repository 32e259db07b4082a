#!/usr/bin/env bash
# Installs the library for C: packaging/c.sh FOLDER VERSION PREFIX
# FOLDER has libackademy_ffi.so and libackademy_ffi.a. DESTDIR, where set, comes before PREFIX, which ackademy.pc names.
set -euo pipefail
built=$1 version=$2 prefix=$(realpath -m "$3")
source=$(cd "$(dirname "$0")/../crates/ffi" && pwd)
root=${DESTDIR:-}$prefix
install -Dm755 "$built/libackademy_ffi.so" "$root/lib/libackademy.so.1"
install -Dm644 "$built/libackademy_ffi.a" "$root/lib/libackademy.a"
! command -v strip >/dev/null || { strip "$root/lib/libackademy.so.1" && strip --strip-debug "$root/lib/libackademy.a"; }
ln -sf libackademy.so.1 "$root/lib/libackademy.so"
install -CDm644 "$source/include/ackademy.h" "$root/include/ackademy.h"
mkdir -p "$root/lib/pkgconfig"
sed "s#@prefix@#$prefix#; s#@version@#$version#" "$source/ackademy.pc.in" >"$root/lib/pkgconfig/ackademy.pc"
