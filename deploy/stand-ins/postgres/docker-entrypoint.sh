#!/bin/bash
# As the image postgres, for what docker-compose.yml uses of it: POSTGRES_USER, POSTGRES_DB,
# POSTGRES_PASSWORD or POSTGRES_PASSWORD_FILE, POSTGRES_INITDB_ARGS.
set -euo pipefail

user=${POSTGRES_USER:-postgres}
database=${POSTGRES_DB:-$user}
password=${POSTGRES_PASSWORD:-}
[[ -z ${POSTGRES_PASSWORD_FILE:-} ]] || password=$(<"$POSTGRES_PASSWORD_FILE")

if [[ ! -s $PGDATA/PG_VERSION ]]; then
	[[ -n $password ]] || { echo "POSTGRES_PASSWORD or POSTGRES_PASSWORD_FILE must be set" >&2 && exit 1; }
	# shellcheck disable=SC2086  # several words, as in the image
	initdb --encoding=UTF8 --locale=C.UTF-8 --username="$user" --pwfile=<(printf '%s\n' "$password") ${POSTGRES_INITDB_ARGS:-}
	printf 'host all all all scram-sha-256\n' >>"$PGDATA/pg_hba.conf"
	# As there: set up over the socket only, so that nobody connects too early.
	pg_ctl -w -s -o "-c listen_addresses='' -c unix_socket_directories=/var/run/postgresql" start
	[[ $database == postgres ]] || psql -q -h /var/run/postgresql -U "$user" -d postgres -c "CREATE DATABASE \"$database\""
	pg_ctl -w -s -m fast stop
fi
exec "$@" -c listen_addresses='*'
