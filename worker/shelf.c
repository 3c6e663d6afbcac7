#include "worker/shelf.h"

#include "vault/vault.h"

#include <inttypes.h>
#include <stdio.h>

#define ANSWER_BYTES ((size_t)64 << 20) /* texts of at most 1 MiB; several may have one fingerprint */

struct looking {
	struct store *store;
	struct catalog *catalog;
	const char *registry;
	const struct schema_want *want;
	struct arena *arena;
	enum looked looked;
};

static enum fate learn(struct looking *looking, struct view text, struct error *error)
{
	enum fate fate = catalog_learn(looking->catalog, looking->want, text, error);
	if (fate == FATE_OK)
		looking->looked = LOOKED_LEARNT;
	return fate == FATE_REJECT ? FATE_OK : fate; /* what is there is not what was wanted */
}

static enum fate by_sha256(struct looking *looking, struct error *error)
{
	struct schema_row row;
	bool there;
	enum fate fate =
		store_schema_by_sha256(looking->store, looking->want->sha256, looking->arena, &there, &row, error);
	return fate == FATE_OK && there ? learn(looking, row.text, error) : fate;
}

static enum fate by_fingerprint(struct looking *looking, struct error *error)
{
	struct schema_row *rows;
	size_t len;
	enum fate fate = store_schema_by_fingerprint(looking->store, looking->want->fingerprint, looking->arena,
	                                             &rows, &len, error);
	for (size_t i = 0; fate == FATE_OK && i < len && looking->looked != LOOKED_LEARNT; i++)
		fate = learn(looking, rows[i].text, error);
	return fate;
}

void shelf_ref(const struct schema_want *want, char ref[SHELF_REF_MAX])
{
	if (want->kind == WANT_ID)
		snprintf(ref, SHELF_REF_MAX, "%" PRId32, want->id);
	else if (want->kind != WANT_GUID)
		snprintf(ref, SHELF_REF_MAX, "%s", want->name);
	for (size_t i = 0; want->kind == WANT_GUID && i < sizeof(want->guid); i++)
		snprintf(ref + 2 * i, 3, "%02x", want->guid[i]);
}

static enum fate by_fact(struct looking *looking, struct error *error)
{
	enum want_kind kind = looking->want->kind;
	enum registry_fact_kind fact = kind == WANT_ID ? FACT_ID : kind == WANT_GUID ? FACT_GUID : FACT_READER;
	char ref[SHELF_REF_MAX];
	struct view text;
	int32_t id;
	bool there;
	if (looking->registry == NULL)
		return FATE_OK;
	shelf_ref(looking->want, ref);
	enum fate fate = store_registry_find(looking->store, looking->registry, fact, view_of(ref),
	                                     looking->arena, &there, &id, &text, error);
	if (fate != FATE_OK || !there)
		return fate;
	looking->looked = LOOKED_NONE;
	return view_is_null(text) ? FATE_OK : learn(looking, text, error);
}

enum fate shelf_look(struct store *store, struct catalog *catalog, const char *registry,
                     const struct schema_want *want, enum looked *ret_looked, struct error *error)
{
	static enum fate (*const ways[])(struct looking *, struct error *) = {
		[WANT_ID] = by_fact,       [WANT_GUID] = by_fact,   [WANT_FINGERPRINT] = by_fingerprint,
		[WANT_SHA256] = by_sha256, [WANT_READER] = by_fact, [WANT_STATE] = by_fingerprint,
	};
	struct looking looking = { store, catalog, registry, want, arena_new(ANSWER_BYTES), LOOKED_NOTHING };
	if (looking.arena == NULL)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for schemas");
	enum fate fate = ways[want->kind](&looking, error);
	arena_free(looking.arena);
	*ret_looked = looking.looked;
	return fate;
}

enum fate shelf_identify(struct view text, struct schema_row *ret_row, struct error *error)
{
	ret_row->text = text;
	vault_sha256(text, ret_row->text_sha256);
	return catalog_identify(text, &ret_row->fingerprint, ret_row->sha256, error);
}

enum fate shelf_own(struct store *store, const char *registry, const char *subject, struct view text,
                    int32_t *ret_id, bool *ret_found, struct error *error)
{
	struct view there;
	struct arena *arena = arena_new(ANSWER_BYTES);
	if (arena == NULL)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for schemas");
	enum fate fate = store_registry_find(store, registry, FACT_OWN, view_of(subject), arena, ret_found,
	                                     ret_id, &there, error);
	if (fate == FATE_OK && *ret_found)
		*ret_found = view_equal(there, text);
	arena_free(arena);
	return fate;
}

enum fate shelf_keep_own(struct store *store, const char *registry, const char *subject, struct view text,
                         int32_t id, struct error *error)
{
	char ref[16];
	snprintf(ref, sizeof(ref), "%" PRId32, id);
	struct registry_fact facts[] = {
		{ .kind = FACT_OWN, .ref = view_of(subject), .id = id },
		{ .kind = FACT_ID, .ref = view_of(ref), .id = id },
	};
	enum fate fate = shelf_identify(text, &facts[0].schema, error);
	facts[1].schema = facts[0].schema;
	return fate == FATE_OK ? store_registry_keep(store, registry, facts, 2, clock_real_us(), error) : fate;
}
