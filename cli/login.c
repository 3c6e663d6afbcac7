#include "cli/login.h"

#include "core/memory.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void login_name(char *name, size_t cap)
{
	struct passwd entry, *found = NULL;
	char strings[4096];
	const char *login = getenv("LOGNAME");

	if (getpwuid_r(getuid(), &entry, strings, sizeof(strings), &found) == 0 && found != NULL)
		login = found->pw_name;
	if (login != NULL && *login != '\0' && view_is_utf8(view_of(login)))
		snprintf(name, cap, "%s", login);
	else
		snprintf(name, cap, "uid-%ld", (long)getuid());
}

void login_at_host(char *text, size_t cap)
{
	char name[256], host[256] = "";

	login_name(name, sizeof(name));
	if (gethostname(host, sizeof(host) - 1) != 0)
		snprintf(host, sizeof(host), "unknown");
	snprintf(text, cap, "%s@%s", name, host);
}
