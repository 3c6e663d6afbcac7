/* mask.c - finds the passwords in a connection string, in either of libpq's forms. */
#include "config/mask.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static bool is_secret_name(const char *name)
{
	return strcasecmp(name, "password") == 0 || strcasecmp(name, "sslpassword") == 0 ||
	       strcasecmp(name, "oauth_client_secret") == 0;
}

static void append(struct buffer *out, const char *from, const char *to)
{
	buffer_append(out, from, (size_t)(to - from));
}

/* --- URI --- */

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)tolower((unsigned char)c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Is the percent-encoded name that of a secret? */
static bool is_secret_parameter(const char *from, const char *to)
{
	char name[32];
	size_t len = 0;
	for (; from < to && len < sizeof(name) - 1; from++) {
		if (*from == '%' && to - from > 2 && hex(from[1]) >= 0 && hex(from[2]) >= 0) {
			name[len++] = (char)(hex(from[1]) * 16 + hex(from[2]));
			from += 2;
		} else {
			name[len++] = *from;
		}
	}
	name[len] = '\0';
	return from == to && is_secret_name(name);
}

/* The last '@' of [from, to), or NULL. */
static const char *last_at(const char *from, const char *to)
{
	while (to > from) {
		if (*--to == '@')
			return to;
	}
	return NULL;
}

/*
 * Where the user part of a URI ends. libpq takes the first '@' before a '/', even behind a '?'; people forget
 * to encode '@' and '/' in passwords, so the last '@' of the authority counts here, else of the path.
 */
static const char *user_end(const char *from)
{
	const char *first = from + strcspn(from, "@/");
	if (*first == '@')
		return last_at(first, first + strcspn(first, "/?"));
	return last_at(from, from + strcspn(from, "?"));
}

static void mask_parameters(const char *at, struct buffer *out)
{
	while (*at != '\0') {
		const char *end = at + strcspn(at, "&");
		const char *equals = memchr(at, '=', (size_t)(end - at));
		if (equals != NULL && is_secret_parameter(at, equals)) {
			append(out, at, equals + 1);
			buffer_append_text(out, MASK);
		} else {
			append(out, at, end);
		}
		if (*end == '&')
			buffer_append_byte(out, '&');
		at = *end == '&' ? end + 1 : end;
	}
}

static void mask_uri(const char *dsn, struct buffer *out)
{
	const char *at = strstr(dsn, "://") + 3;
	append(out, dsn, at);
	const char *end = user_end(at);
	if (end != NULL) {
		const char *colon = memchr(at, ':', (size_t)(end - at));
		append(out, at, colon == NULL ? end : colon + 1);
		if (colon != NULL)
			buffer_append_text(out, MASK);
		at = end;
	}
	const char *query = at + strcspn(at, "?");
	append(out, at, query);
	if (*query == '?') {
		buffer_append_byte(out, '?');
		mask_parameters(query + 1, out);
	}
}

/* --- key=value --- */

static const char *skip_blanks(const char *at)
{
	while (isspace((unsigned char)*at))
		at++;
	return at;
}

/* The end of a value: of a quoted one behind its quote, of one that is not closed the end of the text. */
static const char *value_end(const char *at)
{
	bool quoted = *at == '\'';
	for (at += quoted; *at != '\0'; at++) {
		if (*at == '\\' && at[1] != '\0')
			at++;
		else if (quoted && *at == '\'')
			return at + 1;
		else if (!quoted && isspace((unsigned char)*at))
			return at;
	}
	return at;
}

static void mask_pairs(const char *at, struct buffer *out)
{
	while (*at != '\0') {
		const char *name = skip_blanks(at);
		const char *name_end = name;
		while (*name_end != '\0' && *name_end != '=' && !isspace((unsigned char)*name_end))
			name_end++;
		const char *equals = skip_blanks(name_end);
		if (*equals != '=') { /* not a pair: libpq refuses all of it, and it may be part of a password */
			append(out, at, name);
			buffer_append_text(out, *name == '\0' ? "" : MASK);
			return;
		}
		const char *value = skip_blanks(equals + 1);
		const char *end = value_end(value);
		if (is_secret_parameter(name, name_end)) {
			append(out, at, value);
			buffer_append_text(out, MASK);
		} else {
			append(out, at, end);
		}
		at = end;
	}
}

void mask_dsn(const char *dsn, struct buffer *out)
{
	size_t scheme = strspn(dsn, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.-");
	if (scheme > 0 && strncmp(dsn + scheme, "://", 3) == 0)
		mask_uri(dsn, out);
	else
		mask_pairs(dsn, out);
}
