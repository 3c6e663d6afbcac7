#include "core/clock.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define US_PER_S 1000000

int64_t clock_real_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * US_PER_S + now.tv_nsec / 1000;
}

int64_t clock_mono_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

char *clock_span(int64_t us, char *text, size_t cap)
{
	static const struct {
		int64_t seconds;
		int64_t until; /* seconds from which on the next unit reads better */
		const char *name;
	} units[] = {
		{ 1, 120, "s" },
		{ 60, 7200, "min" },
		{ 3600, 172800, "h" },
		{ 86400, 0, "d" },
	};
	int64_t seconds = us / US_PER_S;
	size_t i = 0;

	while (units[i].until != 0 && seconds >= units[i].until)
		i++;
	snprintf(text, cap, "%" PRId64 " %s", seconds / units[i].seconds, units[i].name);
	return text;
}

/* Digits by hand: every record that leaves carries a time, and snprintf is most of what that costs. */
static char *put_number(char *at, int number, size_t digits, char after)
{
	for (size_t i = digits; i > 0; i--, number /= 10)
		at[i - 1] = (char)('0' + number % 10);
	at[digits] = after;
	return at + digits + 1;
}

char *clock_format(int64_t real_us, char *text, size_t cap)
{
	/* Rounded down, so that the microseconds count forwards before 1970 too. */
	int64_t us = (real_us % US_PER_S + US_PER_S) % US_PER_S;
	time_t seconds = (time_t)(real_us / US_PER_S - (real_us % US_PER_S < 0));
	struct tm tm;

	assert(cap >= 32);
	if (gmtime_r(&seconds, &tm) == NULL || tm.tm_year < -1900 || tm.tm_year > 8099) {
		snprintf(text, cap, "%" PRId64, real_us);
		return text;
	}
	char *at = put_number(text, tm.tm_year + 1900, 4, '-');
	at = put_number(at, tm.tm_mon + 1, 2, '-');
	at = put_number(at, tm.tm_mday, 2, 'T');
	at = put_number(at, tm.tm_hour, 2, ':');
	at = put_number(at, tm.tm_min, 2, ':');
	at = put_number(at, tm.tm_sec, 2, '.');
	at = put_number(at, (int)us, 6, 'Z');
	*at = '\0';
	return text;
}

/* 0 to bound - 1. The bias of the remainder does not matter to a wait, nor does a bad random source:
 * the clock's own bits keep two workers apart well enough. */
static int64_t random_below(int64_t bound)
{
	uint64_t bits;

	if (getentropy(&bits, sizeof(bits)) != 0)
		bits = (uint64_t)clock_real_us();
	return (int64_t)(bits % (uint64_t)bound);
}

void backoff_init(struct backoff *backoff, int64_t min_ms, int64_t max_ms)
{
	assert(min_ms >= 1 && max_ms >= min_ms);
	backoff->min_ms = min_ms;
	backoff->max_ms = max_ms;
	backoff_reset(backoff);
}

int64_t backoff_next(struct backoff *backoff)
{
	int64_t high = backoff->last_ms > backoff->max_ms / 3 ? backoff->max_ms : backoff->last_ms * 3;
	int64_t wait = backoff->min_ms;

	if (high > backoff->min_ms)
		wait += random_below(high - backoff->min_ms + 1);
	backoff->last_ms = wait;
	return wait;
}

void backoff_reset(struct backoff *backoff)
{
	backoff->last_ms = 0;
}
