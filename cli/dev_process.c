/* dev_process.c - between fork and exec only what is safe when other threads exist (the mock cluster has some). */
#include "cli/dev_process.h"

#include "core/clock.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define LINE_MAX_BYTES 2048
#define POLL_MS        20

static const int ending[] = { SIGINT, SIGTERM, SIGHUP };

/* The process's own, like the signals. */
static sigset_t waited_for;
static int asked_by;

/* A signal that is ignored (nohup, a shell's background job) stays so. */
static bool is_ignored(int number)
{
	struct sigaction action;
	return sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

enum fate processes_begin(struct error *error)
{
	struct sigaction plain = { .sa_handler = SIG_DFL };

	asked_by = 0;
	sigemptyset(&waited_for);
	sigaddset(&waited_for, SIGCHLD);
	for (size_t i = 0; i < sizeof(ending) / sizeof(ending[0]); i++) {
		if (!is_ignored(ending[i]))
			sigaddset(&waited_for, ending[i]);
	}
	if (sigaction(SIGCHLD, &plain, NULL) != 0 || sigprocmask(SIG_BLOCK, &waited_for, NULL) != 0)
		return error_set_errno(error, FATE_FATAL, errno, "cannot set up signals");
	return FATE_OK;
}

int processes_signal(void)
{
	return asked_by;
}

/* Sleeps ms, less when a signal comes. */
static void doze(int64_t ms)
{
	struct timespec wait = { .tv_sec = ms / 1000, .tv_nsec = (ms % 1000) * 1000000 };
	int number = sigtimedwait(&waited_for, NULL, &wait);

	if (number > 0 && number != SIGCHLD && asked_by == 0)
		asked_by = number;
}

enum fate process_pause(int64_t ms, struct error *error)
{
	if (asked_by == 0)
		doze(ms);
	if (asked_by != 0)
		return error_set(error, FATE_RETRY, ERR_SYSTEM, "interrupted by SIG%s", sigabbrev_np(asked_by));
	return FATE_OK;
}

/* ---- starting ------------------------------------------------------------------------------ */

/* What the child of fork needs, so that it has nothing left to find out. */
struct launch {
	const struct process_spec *spec;
	pid_t parent;
	int stop_signal;
	int log;     /* file descriptors */
	int nothing; /* /dev/null */
	int report;  /* where errno goes when exec does not come about */
};

static bool become(const struct account *account)
{
	return setgroups(account->groups_len, account->groups) == 0 &&
	       setresgid(account->gid, account->gid, account->gid) == 0 &&
	       setresuid(account->uid, account->uid, account->uid) == 0;
}

/* The signals as a program expects them: ours are blocked, and blocked ones are inherited. */
static void reset_signals(void)
{
	struct sigaction plain = { .sa_handler = SIG_DFL };
	sigset_t none;

	sigaction(SIGPIPE, &plain, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* In the child. A change of account takes the death signal away again, so that comes after it; a parent that
 * died before it is told by its pid. */
static bool prepare(const struct launch *launch)
{
	const struct process_spec *spec = launch->spec;

	if (setpgid(0, 0) != 0 || dup2(launch->nothing, STDIN_FILENO) < 0 ||
	    dup2(launch->log, STDOUT_FILENO) < 0 || dup2(launch->log, STDERR_FILENO) < 0)
		return false;
	if (spec->account != NULL && !become(spec->account))
		return false;
	if (prctl(PR_SET_PDEATHSIG, launch->stop_signal) != 0 || getppid() != launch->parent)
		return false;
	return spec->directory == NULL || chdir(spec->directory) == 0;
}

_Noreturn static void child(const struct launch *launch)
{
	reset_signals();
	if (prepare(launch)) {
		/* Descriptors that a library opened without O_CLOEXEC; an old kernel says no, and loses nothing. */
		(void)close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
		execv(launch->spec->argv[0], (char *const *)launch->spec->argv);
	}
	int errnum = errno;
	if (write(launch->report, &errnum, sizeof(errnum)) < 0)
		_exit(126);
	_exit(127);
}

/* Waits for exec, which closes the pipe, or for errno to come out of it. */
static enum fate await_exec(pid_t pid, int report, const struct process_spec *spec, struct error *error)
{
	int errnum = 0;
	ssize_t got;

	do {
		got = read(report, &errnum, sizeof(errnum));
	} while (got < 0 && errno == EINTR);
	if (got == 0)
		return FATE_OK;
	(void)waitpid(pid, NULL, 0);
	return error_set_errno(error, FATE_FATAL, got == (ssize_t)sizeof(errnum) ? errnum : EIO,
	                       "cannot start %s (%s)", spec->name, spec->argv[0]);
}

static enum fate fork_child(struct process *process, struct launch *launch, struct error *error)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) != 0)
		return error_set_errno(error, FATE_FATAL, errno, "cannot start %s", launch->spec->name);
	launch->report = ends[1];
	launch->parent = getpid();
	pid_t pid = fork();
	if (pid == 0)
		child(launch);
	int errnum = errno;
	close(ends[1]);
	enum fate fate = pid < 0 ? error_set_errno(error, FATE_FATAL, errnum, "cannot start %s", process->name)
	                         : await_exec(pid, ends[0], launch->spec, error);
	close(ends[0]);
	if (fate == FATE_OK) {
		process->pid = pid;
		process->running = true;
	}
	return fate;
}

