/* store_rebuild.h - what a rebuild asks of the database: how empty it is, how far it is, what came back. */
#ifndef FERMATA_STORE_STORE_REBUILD_H
#define FERMATA_STORE_STORE_REBUILD_H

#include "store/store.h"

/* How much there is. */
struct holdings {
	int64_t checkpoints;
	int64_t decisions;
	int64_t positions;
	int64_t ledgers;
	int64_t rebuilding; /* ledgers whose row says that a rebuild has begun and has not ended */
};

/* Positions and ledgers are those of the cluster. rebuilding: what stands in the place of a digest of routes while one
 * is under way. */
FM_MUSTCHECK enum fate store_holdings(struct store *store, const char *cluster_id,
                                      const uint8_t rebuilding[32], struct holdings *ret_holdings,
                                      struct error *error);

struct ledger_row {
	struct view topic;
	int32_t partition;
	struct ledger ledger;
};

/* Every row of ledger_offset of the cluster, by topic and partition. They live in the arena. */
FM_MUSTCHECK enum fate store_ledgers(struct store *store, const char *cluster_id, struct arena *arena,
                                     struct ledger_row **ret_rows, size_t *ret_len, struct error *error);

/* The rebuild is over: its ledgers carry the digest of the routes from now on. */
FM_MUSTCHECK enum fate store_ledgers_rebuilt(struct store *store, const char *cluster_id,
                                             const uint8_t rebuilding[32], const uint8_t routes_digest[32],
                                             struct error *error);

/* What the tables hold. */
struct contents {
	int64_t states[GATE_STATE_COUNT];
	int64_t bare; /* of RESUMED: those whose suspend event is not known */
	int64_t outcomes[OUTCOME_REFUSED + 1];
	int64_t outbox;
};

FM_MUSTCHECK enum fate store_contents(struct store *store, struct contents *ret_contents,
                                      struct error *error);

#endif
