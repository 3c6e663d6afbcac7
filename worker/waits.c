#include "worker/waits.h"

#include "core/log.h"
#include "producer/topics.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define US_PER_MS INT64_C(1000)
#define DAY_MS    INT64_C(86400000)
#define SOON_MS   INT64_C(600000)
#define ASK_MS    2000
#define PAGE_ROWS 10000 /* a moment's work */
/* So many times as long as a page took is rested: among millions of rows the walk is long, and nobody waits for it. */
#define REST 9

/* ---- asking ---- */

static enum fate add_lows(struct reader *ends, const char *topic, int timeout_ms, struct arena *arena,
                          struct kafka_low **lows, size_t *len, struct error *error)
{
	int32_t count;
	enum fate fate = reader_partitions(ends, topic, timeout_ms, &count, error);
	if (fate != FATE_OK)
		return fate;
	struct kafka_low *grown = arena_array(arena, *len + (size_t)count + 1, sizeof(*grown));
	if (grown == NULL)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for the beginnings of %s", topic);
	if (*len > 0)
		memcpy(grown, *lows, *len * sizeof(*grown));
	*lows = grown;
	for (int32_t i = 0; i < count && fate == FATE_OK; i++) {
		int64_t end;
		grown[*len] = (struct kafka_low){ .topic = topic, .partition = i };
		fate = reader_range(ends, topic, i, timeout_ms, &grown[*len].low, &end, error);
		(*len)++;
	}
	return fate;
}

int64_t waits_retention(const char *text)
{
	int64_t ms = strtoll(text, NULL, 10);
	return ms < 0 || ms > INT64_MAX / US_PER_MS ? WAITS_FOR_EVER : ms;
}

/* Not every user may ask that, and not every broker answers: then the offsets alone are judged. */
static int64_t retention_of(const struct config *config, const char *topic, int timeout_ms)
{
	size_t len;
	const struct property *properties = config_kafka(config, KAFKA_ADMIN, &len);
	struct error error;
	char text[32];
	if (topics_setting(properties, len, topic, "retention.ms", timeout_ms, text, sizeof(text), &error) !=
	    FATE_OK) {
		log_error(LOG_LEVEL_DEBUG, "waits", &error);
		return WAITS_UNKNOWN;
	}
	return waits_retention(text);
}

enum fate waits_ask(const struct config *config, struct reader *ends, struct store *store,
                    struct store_waits_page *page, int timeout_ms, struct arena *arena,
                    struct waits *ret_waits, struct error *error)
{
	const char *suspends = config_text(config, PARAM_TOPICS_SUSPENDS);
	const char *approvals = config_text(config, PARAM_TOPICS_APPROVALS);
	struct kafka_low *lows = NULL;
	size_t len = 0;
	*ret_waits =
		(struct waits){ .config = config, .suspends_ms = WAITS_UNKNOWN, .approvals_ms = WAITS_UNKNOWN };
	enum fate fate = add_lows(ends, suspends, timeout_ms, arena, &lows, &len, error);
	if (fate == FATE_OK)
		fate = add_lows(ends, approvals, timeout_ms, arena, &lows, &len, error);
	if (fate == FATE_OK)
		fate = store_waits(store, lows, len, page, &ret_waits->found, error);
	if (fate != FATE_OK || (page != NULL && page->goes_on))
		return fate;
	ret_waits->suspends_ms = retention_of(config, suspends, timeout_ms);
	ret_waits->approvals_ms =
		ret_waits->suspends_ms == WAITS_UNKNOWN ? WAITS_UNKNOWN : retention_of(config, approvals, timeout_ms);
	return FATE_OK;
}

/* ---- judging ---- */

struct judging {
	waits_say *say;
	void *context;
	size_t count;
};

static void FM_PRINTF(3, 4) tell(struct judging *judging, const char *mend, const char *fmt, ...)
{
	char text[512];
	va_list args;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	judging->say(judging->context, text, mend);
	judging->count++;
}

/* Longer than ms? Both ends may be any number: times come from senders. */
static bool is_longer(int64_t from, int64_t to, int64_t ms)
{
	int64_t us;
	return ms >= 0 && from != TIME_NONE && to != TIME_NONE && !__builtin_sub_overflow(to, from, &us) &&
	       us / US_PER_MS > ms;
}

