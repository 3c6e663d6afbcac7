/*
 * test_relay_base.h - the second half of test_relay.h: the database, what is sealed and encoded, the rest of
 * the worker, and how a relay is brought to life.
 */
#ifndef FERMATA_TESTS_UNIT_TEST_RELAY_BASE_H
#define FERMATA_TESTS_UNIT_TEST_RELAY_BASE_H

#include "schemas/framing.h"
#include "test_learn_none.h"
#include "test_relay.h"
#include "test_relay_sealed.h"
#include "test_worker_parts.h"

#define TAKE_MS 5000 /* an R3 and what comes with it: so that idle readings and doubts come about */

struct store {
	int nothing;
};

static struct store the_store;

/* ---- the database ---- */

enum fate store_connect(struct store *store, struct error *error)
{
	(void)store;
	return strikes() ? trouble(error) : FATE_OK;
}

uint64_t store_reconnects(const struct store *store)
{
	(void)store;
	return play.connects;
}

int store_socket(const struct store *store)
{
	(void)store;
	return -1;
}

void store_close(struct store *store)
{
	(void)store;
}

enum fate store_listen(struct store *store, struct error *error)
{
	(void)store;
	return strikes() ? trouble(error) : FATE_OK;
}

uint64_t store_notified(struct store *store)
{
	(void)store;
	play.marked = false;
	return 0;
}

uint64_t store_shard_bit(struct view topic, int32_t partition)
{
	(void)topic;
	(void)partition;
	return 1;
}

static inline struct ledger ledger_row(void)
{
	struct ledger row = { .next = LEDGER_NONE, .doubt.before = TIME_NONE };

	if (!play.base.has_ledger)
		return row;
	row.next = play.base.next;
	row.doubt = play.base.doubt;
	memcpy(row.routes_digest, play.base.routes_digest, sizeof(row.routes_digest));
	return row;
}

enum fate store_ledger(struct store *store, const struct shard *shard, struct ledger *ret_ledger,
                       struct error *error)
{
	(void)store;
	assert_string_equal(shard->topic, "resumes");
	assert_int_equal(shard->partition, 3);
	if (strikes())
		return trouble(error);
	*ret_ledger = ledger_row();
	return FATE_OK;
}

static inline bool stands_at(int64_t mine)
{
	return play.base.has_ledger ? play.base.next == mine : mine == LEDGER_NONE;
}

static inline enum fate stale(struct error *error)
{
	return error_set(error, FATE_RETRY, ERR_STALE, "the ledger stands elsewhere");
}

static inline void raise_gate(struct base_row *row, int64_t version)
{
	row->version = row->version + 1 > version ? row->version + 1 : version;
	row->gate = row->version;
}

enum fate store_ledger_advance(struct store *store, const struct shard *shard, int64_t mine, int64_t next,
                               struct doubt doubt, const uint8_t routes_digest[32],
                               const struct ledger_found *found, size_t len, size_t *ret_new,
                               struct error *error)
{
	(void)store;
	(void)shard;
	if (strikes())
		return trouble(error);
	if (!stands_at(mine))
		return stale(error);
	assert_true(next >= mine && next <= play.broker.len);
	for (size_t i = 0; i < len; i++) {
		struct base_row *row = &play.base.rows[number_of(&found[i].checkpoint_id)];
		if (row->state == GATE_RESUMED)
			continue;
		row->decided = true;
		row->state = GATE_RESUMED;
		row->outbox = false;
		raise_gate(row, found[i].appended_at);
		++*ret_new;
	}
	play.base.has_ledger = true;
	play.base.next = next;
	play.base.doubt = doubt;
	memcpy(play.base.routes_digest, routes_digest, sizeof(play.base.routes_digest));
	return answer_lost() ? trouble(error) : FATE_OK;
}

