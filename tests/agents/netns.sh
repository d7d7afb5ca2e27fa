#!/usr/bin/env bash
# A benchmark with agents in network namespaces of their own: everything arrives, the clocks are compared, the broker is
# watched by an agent beside it, an agent with another secret is refused, and a run whose agent is killed or cut off fails with its name.
#
# THRUM_BIN names the program to test. Needs root; where namespaces are not permitted it prints that
# and ends with 0. Everything is inside of the namespaces, which are removed at the end.
set -euo pipefail

thrum=${THRUM_BIN:-thrum}
command -v "$thrum" >/dev/null || { echo "no program '$thrum': set THRUM_BIN" >&2; exit 2; }
thrum=$(realpath "$(command -v "$thrum")")
command -v python3 >/dev/null || { echo "python3 is needed to look at the result" >&2; exit 2; }

prefix=thrum$$
switch=$prefix-switch broker=$prefix-broker left=$prefix-left right=$prefix-right
target=mqtt://10.77.0.1:1883
# The control broker that the coordinator starts, which admits only those with the secret.
control=mqtt://10.77.0.1:18830
export THRUM_AGENT_SECRET=secret-of-the-namespaces
work=$(mktemp -d)

if ! ip netns add "$switch" 2>"$work/permission"; then
    echo "SKIP: network namespaces are not permitted here: $(cat "$work/permission")"
    rm -rf "$work"
    exit 0
fi

cleanup() {
    local code=$?
    trap - EXIT
    # Only what runs inside of our namespaces.
    for name in "$broker" "$left" "$right"; do
        ip netns pids "$name" 2>/dev/null | xargs -r kill -9 2>/dev/null || true
    done
    for name in "$broker" "$left" "$right" "$switch"; do
        ip netns del "$name" 2>/dev/null || true
    done
    if [ "$code" != 0 ]; then
        for log in "$work"/*.log; do
            echo "--- $(basename "$log")" >&2
            tail -n 20 "$log" >&2
        done
    fi
    rm -rf "$work"
    exit "$code"
}
trap cleanup EXIT
trap 'exit 1' INT TERM

fail() {
    echo "FAIL: $1" >&2
    exit 1
}

# A namespace with an address, on the switch.
host() {
    local name=$1 address=$2 port=$3
    ip netns add "$name"
    ip -n "$switch" link add "$port" type veth peer name eth0 netns "$name"
    ip -n "$switch" link set "$port" master br0 up
    ip -n "$name" addr add "$address/24" dev eth0
    ip -n "$name" link set eth0 up
    ip -n "$name" link set lo up
}

ip -n "$switch" link add br0 type bridge
ip -n "$switch" link set br0 up
host "$broker" 10.77.0.1 p1
host "$left" 10.77.0.2 p2
host "$right" 10.77.0.3 p3

THRUM_AUTH__ANONYMOUS=true ip netns exec "$broker" "$thrum" serve --listen 0.0.0.0:1883 >"$work/broker.log" 2>&1 &
for _ in $(seq 100); do
    if ip netns exec "$left" python3 -c 'import socket; socket.create_connection(("10.77.0.1", 1883), 1)' 2>/dev/null; then
        break
    fi
    sleep 0.1
done

# An agent for one run: its namespace, its name, its options.
agent() {
    local name=$1 as=$2
    shift 2
    ip netns exec "$name" "$thrum" bench agent --control "$control" --name "$as" --once "$@" >"$work/$as.log" 2>&1 &
    agent_pid=$!
}

# A run that makes the load with agents: how many, then options.
run() {
    local agents=$1
    shift
    ip netns exec "$broker" timeout 120 "$thrum" bench run p2p-1K --publishers 40 --rate 20 --warmup 1s \
        --target "$target" --agents "$agents" --out "$work/runs" --json "$@" \
        >"$work/result.json" 2>"$work/run.log"
}

echo "== two agents and one beside the broker"
agent "$left" left --threads 1
agent "$right" right --threads 1
agent "$broker" beside --watch 1883
beside_pid=$agent_pid
THRUM_AGENT_SECRET=another-secret agent "$left" intruder --threads 1
intruder_pid=$agent_pid
code=0
run 3 --duration 4s || code=$?
# 7 is a generator that was too slow on a small machine: only the arrivals count here.
[ "$code" = 0 ] || [ "$code" = 7 ] || fail "the run ended with $code"
python3 - "$work/result.json" <<'CHECK'
import json
import sys

result = json.load(open(sys.argv[1], encoding="utf-8"))
delivery, agents = result["delivery"], {agent["name"]: agent for agent in result["agents"]}
assert result["verdict"]["pass"], result["verdict"]
assert delivery["expected"] >= 40 * 20 * 4 and delivery["delivered"] == delivery["expected"], delivery
assert sorted(agents) == ["beside", "left", "right"], sorted(agents)
assert [agents[name]["clients"] for name in ("left", "right", "beside")] == [40, 40, 0], agents
for agent in agents.values():
    # One machine has one clock: the offset must be within what is known of it.
    assert 0 < agent["clock_error_ns"] < 50_000_000, agent
    assert abs(agent["clock_offset_ns"]) <= agent["clock_error_ns"], agent
[broker] = result["brokers"]
assert broker["host"] == "beside" and broker["pid"] > 0 and broker["rss_max_bytes"] > 0, broker
assert any(second["broker"] for second in result["series"])
print("ok:", delivery["delivered"], "delivered, clocks within",
      max(agent["clock_error_ns"] for agent in agents.values()) // 1000, "us")
CHECK
wait "$beside_pid" || fail "the agent beside the broker failed"
! wait "$intruder_pid" || fail "an agent with another secret took part"
grep -q "refuses the user name or the secret" "$work/intruder.log" || fail "the agent with another secret is not told so"
grep -q "$THRUM_AGENT_SECRET" "$work"/*.log "$work/result.json" && fail "the secret is in a log or in the result"
echo "ok: another secret is refused"

# A run of a minute that must end early with the name of an agent: the fault, as text and as a
# command.
lose() {
    local words=$1 code=0
    shift
    echo "== an agent is $words"
    agent "$left" left --threads 1
    agent "$right" right --threads 1
    local started=$SECONDS
    (sleep 6; "$@") &
    local blow=$!
    run 2 --duration 1m || code=$?
    wait "$blow" || true
    [ "$code" = 1 ] || fail "the run ended with $code, not with 1"
    grep -q "agent 'right'" "$work/run.log" || fail "the run does not name the agent"
    [ $((SECONDS - started)) -lt 30 ] || fail "it took $((SECONDS - started)) s to notice"
    echo "ok: $(grep -o "agent 'right'.*" "$work/run.log" | tail -n 1)"
}

kill_right() {
    ip netns pids "$right" | xargs -r kill -9
}
unplug_right() {
    ip -n "$switch" link set p3 down
}
lose "killed" kill_right
lose "unplugged" unplug_right
echo "PASS"
