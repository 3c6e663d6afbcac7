#include "core/error.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The size of a whole message while it is put together, before it is cut to what struct error holds. */
#define SCRATCH 1024

static const char *const code_names[] = {
	[ERR_NONE] = "none",
	[ERR_FRAMING] = "framing",
	[ERR_UNKNOWN_SCHEMA] = "unknown_schema",
	[ERR_MALFORMED] = "malformed",
	[ERR_INVALID] = "invalid",
	[ERR_TOO_LARGE] = "too_large",
	[ERR_NOT_AT_BOUNDARY] = "not_at_boundary",
	[ERR_CONFLICT] = "conflict",
	[ERR_UNCLAIMED_FULL] = "unclaimed_full",
	[ERR_REJECTED_BY_STORE] = "rejected_by_store",
	[ERR_USAGE] = "usage",
	[ERR_NO] = "no",
	[ERR_SERVICE] = "service",
	[ERR_BUSY] = "busy",
	[ERR_STALE] = "stale",
	[ERR_POISON] = "poison",
	[ERR_KEY] = "key",
	[ERR_TAMPERED] = "tampered",
	[ERR_MEMORY] = "memory",
	[ERR_SYSTEM] = "system",
	[ERR_FENCED] = "fenced",
	[ERR_BUG] = "bug",
};

static const char *const fate_names[] = {
	[FATE_OK] = "ok",
	[FATE_RETRY] = "retry",
	[FATE_REJECT] = "reject",
	[FATE_FATAL] = "fatal",
};

/* How many of the first len bytes of text to keep so that no UTF-8 character is cut in two. */
static size_t whole_characters(const char *text, size_t len)
{
	size_t start = len;

	while (start > 0 && ((unsigned char)text[start] & 0xC0) == 0x80 && len - start < 3)
		start--;
	return ((unsigned char)text[start] & 0xC0) == 0xC0 ? start : len;
}

/* Copies text into a field of size bytes, cut to fit, on one line: foreign messages bring newlines. */
static void copy_line(char *field, size_t size, const char *text)
{
	size_t len = strlen(text);

	if (len >= size)
		len = whole_characters(text, size - 1);
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];
		field[i] = (char)(c < 0x20 || c == 0x7F ? ' ' : c);
	}
	while (len > 0 && field[len - 1] == ' ')
		len--;
	field[len] = '\0';
}

/* The arguments may point into *error, so nothing of it is written before the text is complete. */
static enum fate fill(struct error *error, enum fate fate, enum error_code code, const char *native,
                      const char *text)
{
	if (error == NULL)
		return fate;
	char native_copy[sizeof(error->native)];
	copy_line(native_copy, sizeof(native_copy), native != NULL ? native : "");
	error->fate = fate;
	error->code = code;
	memcpy(error->native, native_copy, sizeof(error->native));
	copy_line(error->message, sizeof(error->message), text);
	return fate;
}

enum fate error_set(struct error *error, enum fate fate, enum error_code code, const char *fmt, ...)
{
	char text[SCRATCH];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	return fill(error, fate, code, NULL, text);
}

enum fate error_set_native(struct error *error, enum fate fate, enum error_code code, const char *native,
                           const char *fmt, ...)
{
	char text[SCRATCH];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	return fill(error, fate, code, native, text);
}

enum fate error_set_errno(struct error *error, enum fate fate, int errnum, const char *fmt, ...)
{
	char text[SCRATCH];
	char whole[SCRATCH + 128];
	const char *name = strerrorname_np(errnum);
	const char *description = strerrordesc_np(errnum);
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (description != NULL)
		snprintf(whole, sizeof(whole), "%s: %s", text, description);
	else
		snprintf(whole, sizeof(whole), "%s: error %d of the operating system", text, errnum);
	return fill(error, fate, ERR_SYSTEM, name, whole);
}

enum fate error_wrap(struct error *error, const char *fmt, ...)
{
	char text[SCRATCH];
	char whole[SCRATCH + sizeof(error->message) + 2];
	va_list args;

	assert(error != NULL);
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	snprintf(whole, sizeof(whole), "%s: %s", text, error->message);
	copy_line(error->message, sizeof(error->message), whole);
	return error->fate;
}

const char *error_code_name(enum error_code code)
{
	if ((size_t)code >= sizeof(code_names) / sizeof(code_names[0]))
		return "?";
	return code_names[code];
}

const char *error_fate_name(enum fate fate)
{
	if ((size_t)fate >= sizeof(fate_names) / sizeof(fate_names[0]))
		return "?";
	return fate_names[fate];
}

/* What a code alone settles, whatever the fate; 0 where the fate has the say. */
static const int code_exits[] = {
	[ERR_USAGE] = 2,
	[ERR_NO] = 1,
	[ERR_SERVICE] = 69,
	[ERR_BUG] = 70,
};

/* A fatal error that is not a bug: a key is configuration, the rest is the machine's and may pass. */
static int fatal_exit_code(enum error_code code)
{
	if (code == ERR_KEY)
		return 2;
	if (code == ERR_MEMORY || code == ERR_SYSTEM || code == ERR_FENCED || code == ERR_STALE ||
	    code == ERR_BUSY)
		return 75;
	return 70;
}

int error_exit_code(const struct error *error)
{
	static const int fate_exits[] = { [FATE_OK] = 0, [FATE_RETRY] = 75, [FATE_REJECT] = 1 };

	if (error->fate == FATE_OK)
		return 0;
	if ((size_t)error->code < sizeof(code_exits) / sizeof(code_exits[0]) && code_exits[error->code] != 0)
		return code_exits[error->code];
	if (error->fate == FATE_FATAL)
		return fatal_exit_code(error->code);
	return fate_exits[error->fate];
}
