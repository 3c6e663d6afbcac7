/*
 * store_common.h - what the rows of checkpoint have in common: the topics, the key that wraps, the writer's schema. It stands
 * once in fermata.common, and each row has its id.
 */
#ifndef FERMATA_STORE_STORE_COMMON_H
#define FERMATA_STORE_STORE_COMMON_H

#include "store/store_connection.h"

/*
 * The id of what a filled checkpoint has in common with others: a hash, so that it need not be looked up. Two that differ and
 * have one id are not told apart: of a hundred thousand of them (topics, keys and schemas are few), one pair in four
 * thousand million installations.
 */
int64_t common_id(const struct checkpoint *checkpoint);

/* Sends what puts that of every write that fills a checkpoint into fermata.common, where it is missing: in each
 * transaction, since what one has seen there may be gone with a restore. rows: room for all writes. */
void common_send(struct store *store, const struct batch_write *batch, const void **rows);

#endif
