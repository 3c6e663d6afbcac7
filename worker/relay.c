#include "worker/relay.h"
#include "worker/learn.h"

#include "core/failpoint.h"
#include "core/log.h"
#include "core/metrics.h"
#include "schemas/catalog.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MIB          ((size_t)1 << 20)
#define PATIENCE_MS  2000  /* of one call to init_transactions, before the stop flag is looked at */
#define IDLE_MS      1000  /* the outbox is looked at in any case */
#define NOT_READY_MS 200   /* another shard is still reading its ledger */
#define IDLE_READ_MS 30000 /* protocol.md: within a minute */
#define WARM_MS      5000
#define INIT_TRIES   60   /* then another producer: this one may never answer otherwise again */
#define FENCED_MS    1500 /* another relay has the shard: the group may be about to say so */
#define FENCED_OFTEN 3    /* without a word of the group: it is no relay of ours */
#define RIVAL_MS     10000

struct shard relay_shard(const struct relay *relay)
{
	return (struct shard){ relay->worker->cluster_id, relay->topic, relay->partition };
}

bool relay_stopping(const struct relay *relay)
{
	return atomic_load(&relay->ended) || worker_stopping(relay->worker);
}

static void set_rival(struct relay *relay, bool rival)
{
	if (relay->rival == rival)
		return;
	relay->rival = rival;
	int before = atomic_fetch_add(&relay->worker->fenced_shards, rival ? 1 : -1);
	metrics_set(METRIC_RELAYS_FENCED, before + (rival ? 1 : -1));
}

/* ---- R1 ---- */

static void note_too_large(struct relay *relay, const struct uuid *id, bool resume)
{
	relay_note_add(relay, id, resume ? NOTE_RESUME_TOO_LARGE : NOTE_GATE_TOO_LARGE);
}

/* What the broker said of each record: the place of the last resume, and what was too large. */
static void on_report(void *context, const struct outgoing *sent, int64_t offset, const struct error *error)
{
	struct relay *relay = context;
	const struct publication *publication = sent->tag;
	if (error == NULL && publication->resume && offset > relay->reported)
		relay->reported = offset;
	if (error == NULL || error->code != ERR_TOO_LARGE)
		return;
	struct relay_blame *blame = &relay->blame[publication->resume];
	blame->count++;
	blame->id = publication->id;
	if (relay->rows_max == 1)
		note_too_large(relay, &publication->id, publication->resume);
}

/* After a transaction that failed: who was too large is noted where it is sure, else fewer are tried. */
static void settle_blame(struct relay *relay)
{
	for (int resume = 0; resume <= 1; resume++) {
		const struct relay_blame *blame = &relay->blame[resume];
		if (blame->count == 1)
			note_too_large(relay, &blame->id, resume);
		if (blame->count < 2)
			continue;
		relay->rows_end = relay->rows_max > 1 ? relay->rows_max / 2 : 1;
		relay->rows_max = 1;
	}
}

/* Twice as many as last time, up to where it was too many; from there on carefully. */
static void grow_rows(struct relay *relay)
{
	size_t most = (size_t)config_number(relay->worker->config, PARAM_WORKER_RELAY_BATCH);
	if (relay->rows_max == relay->rows_end && relay->rows_end < most)
		relay->rows_end++;
	relay->rows_max = relay->rows_max * 2 < relay->rows_end ? relay->rows_max * 2 : relay->rows_end;
}

static enum fate warm_up(struct relay *relay, struct error *error)
{
	const char *gates = config_text(relay->worker->config, PARAM_TOPICS_GATES);
	int32_t partitions;
	enum fate fate = producer_warm(relay->producer, relay->topic, WARM_MS, &partitions, error);
	if (fate == FATE_OK && partitions != worker_partitions(relay->worker, relay->topic))
		return error_set(
			error, FATE_FATAL, ERR_USAGE,
			"topic %s has %" PRId32 " partitions now and had %" PRId32
			" when it was first published to: the count of a resumes topic is fixed for its life",
			relay->topic, partitions, worker_partitions(relay->worker, relay->topic));
	if (fate == FATE_OK)
		fate = producer_warm(relay->producer, gates, WARM_MS, NULL, error);
	return fate == FATE_REJECT ? FATE_RETRY : fate;
}

