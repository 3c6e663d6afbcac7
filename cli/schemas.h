/*
 * schemas.h - a codec for commands, and where it finds the schemas that it does not know: schemas.path, PostgreSQL
 * where the command has it open, the registry.
 */
#ifndef FERMATA_CLI_SCHEMAS_H
#define FERMATA_CLI_SCHEMAS_H

#include "cli/connect.h"
#include "core/kafka.h"
#include "schemas/supply.h"

struct schemas {
	struct codec *codec;
	struct supply *supply;
	struct store *store; /* borrowed, or NULL */
	const struct config *config;
};

/* store may be NULL. Asks nobody yet. */
FM_MUSTCHECK enum fate schemas_open(const struct cli *cli, struct store *store, struct schemas *schemas,
                                    struct error *error);
/* Twice, and of one that was never opened but is zero, is fine. */
void schemas_close(struct schemas *schemas);

/* After a call of the codec: true, it may be made again (see supply_more). tries begins at 0. */
FM_MUSTCHECK bool schemas_more(struct schemas *schemas, unsigned *tries, enum fate *fate,
                               struct error *error);
/* The same for a want that is not the codec's. */
FM_MUSTCHECK bool schemas_more_of(struct schemas *schemas, const struct schema_want *want, unsigned *tries,
                                  enum fate *fate, struct error *error);

/* Before a framed value is taken: its header, if it has one. */
void schemas_header(struct schemas *schemas, const struct record *record);

/* What the codec writes to that topic is framed as the configuration wants it: with a registry by the id of our
 * schema under the topic's subject. */
FM_MUSTCHECK enum fate schemas_write(struct schemas *schemas, enum record_type type, const char *topic,
                                     struct error *error);

#endif
