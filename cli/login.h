/* login.h - who types this. */
#ifndef FERMATA_CLI_LOGIN_H
#define FERMATA_CLI_LOGIN_H

#include <stddef.h>

/* The login name of the user that the process runs as, else "uid-N". Cut to fit. */
void login_name(char *name, size_t cap);
/* "NAME@HOST": for the record of what operators did. Cut to fit. */
void login_at_host(char *text, size_t cap);

#endif