static enum fate fence(struct relay *relay, struct error *error)
{
	const struct config *config = relay->worker->config;
	struct producer_settings settings = {
		.client_id = "fermata-relay",
		.transactional_id = relay->transactional_id,
		.message_bytes = 4 * (size_t)config_number(config, PARAM_LIMITS_RECORD_BYTES) + MIB,
		.queue_bytes = 4 * (size_t)config_number(config, PARAM_WORKER_RELAY_BYTES) +
		               4 * (size_t)config_number(config, PARAM_LIMITS_RECORD_BYTES) + MIB,
		.report = on_report,
		.report_context = relay,
	};
	settings.properties = config_kafka(config, KAFKA_PRODUCER, &settings.properties_len);
	enum fate fate = producer_open(&relay->producer, &settings, error);
	if (fate == FATE_OK)
		fate = warm_up(relay, error);
	if (fate == FATE_OK)
		fate = failpoint(FAILPOINT_RELAY_BEFORE_INIT, error);
	if (fate != FATE_OK)
		return fate;
	int tries = 0;
	do
		fate = producer_init_transactions(relay->producer, PATIENCE_MS, error);
	while (fate == FATE_RETRY && error->code != ERR_FENCED && ++tries < INIT_TRIES && !relay_stopping(relay));
	return fate == FATE_OK ? failpoint(FAILPOINT_RELAY_AFTER_INIT, error) : fate;
}

/* ---- R4 ---- */

static enum fate send_one(struct relay *relay, struct publication *publication, struct error *error)
{
	const char *gates = config_text(relay->worker->config, PARAM_TOPICS_GATES);
	struct view value = { relay->out.data + publication->value_at, publication->value_len };
	struct outgoing outgoing = {
		.topic = publication->resume ? relay->topic : gates,
		.partition = publication->resume ? relay->partition : PARTITION_BY_KEY,
		.key = publication->key,
		.value = publication->tombstone ? VIEW_NULL : value,
		.headers = publication->headers,
		.headers_len = publication->headers_len,
		.timestamp_us = TIME_NONE,
		.tag = publication,
	};
	enum fate fate = producer_send(relay->producer, &outgoing, error);
	while (fate == FATE_RETRY && !relay_stopping(relay)) { /* the queue is full: let it drain */
		producer_poll(relay->producer, 10);
		fate = producer_send(relay->producer, &outgoing, error);
	}
	if (fate == FATE_REJECT && error->code == ERR_TOO_LARGE) /* larger than what the producer itself takes */
		note_too_large(relay, &publication->id, publication->resume);
	return fate;
}

static enum fate publish(struct relay *relay, struct error *error)
{
	relay->reported = -1;
	memset(relay->blame, 0, sizeof(relay->blame));
	int64_t start = clock_real_us();
	enum fate fate = producer_begin(relay->producer, error);
	if (fate == FATE_OK)
		fate = failpoint(FAILPOINT_RELAY_BEGUN, error);
	for (size_t i = 0; i < relay->publications_len && fate == FATE_OK; i++) {
		fate = send_one(relay, &relay->publications[i], error);
		if (fate == FATE_OK && i == 0 && relay->publications_len > 1)
			fate = failpoint(FAILPOINT_RELAY_SENDING, error);
	}
	if (fate == FATE_OK)
		fate = failpoint(FAILPOINT_RELAY_BEFORE_COMMIT, error);
	if (fate == FATE_OK)
		fate = producer_commit(relay->producer, error);
	if (fate == FATE_OK) /* with a resume in it, the window that the ledger is there for */
		fate = failpoint(relay->reported < 0 ? FAILPOINT_RELAY_AFTER_GATES : FAILPOINT_RELAY_AFTER_COMMIT,
		                 error);
	if (fate != FATE_OK)
		settle_blame(relay);
	metrics_observe_us(METRIC_PUBLISH_SECONDS, clock_real_us() - start);
	return fate == FATE_REJECT ? FATE_RETRY : fate; /* what was too large is noted; the term ends */
}

/* ---- R5 ---- */

