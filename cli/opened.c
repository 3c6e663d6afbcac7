#include "cli/opened.h"

#include <string.h>

enum fate opened_unseal(struct vault *vault, const struct checkpoint *row, struct arena *arena,
                        struct view *ret_sealed, struct error *error)
{
	struct seal_context context = { .tenant = row->tenant,
		                            .session_id = row->session_id,
		                            .checkpoint_id = row->id,
		                            .suspend_seq = row->suspend_seq };
	uint8_t digest[DIGEST_LEN];

	if (!row->filled)
		return error_set(error, FATE_REJECT, ERR_NO, "its suspend event has not come");
	if (!row->sealed.has_key)
		return error_set(error, FATE_REJECT, ERR_NO, "its session was erased, and its key is gone");
	if (view_is_null(row->sealed.body))
		return error_set(error, FATE_REJECT, ERR_NO,
		                 "its sealed state is gone, retention.payload after it was settled");
	memcpy(context.schema_sha256, row->sealed.schema_sha256, sizeof(context.schema_sha256));
	enum fate fate = vault_unseal(vault, &context, &row->sealed, arena, ret_sealed, error);
	if (fate != FATE_OK)
		return fate;
	/* A decision is about the digest: what is shown must be what it names. */
	vault_checkpoint_digest(*ret_sealed, digest);
	if (memcmp(digest, row->digest, sizeof(digest)) != 0)
		return error_set(error, FATE_REJECT, ERR_TAMPERED,
		                 "its digest in the database is not that of its state");
	return FATE_OK;
}

enum fate opened_today(struct schemas *schemas, const struct checkpoint *row, struct view sealed,
                       struct view *ret_body, struct error *error)
{
	unsigned tries = 0;
	enum fate fate;

	do
		fate = codec_today(schemas->codec, row->sealed.schema_sha256, sealed, ret_body, error);
	while (schemas_more(schemas, &tries, &fate, error));
	return fate;
}
