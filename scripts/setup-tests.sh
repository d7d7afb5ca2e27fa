#!/usr/bin/env bash
# Makes a machine ready for `make test`: checks the tools that must be there and installs the Debian packages that are
# missing. Python and npm packages are installed by tests/interop/run.sh, tests/schema/run.sh and
# dashboard/install.sh into their own folders.
set -euo pipefail

node_min=20.19
python_min=3.11

fail() {
    echo "setup: $*" >&2
    exit 2
}

has() {
    command -v "$1" >/dev/null 2>&1
}

is_debian() {
    [ -e /etc/os-release ] && (. /etc/os-release && [ "$ID" = debian ])
}

has cargo || fail "cargo is missing: install Rust from https://rustup.rs"
has cc || fail "a C compiler is missing: apt-get install gcc"
has python3 || fail "python3 is missing: version $python_min or newer is needed"
node_is_new() {
    node -e "const [a, b] = process.versions.node.split('.'), [c, d] = '$node_min'.split('.')
        process.exit(+a > +c || (a === c && +b >= +d) ? 0 : 1)"
}
! has node || node_is_new || fail "node $(node --version) is too old: version $node_min or newer is needed, https://nodejs.org"
python3 -c "import sys; sys.exit(sys.version_info < tuple(map(int, '$python_min'.split('.'))))" ||
    fail "$(python3 --version) is too old: version $python_min or newer is needed"

for component in rustfmt clippy; do
    cargo "${component/rust/}" --version >/dev/null 2>&1 && continue
    has rustup || fail "$component is missing: install it with the Rust of this machine"
    rustup component add "$component"
done

packages=()
# Debian keeps the daemon outside the path of ordinary users.
PATH=$PATH:/usr/sbin has mosquitto || packages+=(mosquitto)
has mosquitto_pub && has mosquitto_sub || packages+=(mosquitto-clients)
[ -e /usr/include/mosquitto.h ] || packages+=(libmosquitto-dev)
python3 -c 'import ensurepip' 2>/dev/null || packages+=(python3-venv)
has node || packages+=(nodejs)
has npm || packages+=(npm)
has curl || packages+=(curl)
# Ubuntu's package of the same name needs snap: there the tests say what is missing.
has chromium || [ -n "${CHROMIUM:-}" ] || ! is_debian || packages+=(chromium)
has valgrind || packages+=(valgrind)
has sslscan || packages+=(sslscan)
compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || packages+=(postgresql)
[ -x /usr/sbin/mariadbd ] || packages+=(mariadb-server)
has redis-server || packages+=(redis-server)
[ -x /usr/sbin/slapd ] || packages+=(slapd)
[ ${#packages[@]} -gt 0 ] || exit 0

has apt-get || fail "missing: ${packages[*]}; install them with the package manager of this machine"
[ "$(id -u)" = 0 ] || fail "missing: ${packages[*]}; run: sudo apt-get install ${packages[*]}"
export DEBIAN_FRONTEND=noninteractive

# The tests start servers of their own: the packages must not start theirs.
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
    trap 'rm -f $policy' EXIT
    printf '#!/bin/sh\nexit 101\n' >$policy
    chmod 755 $policy
fi
apt-get update -qq
apt-get install -qq -y --no-install-recommends "${packages[@]}"

node_is_new || fail "the node of this system, $(node --version), is too old: version $node_min or newer is needed, https://nodejs.org"

# They are not started with the machine either: `make run` needs port 1883.
[ -d /run/systemd/system ] || exit 0
for package in "${packages[@]}"; do
    case $package in
    mosquitto | postgresql | redis-server | slapd) systemctl disable --quiet --now "$package.service" || true ;;
    mariadb-server) systemctl disable --quiet --now mariadb.service || true ;;
    esac
done