static void note_published(const struct relay *relay, size_t resumes, size_t gates)
{
	int64_t now = clock_real_us();
	metrics_add(METRIC_RESUMES, (int64_t)resumes);
	metrics_add(METRIC_GATE_EVENTS, (int64_t)gates);
	for (size_t i = 0; i < relay->publications_len; i++) {
		if (relay->publications[i].resume && relay->publications[i].decided_at != TIME_NONE)
			metrics_observe_us(METRIC_DECISION_TO_RESUME_SECONDS, now - relay->publications[i].decided_at);
		metrics_add(METRIC_ERASED, relay->publications[i].erased ? 1 : 0);
		metrics_add(METRIC_GATE_EVENTS_HANDED, relay->publications[i].handed ? 1 : 0);
	}
}

static enum fate mark(struct relay *relay, struct error *error)
{
	struct gate_sent *resumed = arena_array(relay->taken, relay->publications_len, sizeof(*resumed));
	struct gate_sent *gates = arena_array(relay->taken, relay->publications_len, sizeof(*gates));
	if (resumed == NULL || gates == NULL)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory to mark what was published");
	size_t resumed_len = 0, gates_len = 0;
	for (size_t i = 0; i < relay->publications_len; i++) {
		const struct publication *publication = &relay->publications[i];
		struct gate_sent sent = { publication->id, publication->version, publication->waiting };
		if (publication->resume)
			resumed[resumed_len++] = sent;
		else if (!publication->with_resume)
			gates[gates_len++] = sent;
	}
	int64_t next = resumed_len > 0 ? relay->reported + 1 : relay->mine;
	if (next < relay->mine) /* the ledger knows; the reports did not */
		return error_set(error, FATE_RETRY, ERR_STALE, "%s [%" PRId32 "]: no place was reported of a resume",
		                 relay->topic, relay->partition);
	struct shard shard = relay_shard(relay);
	enum fate fate = store_relay_mark(relay->store, &shard, relay->mine, next, resumed, resumed_len, gates,
	                                  gates_len, clock_real_us(), error);
	if (fate != FATE_OK)
		return fate;
	relay->mine = next;
	note_published(relay, resumed_len, relay->publications_len - resumed_len);
	return failpoint(FAILPOINT_RELAY_AFTER_MARK, error);
}

/* ---- R3 ---- */

/* Those that must wait a little longer are passed over. */
static size_t waiting_ids(struct relay *relay, struct uuid *ids)
{
	size_t len = 0;
	int64_t now = clock_mono_ms();
	for (size_t i = 0; i < relay->notes_len; i++)
		if (relay->notes[i].kind == NOTE_WAIT && relay->notes[i].until_ms > now &&
		    relay->notes[i].news == learn_count(relay->worker))
			ids[len++] = relay->notes[i].id;
	return len;
}

static const void *find_handed(void *context, const struct uuid *id, int64_t version, size_t *ret_bytes)
{
	struct relay *relay = context;
	if (relay_note_find(relay, id, NOTE_GATE_TOO_LARGE) != NULL)
		return NULL; /* it goes without its action */
	const struct tray_event *event = tray_take(&relay->tray, id, version);
	*ret_bytes = event == NULL ? 0 : event->value.len;
	return event;
}

/* While a ledger is unread, nothing is resumed anywhere: then what is decided is told by itself, also what waits in the
 * outbox already. The first R3 after a start finds that out for intake. */
static enum fate note_ready(struct relay *relay, bool ready, struct error *error)
{
	struct shard shard = relay_shard(relay);
	enum fate fate = FATE_OK;
	atomic_store(&relay->worker->resumes_flow, ready);
	if (!ready && !relay->unready)
		fate = store_relay_tell(relay->store, &shard, error);
	if (fate == FATE_OK)
		relay->unready = !ready;
	return fate;
}

