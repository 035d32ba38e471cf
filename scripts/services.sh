#!/usr/bin/env bash
# Postgres, MariaDB and Redis on loopback for the test suite, for machines without a container engine.
#
#   scripts/services.sh start [--own] [postgres] [mysql] [redis]     all three when none is named
#   scripts/services.sh stop [postgres] [mysql] [redis]
#   scripts/services.sh crash [postgres] [mysql] [redis]             ends them in the middle of their work
#
# `start` leaves alone what DURABLE_TEST_PG_URL, DURABLE_TEST_MYSQL_URL or DURABLE_TEST_REDIS_URL already
# reaches, unless --own is given, and prints the URLs to test with. It refuses a port that somebody else
# uses. `stop` ends only processes that run in its own folder: an answer on a port proves nothing.
#
# SERVICES_DIR, PG_PORT, MYSQL_PORT and REDIS_PORT choose the folder and the ports. Data in the folder
# survives a stop (that of Redis does not); nothing there is worth keeping. A crash may lose the last commits.
# Neither is so of a server that was started with KEEP_COMMITS=yes. Debian and Ubuntu; missing servers are installed when
# run as root.
set -euo pipefail

DIR="$(realpath -m "${SERVICES_DIR:-${TMPDIR:-/tmp}/durable-services}")"
PG_PORT="${PG_PORT:-5432}" MYSQL_PORT="${MYSQL_PORT:-3306}" REDIS_PORT="${REDIS_PORT:-6379}"
PG_COMMIT=off MYSQL_COMMIT=0 REDIS_COMMIT=no
if [ -n "${KEEP_COMMITS:-}" ]; then PG_COMMIT=on MYSQL_COMMIT=2 REDIS_COMMIT=yes; fi
PATH="$PATH:/usr/sbin"

fail() { echo "services: $*" >&2; exit 1; }
answers() { (exec 3<>"/dev/tcp/$1/$2") 2>/dev/null; }
need_free() { if answers 127.0.0.1 "$1"; then fail "port $1 is in use by another process; set $2 to another one"; fi; }
wait_for() { for _ in $(seq 1 300); do "$@" >/dev/null 2>&1 && return 0; sleep 0.1; done; fail "timed out: $*"; }
as() { local user="$1"; shift; if [ "$(id -u)" = 0 ]; then runuser -u "$user" -- "$@"; else "$@"; fi; }
folder_of() { mkdir -p "$2"; if [ "$(id -u)" = 0 ]; then chown "$1" "$2"; fi; chmod 700 "$2"; }

# pid_of PIDFILE FOLDER: the process of that file, if it runs in our folder; a stale or reused id does not
pid_of() {
  [ -s "$1" ] || return 1
  local pid; pid="$(head -1 "$1" | tr -d ' ')"
  [ "$(readlink "/proc/$pid/cwd" 2>/dev/null)" = "$2" ] && echo "$pid"
}
halt() {
  local pid; pid="$(pid_of "$1" "$2")" || return 0
  kill "-$3" "$pid"
  for _ in $(seq 1 300); do [ -e "/proc/$pid" ] || return 0; sleep 0.1; done
  fail "process $pid does not stop"
}
need_program() {
  command -v "$1" >/dev/null && return 0
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then fail "$1 is not installed (package $2)"; fi
  # RUNLEVEL=1 keeps the package from starting a server of its own.
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y -qq --no-install-recommends "$2" >/dev/null
}

# reached VARIABLE: its URL is set and something accepts connections there
reached() {
  local url="${!1:-}"; [ -n "$url" ] || return 1
  local address="${url#*://}"; address="${address%%[/?]*}"; address="${address##*@}"
  local host="${address%:*}" port="${address##*:}"
  if [ "$host" = "$address" ]; then port="$2"; fi
  answers "$host" "$port"
}

# Debian keeps the programs of Postgres out of PATH; the newest version wins.
find_postgres() { PATH="$(printf '%s:' $(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -Vr))$PATH"; }

start_postgres() {
  find_postgres
  command -v postgres >/dev/null || { need_program postgres postgresql; find_postgres; }
  if ! pid_of "$DIR/pg/postmaster.pid" "$DIR/pg" >/dev/null; then
    need_free "$PG_PORT" PG_PORT
    folder_of postgres "$DIR/pg"
    [ -f "$DIR/pg/PG_VERSION" ] || as postgres initdb -D "$DIR/pg" -A trust -U postgres -E UTF8 --no-sync >/dev/null
    as postgres pg_ctl -D "$DIR/pg" -w -l "$DIR/pg/log" -o "-p $PG_PORT -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off -c synchronous_commit=$PG_COMMIT -c full_page_writes=off -c max_connections=200" start >/dev/null
  fi
  psql -h 127.0.0.1 -p "$PG_PORT" -U postgres -d postgres -Atc "select 1 from pg_database where datname='test'" | grep -q 1 ||
    psql -q -h 127.0.0.1 -p "$PG_PORT" -U postgres -d postgres -c 'create database test'
}

