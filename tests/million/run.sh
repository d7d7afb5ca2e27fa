#!/usr/bin/env bash
# A million connections in one broker process, in a user-mode Linux guest: it has limits of its own, whatever those of
# this machine are, and needs no root. Broker and generator run inside; the README beside this file says what is shown.
#
#   THRUM_BIN=target/release/thrum tests/million/run.sh [CLIENTS]
#
# CLIENTS       connections [1000000]
# CONNECT_RATE  connections opened per second; a guest that is slower for more than 80 s in all fails [2000]
# KEEP_ALIVE    seconds [300]
# HOLD          seconds that the connections are held [a keep alive and 30 s more, so that each has said a ping]
# OUT           folder for the results [runs/million]
set -euo pipefail

clients=${1:-1000000}
connect_rate=${CONNECT_RATE:-2000}
keep_alive=${KEEP_ALIVE:-300}
hold=${HOLD:-$((keep_alive + 30))}
out=${OUT:-runs/million}
here=$(cd "$(dirname "$0")" && pwd)

# Memory of both ends of a connection in the guest, kernel and programs, with room to spare, and of the rest.
connection_kib=12
rest_mib=1024

fail() {
    echo "error: $1" >&2
    exit 2
}

thrum=${THRUM_BIN:-thrum}
command -v "$thrum" >/dev/null || fail "no program '$thrum': set THRUM_BIN"
thrum=$(realpath "$(command -v "$thrum")")
linux=$(command -v linux.uml || command -v linux) ||
    fail "no user-mode Linux: apt install user-mode-linux"
busybox=$(command -v busybox) || fail "no busybox: apt install busybox-static"
if ldd "$busybox" >/dev/null 2>&1; then
    fail "$busybox is not static: apt install busybox-static"
fi

memory_mib=$((clients * connection_kib / 1024 + rest_mib))
shm_mib=$(df --output=avail -m /dev/shm | tail -n 1)
free_mib=$(awk '/^MemAvailable:/ { print int($2 / 1024) }' /proc/meminfo)
if [ "$shm_mib" -lt "$memory_mib" ] || [ "$free_mib" -lt "$memory_mib" ]; then
    fail "the guest needs $memory_mib MiB of memory; $free_mib are available, $shm_mib of them for /dev/shm: take fewer CLIENTS"
fi
# Each page of a program in the guest may be a mapping of its own out here.
maps=$(cat /proc/sys/vm/max_map_count)
maps_needed=$((clients + 65536))
[ "$maps" -ge "$maps_needed" ] ||
    fail "vm.max_map_count is $maps, the programs of the guest need $maps_needed: sysctl -w vm.max_map_count=$maps_needed"

work=$(mktemp -d)
guest=
cleanup() {
    local code=$?
    trap - EXIT
    # Its own process group: the guest and the processes that stand for its programs.
    [ -z "$guest" ] || kill -KILL -- "-$guest" 2>/dev/null || true
    rm -rf "$work"
    exit "$code"
}
trap cleanup EXIT
trap 'exit 1' INT TERM

mkdir -p "$out"
out=$(realpath "$out")
mkdir -p "$work"/{bin,dev,proc,sys,tmp,out}
cp "$here/init" "$here/broker.toml" "$work/"
cp "$thrum" "$work/bin/thrum"
cp "$busybox" "$work/bin/busybox"
# The very program that is measured elsewhere, with its C library and so its allocator.
{ ldd "$thrum" || true; } | grep -o '/[^ ]*' | while read -r library; do
    mkdir -p "$work$(dirname "$library")"
    cp -L "$library" "$work$library"
done
cat >"$work/settings" <<SETTINGS
clients=$clients
connect_rate=$connect_rate
keep_alive=$keep_alive
hold=$hold
SETTINGS

: >"$work/console.log"
echo "booting a guest with $memory_mib MiB for $clients connections at $connect_rate/s"
# A guest has one CPU, and its kernel takes turns with its programs: on one core they need not wake each other up.
core=$(awk -F '[:,-]' '/^Cpus_allowed_list/ { print $NF + 0 }' /proc/self/status)
# One bucket of the table of connections for each end of a connection.
TMPDIR=/dev/shm setsid taskset -c "$core" "$linux" mem="${memory_mib}M" rootfstype=hostfs rootflags="$work" rw init=/init quiet \
    thash_entries=$((clients * 2)) con=null con0=fd:0,fd:1 </dev/null >"$work/console.log" 2>&1 &
guest=$!
tail -f --pid "$guest" "$work/console.log" &
wait "$guest" || true
wait
cp -r "$work/out/." "$out/"
cp "$work/console.log" "$out/"
[ -e "$out/summary.txt" ] || fail "the guest ended early: see $out/console.log"
echo "results are in $out"
