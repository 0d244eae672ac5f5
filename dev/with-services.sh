#!/usr/bin/env bash
# Runs one command with PostgreSQL and RabbitMQ at hand: those that DATABASE_URL and AMQP_URL name, otherwise private
# ones that live as long as the command does. They are stopped on every way out, and what the command started through
# services.sh below KURIER_TEST_DIR with them.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=dev/processes.sh
source dev/processes.sh
# shellcheck source=dev/packages.sh
source dev/packages.sh

RUNS="$PWD/.local/runs"
RUN="$RUNS/$$"
STOP_SECONDS=30

# A run that was killed could not clean up after itself: the next one does.
remove_abandoned_runs() {
  local run
  for run in "$RUNS"/*/; do
    if [[ -f "$run/owner" ]] && ! process_runs "$run/owner"; then
      printf 'removing what the killed run %s left behind\n' "$(basename "$run")" >&2
      if process_runs "$run/command"; then
        kill -s KILL -- "-$(recorded_pid "$run/command")"
      fi
      remove_run "$run"
    fi
  done
}

remove_run() {
  local instance
  for instance in "$1"/tests/*/ "$1/services"; do
    [[ ! -d "$instance" ]] || dev/services.sh remove "$instance"
  done
  rm -rf -- "$1"
}

wanted_services() {
  [[ -n "${DATABASE_URL:-}" ]] || echo postgres
  [[ -n "${AMQP_URL:-}" ]] || echo rabbitmq
}

# Starts the services side by side and exports the variables that they print.
start_services() {
  local service line wanted
  mapfile -t wanted < <(wanted_services)
  ensure_installed "${wanted[@]}"
  for service in "${wanted[@]}"; do
    printf 'starting a private %s\n' "$service" >&2
    dev/services.sh "start-$service" "$RUN/services" >"$RUN/$service.env" &
    STARTING+=("$!")
  done
  for service in "${STARTING[@]}"; do
    wait "$service" || fail "a service did not start"
  done
  for service in "${wanted[@]}"; do
    while read -r line; do export "${line?}"; done <"$RUN/$service.env"
  done
}

# A session of its own, so that a signal reaches the command with all its children.
run_command() {
  setsid -- "$@" <&0 &
  COMMAND="$!"
  process_identity "$COMMAND" >"$RUN/command" || :
  wait "$COMMAND"
}

end_command() {
  local deadline=$((SECONDS + STOP_SECONDS))
  [[ -n "$COMMAND" ]] || return 0
  kill -s TERM -- "-$COMMAND" 2>/dev/null || return 0
  while kill -s 0 -- "-$COMMAND" 2>/dev/null && ((SECONDS < deadline)); do sleep 0.1; done
  kill -s KILL -- "-$COMMAND" 2>/dev/null || :
}

# Services that are still starting are awaited first: only then are all their processes known.
clean_up() {
  local status="$?"
  trap '' INT TERM HUP
  end_command
  wait "${STARTING[@]}" 2>/dev/null || :
  remove_run "$RUN"
  exit "$status"
}

main() {
  STARTING=()
  COMMAND=
  mkdir -p "$RUN/tests"
  process_identity "$$" >"$RUN/owner"
  trap clean_up EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
  remove_abandoned_runs
  start_services
  export KURIER_TEST_DIR="$RUN/tests"
  run_command "$@"
}

main "$@"
