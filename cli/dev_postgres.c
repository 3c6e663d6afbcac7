#include "cli/dev_postgres.h"

#include "core/clock.h"

#include <errno.h>
#include <glob.h>
#include <grp.h>
#include <libpq-fe.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME         "fermata" /* of the superuser and of the database */
#define SOCKET_MAX   90        /* sun_path has 108 bytes, and the file's name stands in it too */
#define INIT_MS      60000
#define START_MS     30000
#define STOP_MS      10000
#define POLL_MS      25
#define PORTS_TO_TRY 4

bool postgres_drops_root(void)
{
	return geteuid() == 0;
}

/* ---- where it comes from, and whom it runs as ---------------------------------------------- */

static bool has_binaries(const char *dir)
{
	char initdb[DEV_PATH_MAX], postgres[DEV_PATH_MAX];

	if (strlen(dir) > DEV_PATH_MAX - 16)
		return false;
	files_join(initdb, dir, "initdb");
	files_join(postgres, dir, "postgres");
	return access(initdb, X_OK) == 0 && access(postgres, X_OK) == 0;
}

/* The number in /usr/lib/postgresql/15/bin. */
static long version_of(const char *dir)
{
	return strtol(dir + strlen("/usr/lib/postgresql/"), NULL, 10);
}

/* The newest of Debian's. */
static bool find_packaged(char ret_dir[DEV_PATH_MAX])
{
	glob_t found;
	bool good = false;

	if (glob("/usr/lib/postgresql/*/bin", 0, NULL, &found) != 0)
		return false;
	for (size_t i = 0; i < found.gl_pathc; i++) {
		const char *dir = found.gl_pathv[i];
		if (has_binaries(dir) && (!good || version_of(dir) > version_of(ret_dir))) {
			snprintf(ret_dir, DEV_PATH_MAX, "%s", dir);
			good = true;
		}
	}
	globfree(&found);
	return good;
}

static enum fate find_binaries(char ret_dir[DEV_PATH_MAX], struct error *error)
{
	if (find_packaged(ret_dir))
		return FATE_OK;
	if (files_find_program("initdb", ret_dir)) {
		*strrchr(ret_dir, '/') = '\0';
		if (has_binaries(ret_dir))
			return FATE_OK;
	}
	return error_set(error, FATE_FATAL, ERR_SERVICE,
	                 "there is no PostgreSQL server (initdb, postgres) in /usr/lib/postgresql/*/bin or PATH: "
	                 "apt-get install postgresql");
}

static bool look_up(const char *name, struct account *ret_account)
{
	const struct passwd *entry = getpwnam(name);

	if (entry == NULL)
		return false;
	snprintf(ret_account->name, sizeof(ret_account->name), "%s", name);
	ret_account->uid = entry->pw_uid;
	ret_account->gid = entry->pw_gid;
	int len = DEV_GROUPS_MAX;
	if (getgrouplist(name, entry->pw_gid, ret_account->groups, &len) < 0) {
		ret_account->groups[0] = entry->pw_gid;
		len = 1;
	}
	ret_account->groups_len = (size_t)len;
	return true;
}

/* The account to run as; *ret is NULL when it is the caller's. */
static enum fate choose_account(struct account *account, const struct account **ret, struct error *error)
{
	*ret = NULL;
	if (!postgres_drops_root())
		return FATE_OK;
	if (!look_up("postgres", account) && !look_up("nobody", account))
		return error_set(error, FATE_FATAL, ERR_SERVICE,
		                 "PostgreSQL does not run as root, and there is neither a user postgres nor nobody");
	*ret = account;
	return FATE_OK;
}

/* ---- making the cluster -------------------------------------------------------------------- */

struct maker {
	struct postgres *postgres;
	const struct account *account;
	char bin[DEV_PATH_MAX];
	char home[DEV_PATH_MAX];     /* holds the data directory */
	char passfile[DEV_PATH_MAX]; /* until initdb has read it */
};

static enum fate give_away(const struct maker *maker, const char *path, struct error *error)
{
	if (maker->account != NULL && chown(path, maker->account->uid, maker->account->gid) != 0)
		return error_set_errno(error, FATE_FATAL, errno, "cannot give %s to user %s", path,
		                       maker->account->name);
	return FATE_OK;
}