enum fate process_start(struct process *process, const struct process_spec *spec, struct error *error)
{
	int stop_signal = spec->stop_signal != 0 ? spec->stop_signal : SIGTERM;
	struct launch launch = { .spec = spec, .stop_signal = stop_signal };

	*process = (struct process){ .stop_signal = stop_signal, .exit_code = -1 };
	snprintf(process->name, sizeof(process->name), "%s", spec->name);
	snprintf(process->log, sizeof(process->log), "%s", spec->log);
	launch.log = open(spec->log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	if (launch.log < 0)
		return error_set_errno(error, FATE_FATAL, errno, "cannot write %s", spec->log);
	launch.nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
	enum fate fate = launch.nothing < 0 ? error_set_errno(error, FATE_FATAL, errno, "cannot open /dev/null")
	                                    : fork_child(process, &launch, error);
	if (launch.nothing >= 0)
		close(launch.nothing);
	close(launch.log);
	return fate;
}

/* ---- ending -------------------------------------------------------------------------------- */

bool process_ended(struct process *process)
{
	int status;

	if (!process->running)
		return true;
	pid_t got = waitpid(process->pid, &status, WNOHANG);
	if (got == 0 || (got < 0 && errno == EINTR))
		return false;
	assert(got == process->pid); /* nobody else waits for our children */
	process->exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	process->running = false;
	return true;
}

static bool ended_within(struct process *process, int64_t deadline_ms)
{
	int64_t end = clock_mono_ms() + deadline_ms;

	while (!process_ended(process)) {
		if (clock_mono_ms() >= end)
			return false;
		doze(POLL_MS);
	}
	return true;
}

bool process_stop(struct process *process, int64_t deadline_ms)
{
	if (process_ended(process))
		return true;
	kill(process->pid, process->stop_signal);
	if (ended_within(process, deadline_ms))
		return true;
	kill(process->pid, SIGKILL);
	(void)ended_within(process, deadline_ms);
	return false;
}

/* ---- output -------------------------------------------------------------------------------- */

struct follower {
	int fd;
	process_line *take;
	void *context;
	char line[LINE_MAX_BYTES];
	size_t len;
};

static void give_line(struct follower *follower)
{
	follower->line[follower->len] = '\0';
	if (follower->take != NULL)
		follower->take(follower->context, follower->line);
	follower->len = 0;
}

/* Hands over the lines that have come; one that is too long comes in pieces. */
static void follow(struct follower *follower)
{
	char bytes[4096];
	ssize_t got;

	while ((got = read(follower->fd, bytes, sizeof(bytes))) > 0) {
		for (ssize_t i = 0; i < got; i++) {
			if (bytes[i] != '\n')
				follower->line[follower->len++] = bytes[i];
			if (bytes[i] == '\n' || follower->len == sizeof(follower->line) - 1)
				give_line(follower);
		}
	}
}

static enum fate attend(struct process *process, struct follower *follower, int64_t deadline_ms,
                        struct error *error)
{
	int64_t end = clock_mono_ms() + deadline_ms;
	enum fate fate = FATE_OK;

	while (fate == FATE_OK && !process_ended(process)) {
		if (clock_mono_ms() >= end)
			fate = error_set(error, FATE_RETRY, ERR_SYSTEM, "%s has not ended within %lld s", process->name,
			                 (long long)deadline_ms / 1000);
		else
			fate = process_pause(POLL_MS, error);
		follow(follower);
	}
	follow(follower);
	if (follower->len > 0)
		give_line(follower);
	return fate;
}

enum fate process_run(const struct process_spec *spec, int64_t deadline_ms, process_line *take, void *context,
                      struct process *ret_process, struct error *error)
{
	struct follower follower = { .take = take, .context = context };

	follower.fd = open(spec->log, O_RDONLY | O_CREAT | O_CLOEXEC, 0600);
	if (follower.fd < 0)
		return error_set_errno(error, FATE_FATAL, errno, "cannot write %s", spec->log);
	(void)lseek(follower.fd, 0, SEEK_END);
	enum fate fate = process_start(ret_process, spec, error);
	if (fate == FATE_OK) {
		fate = attend(ret_process, &follower, deadline_ms, error);
		(void)process_stop(ret_process, 2000);
	}
	close(follower.fd);
	return fate;
}
