#!/usr/bin/env bash
# PostgreSQL with pgvector and Redis for the full-tier tests, on loopback, on a Debian machine.
#
#   scripts/services.sh install     installs what is missing (as root)
#   scripts/services.sh start DIR   installs, starts both with their data in DIR, prints DATABASE_URL=… and REDIS_URL=…
#   scripts/services.sh stop DIR    stops both; DIR can be deleted afterwards
#
# PGPORT and REDISPORT choose the ports; without them two free ones are taken.
set -euo pipefail

say() { echo "$*" >&2; }
is_root() { [ "$(id -u)" = 0 ]; }
# initdb and postgres refuse to run as root.
as_postgres() { if is_root; then (cd / && runuser -u postgres -- "$@"); else "$@"; fi; }

newest_postgres() { find /usr/lib/postgresql -mindepth 2 -maxdepth 3 -path '*/bin/postgres' 2>/dev/null | sort -V | tail -1 | xargs -r dirname; }
has_pgvector() { [ -f "/usr/share/postgresql/$1/extension/vector.control" ]; }

apt() {
  is_root || { say "Missing here: $*. Install it as root, or run this script as root."; exit 1; }
  DEBIAN_FRONTEND=noninteractive apt-get -qq -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "$@" >&2
}

# Debian starts a freshly installed server at once, on its standard port. We start our own: keep it from that while we install.
without_autostart() {
  local policy=/usr/sbin/policy-rc.d
  if [ -e $policy ]; then "$@"; return; fi
  printf '#!/bin/sh\nexit 101\n' >$policy && chmod 755 $policy
  local failed=0
  "$@" || failed=$?
  rm -f $policy
  return $failed
}

install_packages() {
  local missing=()
  [ -n "$(newest_postgres)" ] || missing+=(postgresql)
  command -v redis-server >/dev/null || missing+=(redis-server)
  if [ ${#missing[@]} -gt 0 ]; then
    say "Installing ${missing[*]} …"
    apt update
    without_autostart apt install --no-install-recommends "${missing[@]}"
  fi
  local major
  major=$(basename "$(dirname "$(newest_postgres)")")
  has_pgvector "$major" || install_pgvector "$major"
}

install_pgvector() {
  local major=$1
  say "Installing pgvector for PostgreSQL $major …"
  apt update
  if apt-cache show "postgresql-$major-pgvector" >/dev/null 2>&1; then
    apt install --no-install-recommends "postgresql-$major-pgvector"
  else
    apt install --no-install-recommends "postgresql-server-dev-$major" build-essential dpkg-dev
    build_pgvector "$major"
  fi
}

# Debian 12 has no pgvector: build it from the source package of Debian 13, from the mirror that this machine uses, with lists of its own.
build_pgvector() {
  local pg_config=/usr/lib/postgresql/$1/bin/pg_config mirror work
  mirror=$(awk '$1 == "URIs:" {print $2; exit} $1 == "deb" {for (i = 2; i <= NF; i++) if ($i ~ /^https?:/) {print $i; exit}}' \
    $(ls /etc/apt/sources.list.d/*.sources /etc/apt/sources.list 2>/dev/null))
  work=$(mktemp -d)
  chmod 755 "$work"
  mkdir -p "$work/parts" "$work/lists/partial"
  : >"$work/none.list"
  printf 'Types: deb-src\nURIs: %s\nSuites: trixie\nComponents: main\nSigned-By: /usr/share/keyrings/debian-archive-keyring.gpg\n' "$mirror" >"$work/parts/source.sources"
  local lists=(-o "Dir::Etc::sourcelist=$work/none.list" -o "Dir::Etc::sourceparts=$work/parts" -o "Dir::State::Lists=$work/lists")
  apt "${lists[@]}" update
  (
    cd "$work"
    apt "${lists[@]}" source --download-only pgvector
    tar xf pgvector_*.orig.tar.gz
    cd pgvector-*/
    make -s -j2 OPTFLAGS="" with_llvm=no PG_CONFIG="$pg_config" >&2
    make -s install with_llvm=no PG_CONFIG="$pg_config" >&2
  )
  rm -rf "$work"
}

free_port() { python3 - 2>/dev/null <<<'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])' || node -e 'const s = require("node:net").createServer().listen(0, "127.0.0.1", () => { console.log(s.address().port); s.close() })'; }

start() {
  local dir=$1 postgres pg_port redis_port
  install_packages
  postgres=$(newest_postgres)
  pg_port=${PGPORT:-$(free_port)} redis_port=${REDISPORT:-$(free_port)}
  unset PGPORT # PostgreSQL's own programs read it too
  # The postgres user must reach its data: a folder of mktemp -d is closed to it.
  mkdir -p "$dir/pg"
  dir=$(cd "$dir" && pwd)
  chmod 755 "$dir"
  : >"$dir/postgres.log"
  if is_root; then chown postgres "$dir/pg" "$dir/postgres.log"; fi
  [ -f "$dir/pg/PG_VERSION" ] || as_postgres "$postgres/initdb" -D "$dir/pg" -U lingtai --auth=trust --encoding=UTF8 --locale=C.UTF-8 >/dev/null
  echo "$postgres" >"$dir/postgres.bin"
  as_postgres "$postgres/pg_ctl" -D "$dir/pg" -w -t 60 -l "$dir/postgres.log" \
    -o "-p $pg_port -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c max_connections=200" start >/dev/null || { cat "$dir/postgres.log" >&2; exit 1; }
  as_postgres "$postgres/psql" -h 127.0.0.1 -p "$pg_port" -U lingtai -d postgres -Atqc "select 1 from pg_database where datname = 'lingtai'" | grep -q 1 ||
    as_postgres "$postgres/createdb" -h 127.0.0.1 -p "$pg_port" -U lingtai lingtai
  redis-server --daemonize yes --bind 127.0.0.1 --port "$redis_port" --save "" --appendonly no --dir "$dir" --pidfile "$dir/redis.pid" --logfile "$dir/redis.log" >/dev/null
  for _ in $(seq 50); do redis-cli -p "$redis_port" ping 2>/dev/null | grep -q PONG && break; sleep 0.1; done
  redis-cli -p "$redis_port" ping | grep -q PONG || { cat "$dir/redis.log" >&2; exit 1; }
  echo "DATABASE_URL=postgresql://lingtai@127.0.0.1:$pg_port/lingtai"
  echo "REDIS_URL=redis://127.0.0.1:$redis_port"
}

stop() {
  local dir=$1 pid
  if [ -f "$dir/pg/postmaster.pid" ]; then
    as_postgres "$(cat "$dir/postgres.bin")/pg_ctl" -D "$(cd "$dir" && pwd)/pg" -m immediate -w -t 30 stop >/dev/null || say "PostgreSQL in $dir did not stop."
  fi
  if [ -f "$dir/redis.pid" ]; then
    pid=$(cat "$dir/redis.pid")
    kill "$pid" 2>/dev/null || true # already ended
    for _ in $(seq 50); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
  fi
}

case ${1:-} in
  install) install_packages ;;
  start) start "${2:?a directory for the data}" ;;
  stop) stop "${2:?the directory given to start}" ;;
  *) say "usage: services.sh install | start DIR | stop DIR"; exit 2 ;;
esac
