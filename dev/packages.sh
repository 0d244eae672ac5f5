# shellcheck shell=bash
# What comes from Debian: found where it is installed, otherwise installed when that is allowed.
# Sourced; needs processes.sh. Never starts a system service.

POLICY=/usr/sbin/policy-rc.d

has_compiler() { command -v cc >/dev/null; }
has_python() { python3 -c 'import ensurepip, venv' 2>/dev/null; }
has_node() { command -v node >/dev/null && command -v npm >/dev/null; }
has_postgres() { command -v initdb >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null; }
has_rabbitmq() { command -v rabbitmq-server >/dev/null || [[ -x /usr/lib/rabbitmq/bin/rabbitmq-server ]]; }

packages_for() {
  case "$1" in
    compiler) echo gcc libc6-dev ;;
    python) echo python3 python3-venv ;;
    node) echo nodejs npm ;;
    postgres) echo postgresql ;;
    rabbitmq) echo rabbitmq-server ;;
    *) fail "no Debian package is known for $1" ;;
  esac
}

# ensure_installed WHAT...: each of compiler, python, node, postgres, rabbitmq.
ensure_installed() {
  local what missing=() names
  for what in "$@"; do
    "has_$what" || missing+=("$what")
  done
  ((${#missing[@]} > 0)) || return 0
  names="$(for what in "${missing[@]}"; do packages_for "$what"; done | xargs)"
  printf 'missing: %s; installing %s\n' "${missing[*]}" "$names" >&2
  read -ra missing <<<"$names"
  install_packages "${missing[@]}"
}

install_packages() {
  local as_root=()
  command -v apt-get >/dev/null || fail "not installed and no apt-get here: install the equivalent of: $*"
  if ((EUID != 0)); then
    sudo -n true 2>/dev/null || fail "not installed; as root, run: apt-get install --no-install-recommends $*"
    as_root=(sudo -n)
  fi
  "${as_root[@]}" bash -s -- "$POLICY" "$@" >&2 <<'AS_ROOT' || fail "apt-get could not install: $*"
set -euo pipefail
policy="$1"
shift
# A service that a package would start is refused by this file; one that the administrator has put there stays.
if [[ ! -e "$policy" ]]; then
  trap 'rm -f "$policy"' EXIT
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod +x "$policy"
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq </dev/null
apt-get install -y -qq --no-install-recommends "$@" </dev/null
AS_ROOT
}
