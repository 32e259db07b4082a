#!/usr/bin/env bash
# The Debian package of ackademyd: packaging/deb.sh PROGRAM VERSION ARCHITECTURE FOLDER
# PROGRAM is the static program of `make ackademyd`. The unit is installed and not enabled: see docs/guide/deploy.md first.
set -euo pipefail
program=$1 version=$2 architecture=$3 folder=$4
root=$(cd "$(dirname "$0")/.." && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
chmod 755 "$tree"
share=$tree/usr/share
install -Dm755 "$program" "$tree/usr/bin/ackademyd"
! command -v strip >/dev/null || strip --strip-debug "$tree/usr/bin/ackademyd" 2>/dev/null || true # of another architecture
mkdir -p "$tree/lib/systemd/system" "$share/man/man1"
sed 's#/usr/local/bin/#/usr/bin/#' "$root/crates/net/ackademyd.service" >"$tree/lib/systemd/system/ackademyd.service"
install -Dm644 "$root/docs/guide/deploy.md" "$share/doc/ackademyd/deploy.md"
sed -i 's#doc/ackademy/#doc/ackademyd/#' "$tree/lib/systemd/system/ackademyd.service"
cat "$root/LICENSE-MIT" "$root/LICENSE-APACHE" "$root/crates/net/src/kernel/bpf/LICENSE-GPL-2.0" \
  "$root/crates/net/THIRD-PARTY-LICENSES.txt" >"$share/doc/ackademyd/copyright"
if "$program" --version >/dev/null 2>&1; then # not where it is of another architecture
  "$program" man --to "$share/man/man1"
  gzip -9n "$share/man/man1/"*
fi
mkdir "$tree/DEBIAN"
cat >"$tree/DEBIAN/control" <<CONTROL
Package: ackademyd
Version: $version
Architecture: $architecture
Maintainer: The Ackademy contributors
Section: net
Priority: optional
Installed-Size: $(du -sk "$tree" | cut -f1)
Recommends: iproute2
Description: congestion control for the kernel's TCP, in user space
 Offers controllers, learned ones too, to the TCP of an unpatched Linux kernel
 (6.4 or later, with BTF) through eBPF. Also a link emulator and a lab of
 network namespaces. Without an answer of the daemon a flow runs CUBIC.
CONTROL
cat >"$tree/DEBIAN/postinst" <<'SCRIPT'
#!/bin/sh
set -e
getent passwd ackademyd >/dev/null || useradd --system --no-create-home --shell /usr/sbin/nologin ackademyd
SCRIPT
chmod 755 "$tree/DEBIAN/postinst"
mkdir -p "$folder"
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-0} dpkg-deb --root-owner-group --build "$tree" "$folder/ackademyd_${version}_${architecture}.deb" >&2
echo "$folder/ackademyd_${version}_${architecture}.deb"
