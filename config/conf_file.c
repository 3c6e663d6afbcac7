/* conf_file.c - one pass over the bytes, line by line. */
#include "config/conf_file.h"

#include "config/value.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

struct parser {
	const char *name;
	int line;
	struct view section; /* borrows from the text */
	struct arena *arena;
	conf_take *take;
	void *context;
};

static enum fate wrong(const struct parser *parser, struct error *error, const char *what)
{
	struct shown name = origin_shown(parser->name);
	return error_set(error, FATE_FATAL, ERR_USAGE, "%s:%d: %s", name.text, parser->line, what);
}

static bool is_blank(uint8_t c)
{
	return c == ' ' || c == '\t';
}

static struct view trim(struct view text)
{
	while (text.len > 0 && is_blank(text.data[0])) {
		text.data++;
		text.len--;
	}
	while (text.len > 0 && is_blank(text.data[text.len - 1]))
		text.len--;
	return text;
}

static struct view skip(struct view text, size_t len)
{
	return (struct view){ text.data + len, text.len - len };
}

bool conf_is_key(struct view text)
{
	for (size_t i = 0; i < text.len; i++) {
		uint8_t c = text.data[i];
		bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
		if (!letter && c != '.' && c != '_' && c != '-')
			return false;
	}
	return text.len > 0;
}

/* Nothing, or a comment. */
static bool is_rest(struct view text)
{
	text = trim(text);
	return text.len == 0 || text.data[0] == '#';
}

static enum fate take_section(struct parser *parser, struct view line, struct error *error)
{
	const uint8_t *end = memchr(line.data, ']', line.len);
	if (end == NULL)
		return wrong(parser, error, "a section is not closed: write [name]");
	struct view name = trim((struct view){ line.data + 1, (size_t)(end - line.data) - 1 });
	if (!is_rest(skip(line, (size_t)(end - line.data) + 1)))
		return wrong(parser, error, "text after a section: give its settings lines of their own");
	bool ends_in_dot = name.len > 0 && name.data[name.len - 1] == '.';
	if ((name.len > 0 && !conf_is_key(name)) || ends_in_dot || name.len > CONF_KEY_MAX)
		return wrong(parser, error,
		             "not a section's name: letters, digits, '.', '_' and '-' between brackets");
	parser->section = name;
	return FATE_OK;
}

/* "a \"quoted\" value": writes what is between the quotes to out, which has room for all of text. NULL, or
 * what is wrong. */
static const char *unquote(struct view text, char *out)
{
	size_t i = 1;
	for (; i < text.len && text.data[i] != '"'; i++) {
		if (text.data[i] == '\\') {
			i++;
			if (i == text.len || (text.data[i] != '"' && text.data[i] != '\\'))
				return "a backslash in a quoted value stands before \" or \\ only: double it";
		}
		*out++ = (char)text.data[i];
	}
	*out = '\0';
	if (i == text.len)
		return "a quoted value is not closed";
	return is_rest(skip(text, i + 1)) ? NULL
	                                  : "text after a quoted value: put the whole value between the quotes";
}

/* The value up to a comment: a '#' at its start or after a blank. */
static struct view cut_comment(struct view text)
{
	for (size_t i = 0; i < text.len; i++) {
		if (text.data[i] == '#' && (i == 0 || is_blank(text.data[i - 1])))
			return trim((struct view){ text.data, i });
	}
	return text;
}

static enum fate take_value(struct parser *parser, struct view text, const char **ret_value,
                            struct error *error)
{
	bool quoted = text.len > 0 && text.data[0] == '"';
	char *value = arena_text(parser->arena, quoted ? text : cut_comment(text));
	if (value == NULL)
		return config_no_memory(error);
	const char *fault = quoted ? unquote(text, value) : NULL;
	*ret_value = value;
	return fault == NULL ? FATE_OK : wrong(parser, error, fault);
}

static enum fate take_setting(struct parser *parser, struct view line, struct error *error)
{
	const uint8_t *equals = memchr(line.data, '=', line.len);
	if (equals == NULL)
		return wrong(parser, error, "neither key = value nor [section] nor a # comment");
	size_t at = (size_t)(equals - line.data);
	struct view key = trim((struct view){ line.data, at });
	if (!conf_is_key(key) || key.len + parser->section.len + 1 > CONF_KEY_MAX)
		return wrong(parser, error, "not a key before '=': at most 255 letters, digits, '.', '_' and '-'");

