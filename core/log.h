/*
 * log.h - one line an event on stderr, text or JSON. Only mains and the worker's loops log.
 * Lines carry ids, never the content of a session's state.
 */
#ifndef FERMATA_CORE_LOG_H
#define FERMATA_CORE_LOG_H

#include "core/error.h"

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };
enum log_format { LOG_FORMAT_TEXT, LOG_FORMAT_JSON };

/* Process wide; before the first call: info, text. room: who speaks ("intake", "relay", ...). */
void log_setup(enum log_level level, enum log_format format);
void log_write(enum log_level level, const char *room, const char *fmt, ...) FM_PRINTF(3, 4);
/* The message of an error, with its fate, code and native name. */
void log_error(enum log_level level, const char *room, const struct error *error);
/* Would a line of this level be written? */
int log_wants(enum log_level level);

#define log_warn(room, ...)  log_write(LOG_LEVEL_WARN, room, __VA_ARGS__)
#define log_info(room, ...)  log_write(LOG_LEVEL_INFO, room, __VA_ARGS__)
#define log_debug(room, ...) log_write(LOG_LEVEL_DEBUG, room, __VA_ARGS__)

#endif
