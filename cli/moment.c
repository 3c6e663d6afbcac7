#include "cli/moment.h"

#include <stdbool.h>
#include <string.h>
#include <time.h>

#define US_PER_S   INT64_C(1000000)
#define DIGITS_MAX 12

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Exactly `digits` of them (0: one to DIGITS_MAX); *text is moved behind. */
static bool take_number(const char **text, size_t digits, int64_t *ret_number)
{
	size_t most = digits > 0 ? digits : DIGITS_MAX, len = 0;

	*ret_number = 0;
	for (; len < most && is_digit(**text); len++, (*text)++)
		*ret_number = *ret_number * 10 + (**text - '0');
	return digits > 0 ? len == digits : len > 0;
}

static bool take_char(const char **text, char c)
{
	if (**text != c)
		return false;
	(*text)++;
	return true;
}

/* ---- how long ago ---- */

static bool parse_ago(const char *text, int64_t now, int64_t *ret_us)
{
	static const struct {
		char name;
		int64_t seconds;
	} units[] = { { 's', 1 }, { 'm', 60 }, { 'h', 3600 }, { 'd', 86400 }, { 'w', 604800 } };
	int64_t number, span;

	if (!take_number(&text, 0, &number) || *text == '\0' || text[1] != '\0')
		return false;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (units[i].name == *text)
			return !__builtin_mul_overflow(number, units[i].seconds * US_PER_S, &span) &&
			       !__builtin_sub_overflow(now, span, ret_us);
	return false;
}

/* ---- when ---- */

struct civil {
	int64_t year, month, day, hour, minute, second, us;
};

static bool take_date(const char **text, struct civil *civil)
{
	return take_number(text, 4, &civil->year) && take_char(text, '-') &&
	       take_number(text, 2, &civil->month) && take_char(text, '-') && take_number(text, 2, &civil->day);
}

/* Digits behind the point, as microseconds; what is finer is not taken. */
static bool take_fraction(const char **text, int64_t *ret_us)
{
	int64_t scale = US_PER_S;

	if (!is_digit(**text))
		return false;
	for (*ret_us = 0; is_digit(**text) && scale > 1; (*text)++) {
		scale /= 10;
		*ret_us += (**text - '0') * scale;
	}
	return !is_digit(**text);
}

static bool take_clock(const char **text, struct civil *civil)
{
	if (!take_number(text, 2, &civil->hour) || !take_char(text, ':') || !take_number(text, 2, &civil->minute))
		return false;
	if (take_char(text, ':') && !take_number(text, 2, &civil->second))
		return false;
	return !take_char(text, '.') || take_fraction(text, &civil->us);
}

/* Z or +hh:mm; *ret_given: there was one. */
static bool take_zone(const char **text, bool *ret_given, int64_t *ret_seconds)
{
	int64_t hours, minutes;
	bool west = **text == '-';

	*ret_seconds = 0;
	*ret_given = **text != '\0';
	if (!*ret_given || take_char(text, 'Z') || take_char(text, 'z'))
		return **text == '\0';
	if (!take_char(text, west ? '-' : '+') || !take_number(text, 2, &hours) || !take_char(text, ':') ||
	    !take_number(text, 2, &minutes) || hours > 23 || minutes > 59)
		return false;
	*ret_seconds = (hours * 60 + minutes) * (west ? -60 : 60);
	return **text == '\0';
}

/* 30 February is no day: what comes back from the calendar has to be what was given. */
static bool to_seconds(const struct civil *civil, bool utc, int64_t *ret_seconds)
{
	struct tm tm = { .tm_year = (int)civil->year - 1900,
		             .tm_mon = (int)civil->month - 1,
		             .tm_mday = (int)civil->day,
		             .tm_hour = (int)civil->hour,
		             .tm_min = (int)civil->minute,
		             .tm_sec = (int)civil->second,
		             .tm_isdst = -1 };
	const struct tm given = tm;

	if (civil->hour > 23 || civil->minute > 59 || civil->second > 59)
		return false;
	*ret_seconds = utc ? timegm(&tm) : mktime(&tm);
	return tm.tm_year == given.tm_year && tm.tm_mon == given.tm_mon && tm.tm_mday == given.tm_mday;
}

static bool parse_when(const char *text, int64_t *ret_us)
{
	struct civil civil = { 0 };
	bool zone = false;
	int64_t east = 0, seconds;

	if (!take_date(&text, &civil))
		return false;
	if (take_char(&text, 'T') || take_char(&text, ' ')) {
		if (!take_clock(&text, &civil) || !take_zone(&text, &zone, &east))
			return false;
	}
	if (*text != '\0' || !to_seconds(&civil, zone, &seconds))
		return false;
	*ret_us = (seconds - east) * US_PER_S + civil.us;
	return true;
}

enum fate moment_parse(const char *option, const char *text, int64_t now, int64_t *ret_us,
                       struct error *error)
{
	if (parse_ago(text, now, ret_us) || parse_when(text, ret_us))
		return FATE_OK;
	return error_set(error, FATE_FATAL, ERR_USAGE,
	                 "--%s %.40s: it is to be how long ago (15m, 2h, 3d) or a time (2026-11-30T06:45Z)",
	                 option, text);
}
