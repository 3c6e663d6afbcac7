/* Answers to wants. */
#include "schemas/catalog_inner.h"

#include <assert.h>
#include <string.h>

static enum fate check_wanted(const struct schema_want *want, const struct known_schema *made,
                              struct error *error)
{
	char text[WANT_TEXT_SIZE];
	bool fingerprint = want->kind == WANT_FINGERPRINT || want->kind == WANT_STATE;

	if ((!fingerprint || made->fingerprint == want->fingerprint) &&
	    (want->kind != WANT_SHA256 || memcmp(made->sha256, want->sha256, 32) == 0))
		return FATE_OK;
	return error_set(error, FATE_REJECT, ERR_UNKNOWN_SCHEMA, "%s: a schema of another %s was given for it",
	                 want_text(want, text, sizeof(text)), fingerprint ? "fingerprint" : "SHA-256");
}

/* Under the lock. */
static enum fate bind(struct catalog *catalog, const struct key *key, struct known_schema *known,
                      struct error *error)
{
	denials_remove(catalog->denials, catalog->seed, key);
	if (!map_set(&catalog->learnt, catalog->seed, key, known))
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for a schema");
	return FATE_OK;
}

/* A state's reader today is what its states of tomorrow were written with. */
static enum fate bind_reader(struct catalog *catalog, const struct schema_want *want, const struct key *key,
                             struct known_schema *known, struct error *error)
{
	const struct key written = key_named(WANT_STATE, want->name, known->fingerprint);
	struct known_schema *before = map_get(&catalog->learnt, catalog->seed, key);
	enum fate fate = bind(catalog, &written, known, error);

	if (fate == FATE_OK)
		fate = bind(catalog, key, known, error);
	if (fate != FATE_OK)
		return fate;
	if (before)
		before->reads--;
	known->reads++;
	return FATE_OK;
}

/* Whoever asks for a SHA-256 can be given whatever has it: nobody can make two of one. */
static enum fate bind_record(struct catalog *catalog, const struct schema_want *want, const struct key *key,
                             struct known_schema *known, struct error *error)
{
	const struct key sha256 = key_sha256(known->sha256);
	const struct known_schema *there = map_get(&catalog->learnt, catalog->seed, &sha256);
	enum fate fate = FATE_OK;

	if (want->kind == WANT_ID && known->registry_id == 0)
		known->registry_id = want->id;
	if (!there || (there->registry_id == 0 && known->registry_id != 0))
		fate = bind(catalog, &sha256, known, error);
	return fate == FATE_OK ? bind(catalog, key, known, error) : fate;
}

static enum fate add(struct catalog *catalog, const struct schema_want *want, struct known_schema **made,
                     struct schema **schema, struct error *error)
{
	const struct key key = key_of(want);
	bool reader = want->kind == WANT_READER;
	enum fate fate;

	pthread_rwlock_wrlock(&catalog->lock);
	fate = known_add(catalog, made, reader ? schema : NULL, error);
	if (fate == FATE_OK)
		fate = known_check_room(catalog, true, (size_t)2 * BINDING_BYTES, error);
	if (fate == FATE_OK)
		fate = (reader ? bind_reader : bind_record)(catalog, want, &key, *made, error);
	pthread_rwlock_unlock(&catalog->lock);
	return fate;
}

enum fate catalog_learn(struct catalog *catalog, const struct schema_want *want, struct view text,
                        struct error *error)
{
	char what[WANT_TEXT_SIZE];
	struct known_schema *made;
	struct schema *schema;

	assert(want->kind != WANT_NOTHING);
	enum fate fate = known_new(&made, &schema, NULL, text, true, error);
	if (fate != FATE_OK)
		return error_wrap(error, "%s", want_text(want, what, sizeof(what)));
	fate = check_wanted(want, made, error);
	if (fate == FATE_OK)
		fate = add(catalog, want, &made, &schema, error);
	else
		known_free(made);
	schema_free(schema);
	return fate;
}

enum fate catalog_identify(struct view text, uint64_t *ret_fingerprint, uint8_t ret_sha256[32],
                           struct error *error)
{
	struct schema *schema;
	enum fate fate = schema_parse(&schema, text, error);

	if (fate != FATE_OK)
		return fate;
	fate = schema_digest(schema, ret_fingerprint, ret_sha256, error);
	schema_free(schema);
	return fate;
}
