/*
 * store_way_out.h - how an operator leads a checkpoint out of quarantine, and out of doubt.
 *
 * Each call is one transaction, committed. The row is locked first and its state looked at under the lock, so that
 * a relay, intake and another operator may be at work: whoever is second finds what the first one left. It is the
 * order in which intake locks and writes. With the change go its gate event, its row in fermata.audit, and a
 * NOTIFY for the relays.
 */
#ifndef FERMATA_STORE_STORE_WAY_OUT_H
#define FERMATA_STORE_STORE_WAY_OUT_H

#include "store/store.h"

struct operator_deed {
	struct uuid checkpoint_id;
	struct view who;    /* for the record */
	struct view reason; /* the same; may be null */
	int64_t now;        /* us */
};

struct deed_result {
	struct checkpoint *checkpoint; /* as it is now, in the arena, without its body; NULL: there is none */
	bool done; /* false: it was not in the state that this leads out of, and nothing was changed */
};

/* Should a verdict that is not APPROVED be settled without a resume (routes.*.on_reject = drop)? */
typedef bool settles_without_resume(void *context, struct view tenant, struct view agent);

/*
 * Back to where it was. With a verdict: DECIDED, and into the outbox, for a relay to try again; where the verdict is not
 * APPROVED and settles says so: RESUMED without one. Without a verdict: PENDING, and it expires as it would have.
 * RETRY: whether it was done may be unknown; doing it again is no harm.
 */
FM_MUSTCHECK enum fate store_quarantine_retry(struct store *store, const struct operator_deed *deed,
                                              settles_without_resume *settles, void *context,
                                              struct arena *arena, struct deed_result *ret_result,
                                              struct error *error);

/* Settled for good: RESUMED, and never published. Its decisions and its verdict, if it had any, stay as they are, and
 * later ones are refused, already_decided. RETRY as above. */
FM_MUSTCHECK enum fate store_quarantine_drop(struct store *store, const struct operator_deed *deed,
                                             struct arena *arena, struct deed_result *ret_result,
                                             struct error *error);

/* What is IN_DOUBT was not published, the operator says: DECIDED, and into the outbox. The row remembers up to where its
 * ledger had been read by then, so that no relay has the same doubt again; it may have a later one. RETRY as above. */
FM_MUSTCHECK enum fate store_doubt_resume(struct store *store, const struct operator_deed *deed,
                                          struct arena *arena, struct deed_result *ret_result,
                                          struct error *error);

/* What is IN_DOUBT was published, or is not to be: as store_quarantine_drop. */
FM_MUSTCHECK enum fate store_doubt_drop(struct store *store, const struct operator_deed *deed,
                                        struct arena *arena, struct deed_result *ret_result,
                                        struct error *error);

#endif
