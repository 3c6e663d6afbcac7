/* store_positions.h - reading the positions as a part of another transaction. */
#ifndef FERMATA_STORE_STORE_POSITIONS_H
#define FERMATA_STORE_STORE_POSITIONS_H

#include "store/store_connection.h"
#include "store/store_record.h"

/* Queues the reading of all rows of the cluster into the list. */
void positions_send(struct store *store, const char *cluster_id, struct position_list *list);

#endif