static inline struct checkpoint *row_copy(struct arena *arena, int number)
{
	const struct base_row *row = &play.base.rows[number];
	struct checkpoint *copy = arena_alloc(arena, sizeof(*copy));

	assert_non_null(copy);
	*copy = (struct checkpoint){
		.id = id_of(number),
		.state = row->state,
		.filled = true,
		.session_id = VIEW_LITERAL("SESSION-808"),
		.has_verdict = row->decided,
		.verdict = VERDICT_REJECTED,
		.decided_at = row->decided_at,
		.doubt_settled = row->doubt_settled,
		.appended_at = 0,
		.expires_at = TIME_NONE,
		.version = row->version,
		.sealed = { .has_key = true, .body = VIEW_LITERAL("sealed") },
	};
	memset(copy->digest, number, DIGEST_LEN);
	return copy;
}

static inline bool is_skipped(const struct uuid *skip, size_t len, int number)
{
	for (size_t i = 0; i < len; i++)
		if (number_of(&skip[i]) == number)
			return true;
	return false;
}

static inline int lowest_after(int64_t seq, const struct uuid *skip, size_t skip_len)
{
	int lowest = -1;

	for (int i = 0; i < CHECKPOINTS; i++) {
		const struct base_row *row = &play.base.rows[i];
		if (row->outbox && row->state == GATE_DECIDED && row->seq > seq && !is_skipped(skip, skip_len, i) &&
		    (lowest < 0 || row->seq < play.base.rows[lowest].seq))
			lowest = i;
	}
	return lowest;
}

static inline void take_gate(struct relay_take *take, int number, const struct handed *handed,
                             struct arena *arena)
{
	struct gate_row *row = &take->gates[take->gates_len++];
	size_t bytes = 0;

	*row = (struct gate_row){ .checkpoint = row_copy(arena, number), .version = play.base.rows[number].gate };
	life_now()->seen[number] = (struct told){ id_of(number), row->checkpoint->state, row->version };
	row->handed = handed->find(handed->context, &row->checkpoint->id, row->version, &bytes);
	assert_int_equal(bytes, row->handed == NULL ? 0 : sizeof(struct told));
	if (row->handed != NULL)
		*row->checkpoint = (struct checkpoint){ .id = id_of(number) };
}

static inline bool is_in(const struct relay_take *take, int number)
{
	for (size_t i = 0; i < take->rows_len; i++)
		if (number_of(&take->rows[i].checkpoint->id) == number)
			return true;
	return false;
}

static inline void take_rows(struct relay_take *take, const struct relay_want *want, struct arena *arena)
{
	int64_t seq = 0;

	take->rows = arena_array(arena, CHECKPOINTS, sizeof(*take->rows));
	take->gates = arena_array(arena, CHECKPOINTS, sizeof(*take->gates));
	assert_true(take->rows != NULL && take->gates != NULL);
	for (int i; take->ready && take->rows_len < want->rows &&
	            (i = lowest_after(seq, want->skip, want->skip_len)) >= 0;) {
		seq = play.base.rows[i].seq;
		take->rows[take->rows_len++] = (struct outbox_row){ .seq = seq, .checkpoint = row_copy(arena, i) };
	}
	take->lone = take->rows_len > 0 && take->rows_len <= want->lone && take->rows_len < want->rows;
	for (int i = 0; i < CHECKPOINTS && take->gates_len < want->rows && !take->lone; i++)
		if (play.base.rows[i].gate > 0 && !is_in(take, i))
			take_gate(take, i, want->handed, arena);
}

/* Intake of the same process hands over what waits for a decision, now and then; before the relay looks an approval of
 * several may come, or the decision, or the database may go back. */
static inline void hand_over_some(struct tray *tray)
{
	for (int i = 0; i < CHECKPOINTS; i++) {
		struct base_row *row = &play.base.rows[i];
		const struct told told = { id_of(i), row->state, row->version };
		const struct tray_event event = { .id = told.id,
			                              .version = told.version,
			                              .value = { (const uint8_t *)&told, sizeof(told) } };
		if (row->state == GATE_PENDING && chance(50))
			tray_put(tray, &event);
		if (row->state == GATE_PENDING && chance(10))
			raise_gate(row, clock_real_us());
	}
}

