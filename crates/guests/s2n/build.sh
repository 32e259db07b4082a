#!/usr/bin/env bash
# build.sh FOLDER: compiles the controllers of s2n-quic-core into FOLDER/s2n.so. They need a newer Rust than ackademy.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1" && cd "$1"
version=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' "$here/Cargo.toml")
cargo=(cargo)
found=$(rustc --version | cut -d ' ' -f 2)
if [ "$(printf '%s\n' "$version" "$found" | sort -V | head -1)" != "$version" ]; then
  if ! rustup run "$version" rustc --version >/dev/null 2>&1; then
    echo "guests: s2n needs Rust $version or newer, not $found: rustup toolchain install $version" >&2 && exit 2
  fi
  cargo=(rustup run "$version" cargo)
fi
"${cargo[@]}" build --quiet --release --locked --manifest-path "$here/Cargo.toml" --target-dir target
cp target/release/libackademy_guest_s2n.so s2n.so.new && mv s2n.so.new s2n.so
echo "$PWD/s2n.so"