static enum fate prepare_directory(struct maker *maker, struct error *error)
{
	char line[sizeof(maker->postgres->password) + 1];
	enum fate fate = files_make_directory(maker->home, 0700, error);

	if (fate == FATE_OK)
		fate = give_away(maker, maker->home, error);
	if (fate == FATE_OK)
		fate = files_random_hex(maker->postgres->password, sizeof(maker->postgres->password) - 1, error);
	if (fate != FATE_OK)
		return fate;
	snprintf(line, sizeof(line), "%s\n", maker->postgres->password);
	fate = files_write(maker->passfile, 0600, view_of(line), error);
	if (fate == FATE_OK)
		fate = give_away(maker, maker->passfile, error);
	return fate;
}

static enum fate init_cluster(struct maker *maker, struct error *error)
{
	char initdb[DEV_PATH_MAX], passfile[DEV_PATH_MAX + 16];
	struct process process;

	files_join(initdb, maker->bin, "initdb");
	snprintf(passfile, sizeof(passfile), "--pwfile=%s", maker->passfile);
	/* Nothing is in it yet that would have to outlive a power cut: the server itself runs with fsync on. */
	const char *argv[] = { initdb,
		                   "-D",
		                   maker->postgres->data,
		                   "-U",
		                   NAME,
		                   "--locale=C",
		                   "--no-sync",
		                   "--encoding=UTF8",
		                   passfile,
		                   "--auth=scram-sha-256",
		                   "--no-instructions",
		                   NULL };
	struct process_spec spec = {
		.name = "initdb",
		.argv = argv,
		.directory = maker->home,
		.log = maker->postgres->log,
		.account = maker->account,
	};
	enum fate fate = process_run(&spec, INIT_MS, NULL, NULL, &process, error);
	unlink(maker->passfile);
	if (fate == FATE_OK && process.exit_code != 0)
		fate =
			error_set(error, FATE_FATAL, ERR_SERVICE, "initdb could not make a cluster in %s (exit code %d)",
		              maker->postgres->data, process.exit_code);
	return fate;
}

/* ---- starting it --------------------------------------------------------------------------- */

static void format_dsn(struct postgres *postgres, const char *database, char *ret_dsn, size_t cap)
{
	snprintf(ret_dsn, cap, "host=127.0.0.1 port=%d dbname=%s user=" NAME " password=%s sslmode=disable",
	         postgres->port, database, postgres->password);
}

static enum fate launch(struct maker *maker, struct error *error)
{
	struct postgres *postgres = maker->postgres;
	char program[DEV_PATH_MAX], port[16], sockets[DEV_PATH_MAX + 32];

	files_join(program, maker->bin, "postgres");
	snprintf(port, sizeof(port), "%d", postgres->port);
	snprintf(sockets, sizeof(sockets), "unix_socket_directories=%s", postgres->socket);
	const char *argv[] = { program,
		                   "-D",
		                   postgres->data,
		                   "-p",
		                   port,
		                   "-c",
		                   "listen_addresses=127.0.0.1",
		                   "-c",
		                   sockets,
		                   "-c",
		                   "fsync=on",
		                   "-c",
		                   "max_connections=200",
		                   "-c",
		                   "logging_collector=off",
		                   NULL };
	/* SIGINT is PostgreSQL's fast shutdown: it disconnects everybody, and takes its shared memory away. */
	struct process_spec spec = {
		.name = "PostgreSQL",
		.argv = argv,
		.directory = maker->home,
		.log = postgres->log,
		.account = maker->account,
		.stop_signal = SIGINT,
	};
	return process_start(&postgres->process, &spec, error);
}

/* Until it answers. RETRY with ERR_SERVICE when it ended or takes too long. */
static enum fate await_server(struct postgres *postgres, struct error *error)
{
	int64_t end = clock_mono_ms() + START_MS;
	char dsn[sizeof(postgres->dsn)];