/* Intake, of which only this is seen: what was not decided is, now and then. */
static inline void decide_some(void)
{
	for (int i = 0; i < CHECKPOINTS; i++) {
		struct base_row *row = &play.base.rows[i];
		if (row->decided || !chance(play.trouble > 0 ? 25 : 100))
			continue;
		row->decided = row->outbox = true;
		row->state = GATE_DECIDED;
		row->seq = ++play.base.seq;
		if (play.decided_at[i] == 0)
			play.decided_at[i] = clock_real_us();
		row->decided_at = play.decided_at[i];
		raise_gate(row, row->decided_at);
		if (atomic_load(&play.worker.resumes_flow)) /* it goes with its resume */
			row->gate = 0;
	}
}

enum fate store_relay_take(struct store *store, const struct shard *shard, const struct relay_want *want,
                           struct arena *arena, struct relay_take *ret_take, struct error *error)
{
	struct life *life = life_now();

	(void)store;
	(void)shard;
	assert_memory_equal(want->routes_digest, play.worker.routes_digest, 32);
	if (life->nothing) { /* what was published before that is kept nowhere */
		assert_null(life->relay->out.data);
		assert_null(life->relay->body.data);
		assert_true(life->rested);
		play.rests++;
	}
	life->nothing = false;
	play.looks += play.marked;
	play.marked = false;
	if (strikes())
		return trouble(error);
	hand_over_some(&life->relay->tray);
	decide_some();
	play.now_ms += TAKE_MS;
	play.connects += play.reconnect_at > 0 && life->takes == play.reconnect_at;
	if (--life->takes <= 0)
		atomic_store(&life->relay->ended, true);
	*ret_take = (struct relay_take){
		.ledger = ledger_row(),
		.ready = !play.unread && memcmp(ledger_row().routes_digest, want->routes_digest, 32) == 0,
	};
	take_rows(ret_take, want, arena);
	ret_take->more = ret_take->rows_len == want->rows || ret_take->gates_len == want->rows;
	life->nothing = ret_take->rows_len + ret_take->gates_len == 0;
	return FATE_OK;
}

enum fate store_relay_tell(struct store *store, const struct shard *shard, struct error *error)
{
	(void)store;
	(void)shard;
	if (strikes())
		return trouble(error);
	for (int i = 0; i < CHECKPOINTS; i++)
		if (play.base.rows[i].outbox && play.base.rows[i].state == GATE_DECIDED)
			play.base.rows[i].gate = play.base.rows[i].version;
	play.told++;
	return answer_lost() ? trouble(error) : FATE_OK;
}

enum fate store_relay_mark(struct store *store, const struct shard *shard, int64_t mine, int64_t next,
                           const struct gate_sent *resumed, size_t resumed_len, const struct gate_sent *gates,
                           size_t gates_len, int64_t now, struct error *error)
{
	(void)store;
	(void)shard;
	(void)now;
	if (strikes())
		return trouble(error);
	if (!stands_at(mine))
		return stale(error);
	assert_true(next >= mine && next <= play.broker.len);
	for (size_t i = 0; i < resumed_len; i++)
		if (play.base.rows[number_of(&resumed[i].checkpoint_id)].state != GATE_DECIDED)
			return stale(error);
	for (size_t i = 0; i < resumed_len; i++) {
		struct base_row *row = &play.base.rows[number_of(&resumed[i].checkpoint_id)];
		row->state = GATE_RESUMED;
		row->outbox = false;
		if (resumed[i].version > row->version)
			row->version = resumed[i].version;
		if (resumed[i].waiting == WAITING_COMES && resumed[i].version > row->gate)
			row->gate = resumed[i].version;
		if (resumed[i].waiting == WAITING_GOES && row->gate <= resumed[i].version)
			row->gate = 0;
	}
	for (size_t i = 0; i < gates_len; i++) {
		struct base_row *row = &play.base.rows[number_of(&gates[i].checkpoint_id)];
		if (row->gate <= gates[i].version)
			row->gate = 0;
	}
	play.base.next = next;
	play.marks++;
	play.marked = true;
	return answer_lost() ? trouble(error) : FATE_OK;
}