static enum fate take(struct relay *relay, struct relay_take *ret_take, struct error *error)
{
	const struct config *config = relay->worker->config;
	struct uuid skip[RELAY_NOTES_MAX];
	struct shard shard = relay_shard(relay);
	struct fresh fresh[TRAY_FRESH_MAX];
	struct handed handed = { find_handed, relay, fresh, tray_noted(&relay->tray, fresh) };
	arena_reset(relay->taken);
	tray_wash(&relay->tray);
	uint64_t mark = tray_mark(&relay->tray);
	struct relay_want want = {
		.routes_digest = relay->worker->routes_digest,
		.skip = skip,
		.skip_len = waiting_ids(relay, skip),
		.rows = relay->rows_max,
		.bytes = (size_t)config_number(config, PARAM_WORKER_RELAY_BYTES),
		.lone = relay_lone(relay),
		.with_action = config_flag(config, PARAM_GATES_INCLUDE_ACTION),
		.with_decided = relay->unready,
		.handed = &handed,
	};
	enum fate fate = store_relay_take(relay->store, &shard, &want, relay->taken, ret_take, error);
	if (fate == FATE_REJECT && error->code == ERR_MEMORY) { /* rows may be large: fewer of them will fit */
		relay->rows_max = 1;
		fate = error->fate = FATE_RETRY;
	}
	if (fate == FATE_OK && store_reconnects(relay->store) != relay->connection)
		fate = error_set(error, FATE_RETRY, ERR_STALE,
		                 "%s [%" PRId32 "]: a new connection, perhaps to an older database", relay->topic,
		                 relay->partition);
	if (fate == FATE_OK && ret_take->ledger.next != relay->mine && !sabotaged("no_ledger"))
		fate = error_set(error, FATE_RETRY, ERR_STALE,
		                 "%s [%" PRId32 "]: the database stands elsewhere than this relay left it",
		                 relay->topic, relay->partition);
	if (fate == FATE_OK && memcmp(ret_take->ledger.routes_digest, relay->worker->routes_digest, 32) != 0)
		fate =
			error_set(error, FATE_RETRY, ERR_STALE,
		              "%s [%" PRId32 "]: the database says that it was read under other routes", relay->topic,
		              relay->partition); /* a restore: else every shard would wait for this one */
	if (fate != FATE_OK)
		return fate;
	relay->doubt = ret_take->ledger.doubt;
	relay_note_gates(relay, ret_take);
	if (!ret_take->more && !ret_take->lone)
		tray_sweep(&relay->tray, mark);
	return note_ready(relay, ret_take->ready, error);
}

/* ---- waiting ---- */

static enum fate listen_again(struct relay *relay, struct error *error)
{
	if (relay->listening == store_reconnects(relay->store) && relay->listening != 0)
		return FATE_OK;
	enum fate fate = store_listen(relay->store, error);
	if (fate == FATE_OK)
		relay->listening = store_reconnects(relay->store);
	return fate;
}

/* Until intake of this process, a notification that means this shard, or the end of the connection. */
static void wait_for_work(struct relay *relay, int timeout_ms)
{
	int64_t until = clock_mono_ms() + timeout_ms;
	int64_t left = timeout_ms;
	while (left > 0 && (store_notified(relay->store) & relay->bit) == 0) {
		struct pollfd fds[2] = { { .fd = relay->wake_fd, .events = POLLIN },
			                     { .fd = store_socket(relay->store), .events = POLLIN } };
		if (poll(fds, 2, (int)left) < 0)
			return;
		uint64_t count;
		if (fds[0].revents != 0) {
			if (read(relay->wake_fd, &count, sizeof(count)) < 0)
				log_debug("relay", "woken for nothing");
			return;
		}
		left = until - clock_mono_ms();
	}
}

static enum fate idle(struct relay *relay, bool ready, struct error *error)
{
	if (clock_mono_ms() >= relay->idle_read_ms) {
		relay->idle_read_ms = clock_mono_ms() + IDLE_READ_MS;
		enum fate fate = relay_read_on(relay, error);
		if (fate != FATE_OK)
			return fate;
		relay->fenced = 0;
		set_rival(relay, false);
	}
	backoff_reset(&relay->backoff);
	wait_for_work(relay, ready ? IDLE_MS : NOT_READY_MS);
	return FATE_OK;
}

/* ---- a term ---- */

