# shellcheck shell=bash
# Processes that outlive the script that started them: started, recognised, signalled and awaited by pid.
# Sourced by the other scripts; starts nothing by itself.

fail() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# State letter and start time (clock ticks since boot) of a live process. The start time tells it from a later
# process that was given the same pid. A zombie counts as ended: it may wait for ever for a parent that is gone.
process_identity() {
  local stat fields
  stat="$(cat "/proc/$1/stat" 2>/dev/null)" || return 1
  read -ra fields <<<"${stat##*) }"
  [[ "${fields[0]}" != Z ]] || return 1
  printf '%s %s\n' "$1" "${fields[19]}"
}

# start_process PID_FILE LOG COMMAND...: in a session of its own, so that a terminal's Ctrl-C does not reach it.
start_process() {
  local pid_file="$1" log="$2"
  shift 2
  setsid -- "$@" </dev/null >>"$log" 2>&1 &
  process_identity "$!" >"$pid_file" || : # a process that ended at once is reported by whoever awaits it
}

# Pids of the direct children of process $1.
child_processes() {
  local stat fields
  for stat in /proc/[0-9]*/stat; do
    { read -r stat <"$stat"; } 2>/dev/null || continue
    read -ra fields <<<"${stat##*) }"
    [[ "${fields[1]}" != "$1" ]] || printf '%s\n' "${stat%% *}"
  done
}

recorded_pid() {
  local pid rest
  read -r pid rest 2>/dev/null <"$1" || return 1
  printf '%s\n' "$pid"
}

process_runs() {
  local pid
  pid="$(recorded_pid "$1")" && [[ "$(process_identity "$pid")" == "$(cat "$1")" ]]
}

signal_process() {
  if process_runs "$1"; then
    kill -s "$2" "$(recorded_pid "$1")" 2>/dev/null || :
  fi
}

await_end() {
  local pid_file="$1" deadline=$((SECONDS + $2))
  while process_runs "$pid_file"; do
    ((SECONDS < deadline)) || return 1
    sleep 0.05
  done
  rm -f "$pid_file"
}

# stop_process PID_FILE SIGNAL SECONDS: asks, waits, and kills what has not ended by then.
stop_process() {
  signal_process "$1" "$2"
  if ! await_end "$1" "$3"; then
    printf 'warning: process %s did not end within %s s and is killed\n' "$(recorded_pid "$1")" "$3" >&2
    kill_process "$1"
  fi
}

kill_process() {
  signal_process "$1" KILL
  await_end "$1" 10 || fail "process $(recorded_pid "$1") survived SIGKILL"
}

# await_ready NAME PID_FILE LOG SECONDS CHECK...: until CHECK succeeds; tells why when the process ends or is late.
await_ready() {
  local name="$1" pid_file="$2" log="$3" deadline=$((SECONDS + $4))
  shift 4
  until "$@" >/dev/null 2>&1; do
    process_runs "$pid_file" || fail_with_log "$name ended while starting" "$log"
    ((SECONDS < deadline)) || fail_with_log "$name is not ready in time" "$log"
    sleep 0.1
  done
}

fail_with_log() {
  printf 'the last lines of %s:\n' "$2" >&2
  tail -n 30 "$2" >&2
  fail "$1"
}