enum fate store_relay_set_aside(struct store *store, const struct shard *shard, int64_t mine,
                                const struct uuid *checkpoint_id, enum gate_state state, const char *reason,
                                int64_t now, struct error *error)
{
	struct base_row *row = &play.base.rows[number_of(checkpoint_id)];

	(void)store;
	(void)shard;
	assert_non_null(reason);
	if (strikes())
		return trouble(error);
	if (!stands_at(mine))
		return stale(error);
	if (row->state == GATE_DECIDED) {
		row->state = state;
		row->outbox = false;
		raise_gate(row, now);
	}
	return answer_lost() ? trouble(error) : FATE_OK;
}

/* ---- the rest of the worker ---- */

bool worker_stopping(const struct worker *worker)
{
	(void)worker;
	return false;
}

bool worker_wait(struct worker *worker, int64_t ms)
{
	struct life *life = life_now();

	(void)worker;
	play.now_ms += ms;
	if (++life->waits > 2000) /* it has had its time */
		atomic_store(&life->relay->ended, true);
	return false;
}

void worker_fail(struct worker *worker, const char *room, const struct error *error)
{
	(void)worker;
	fail_msg("%s: %s", room, error->message);
}

int32_t worker_partitions(const struct worker *worker, const char *topic)
{
	(void)worker;
	(void)topic;
	return 6;
}

enum fate worker_open_store(const struct worker *worker, const char *room, struct store **ret_store,
                            struct error *error)
{
	(void)worker;
	(void)room;
	(void)error;
	*ret_store = &the_store;
	return FATE_OK;
}

/* ---- lives ---- */

/* One relay from its first R1 to its end, after so many R3s or when the power goes. */
static inline void run_life(int takes)
{
	int ends[2];
	struct relay *relay = calloc(1, sizeof(*relay));

	assert_non_null(relay);
	assert_int_equal(pipe(ends), 0);
	close(ends[1]); /* it never has to wait for work */
	relay->worker = &play.worker;
	relay->partition = 3;
	relay->wake_fd = ends[0];
	snprintf(relay->topic, sizeof(relay->topic), "resumes");
	snprintf(relay->transactional_id, sizeof(relay->transactional_id), "fermata.resumes.3");
	tray_init(&relay->tray, 4096);
	atomic_store(&relay->held, true);
	play.lives[play.depth++] = (struct life){ .relay = relay, .takes = takes };
	assert_null(relay_thread(relay));
	play.depth--;
	close(ends[0]);
	tray_done(&relay->tray);
	free(relay);
}

/* Every suspend was read, and nothing else. */
static inline struct base empty_base(void)
{
	struct base base = { .seq = 0 };

	for (int i = 0; i < CHECKPOINTS; i++)
		base.rows[i] = (struct base_row){ .state = GATE_PENDING, .version = i + 1, .gate = i + 1 };
	return base;
}

static inline void play_begin(uint64_t seed)
{
	struct config *config = play.config;

	memset(&play, 0, sizeof(play));
	play.config = config;
	play.random = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
	play.now_ms = 1000000;
	play.broken = play.waiting = play.broker.too_large = -1;
	play.worker.config = config;
	snprintf(play.worker.cluster_id, sizeof(play.worker.cluster_id), "cluster");
	memset(play.worker.routes_digest, 0xA7, 32);
	play.base = empty_base();
}

static inline int group_setup(void **state)
{
	struct config_request request = { 0 };
	struct error error;

	(void)state;
	log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	return config_load(&play.config, &request, &error) == FATE_OK ? 0 : -1;
}

static inline int group_teardown(void **state)
{
	(void)state;
	config_free(play.config);
	return 0;
}

#endif
