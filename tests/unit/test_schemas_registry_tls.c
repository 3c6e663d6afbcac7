// links: schemas core
/* The registry's client over TLS: whom it trusts, and that whom it does not trust is a registry to be tried
 * again. */
#include "tests/unit/test_registry.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

/* Two authorities; the server's certificate and a client's are of the first; one for another name. */
static const char make_files[] =
	"set -e\n"
	"key='-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes'\n"
	"for name in ca other; do\n"
	"	openssl req -x509 $key -keyout $name.key -out $name.pem -subj /CN=$name -days 2\n"
	"done\n"
	"for name in 127.0.0.1 127.0.0.2 127.0.0.3; do\n"
	"	openssl req $key -keyout $name.key -out $name.csr -subj /CN=$name -addext subjectAltName=IP:$name\n"
	"	openssl x509 -req -in $name.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out $name.pem -days 2"
	" -copy_extensions copy\n"
	"done\n"
	"openssl pkey -in 127.0.0.3.key -aes128 -passout pass:hunter2 -out locked.key\n"
	"mkdir -p schemas/ids\n"
	"printf 'HTTP/1.1 200 OK\\r\\nContent-Length: 20\\r\\n\\r\\n{\"schema\":\"\\\\\"int\\\\\"\"}' "
	">schemas/ids/7\n";

struct server {
	pid_t pid;
	char url[64];
	int64_t timeout_ms; /* how long to wait for it */
};

static pid_t running = -1; /* the server of this test: one that fails leaves it behind */

static char folder[] = "/tmp/fermata-tls-XXXXXX";

/* Runs a shell in the folder; output -1: it says nothing to anybody. */
static pid_t start_shell(const char *script, int output)
{
	const char *argv[] = { "sh", "-c", script, NULL };
	posix_spawn_file_actions_t files;
	pid_t pid = -1;

	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	if (output >= 0)
		posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
	else
		posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addchdir_np(&files, folder);
	assert_int_equal(posix_spawnp(&pid, argv[0], &files, NULL, (char *const *)(uintptr_t)argv, environ), 0);
	posix_spawn_file_actions_destroy(&files);
	return pid;
}

static int end_of(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0)
		assert_int_equal(errno, EINTR);
	return status;
}

static void stop(const struct server *server)
{
	kill(server->pid, SIGKILL);
	(void)end_of(server->pid);
	running = -1;
}

static int make_folder(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(folder));
	assert_int_equal(end_of(start_shell(make_files, -1)), 0);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	assert_int_equal(end_of(start_shell("rm -rf \"$PWD\"", -1)), 0);
	return 0;
}

/* A server of openssl's that gives away the files of the folder. */
static struct server serve(const char *certificate, const char *options)
{
	struct server server = { .timeout_ms = 20000 };
	char script[400], said[4096];
	size_t len = 0;
	int ends[2];
	unsigned port = 0;

	snprintf(script, sizeof(script),
	         "exec openssl s_server -accept 127.0.0.1:0 -HTTP -cert %s.pem -key %s.key %s", certificate,
	         certificate, options);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	server.pid = start_shell(script, ends[1]);
	running = server.pid;
	close(ends[1]);
	while (port == 0 && len + 1 < sizeof(said)) {
		ssize_t got = read(ends[0], said + len, sizeof(said) - len - 1);
		if (got <= 0)
			fail_msg("openssl s_server ended: %.*s", (int)len, said);
		len += (size_t)got;
		said[len] = '\0';
		const char *accept = strstr(said, "ACCEPT 127.0.0.1:");
		if (accept != NULL && strchr(accept, '\n') != NULL)
			port = (unsigned)strtoul(accept + 17, NULL, 10);
	}
	close(ends[0]);
	snprintf(server.url, sizeof(server.url), "https://127.0.0.1:%u", port);
	return server;
}

static const char *in_folder(const char *name, char path[64])
{
	snprintf(path, 64, "%s/%s", folder, name);
	return path;
}

struct files {
	const char *ca, *cert, *key;
};

