/* A keyring from a command: the hook for a KMS or a password store. */
#include "vault/keyring.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define REAP_MS 5 /* how often an ended command is looked for, once it has closed its output */

struct command {
	const char *name; /* borrows */
	pid_t pid;
	int64_t deadline_ms; /* clock_mono_ms */
};

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* What the worker does with signals is not the command's affair. Its own process group, so that its
 * children can be killed with it. */
static int spawn_quietly(const char *const *argv, int output, pid_t *ret_pid)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t none, defaults;

	sigemptyset(&none);
	sigemptyset(&defaults);
	sigaddset(&defaults, SIGPIPE);
	sigaddset(&defaults, SIGHUP);
	sigaddset(&defaults, SIGINT);
	sigaddset(&defaults, SIGTERM);
	posix_spawn_file_actions_init(&files);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes,
	                         POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setpgroup(&attributes, 0);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &defaults);
	int failed = posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
	if (failed == 0)
		failed = posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	if (failed == 0)
		failed = posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	if (failed == 0)
		failed = posix_spawnp(ret_pid, argv[0], &files, &attributes, (char *const *)argv, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&files);
	return failed;
}

static enum fate start(const char *const *argv, struct command *command, int *ret_output, struct error *error)
{
	__attribute__((cleanup(close_fd))) int writer = -1;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) != 0)
		return error_set_errno(error, FATE_RETRY, errno, "no pipe for keyring command %s", argv[0]);
	writer = ends[1];
	int failed = spawn_quietly(argv, writer, &command->pid);
	if (failed == 0) {
		*ret_output = ends[0];
		return FATE_OK;
	}
	close(ends[0]);
	if (failed == EAGAIN || failed == ENOMEM)
		return error_set_errno(error, FATE_RETRY, failed, "keyring command %s cannot be started", argv[0]);
	return error_set_native(error, FATE_FATAL, ERR_USAGE, strerrorname_np(failed),
	                        "keyring command %s cannot be started: %s", argv[0], strerrordesc_np(failed));
}

static enum fate too_slow(const struct command *command, struct error *error)
{
	return error_set(error, FATE_RETRY, ERR_KEY, "keyring command %s did not end in time, and was killed",
	                 command->name);
}

/* Until the output ends, the time is up, or there is more than cap. */
static enum fate read_output(const struct command *command, int output, uint8_t *text, size_t cap,
                             size_t *ret_len, struct error *error)
{
	size_t len = 0;

	for (;;) {
		struct pollfd ready = { .fd = output, .events = POLLIN };
		int64_t left = command->deadline_ms - clock_mono_ms();
		if (left <= 0)
			return too_slow(command, error);
		int polled = poll(&ready, 1, (int)left);
		if (polled == 0 || (polled < 0 && errno == EINTR))
			continue;
		uint8_t surplus;
		ssize_t got = read(output, len < cap ? text + len : &surplus, len < cap ? cap - len : 1);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return error_set_errno(error, FATE_RETRY, errno, "keyring command %s cannot be read",
			                       command->name);
		if (got == 0)
			break;
		if (len == cap)
			return error_set(error, FATE_FATAL, ERR_USAGE,
			                 "keyring command %s wrote more than %zu bytes: that is no keyring",
			                 command->name, cap);
		len += (size_t)got;
	}
	*ret_len = len;
	return FATE_OK;
}

/* Waits until it ends or the time is up. Returns what waitpid does; 0: the time is up. */
static pid_t reap(const struct command *command, int *ret_status)
{
	const struct timespec nap = { .tv_nsec = REAP_MS * 1000000L };

	for (;;) {
		pid_t ended = waitpid(command->pid, ret_status, WNOHANG);
		if (ended != 0 && !(ended < 0 && errno == EINTR))
			return ended;
		if (clock_mono_ms() >= command->deadline_ms)
			return 0;
		nanosleep(&nap, NULL);
	}
}

static void kill_all(const struct command *command)
{
	kill(-command->pid, SIGKILL);
	while (waitpid(command->pid, NULL, 0) < 0 && errno == EINTR)
		;
}

/* How did it end? Only an exit with 0 means that the output is whole. */
static enum fate finish(const struct command *command, struct error *error)
{
	int status = 0;
	pid_t ended = reap(command, &status);

	if (ended == 0) {
		kill_all(command);
		return too_slow(command, error);
	}
	if (ended < 0)
		return error_set_errno(error, FATE_RETRY, errno, "how keyring command %s ended is not known",
		                       command->name);
	if (WIFSIGNALED(status))
		return error_set(error, FATE_RETRY, ERR_KEY, "keyring command %s was ended by signal %d",
		                 command->name, WTERMSIG(status));
	if (WEXITSTATUS(status) != 0)
		return error_set(error, FATE_RETRY, ERR_KEY, "keyring command %s ended with exit code %d",
		                 command->name, WEXITSTATUS(status));
	return FATE_OK;
}

enum fate keyring_read_command(const char *const *argv, int64_t timeout_ms, uint8_t *text, size_t cap,
                               size_t *ret_len, struct error *error)
{
	__attribute__((cleanup(close_fd))) int output = -1;
	struct command command = { .name = argv[0], .deadline_ms = clock_mono_ms() + timeout_ms };

	enum fate fate = start(argv, &command, &output, error);
	if (fate != FATE_OK)
		return fate;
	fate = read_output(&command, output, text, cap, ret_len, error);
	if (fate != FATE_OK) {
		kill_all(&command);
		return fate;
	}
	return finish(&command, error);
}
