# shellcheck shell=bash
# A private PostgreSQL server. Sourced by services.sh; needs processes.sh and ports.sh.

postgres_bin() {
  local found
  found="$(find /usr/lib/postgresql/*/bin -name initdb 2>/dev/null | sort -V | tail -n 1)"
  [[ -n "$found" ]] || found="$(command -v initdb)" ||
    fail "PostgreSQL is not installed; on Debian: apt-get install postgresql (or set DATABASE_URL)"
  dirname "$(readlink -f "$found")"
}

# PostgreSQL refuses to run as root, so that root hands it over to the postgres user.
AS_POSTGRES=()
if ((EUID == 0)); then
  AS_POSTGRES=(setpriv --reuid=postgres --regid=postgres --init-groups --)
fi

# Prints where the data lives: in the instance's folder, or, when the postgres user cannot reach that (a clone under
# a private home folder), in a temporary one that the instance remembers.
postgres_data() {
  local dir="$1"
  if [[ ! -e "$dir/data" ]]; then
    mkdir -m 700 "$dir/data"
    ((EUID != 0)) || chown postgres "$dir/data"
    if ! (cd / && "${AS_POSTGRES[@]}" test -w "$dir/data"); then
      rmdir "$dir/data"
      ln -s "$("${AS_POSTGRES[@]}" mktemp -d /tmp/kurier-postgres.XXXXXX)" "$dir/data"
    fi
  fi
  readlink -f "$dir/data"
}

init_postgres() {
  local bin="$1" data="$2" port="$3"
  "${AS_POSTGRES[@]}" "$bin/initdb" --pgdata="$data" --username=kurier --auth=trust --encoding=UTF8 --locale=C \
    --data-checksums --no-sync
  "${AS_POSTGRES[@]}" tee -a "$data/postgresql.conf" <<SETTINGS
listen_addresses = '127.0.0.1'
port = $port
unix_socket_directories = ''
shared_buffers = 256MB
max_connections = 200
max_wal_size = 4GB
SETTINGS
  # Known since PostgreSQL 15, and only where lz4 is built in: the server itself is asked.
  if "${AS_POSTGRES[@]}" "$bin/postgres" -D "$data" -C wal_compression -c wal_compression=lz4; then
    "${AS_POSTGRES[@]}" tee -a "$data/postgresql.conf" <<<"wal_compression = lz4"
  fi
}

create_database() {
  local psql=("$1/psql" --no-psqlrc --quiet -h 127.0.0.1 -p "$2" -U kurier -d postgres)
  if [[ -z "$("${psql[@]}" -Atc "SELECT 1 FROM pg_database WHERE datname = 'kurier'")" ]]; then
    "${psql[@]}" -c 'CREATE DATABASE kurier'
  fi
}

start_postgres() {
  local dir="$1/postgres" bin data port
  bin="$(postgres_bin)"
  mkdir -p "$dir"
  if ! process_runs "$dir/pid"; then
    choose_ports "$dir/port"
    port="$(cat "$dir/port")"
    data="$(postgres_data "$dir")"
    cd / # a folder that the postgres user may enter
    [[ -s "$data/PG_VERSION" ]] || init_postgres "$bin" "$data" "$port" >"$dir/log" 2>&1 ||
      fail_with_log "PostgreSQL's data folder could not be made" "$dir/log"
    start_process "$dir/pid" "$dir/log" "${AS_POSTGRES[@]}" "$bin/postgres" -D "$data"
  fi
  await_ready PostgreSQL "$dir/pid" "$dir/log" 60 \
    "$bin/pg_isready" -q -h 127.0.0.1 -p "$(cat "$dir/port")" -U kurier -d postgres
  create_database "$bin" "$(cat "$dir/port")"
  printf 'DATABASE_URL=postgres://kurier@127.0.0.1:%s/kurier\n' "$(cat "$dir/port")"
}

# "Fast" shutdown: sessions are ended, data is written.
stop_postgres() {
  stop_process "$1/postgres/pid" INT 30
}

# As a crash would, and completely: a server is not started again before its sessions' processes are gone.
kill_postgres() {
  local pid_file="$1/postgres/pid" sessions=() pid
  process_runs "$pid_file" || return 0
  mapfile -t sessions < <(child_processes "$(recorded_pid "$pid_file")")
  kill_process "$pid_file"
  for pid in "${sessions[@]}"; do
    kill -s KILL "$pid" 2>/dev/null || :
    while process_identity "$pid" >/dev/null; do sleep 0.02; done
  done
  # The dead server may stay a zombie for a while, which the next one would take for a rival.
  rm -f -- "$1/postgres/data/postmaster.pid"
}

remove_postgres() {
  local dir="$1/postgres"
  [[ -d "$dir" ]] || return 0
  stop_postgres "$1"
  [[ ! -e "$dir/data" ]] || rm -rf -- "$(readlink -f "$dir/data")"
  rm -rf -- "$dir"
}
