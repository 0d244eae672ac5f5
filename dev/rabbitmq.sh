# shellcheck shell=bash
# A private RabbitMQ node with the management plugin. Sourced by services.sh; needs processes.sh and ports.sh.
# Its block of ports: AMQP, management API, Erlang distribution, epmd.

# The scripts beside the server itself: the wrappers in sbin change user and lose HOME.
rabbitmq_bin() {
  local server=/usr/lib/rabbitmq/bin/rabbitmq-server
  [[ -x "$server" ]] || server="$(command -v rabbitmq-server)" ||
    fail "RabbitMQ is not installed; on Debian: apt-get install rabbitmq-server (or set AMQP_URL)"
  dirname "$(readlink -f "$server")"
}

# Fills NODE_ENVIRONMENT with what makes a node this one and no other, on loopback only.
node_environment() {
  local dir="$1" port
  port="$(cat "$dir/port")"
  NODE_ENVIRONMENT=(
    HOME="$dir"
    RABBITMQ_NODENAME="kurier-$port@localhost"
    RABBITMQ_CONF_ENV_FILE=/dev/null
    RABBITMQ_CONFIG_FILE="$dir/rabbitmq.conf"
    RABBITMQ_ENABLED_PLUGINS_FILE="$dir/enabled_plugins"
    RABBITMQ_MNESIA_BASE="$dir/data"
    RABBITMQ_LOG_BASE="$dir"
    RABBITMQ_LOGS=-
    RABBITMQ_PID_FILE="$dir/node.pid"
    RABBITMQ_DIST_PORT="$((port + 2))"
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="-kernel inet_dist_use_interface {127,0,0,1}"
    ERL_EPMD_PORT="$((port + 3))"
    ERL_EPMD_ADDRESS=127.0.0.1
  )
}

write_node_config() {
  local dir="$1" port
  port="$(cat "$dir/port")"
  printf '[rabbitmq_management].\n' >"$dir/enabled_plugins"
  cat >"$dir/rabbitmq.conf" <<SETTINGS
listeners.tcp.1 = 127.0.0.1:$port
management.tcp.ip = 127.0.0.1
management.tcp.port = $((port + 1))
log.console.level = info
SETTINGS
}

# Whether the node answers an AMQP header: it does so last of all, when queues are recovered and plugins run.
amqp_answers() {
  local descriptor byte
  { exec {descriptor}<>"/dev/tcp/127.0.0.1/$1"; } 2>/dev/null || return 1
  printf 'AMQP\0\0\11\1' >&"$descriptor"
  read -r -t 2 -N 1 -u "$descriptor" byte
  exec {descriptor}>&-
  [[ -n "$byte" ]]
}

# A node that finds no epmd gives up, so that ours comes first. It survives a killed node and keeps its ports taken.
start_epmd() {
  local dir="$1"
  process_runs "$dir/epmd.pid" && return
  choose_ports "$dir/port"
  node_environment "$dir"
  start_process "$dir/epmd.pid" "$dir/log" env "${NODE_ENVIRONMENT[@]}" epmd
  await_ready epmd "$dir/epmd.pid" "$dir/log" 20 port_answers "$(($(cat "$dir/port") + 3))"
}

start_rabbitmq() {
  local dir="$1/rabbitmq" bin port
  bin="$(rabbitmq_bin)"
  mkdir -p "$dir/data"
  start_epmd "$dir"
  port="$(cat "$dir/port")"
  if ! process_runs "$dir/pid"; then
    write_node_config "$dir"
    node_environment "$dir"
    # With input "allowed" the start script becomes the node instead of waiting beside it: one pid, the right one.
    start_process "$dir/pid" "$dir/log" \
      env "${NODE_ENVIRONMENT[@]}" RABBITMQ_ALLOW_INPUT=1 "$bin/rabbitmq-server" -noinput
  fi
  await_ready RabbitMQ "$dir/pid" "$dir/log" 120 amqp_answers "$port"
  printf 'AMQP_URL=amqp://guest:guest@127.0.0.1:%d/%%2f\n' "$port"
  printf 'KURIER_TEST_RABBITMQ_API=http://guest:guest@127.0.0.1:%d/api\n' "$((port + 1))"
}

stop_rabbitmq() {
  stop_process "$1/rabbitmq/pid" TERM 60
  stop_process "$1/rabbitmq/epmd.pid" TERM 10
}

kill_rabbitmq() {
  kill_process "$1/rabbitmq/pid"
}

# The node keeps its address and forgets everything else: a broker whose disk was replaced.
wipe_rabbitmq() {
  kill_rabbitmq "$1"
  rm -rf -- "$1/rabbitmq/data"
}

rabbitmqctl_in() {
  node_environment "$1/rabbitmq"
  shift
  exec env "${NODE_ENVIRONMENT[@]}" "$(rabbitmq_bin)/rabbitmqctl" "$@"
}

remove_rabbitmq() {
  [[ -d "$1/rabbitmq" ]] || return 0
  stop_rabbitmq "$1"
  rm -rf -- "$1/rabbitmq"
}
