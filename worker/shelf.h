/*
 * shelf.h - schemas as PostgreSQL keeps them (fermata.schema_text, fermata.registry_schema), for a catalog that is
 * missing one. What comes out of the database is not believed: the catalog compares it with what was wanted.
 */
#ifndef FERMATA_WORKER_SHELF_H
#define FERMATA_WORKER_SHELF_H

#include "schemas/catalog.h"
#include "store/store_schemas.h"

enum looked {
	LOOKED_NOTHING, /* PostgreSQL knows nothing of it */
	LOOKED_LEARNT,  /* the catalog has it now */
	LOOKED_NONE,    /* the registry said once that there is none */
};

/* registry: the address that ids are kept under; NULL: none is configured, and what only one can tell is not looked
 * for. The store must have no transaction open. RETRY: PostgreSQL is away, or no memory. */
FM_MUSTCHECK enum fate shelf_look(struct store *store, struct catalog *catalog, const char *registry,
                                  const struct schema_want *want, enum looked *ret_looked,
                                  struct error *error);

/* What a text is known by. REJECT: it is no schema. */
FM_MUSTCHECK enum fate shelf_identify(struct view text, struct schema_row *ret_row, struct error *error);

/* As a registry_fact's ref: the id in decimal, the GUID in hex, else the name. */
#define SHELF_REF_MAX (CATALOG_NAME_MAX + 1)
void shelf_ref(const struct schema_want *want, char ref[SHELF_REF_MAX]);

/* The id under which our own text is registered, as it was kept by shelf_keep_own. *ret_found is false when there is
 * none, or when it is that of another text. */
FM_MUSTCHECK enum fate shelf_own(struct store *store, const char *registry, const char *subject,
                                 struct view text, int32_t *ret_id, bool *ret_found, struct error *error);
FM_MUSTCHECK enum fate shelf_keep_own(struct store *store, const char *registry, const char *subject,
                                      struct view text, int32_t id, struct error *error);

#endif
