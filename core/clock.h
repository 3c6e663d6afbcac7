/* clock.h - the type says which clock: real time is microseconds since 1970 UTC, mono is for waits. */
#ifndef FERMATA_CORE_CLOCK_H
#define FERMATA_CORE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

/* "No time": what is null in Avro and in the database. */
#define TIME_NONE INT64_MIN

int64_t clock_real_us(void);
int64_t clock_mono_ms(void);

/* RFC 3339 with microseconds and Z ("2026-11-30T06:45:52.123456Z"); times outside of the years
 * 0000 to 9999 are written as the number of microseconds. cap >= 32. Returns text. */
char *clock_format(int64_t real_us, char *text, size_t cap);
/* How long: "12 s", "3 h", "2 d". cap >= 24. Returns text. */
char *clock_span(int64_t us, char *text, size_t cap);

/*
 * Waits that grow: decorrelated jitter, min_ms to max_ms.
 * Next wait = random between min and 3 x the last wait, capped (Marc Brooker, "Exponential Backoff
 * And Jitter", AWS Architecture Blog, 2015).
 */
struct backoff {
	int64_t min_ms;
	int64_t max_ms;
	int64_t last_ms;
};

/* 1 <= min_ms <= max_ms. The first wait is min_ms. */
void backoff_init(struct backoff *backoff, int64_t min_ms, int64_t max_ms);
/* The next wait in ms. */
int64_t backoff_next(struct backoff *backoff);
/* It worked: the next wait is the shortest again. */
void backoff_reset(struct backoff *backoff);

#endif