	struct conf_line taken;
	taken.key = parser->section.len == 0
	                ? arena_text(parser->arena, key)
	                : arena_printf(parser->arena, "%.*s.%.*s", (int)parser->section.len,
	                               (const char *)parser->section.data, (int)key.len, (const char *)key.data);
	taken.origin = arena_printf(parser->arena, "%s:%d", parser->name, parser->line);
	if (taken.key == NULL || taken.origin == NULL)
		return config_no_memory(error);
	enum fate fate = take_value(parser, trim(skip(line, at + 1)), &taken.value, error);
	return fate == FATE_OK ? parser->take(parser->context, &taken, error) : fate;
}

/* What no line may hold, or NULL. */
static const char *line_fault(struct view line)
{
	if (line.len > CONF_LINE_MAX)
		return "the line is longer than 64 KiB";
	if (view_has_nul(line))
		return "a NUL byte: this is not a text file in UTF-8";
	for (size_t i = 0; i < line.len; i++) {
		if ((line.data[i] < 0x20 && line.data[i] != '\t') || line.data[i] == 0x7f)
			return "a control character";
	}
	return view_is_utf8(line) ? NULL : "not UTF-8";
}

static enum fate take_line(struct parser *parser, struct view line, struct error *error)
{
	if (line.len > 0 && line.data[line.len - 1] == '\r')
		line.len--;
	const char *fault = line_fault(line);
	if (fault != NULL)
		return wrong(parser, error, fault);
	if (is_rest(line))
		return FATE_OK;
	line = trim(line);
	return line.data[0] == '[' ? take_section(parser, line, error) : take_setting(parser, line, error);
}

enum fate conf_parse(struct view text, const char *name, struct arena *arena, conf_take *take, void *context,
                     struct error *error)
{
	struct parser parser = { .name = name, .line = 1, .arena = arena, .take = take, .context = context };
	if (text.len >= 3 && memcmp(text.data, "\xef\xbb\xbf", 3) == 0)
		text = skip(text, 3);
	else if (text.len >= 2 &&
	         (memcmp(text.data, "\xff\xfe", 2) == 0 || memcmp(text.data, "\xfe\xff", 2) == 0))
		return wrong(&parser, error, "the file is UTF-16: save it as UTF-8");

	for (; text.len > 0; parser.line++) {
		const uint8_t *end = memchr(text.data, '\n', text.len);
		size_t len = end == NULL ? text.len : (size_t)(end - text.data);
		enum fate fate = take_line(&parser, (struct view){ text.data, len }, error);
		if (fate != FATE_OK)
			return fate;
		text = skip(text, end == NULL ? len : len + 1);
	}
	return FATE_OK;
}

static enum fate read_all(int fd, const char *path, size_t most, struct buffer *buffer, struct error *error)
{
	uint8_t chunk[4096];
	for (;;) {
		ssize_t got = read(fd, chunk, sizeof(chunk));
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			int errnum = errno;
			return error_set(error, FATE_FATAL, ERR_USAGE, "cannot read %s: %s", path, strerror(errnum));
		}
		if (got > 0 && (size_t)got > most - buffer->len) {
			memory_wipe(chunk, sizeof(chunk));
			return error_set(error, FATE_FATAL, ERR_USAGE, "%s is larger than %zu KiB", path, most / 1024);
		}
		buffer_append(buffer, chunk, (size_t)got);
		if (got == 0 || buffer_failed(buffer))
			break;
	}
	memory_wipe(chunk, sizeof(chunk));
	return buffer_failed(buffer) ? config_no_memory(error) : FATE_OK;
}

enum fate conf_read(const char *path, size_t most, struct buffer *buffer, struct error *error)
{
	struct shown shown = origin_shown(path);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		int errnum = errno;
		return error_set(error, FATE_FATAL, ERR_USAGE, "cannot open %s: %s", shown.text, strerror(errnum));
	}
	enum fate fate = read_all(fd, shown.text, most, buffer, error);
	close(fd);
	return fate;
}
