/* help.h - what --help prints, out of the table of commands. */
#ifndef FERMATA_CLI_HELP_H
#define FERMATA_CLI_HELP_H

#include "cli/command.h"
#include "core/memory.h"

/* Of one command. */
void help_command(const struct command *command, struct buffer *out);
/* Of all, or of those of a group ("topics"). group may be NULL. */
void help_all(const char *group, struct buffer *out);
/* The man page fermata(1). */
void help_man(struct buffer *out);

#endif
