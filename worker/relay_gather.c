/* How a relay comes to large transactions under load without making a lone decision wait. */
#include "worker/relay.h"

#include <poll.h>
#include <unistd.h>

#define GATHER_MIN 16 /* a transaction with so many records is a sign of load */
#define GATHER_MS  40 /* from the beginning of one with resumes to the next */
/* The same while intake of this process is behind: what it has not read yet waits longer than this anyway, and a
 * transaction of one batch of intake is cut into as many as there are shards. */
#define GATHER_BEHIND_MIN 8 /* resumes in the last one: not where a few decisions come among many suspends */
#define GATHER_BEHIND_MS  400
/* One with gate events alone: for each of them so long, the more of them the longer, up to an end that people's pages bear. A
 * decision ends the wait. */
#define GATHER_GATE_US      6250
#define GATHER_GATES_MAX_MS 400
/* Fewer resumes are no load: they go without gate events, which would be more partitions of their transaction, each with a request, a
 * marker and a word with the coordinator of its own. Those follow, together with what else there is then. */
#define LONE_MAX (GATHER_BEHIND_MIN - 1)

static int64_t gather_gates(size_t gates)
{
	int64_t ms = (int64_t)gates * GATHER_GATE_US / 1000;

	return ms < GATHER_GATES_MAX_MS ? ms : GATHER_GATES_MAX_MS;
}

void relay_note_load(struct relay *relay, int64_t began_ms, const struct relay_take *rows)
{
	bool full = rows->rows_len >= relay->rows_max || rows->gates_len >= relay->rows_max;

	relay->gather_all = rows->rows_len > 0;
	relay->gather_ms = relay->gather_behind_ms = 0;
	if (full || relay->publications_len < GATHER_MIN) /* a full one shows that more wait already */
		return;
	relay->gather_ms = began_ms + (relay->gather_all ? GATHER_MS : gather_gates(relay->publications_len));
	if (rows->rows_len >= GATHER_BEHIND_MIN)
		relay->gather_behind_ms = began_ms + GATHER_BEHIND_MS;
}

/* Until when: intake may catch up at any moment. */
static int64_t gather_left(const struct relay *relay)
{
	bool behind = relay->gather_behind_ms > 0 && atomic_load(&relay->worker->behind);

	return (behind ? relay->gather_behind_ms : relay->gather_ms) - clock_mono_ms();
}

void relay_gather(struct relay *relay)
{
	int64_t left = gather_left(relay);

	while (left > 0 && !relay_stopping(relay) && (relay->gather_all || !atomic_load(&relay->urgent))) {
		struct pollfd fd = { .fd = relay->wake_fd, .events = POLLIN };
		uint64_t count;
		if (poll(&fd, 1, (int)left) > 0 && read(relay->wake_fd, &count, sizeof(count)) < 0)
			break;
		left = gather_left(relay);
	}
	relay->gather_ms = relay->gather_behind_ms = 0;
	atomic_store(&relay->urgent, false); /* what is there now is taken now */
}

/* ---- gate events that stay behind ---- */

size_t relay_lone(const struct relay *relay)
{
	bool due = relay->gates_due_ms != 0 && clock_mono_ms() >= relay->gates_due_ms;

	return due || relay->cut ? 0 : LONE_MAX;
}

/* There may be more of them than one R3 takes: then they are due until there are not. */
void relay_note_gates(struct relay *relay, const struct relay_take *rows)
{
	if (!rows->lone)
		relay->gates_due_ms = rows->more ? clock_mono_ms() : 0;
	else if (relay->gates_due_ms == 0)
		relay->gates_due_ms = clock_mono_ms() + GATHER_GATES_MAX_MS;
}

int relay_gates_wait(const struct relay *relay, int most_ms)
{
	int64_t left = relay->gates_due_ms - clock_mono_ms();

	if (relay->gates_due_ms == 0 || left > most_ms)
		return most_ms;
	return left > 0 ? (int)left : 0;
}
