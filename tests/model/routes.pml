/*
 * Routes that change, and a restore: one checkpoint, two resumes topics of one partition each, a relay for each of
 * them. README.md says what is left out, and which switch takes which rule away.
 */
#ifndef CHANGES
#define CHANGES 1 /* how often the routes change: 2 is there and back again */
#endif
#define NEVER 255

#define NONE    0
#define DECIDED 1
#define RESUMED 2

byte route;   /* which topic the checkpoint's agent goes to today; also the digest of the routes */
byte changes;
byte end[2];  /* the topics: every record is a resume of the checkpoint */
byte published;

byte state; /* PostgreSQL */
byte shard;
byte ledger[2] = NEVER;
byte digest[2] = NEVER;
byte old_state, old_shard;
byte old_ledger[2] = NEVER;
byte old_digest[2] = NEVER;
bit kept, restored;

bit in_term[2]; /* each relay is past R2 */
byte mine[2];
#ifdef WAIT_FOR_ENDS
byte target[2]; /* the end of the other topic when its term began, or its ledger was seen to go back */
byte seen[2];   /* the ledger of the other topic as it was seen last */
#endif
bit sent[2];    /* past R4 and not yet at R5 */

#define SAY printf

#ifdef WAIT_FOR_ENDS /* as intake does with suspends */
#define LEDGER(p)      (ledger[p] == NEVER -> 0 : ledger[p])
#define OTHERS_READ(p) (LEDGER(1 - (p)) >= target[p] && LEDGER(1 - (p)) >= seen[p])
#define LOOKED         (!sent[0] && !sent[1] && \
	(!in_term[0] || seen[0] == LEDGER(1)) && (!in_term[1] || seen[1] == LEDGER(0)))
#else
#define OTHERS_READ(p) true
#define LOOKED         true
#endif

active proctype operator()
{
	do
	:: d_step { /* workers are started with other routes */
		changes < CHANGES ->
		changes++;
		route = 1 - route;
		SAY("operator: routes lead to topic %d\n", route);
		in_term[0] = 0; in_term[1] = 0; sent[0] = 0; sent[1] = 0
	   }
	:: d_step {
		!kept && !restored ->
		SAY("database: a snapshot\n");
		kept = 1;
		old_state = state; old_shard = shard;
		old_ledger[0] = ledger[0]; old_ledger[1] = ledger[1];
		old_digest[0] = digest[0]; old_digest[1] = digest[1]
	   }
	:: d_step {
		!restored && LOOKED ->
		SAY("database: goes back to ledgers %d %d, digests %d %d, state %d\n",
			old_ledger[0], old_ledger[1], old_digest[0], old_digest[1], old_state);
		restored = 1;
		kept = 1;
		state = old_state; shard = old_shard;
		ledger[0] = old_ledger[0]; ledger[1] = old_ledger[1];
		digest[0] = old_digest[0]; digest[1] = old_digest[1]
	   }
	od
}

active proctype intake()
{
	do
	:: d_step { state == NONE -> state = DECIDED; shard = route; SAY("intake: decided, for topic %d\n", route) }
	od
}

#ifdef NO_DIGEST
#define ALL_READ true
#else
#define ALL_READ (digest[0] == route && digest[1] == route)
#endif
#ifdef DIGEST_OF_OWN_ROW_IGNORED
#define AS_LEFT(p) (ledger[p] == mine[p])
#else
#define AS_LEFT(p) (ledger[p] == mine[p] && digest[p] == route)
#endif

proctype relay(byte p)
{
	do
	:: d_step { /* R1 is not needed here: nobody else publishes to this shard */
		!in_term[p] || !AS_LEFT(p) ->
		SAY("relay %d: R2 from %d to %d\n", p, ledger[p], end[p]);
		if
		:: end[p] > (ledger[p] == NEVER -> 0 : ledger[p]) -> state = RESUMED
		:: else
		fi;
		ledger[p] = end[p];
		mine[p] = end[p];
		digest[p] = route;
#ifdef WAIT_FOR_ENDS
		target[p] = end[1 - p];
		seen[p] = (ledger[1 - p] == NEVER -> 0 : ledger[1 - p]);
#endif
		in_term[p] = 1;
		sent[p] = 0
	   }
	:: d_step {
		in_term[p] && !sent[p] && AS_LEFT(p) && state == DECIDED && shard == p && ALL_READ && OTHERS_READ(p) ->
		SAY("relay %d: publishes\n", p);
		end[p]++;
		published++;
		assert(published <= 1); /* L2 */
		sent[p] = 1
	   }
#ifdef WAIT_FOR_ENDS
	:: d_step { /* a look, every second */
		in_term[p] && seen[p] != LEDGER(1 - p) ->
		if
		:: LEDGER(1 - p) < seen[p] -> target[p] = end[1 - p]
		:: else
		fi;
		seen[p] = LEDGER(1 - p)
	   }
#endif
	:: d_step {
		in_term[p] && sent[p] ->
		sent[p] = 0;
		if
		:: ledger[p] == mine[p] && state == DECIDED -> state = RESUMED; ledger[p] = end[p]; mine[p] = end[p]
		:: else -> in_term[p] = 0
		fi
	   }
	od
}

init
{
	atomic { run relay(0); run relay(1) };
	timeout;
	assert(state == RESUMED && published == 1) /* L3 */
}
