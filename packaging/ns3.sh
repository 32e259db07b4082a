#!/usr/bin/env bash
# Builds ns-3's TCP with our controllers from ns3/: packaging/ns3.sh PREFIX FOLDER
# PREFIX has libackademy.a and ackademy.h (`make c`). FOLDER gets ackademy-ns3, which `--backend ns3` runs, and the
# example ackademy-dumbbell. Both contain ns-3 and are GPL-2.0-only as a whole: for use here, not to be passed on
# under another licence.
set -euo pipefail
prefix=$1 folder=$2 source=$(cd "$(dirname "$0")/../ns3" && pwd)
version() { echo "#include \"ns3/version-defines.h\"
NS3_VERSION_MAJOR NS3_VERSION_MINOR" | g++ -E -P -x c++ - 2>/dev/null | tail -1; }
read -r major minor <<<"$(version)" || true
if [ "${major:-0}" -lt 3 ] || { [ "$major" = 3 ] && [ "${minor:-0}" -lt 36 ]; }; then
  echo "ns3: ns-${major:-?}.${minor:-?}: allowed is ns-3.36 or newer; apt-get install libns3-dev g++" >&2
  exit 2
fi
standard=c++17
[ "$minor" -lt 42 ] || standard=c++20 # as its headers ask for
mkdir -p "$folder"
object() { # FILE: compiled, unless nothing that it includes has changed
  local to=$folder/$(basename "$1" .cc).o
  [ -f "$to" ] && [ -z "$(find "$source" "$prefix/include" -newer "$to" -print -quit)" ] && return
  g++ -std=$standard -O2 -Wall -Wextra -I"$prefix/include" -c "$source/$1" -o "$to"
}
jobs=()
for file in model/tcp-ackademy.cc runner/{plan,network,flow,tables,main}.cc examples/ackademy-dumbbell.cc; do
  object "$file" & jobs+=($!)
done
for job in "${jobs[@]}"; do wait "$job"; done
link() { # PROGRAM OBJECT...: with ns-3's libraries, shared, and ours, static
  g++ -o "$folder/$1" "${@:2}" "$prefix/lib/libackademy.a" -lns3-{internet,network,core,point-to-point,applications} -lpthread -ldl -lm
}
link ackademy-ns3 "$folder"/{tcp-ackademy,plan,network,flow,tables,main}.o
link ackademy-dumbbell "$folder"/{tcp-ackademy,ackademy-dumbbell}.o
