#include "worker/breaker.h"

size_t breaker_bytes(size_t cap)
{
	return (cap + 7) / 8;
}

void breaker_reset(struct breaker *breaker, size_t least)
{
	breaker->len = breaker->at = breaker->bad = 0;
	breaker->least = least < breaker->cap ? least : breaker->cap;
}

void breaker_init(struct breaker *breaker, uint8_t *ring, size_t cap)
{
	breaker->dead = ring;
	breaker->cap = cap;
	breaker_reset(breaker, cap);
}

static bool is_dead(const struct breaker *breaker, size_t at)
{
	return (breaker->dead[at / 8] >> (at % 8) & 1) != 0;
}

static void set_dead(struct breaker *breaker, size_t at, bool dead)
{
	uint8_t bit = (uint8_t)(1U << (at % 8));

	if (dead)
		breaker->dead[at / 8] |= bit;
	else
		breaker->dead[at / 8] &= (uint8_t)~bit;
}

void breaker_add(struct breaker *breaker, bool dead)
{
	if (breaker->cap == 0)
		return;
	if (breaker->len == breaker->cap)
		breaker->bad -= is_dead(breaker, breaker->at) ? 1 : 0;
	else
		breaker->len++;
	set_dead(breaker, breaker->at, dead);
	breaker->bad += dead ? 1 : 0;
	breaker->at = (breaker->at + 1) % breaker->cap;
	if (breaker->len == breaker->cap)
		breaker->least = breaker->cap;
}

/* What leaves the window when the i-th of the new ones comes into it: an old one, or one of the new. */
static bool leaves_dead(const struct breaker *breaker, const bool *dead, size_t i)
{
	if (breaker->len + i < breaker->cap)
		return false;
	if (i >= breaker->cap)
		return dead[i - breaker->cap];
	return is_dead(breaker, (breaker->at + i) % breaker->cap);
}

bool breaker_trips(const struct breaker *breaker, const bool *dead, size_t len)
{
	size_t bad = breaker->bad;

	if (breaker->cap == 0)
		return false;
	for (size_t i = 0; i < len; i++) {
		size_t full = breaker->len + i + 1;
		size_t seen = full < breaker->cap ? full : breaker->cap;
		bad -= leaves_dead(breaker, dead, i) ? 1 : 0;
		bad += dead[i] ? 1 : 0;
		if (dead[i] && seen >= breaker->least && 2 * bad > seen)
			return true;
	}
	return false;
}
