/*
 * error.h - how a function says that it failed, and what the caller should do about it.
 *
 * A fallible function returns its fate and fills a struct error that lives on its caller's stack.
 * The leaf fills it, the middle adds what was being done (error_wrap), only the mains and the
 * worker's loops log it. "Refused", "duplicate" and "already resumed" are answers, not errors.
 */
#ifndef FERMATA_CORE_ERROR_H
#define FERMATA_CORE_ERROR_H

#include <stdarg.h>

#define FM_MUSTCHECK    __attribute__((warn_unused_result))
#define FM_PRINTF(f, a) __attribute__((format(printf, f, a)))

/* What the caller should do. The order is by severity: the worse fate has the larger number. */
enum fate {
	FATE_OK = 0, /* it worked */
	FATE_RETRY,  /* the world may mend: the same again later */
	FATE_REJECT, /* this record (or request) is at fault and always will be */
	FATE_FATAL,  /* this process cannot go on: configuration, or our own bug */
};

/*
 * What was at fault. The first group are the codes of dead letters and have the names of the
 * contract (error_code_name); the second group are ours.
 */
enum error_code {
	ERR_NONE = 0,
	ERR_FRAMING,
	ERR_UNKNOWN_SCHEMA,
	ERR_MALFORMED,
	ERR_INVALID,
	ERR_TOO_LARGE,
	ERR_NOT_AT_BOUNDARY,
	ERR_CONFLICT,
	ERR_UNCLAIMED_FULL,
	ERR_REJECTED_BY_STORE,
	ERR_USAGE,    /* command line or configuration: exit 2 */
	ERR_NO,       /* the answer is no: exit 1 */
	ERR_SERVICE,  /* Kafka or PostgreSQL cannot be reached: exit 69 */
	ERR_BUSY,     /* it answers, but somebody else holds what is wanted: exit 75 */
	ERR_STALE,    /* somebody else is ahead of us: read the positions again */
	ERR_POISON,   /* PostgreSQL refused a value (SQLSTATE 22, 23, 54) */
	ERR_KEY,      /* a key is not there, or not now */
	ERR_TAMPERED, /* a tag or a commitment does not verify */
	ERR_MEMORY,   /* a ceiling or the allocator said no */
	ERR_SYSTEM,   /* the operating system said no: see native */
	ERR_FENCED,   /* a newer producer has our transactional id */
	ERR_BUG,      /* our own mistake: exit 70 */
};

struct error {
	enum fate fate;
	enum error_code code;
	char native[16];   /* SQLSTATE, librdkafka's error name or errno's, cut to fit; else "" */
	char message[256]; /* one line, lower case, no content of any session's state */
};

/* Fills *error (which may be NULL) and returns fate, so that a leaf can say: return error_set(...). */
enum fate error_set(struct error *error, enum fate fate, enum error_code code, const char *fmt, ...)
	FM_PRINTF(4, 5);

/* As error_set, and keeps the foreign library's own name of the error. native may be NULL. */
enum fate error_set_native(struct error *error, enum fate fate, enum error_code code, const char *native,
                           const char *fmt, ...) FM_PRINTF(5, 6);

/* As error_set with errno's name in native and ": strerror" at the end of the message. */
enum fate error_set_errno(struct error *error, enum fate fate, int errnum, const char *fmt, ...)
	FM_PRINTF(4, 5);

/* Puts what was being done before the message ("sealing checkpoint X: ..."); returns error->fate. */
enum fate error_wrap(struct error *error, const char *fmt, ...) FM_PRINTF(2, 3);

/* The contract's name of a code ("framing", "unknown_schema", ...). Never NULL. */
const char *error_code_name(enum error_code code);

/* "ok", "retry", "reject", "fatal". Never NULL. */
const char *error_fate_name(enum fate fate);

/* The exit code of the command line for an error: 0, 1, 2, 69, 70 or 75 (contract.md). */
int error_exit_code(const struct error *error);

#endif