static void judge_suspends(struct judging *judging, const struct waits *waits, int64_t now)
{
	static const char *const mend =
		"set retention.ms of the topic above the longest wait, and keep backups of the database";
	const char *topic = config_text(waits->config, PARAM_TOPICS_SUSPENDS);
	const struct store_waits *found = &waits->found;
	char kept[32], span[32];
	if (found->gone > 0)
		tell(judging, mend,
		     "%" PRId64 " of %" PRId64
		     " checkpoints that wait have no record on %.100s any more: they go on, but "
		     "only the database has them, and a rebuild would not bring them back",
		     found->gone, found->waiting, topic);
	if (waits->suspends_ms < 0)
		return;
	clock_span(waits->suspends_ms * US_PER_MS, kept, sizeof(kept));
	if (found->gone == 0 && is_longer(found->oldest, now, waits->suspends_ms))
		tell(judging, mend,
		     "the oldest checkpoint that waits came %s ago, and %.100s keeps records for %s (retention.ms): "
		     "soon "
		     "only the database has it, and a rebuild would not bring it back",
		     clock_span(now - found->oldest, span, sizeof(span)), topic, kept);
	if (is_longer(now, found->latest_expiry, waits->suspends_ms))
		tell(judging, mend,
		     "a gate that waits expires in %s, and %.100s keeps records for %s (retention.ms): by then only "
		     "the "
		     "database has it, and a rebuild would not bring it back",
		     clock_span(found->latest_expiry - now, span, sizeof(span)), topic, kept);
}

static void judge_approvals(struct judging *judging, const struct waits *waits)
{
	const char *topic = config_text(waits->config, PARAM_TOPICS_APPROVALS);
	int64_t ttl_ms = config_number(waits->config, PARAM_WORKER_UNCLAIMED_TTL);
	const struct store_waits *found = &waits->found;
	char kept[32], span[32];
	if (found->decisions_gone > 0)
		tell(judging,
		     "set retention.ms of the topic above the longest wait, and keep backups of the database",
		     "%" PRId64 " of %" PRId64
		     " decisions that wait, for their suspend event or for others of a quorum, "
		     "have no record on %.100s any more: they count, but only the database has them, and a rebuild "
		     "would "
		     "not bring them back",
		     found->decisions_gone, found->decisions, topic);
	if (waits->approvals_ms >= 0 && ttl_ms > waits->approvals_ms)
		tell(judging, "set retention.ms of the topic above it, or lower worker.unclaimed_ttl",
		     "a decision may wait %s for its suspend event (worker.unclaimed_ttl), and %.100s keeps records "
		     "for "
		     "%s (retention.ms): after that only the database has it, and a rebuild would not bring it back",
		     clock_span(ttl_ms * US_PER_MS, span, sizeof(span)), topic,
		     clock_span(waits->approvals_ms * US_PER_MS, kept, sizeof(kept)));
}

size_t waits_judge(const struct waits *waits, int64_t now, waits_say *say, void *context)
{
	struct judging judging = { say, context, 0 };
	judge_suspends(&judging, waits, now);
	judge_approvals(&judging, waits);
	return judging.count;
}

/* ---- a worker's look ---- */

static void say_in_log(void *context, const char *what, const char *mend)
{
	(void)context;
	log_warn("waits", "%s; %s", what, mend);
}

/* Pages come in the order of their times, so the first that has any has the oldest. */
static void add_page(struct store_waits *sum, const struct store_waits *page)
{
	sum->waiting += page->waiting;
	if (sum->oldest == TIME_NONE)
		sum->oldest = page->oldest;
	sum->gone += page->gone;
	sum->decisions += page->decisions;
	sum->decisions_gone += page->decisions_gone;
	sum->latest_expiry = page->latest_expiry;
}

static void begin_walk(struct waits_walk *walk)
{
	walk->page = (struct store_waits_page){ .after = TIME_NONE, .most = PAGE_ROWS };
	walk->sum = (struct store_waits){ .oldest = TIME_NONE, .latest_expiry = TIME_NONE };
}

void waits_tick(struct worker *worker, struct store *store, struct arena *arena, struct waits_walk *walk)
{
	struct error error;
	struct waits waits;
	int64_t began_ms = clock_mono_ms();
	if (began_ms < walk->at_ms)
		return;
	if (!walk->page.goes_on)
		begin_walk(walk);
	if (waits_ask(worker->config, worker->ends, store, &walk->page, ASK_MS, arena, &waits, &error) !=
	    FATE_OK) {
		walk->at_ms = clock_mono_ms() + SOON_MS;
		walk->page.goes_on = false;
		log_error(LOG_LEVEL_DEBUG, "waits", &error);
		return;
	}
	add_page(&walk->sum, &waits.found);
	if (walk->page.goes_on) {
		int64_t now_ms = clock_mono_ms();
		walk->at_ms = now_ms + REST * (now_ms - began_ms);
		return;
	}
	walk->at_ms = clock_mono_ms() + DAY_MS;
	waits.found = walk->sum;
	(void)waits_judge(&waits, clock_real_us(), say_in_log, NULL);
}
