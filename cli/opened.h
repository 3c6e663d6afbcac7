/* opened.h - what is sealed in a checkpoint, in clear: for the commands that open it. */
#ifndef FERMATA_CLI_OPENED_H
#define FERMATA_CLI_OPENED_H

#include "cli/schemas.h"

/* The suspend record as it was sent, in the arena: the row's sealed body (store_payload) unsealed, and compared with
 * the digest that decisions name. REJECT: it has none, or cannot be opened. RETRY: not now. */
FM_MUSTCHECK enum fate opened_unseal(struct vault *vault, const struct checkpoint *row, struct arena *arena,
                                     struct view *ret_sealed, struct error *error);
/* The same under today's schema: *ret_body is as codec_today has it. */
FM_MUSTCHECK enum fate opened_today(struct schemas *schemas, const struct checkpoint *row, struct view sealed,
                                    struct view *ret_body, struct error *error);

#endif
