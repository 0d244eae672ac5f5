#!/usr/bin/env bash
# Private instances of PostgreSQL and RabbitMQ, each under a folder of its own, on 127.0.0.1 only.
# Installs nothing (packages.sh does) and never touches a service that it did not start.
set -euo pipefail

HERE="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
# shellcheck source=dev/processes.sh
source "$HERE/processes.sh"
# shellcheck source=dev/ports.sh
source "$HERE/ports.sh"
# shellcheck source=dev/postgres.sh
source "$HERE/postgres.sh"
# shellcheck source=dev/rabbitmq.sh
source "$HERE/rabbitmq.sh"

usage() {
  cat <<'HELP'
usage: dev/services.sh COMMAND DIR

  start-postgres DIR, start-rabbitmq DIR      start (again) with the data of DIR; prints the URLs as KEY=VALUE lines
  stop-postgres DIR, stop-rabbitmq DIR        stop in order; the data stays
  restart-postgres DIR, restart-rabbitmq DIR  stop and start at the same address
  kill-postgres DIR, kill-rabbitmq DIR        kill -9; start brings it back at the same address
  wipe-rabbitmq DIR                           kill -9 and delete what the broker held
  rabbitmqctl DIR ARGUMENTS...                run rabbitmqctl against the instance
  remove DIR                                  stop whatever runs in DIR and delete its data and logs
HELP
}

main() {
  local command="${1:-help}" dir
  if [[ "$command" == help || $# -lt 2 ]]; then
    usage
    [[ "$command" == help ]] || exit 64
    return
  fi
  mkdir -p "$2"
  dir="$(cd "$2" && pwd)"
  shift 2
  case "$command" in
    start-postgres) start_postgres "$dir" ;;
    start-rabbitmq) start_rabbitmq "$dir" ;;
    stop-postgres) stop_postgres "$dir" ;;
    stop-rabbitmq) stop_rabbitmq "$dir" ;;
    restart-postgres)
      stop_postgres "$dir"
      start_postgres "$dir"
      ;;
    restart-rabbitmq)
      stop_rabbitmq "$dir"
      start_rabbitmq "$dir"
      ;;
    kill-postgres) kill_postgres "$dir" ;;
    kill-rabbitmq) kill_rabbitmq "$dir" ;;
    wipe-rabbitmq) wipe_rabbitmq "$dir" ;;
    rabbitmqctl) rabbitmqctl_in "$dir" "$@" ;;
    remove)
      remove_postgres "$dir"
      remove_rabbitmq "$dir"
      ;;
    *)
      usage >&2
      exit 64
      ;;
  esac
}

main "$@"
