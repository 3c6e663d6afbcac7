#include "cli/find.h"

#include "cli/cli.h"

#define PAGE_BYTES ((size_t)64 << 20)

/* ---- copying ---- */

/* In place: a null view stays null. */
static bool keep(struct view *view, struct arena *arena)
{
	if (view->data == NULL)
		return true;
	*view = arena_copy(arena, *view);
	return view->data != NULL;
}

static bool keep_approvers(struct checkpoint *row, struct arena *arena)
{
	struct view *copy = arena_array(arena, row->approvers_len, sizeof(*copy));
	bool kept = copy != NULL;

	for (size_t i = 0; kept && i < row->approvers_len; i++) {
		copy[i] = row->approvers[i];
		kept = keep(&copy[i], arena);
	}
	row->approvers = copy;
	return kept;
}

static bool keep_labels(struct checkpoint *row, struct arena *arena)
{
	struct label *copy = arena_array(arena, row->labels_len, sizeof(*copy));
	bool kept = copy != NULL;

	for (size_t i = 0; kept && i < row->labels_len; i++) {
		copy[i] = row->labels[i];
		kept = keep(&copy[i].key, arena) && keep(&copy[i].value, arena);
	}
	row->labels = copy;
	return kept;
}

struct checkpoint *checkpoint_copy(const struct checkpoint *checkpoint, struct arena *arena)
{
	struct checkpoint *copy = arena_alloc(arena, sizeof(*copy));

	if (copy == NULL)
		return NULL;
	*copy = *checkpoint;
	copy->ledger_decisions = NULL;
	copy->ledger_decisions_len = 0;
	struct view *views[] = { &copy->tenant,        &copy->session_id,    &copy->gate_id, &copy->agent,
		                     &copy->agent_version, &copy->requested_by,  &copy->title,   &copy->traceparent,
		                     &copy->tracestate,    &copy->resumes_topic, &copy->reason,  &copy->sealed.body };
	for (size_t i = 0; i < sizeof(views) / sizeof(views[0]); i++)
		if (!keep(views[i], arena))
			return NULL;
	return keep_approvers(copy, arena) && keep_labels(copy, arena) ? copy : NULL;
}

/* ---- finding ---- */

struct gathering {
	struct found *found;
	struct arena *arena;
	bool failed;
};

static bool gather(void *context, const struct checkpoint *checkpoint)
{
	struct gathering *gathering = context;
	struct found *found = gathering->found;

	if (found->len == FIND_MAX)
		return false;
	found->rows[found->len] = checkpoint_copy(checkpoint, gathering->arena);
	gathering->failed = found->rows[found->len] == NULL;
	found->len += gathering->failed ? 0 : 1;
	return !gathering->failed;
}

static enum fate find_by(struct store *store, const struct checkpoint_filter *filter, struct arena *arena,
                         struct found *found, struct error *error)
{
	struct gathering gathering = { found, arena, false };
	struct arena *page = arena_new(PAGE_BYTES);
	enum fate fate;

	if (page == NULL)
		return error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for rows of the database");
	fate = store_checkpoints(store, filter, page, gather, &gathering, error);
	arena_free(page);
	if (fate == FATE_OK && gathering.failed)
		fate = error_set(error, FATE_FATAL, ERR_MEMORY, "too many gates for the memory of this command");
	return fate;
}

enum fate find_checkpoints(struct store *store, const char *id, bool open_only, struct arena *arena,
                           struct found *ret_found, struct error *error)
{
	struct uuid uuid;
	struct checkpoint_filter by_session = { .session_id = view_of(id),
		                                    .open_only = open_only,
		                                    .limit = FIND_MAX };
	enum fate fate = FATE_OK;

	*ret_found = (struct found){ .rows = arena_array(arena, FIND_MAX, sizeof(struct checkpoint *)) };
	if (ret_found->rows == NULL)
		return error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for rows of the database");
	if (uuid_parse(view_of(id), &uuid)) {
		struct checkpoint_filter by_id = { .checkpoint_id = &uuid, .limit = 1 };
		fate = find_by(store, &by_id, arena, ret_found, error);
		ret_found->by_checkpoint = ret_found->len > 0;
	}
	if (fate == FATE_OK && ret_found->len == 0)
		fate = find_by(store, &by_session, arena, ret_found, error);
	return fate;
}

int find_say_unknown(const char *id)
{
	struct uuid uuid;

	if (uuid_parse(view_of(id), &uuid))
		return cli_no("checkpoint %s was never saved: nothing is stored under that id", id);
	return cli_no("session %s was never saved: nothing is stored under that name", id);
}
