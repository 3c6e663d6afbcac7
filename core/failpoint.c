#include "core/failpoint.h"

#ifdef FERMATA_FAILPOINTS

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *const names[FAILPOINT_COUNT] = {
#define FAILPOINT(identifier, name, line) [FAILPOINT_##identifier] = (name),
#define SABOTAGE(identifier, name, line)  [FAILPOINT_##identifier] = (name),
#include "core/failpoint.def"
#undef FAILPOINT
#undef SABOTAGE
};

/* The action after NAME= in the comma-separated list, or NULL. */
static const char *find_action(const char *list, const char *name)
{
	size_t len = strlen(name);
	for (const char *at = list; at != NULL && *at != '\0';) {
		if (strncmp(at, name, len) == 0 && at[len] == '=')
			return at + len + 1;
		at = strchr(at, ',');
		if (at != NULL)
			at++;
	}
	return NULL;
}

/* "DIR/prefixNAMEsuffix"; false when no directory is set. */
static bool path_of(const char *prefix, const char *name, const char *suffix, char *path, size_t cap)
{
	const char *dir = getenv("FERMATA_FAILPOINT_DIR");
	if (dir == NULL)
		return false;
	snprintf(path, cap, "%s/%s%s%s", dir, prefix, name, suffix);
	return true;
}

static void leave_mark(const char *name)
{
	char path[PATH_MAX], pid[32];
	snprintf(pid, sizeof(pid), ".%ld", (long)getpid());
	if (!path_of("", name, pid, path, sizeof(path)))
		return;
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (fd >= 0)
		close(fd);
}

/* The action of an arm.NAME file, which is gone then: the rename lets only one process have it. */
static bool armed_action(const char *name, char *action, size_t cap)
{
	char path[PATH_MAX], taken[PATH_MAX], pid[32];
	snprintf(pid, sizeof(pid), ".%ld", (long)getpid());
	if (!path_of("arm.", name, "", path, sizeof(path)) ||
	    !path_of("taken.", name, pid, taken, sizeof(taken)) || rename(path, taken) != 0)
		return false;
	int fd = open(taken, O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : read(fd, action, cap - 1);
	if (fd >= 0)
		close(fd);
	unlink(taken);
	if (len < 0)
		return false;
	action[len] = '\0';
	return true;
}

static void delay(const char *ms_text)
{
	long ms = strtol(ms_text, NULL, 10);
	struct timespec left = { ms / 1000, (ms % 1000) * 1000000 };
	while (nanosleep(&left, &left) != 0)
		;
}

enum fate failpoint(enum failpoint place, struct error *error)
{
	const char *name = names[place];
	const char *list = getenv("FERMATA_FAILPOINT");
	char armed[64];
	const char *action = list == NULL ? NULL : find_action(list, name);
	if (armed_action(name, armed, sizeof(armed)))
		action = armed;
	if (action == NULL)
		return FATE_OK;
	leave_mark(name);
	if (strncmp(action, "kill", 4) == 0)
		(void)raise(SIGKILL);
	if (strncmp(action, "stop", 4) == 0)
		(void)kill(getpid(), SIGSTOP); /* not raise: every thread is to stand still */
	if (strncmp(action, "delay:", 6) == 0)
		delay(action + 6);
	if (strncmp(action, "error", 5) == 0)
		return error_set(error, FATE_RETRY, ERR_SERVICE, "failpoint %s", name);
	return FATE_OK;
}

bool sabotaged(const char *rule)
{
	const char *list = getenv("FERMATA_SABOTAGE");
	if (list == NULL)
		return false;
	size_t len = strlen(rule);
	const char *at = strstr(list, rule);
	return at != NULL && (at[len] == '\0' || at[len] == ',');
}

#endif