start_mysql() {
  need_program mariadbd mariadb-server
  if ! pid_of "$DIR/my/pid" "$DIR/my" >/dev/null; then
    need_free "$MYSQL_PORT" MYSQL_PORT
    folder_of mysql "$DIR/my"
    local user=(); if [ "$(id -u)" = 0 ]; then user=(--user=mysql); fi
    [ -d "$DIR/my/mysql" ] || mariadb-install-db --no-defaults "${user[@]}" --datadir="$DIR/my" --auth-root-authentication-method=normal --skip-test-db >/dev/null 2>&1
    nohup mariadbd --no-defaults "${user[@]}" --datadir="$DIR/my" --port="$MYSQL_PORT" --bind-address=127.0.0.1 --socket=s.sock --pid-file="$DIR/my/pid" --innodb-flush-log-at-trx-commit=$MYSQL_COMMIT --max-connections=200 </dev/null >"$DIR/my.log" 2>&1 &
    wait_for mariadb-admin --no-defaults --protocol=tcp -h 127.0.0.1 -P "$MYSQL_PORT" -u root ping
  fi
  mariadb --no-defaults --protocol=tcp -h 127.0.0.1 -P "$MYSQL_PORT" -u root -e 'create database if not exists test'
}

start_redis() {
  need_program redis-server redis-server
  if ! pid_of "$DIR/redis/pid" "$DIR/redis" >/dev/null; then
    need_free "$REDIS_PORT" REDIS_PORT
    mkdir -p "$DIR/redis"
    redis-server --bind 127.0.0.1 --port "$REDIS_PORT" --save '' --appendonly "$REDIS_COMMIT" --daemonize yes --dir "$DIR/redis" --pidfile "$DIR/redis/pid" --logfile "$DIR/redis/log" >/dev/null
    wait_for redis-cli -p "$REDIS_PORT" ping
    wait_for test -s "$DIR/redis/pid"
  fi
}

start() {
  local variable url port
  case "$1" in
    postgres) variable=DURABLE_TEST_PG_URL port=5432 url="postgres://postgres@127.0.0.1:$PG_PORT/test" ;;
    mysql) variable=DURABLE_TEST_MYSQL_URL port=3306 url="mysql://root@127.0.0.1:$MYSQL_PORT/test" ;;
    redis) variable=DURABLE_TEST_REDIS_URL port=6379 url="redis://127.0.0.1:$REDIS_PORT" ;;
  esac
  if [ -z "$OWN" ] && reached "$variable" "$port"; then
    echo "# $1: $variable reaches a running server, nothing to start"
    return
  fi
  "start_$1"
  echo "export $variable=$url"
}

stop() {
  case "$1" in
    postgres) halt "$DIR/pg/postmaster.pid" "$DIR/pg" INT ;;
    mysql) halt "$DIR/my/pid" "$DIR/my" TERM ;;
    redis) halt "$DIR/redis/pid" "$DIR/redis" TERM ;;
  esac
}

crash() {
  case "$1" in
    postgres) halt "$DIR/pg/postmaster.pid" "$DIR/pg" QUIT ;;
    mysql) halt "$DIR/my/pid" "$DIR/my" KILL ;;
    redis) halt "$DIR/redis/pid" "$DIR/redis" KILL ;;
  esac
}

COMMAND="${1:-start}" OWN='' NAMES=()
for argument in "${@:2}"; do
  case "$argument" in
    --own) OWN=yes ;;
    postgres | mysql | redis) NAMES+=("$argument") ;;
    *) fail "unknown argument $argument" ;;
  esac
done
[ "${#NAMES[@]}" -gt 0 ] || NAMES=(postgres mysql redis)

case "$COMMAND" in
  start) mkdir -p "$DIR"; chmod 755 "$DIR"; for name in "${NAMES[@]}"; do start "$name"; done ;;
  stop) for name in "${NAMES[@]}"; do stop "$name"; done ;;
  crash) for name in "${NAMES[@]}"; do crash "$name"; done ;;
  *) fail "say start, stop or crash" ;;
esac
