# shellcheck shell=bash
# Free ports on 127.0.0.1 for one private instance of a service. Sourced; needs processes.sh.

PORTS_PER_INSTANCE=4

port_answers() {
  (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null
}

# Takes the block of ports beginning at $1. The lock's descriptor is inherited by the processes started afterwards
# and is held for as long as one of them lives: no other run can draw the block meanwhile, and nothing is left to
# clean up.
take_ports() {
  local port descriptor
  { exec {descriptor}>>"/tmp/kurier-ports-$1.lock"; } 2>/dev/null || return 1
  if flock --nonblock "$descriptor"; then
    for ((port = $1; port < $1 + PORTS_PER_INSTANCE; port++)); do
      ! port_answers "$port" || break
    done
    ((port < $1 + PORTS_PER_INSTANCE)) || return 0
  fi
  exec {descriptor}>&-
  return 1
}

# choose_ports FILE: takes the block named in FILE, so that a restarted instance keeps its address, or a random one
# below the range from which the kernel gives out ports of its own.
choose_ports() {
  local file="$1" tries
  if [[ -s "$file" ]]; then
    take_ports "$(cat "$file")" || fail "port $(cat "$file") of the stopped instance was taken by someone else"
    return
  fi
  for ((tries = 0; tries < 200; tries++)); do
    printf '%d\n' $((20000 + PORTS_PER_INSTANCE * (RANDOM % 3000))) >"$file"
    take_ports "$(cat "$file")" && return
  done
  rm -f "$file"
  fail "no free ports between 20000 and 32000 on 127.0.0.1"
}
