/*
 * dev_process.h - children of `fermata demo` and `fermata dev`: started without a shell, waited for with a
 * deadline, stopped by pid. They die with us (PR_SET_PDEATHSIG), whatever becomes of us.
 *
 * For the main thread of a program: the signals are the process's own.
 */
#ifndef FERMATA_CLI_DEV_PROCESS_H
#define FERMATA_CLI_DEV_PROCESS_H

#include "cli/dev_files.h"

#include <sys/types.h>

#define DEV_GROUPS_MAX 64

/* Whom a child runs as. */
struct account {
	char name[64];
	uid_t uid;
	gid_t gid;
	gid_t groups[DEV_GROUPS_MAX];
	size_t groups_len;
};

struct process_spec {
	const char *name;              /* as messages call it: "PostgreSQL" */
	const char *const *argv;       /* argv[0] is the path of the program; NULL after the last */
	const char *directory;         /* where it runs; NULL: where we are */
	const char *log;               /* its stdout and stderr are added to this file */
	const struct account *account; /* NULL: as we are */
	int stop_signal;               /* what asks it to end, and what it gets when we die; 0: SIGTERM */
};

struct process {
	char name[32];
	char log[DEV_PATH_MAX];
	pid_t pid;    /* kept when it has ended; 0: never started */
	bool running; /* its end has not been noticed */
	int stop_signal;
	int exit_code; /* once it has ended: its exit code, or 128 + the signal */
};

/* Keeps SIGINT, SIGTERM and SIGHUP (unless they are ignored) for process_pause from now on. Before the first
 * child and the first thread. */
FM_MUSTCHECK enum fate processes_begin(struct error *error);
/* The signal that asked us to end, 0 when none did. */
int processes_signal(void);

/* Starts it: stdin is /dev/null, a process group of its own (a Ctrl-C is ours alone). FATAL with ERR_SYSTEM:
 * it cannot be started, and why. */
FM_MUSTCHECK enum fate process_start(struct process *process, const struct process_spec *spec,
                                     struct error *error);
/* Has it ended, or never run? Looks, never waits. */
bool process_ended(struct process *process);
/* Waits ms, less when a child ended. RETRY with ERR_SYSTEM when we were asked to end. */
FM_MUSTCHECK enum fate process_pause(int64_t ms, struct error *error);
/* Asks it to end and waits; kills it after deadline_ms. Not disturbed by signals; nothing happens when it is
 * not running. Returns false when it had to be killed. */
bool process_stop(struct process *process, int64_t deadline_ms);

/* Takes one line of output, without its newline. */
typedef void process_line(void *context, const char *line);

/* Runs it to its end and hands over its output line by line while it runs (take may be NULL); the output goes
 * to spec->log too. RETRY with ERR_SYSTEM after deadline_ms (it is stopped), or when we were asked to end. */
FM_MUSTCHECK enum fate process_run(const struct process_spec *spec, int64_t deadline_ms, process_line *take,
                                   void *context, struct process *ret_process, struct error *error);

#endif