/* R3, R4, R5 once; or a wait when there is nothing to do. */
static enum fate turn(struct relay *relay, struct error *error)
{
	struct relay_take rows;
	enum fate fate = listen_again(relay, error);
	if (fate == FATE_OK && relay->drained) {
		relay->drained = false;
		wait_for_work(relay, relay_gates_wait(relay, IDLE_MS));
		return FATE_OK;
	}
	relay_gather(relay);
	int64_t began_ms = clock_mono_ms();
	if (fate == FATE_OK)
		fate = take(relay, &rows, error);
	if (fate == FATE_OK && rows.rows_len > 0)
		fate = failpoint(FAILPOINT_RELAY_TAKEN, error);
	if (fate == FATE_OK)
		fate = relay_encode(relay, &rows, error);
	if (fate != FATE_OK)
		return fate;
	if (relay->publications_len == 0)
		return rows.rows_len > 0 ? FATE_OK : idle(relay, rows.ready, error);
	fate = failpoint(FAILPOINT_RELAY_ENCODED, error);
	if (fate == FATE_OK)
		fate = publish(relay, error);
	if (fate != FATE_OK)
		return fate;
	fate = mark(relay, error);
	if (fate != FATE_OK)
		return fate;
	backoff_reset(&relay->backoff);
	relay_note_load(relay, began_ms, &rows);
	relay->drained = !rows.more && !relay->cut;
	grow_rows(relay);
	return FATE_OK;
}

/* At its end a relay tells what stayed behind: the next worker may be a long time off. */
static enum fate tell_rest(struct relay *relay, struct error *error)
{
	if (relay->gates_due_ms == 0 || !atomic_load(&relay->held))
		return FATE_OK;
	relay->drained = false;
	relay->gates_due_ms = clock_mono_ms();
	return turn(relay, error);
}

enum fate relay_begin(struct relay *relay, struct error *error)
{
	enum fate fate = store_connect(relay->store, error); /* nobody is fenced for nothing */
	relay->connection = store_reconnects(relay->store);
	if (fate == FATE_OK)
		fate = fence(relay, error);
	return fate == FATE_OK ? relay_read_ledger(relay, error) : fate;
}

static enum fate term(struct relay *relay, struct error *error)
{
	enum fate fate = relay_begin(relay, error);
	if (fate != FATE_OK)
		return fate;
	tray_clear(&relay->tray); /* from here on only what is committed in the database of this term */
	relay->gates_due_ms = 0;
	atomic_store(&relay->ready, true);
	worker_part_ok(relay->worker, PART_RELAY, true);
	relay->idle_read_ms = clock_mono_ms() + IDLE_READ_MS;
	log_debug("relay", "%s [%" PRId32 "]: a term begins at %" PRId64, relay->topic, relay->partition,
	          relay->mine);
	while (fate == FATE_OK && !relay_stopping(relay))
		fate = turn(relay, error);
	return fate == FATE_OK ? tell_rest(relay, error) : fate;
}

static void end_term(struct relay *relay, enum fate fate, const struct error *error)
{
	atomic_store(&relay->ready, false);
	producer_close(relay->producer);
	relay->producer = NULL;
	relay_forget(relay);
	tray_clear(&relay->tray);
	tray_wash(&relay->tray);
	relay->drained = false;
	if (fate == FATE_OK || relay_stopping(relay))
		return;
	metrics_add(METRIC_RELAY_ERRORS, 1);
	log_error(LOG_LEVEL_WARN, "relay", error);
	worker_part_waits(relay->worker, PART_RELAY, error);
}

/* A relay of our group that takes the shard over fences once, and the group says so. Somebody else does it again and
 * again: then it is said, and the shard is not fought for at every chance. */
static void note_fenced(struct relay *relay)
{
	uint64_t spoken = atomic_load(&relay->spoken);
	metrics_add(METRIC_RELAY_FENCINGS, 1);
	relay->fenced = spoken == relay->spoken_when ? relay->fenced + 1 : 1;
	relay->spoken_when = spoken;
	set_rival(relay, relay->fenced >= FENCED_OFTEN);
	if (relay->rival)
		log_warn("relay",
		         "ALARM %s [%" PRId32
		         "]: something that is not in this worker's group publishes as %s and has fenced "
		         "it %u times: look for a second installation with worker.group %s, and give each its own",
		         relay->topic, relay->partition, relay->transactional_id, relay->fenced,
		         config_text(relay->worker->config, PARAM_WORKER_GROUP));
}