	format_dsn(postgres, "postgres", dsn, sizeof(dsn));
	while (PQping(dsn) != PQPING_OK) {
		if (process_ended(&postgres->process))
			return error_set(error, FATE_RETRY, ERR_SERVICE,
			                 "PostgreSQL ended while it was starting (exit code %d)",
			                 postgres->process.exit_code);
		if (clock_mono_ms() >= end)
			return error_set(error, FATE_RETRY, ERR_SERVICE,
			                 "PostgreSQL does not answer on port %d after %d s", postgres->port,
			                 START_MS / 1000);
		enum fate fate = process_pause(POLL_MS, error);
		if (fate != FATE_OK)
			return fate;
	}
	return FATE_OK;
}

/* A port may be taken between the look and the start: with another one, again. */
static enum fate start_on_some_port(struct maker *maker, struct error *error)
{
	enum fate fate = FATE_OK;

	for (int i = 0; i < PORTS_TO_TRY; i++) {
		fate = files_free_port(&maker->postgres->port, error);
		if (fate == FATE_OK)
			fate = launch(maker, error);
		if (fate == FATE_OK)
			fate = await_server(maker->postgres, error);
		if (fate != FATE_RETRY || processes_signal() != 0 || !process_ended(&maker->postgres->process))
			break;
	}
	return fate;
}

/* One statement on a connection of its own. */
static enum fate execute(const char *dsn, const char *statement, char *ret_version, size_t cap,
                         struct error *error)
{
	enum fate fate = FATE_OK;
	PGconn *connection = PQconnectdb(dsn);
	PGresult *result = NULL;

	if (PQstatus(connection) == CONNECTION_OK)
		result = PQexec(connection, statement);
	if (PQresultStatus(result) != PGRES_COMMAND_OK)
		fate = error_set(error, FATE_RETRY, ERR_SERVICE, "the new PostgreSQL refuses %s: %s", statement,
		                 PQerrorMessage(connection));
	if (fate == FATE_OK && ret_version != NULL)
		snprintf(ret_version, cap, "%s", PQparameterStatus(connection, "server_version"));
	PQclear(result);
	PQfinish(connection);
	return fate;
}

static enum fate make_database(struct postgres *postgres, struct error *error)
{
	char dsn[sizeof(postgres->dsn)];

	format_dsn(postgres, "postgres", dsn, sizeof(dsn));
	enum fate fate =
		execute(dsn, "CREATE DATABASE " NAME, postgres->version, sizeof(postgres->version), error);
	postgres->version[strcspn(postgres->version, " ")] = '\0'; /* "15.14 (Debian ...)" */
	format_dsn(postgres, NAME, postgres->dsn, sizeof(postgres->dsn));
	return fate;
}

enum fate postgres_start(struct postgres *postgres, const char *root, const char *logs, struct error *error)
{
	struct account account;
	struct maker maker = { .postgres = postgres };

	memset(postgres, 0, sizeof(*postgres));
	files_join(postgres->log, logs, "postgres.log");
	files_join(maker.home, root, "postgres");
	files_join(maker.passfile, maker.home, "password");
	files_join(postgres->data, maker.home, "data");
	snprintf(postgres->socket, sizeof(postgres->socket), "%s",
	         strlen(maker.home) < SOCKET_MAX ? maker.home : "");
	enum fate fate = find_binaries(maker.bin, error);
	if (fate == FATE_OK)
		fate = choose_account(&account, &maker.account, error);
	if (fate == FATE_OK && maker.account != NULL)
		snprintf(postgres->user, sizeof(postgres->user), "%s", account.name);
	if (fate == FATE_OK)
		fate = prepare_directory(&maker, error);
	if (fate == FATE_OK)
		fate = init_cluster(&maker, error);
	if (fate == FATE_OK)
		fate = start_on_some_port(&maker, error);
	if (fate == FATE_OK)
		fate = make_database(postgres, error);
	return fate;
}

enum fate postgres_checkpoint(const struct postgres *postgres, struct error *error)
{
	return execute(postgres->dsn, "CHECKPOINT", NULL, 0, error);
}

void postgres_stop(struct postgres *postgres)
{
	(void)process_stop(&postgres->process, STOP_MS);
}
