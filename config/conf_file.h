/* conf_file.h - the lines of a configuration file. What its bytes say, not what its keys mean. */
#ifndef FERMATA_CONFIG_CONF_FILE_H
#define FERMATA_CONFIG_CONF_FILE_H

#include "core/memory.h"

#define CONF_FILE_MAX ((size_t)1 << 20) /* bytes of a file */
#define CONF_LINE_MAX ((size_t)1 << 16) /* bytes of a line */
#define CONF_KEY_MAX  ((size_t)255)     /* bytes of a key with its section */

/* One `key = value`: the key with its section before it, the value with quotes and comments taken off. */
struct conf_line {
	const char *key;
	const char *value;
	const char *origin; /* "NAME:LINE" */
};

/* Takes one line; what it returns ends the parsing when it is not FATE_OK. */
typedef enum fate conf_take(void *context, const struct conf_line *line, struct error *error);

/*
 * Hands every setting of the text to take, in order. Strings live in the arena. The grammar is that of
 * config.h. Bytes are hostile: FATAL with ERR_USAGE and "name:line" for NUL and other control characters,
 * bytes that are not UTF-8, lines that are too long, and whatever is neither a setting, a section nor a
 * comment. A byte order mark of UTF-8 and line ends of CR LF are taken off; a last line needs no end.
 * The text of a line is never in the message: it may be a secret.
 */
FM_MUSTCHECK enum fate conf_parse(struct view text, const char *name, struct arena *arena, conf_take *take,
                                  void *context, struct error *error);

/* Reads a whole file of at most most bytes into the buffer (which has at least that ceiling).
 * FATAL with ERR_USAGE: cannot be read, or larger. */
FM_MUSTCHECK enum fate conf_read(const char *path, size_t most, struct buffer *buffer, struct error *error);

/* Is it fit to be a key or the name of a section: letters, digits, '.', '_', '-'? */
bool conf_is_key(struct view text);

#endif