/* Between two terms: not while the group says that the shard is another's. */
static void wait_between_terms(struct relay *relay, bool fenced)
{
	int64_t until = clock_mono_ms() + backoff_next(&relay->backoff) +
	                (relay->rival ? RIVAL_MS
	                 : fenced     ? FENCED_MS
	                              : 0);
	while (!relay_stopping(relay) && (clock_mono_ms() < until || !atomic_load(&relay->held)))
		(void)worker_wait(relay->worker, 50);
}

void relay_init(struct relay *relay, struct worker *worker, const struct partition_at *place)
{
	relay->worker = worker;
	relay->partition = place->partition;
	snprintf(relay->topic, sizeof(relay->topic), "%s", place->topic);
	snprintf(relay->transactional_id, sizeof(relay->transactional_id), "%s.%s.%" PRId32,
	         config_text(worker->config, PARAM_WORKER_GROUP), place->topic, place->partition);
	snprintf(relay->source, sizeof(relay->source), "/fermata/%s",
	         config_text(worker->config, PARAM_WORKER_GROUP));
	relay->bit = store_shard_bit(view_of(relay->topic), relay->partition);
	atomic_store(&relay->held, true);
}

enum fate relay_open(struct relay *relay, struct error *error)
{
	const struct config *config = relay->worker->config;
	size_t record = (size_t)config_number(config, PARAM_LIMITS_RECORD_BYTES);
	size_t bytes = (size_t)config_number(config, PARAM_WORKER_RELAY_BYTES);
	relay->publications_cap = 3 * (size_t)config_number(config, PARAM_WORKER_RELAY_BATCH) + 1;
	relay->rows_max = relay->rows_end = (size_t)config_number(config, PARAM_WORKER_RELAY_BATCH);
	relay->publications = calloc(relay->publications_cap, sizeof(*relay->publications));
	relay->taken = arena_new(2 * (bytes + record) + 64 * MIB);
	relay->plain = arena_new(4 * record + STATE_BYTES_MAX + 16 * MIB);
	relay->ledger = arena_new(4 * record + 64 * MIB);
	buffer_init(&relay->out, bytes + 4 * record + 4 * MIB);
	buffer_init(&relay->body, 4 * record + 4 * MIB);
	backoff_init(&relay->backoff, 50, 5000);
	if (relay->publications == NULL || relay->taken == NULL || relay->plain == NULL || relay->ledger == NULL)
		return error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for a relay");
	struct codec_settings settings = { .record_bytes = 4 * record + MIB, .catalog = relay->worker->catalog };
	enum fate fate = codec_new(&relay->codec, &settings, error);
	if (fate != FATE_OK)
		return fate;
	learn_write_ids(relay->worker, relay->codec, relay->topic);
	learn_write_ids(relay->worker, relay->codec, config_text(config, PARAM_TOPICS_GATES));
	return worker_open_store(relay->worker, "relay", &relay->store, error);
}

void relay_close(struct relay *relay)
{
	producer_close(relay->producer);
	store_close(relay->store);
	codec_free(relay->codec);
	arena_free(relay->taken);
	arena_free(relay->plain);
	arena_free(relay->ledger);
	buffer_done(&relay->out);
	buffer_done(&relay->body);
	free(relay->publications);
}

void *relay_thread(void *argument)
{
	struct relay *relay = argument;
	struct error error = { 0 };
	char name[16]; /* for top -H and perf */
	snprintf(name, sizeof(name), "relay %" PRId32, relay->partition);
	pthread_setname_np(pthread_self(), name);
	enum fate fate = relay_open(relay, &error);
	if (fate != FATE_OK)
		fate = error.fate = FATE_FATAL; /* without all of its parts it cannot try again */
	while (fate != FATE_FATAL && !relay_stopping(relay)) {
		fate = term(relay, &error);
		end_term(relay, fate, &error);
		if (fate != FATE_OK && error.code == ERR_FENCED && !relay_stopping(relay))
			note_fenced(relay);
		if (fate != FATE_FATAL && !relay_stopping(relay))
			wait_between_terms(relay, fate != FATE_OK && error.code == ERR_FENCED);
	}
	if (fate == FATE_FATAL)
		worker_fail(relay->worker, "relay", &error);
	set_rival(relay, false);
	atomic_store(&relay->worker->resumes_flow, false); /* until another relay has looked */
	relay_close(relay);
	return NULL;
}