/* says NULL: it works. */
static void ask(const struct server *server, const struct files *files, const char *says)
{
	char ca[64], cert[64], key[64];
	struct registry_settings settings = { .url = server->url, .timeout_ms = server->timeout_ms };
	struct registry *registry = NULL;
	struct error error = { 0 };
	struct arena *arena = arena_new(ROOM);
	assert_non_null(arena);
	struct view text;

	settings.ca_file = files->ca == NULL ? NULL : in_folder(files->ca, ca);
	settings.cert_file = files->cert == NULL ? NULL : in_folder(files->cert, cert);
	settings.key_file = files->key == NULL ? NULL : in_folder(files->key, key);
	if (registry_open(&registry, &settings, &error) != FATE_OK)
		fail_msg("%s", error.message);
	enum fate fate = registry_by_id(registry, 7, arena, &text, &error);
	if (fate != (says == NULL ? FATE_OK : FATE_RETRY) ||
	    (says != NULL && strstr(error.message, says) == NULL))
		fail_msg("fate %s, not '%s': %s", error_fate_name(fate), says == NULL ? "" : says, error.message);
	if (says == NULL)
		assert_true(view_equal_text(text, "\"int\""));
	else
		assert_int_equal(error.code, ERR_SERVICE);
	registry_close(registry);
	arena_free(arena);
}

static void test_authorities(void **state)
{
	struct server server = serve("127.0.0.1", "");

	(void)state;
	ask(&server, &(struct files){ .ca = "ca.pem" }, NULL);
	ask(&server, &(struct files){ .ca = "other.pem" }, "registry.ca_file");
	ask(&server, &(struct files){ .ca = NULL }, "registry.ca_file");
	ask(&server, &(struct files){ .ca = "ca.key" }, "registry.ca_file");
	ask(&server, &(struct files){ .ca = "ca.pem" }, NULL);
	stop(&server);
	ask(&server, &(struct files){ .ca = "ca.pem" }, "is it up");
}

static void test_other_name(void **state)
{
	struct server server = serve("127.0.0.2", "");

	(void)state;
	ask(&server, &(struct files){ .ca = "ca.pem" }, "127.0.0.1");
	stop(&server);
}

static void test_client_certificate(void **state)
{
	struct server server = serve("127.0.0.1", "-Verify 1 -CAfile ca.pem -verify_return_error");

	(void)state;
	ask(&server, &(struct files){ .ca = "ca.pem" }, "gives no answer");
	ask(&server, &(struct files){ "ca.pem", "127.0.0.3.pem", "127.0.0.3.key" }, NULL);
	ask(&server, &(struct files){ "ca.pem", "127.0.0.3.pem", "127.0.0.2.key" }, "registry.key_file");
	ask(&server, &(struct files){ "ca.pem", "127.0.0.3.pem", "locked.key" }, "registry.key_file");
	stop(&server);
}

/* http:// where TLS is spoken, and the other way round. */
static void test_half_tls(void **state)
{
	struct fixture *fixture = *state;
	struct server server = { .timeout_ms = 500 };

	snprintf(server.url, sizeof(server.url), "https://127.0.0.1:%u", fixture->standin->port);
	RULES({ NULL, JSON, "{\"schema\":\"\\\"int\\\"\"}", PLAIN });
	ask(&server, &(struct files){ .ca = "ca.pem" }, "gives no answer");
	server = serve("127.0.0.1", "");
	memmove(server.url + 4, server.url + 5, strlen(server.url + 5) + 1);
	ask(&server, &(struct files){ .ca = NULL }, "gives no answer");
	stop(&server);
}

static int stop_running(void **state)
{
	(void)state;
	if (running > 0)
		stop(&(struct server){ .pid = running });
	return 0;
}

static int stop_both(void **state)
{
	(void)stop_running(state);
	return tear_down(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_authorities, stop_running),
		cmocka_unit_test_teardown(test_other_name, stop_running),
		cmocka_unit_test_teardown(test_client_certificate, stop_running),

		cmocka_unit_test_setup_teardown(test_half_tls, set_up, stop_both),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
