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

static enum fate find(struct store *store, const char *id, const struct checkpoint_filter *by_session,
                      struct arena *arena, struct found *ret_found, struct error *error)
{
	struct uuid uuid;
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
		fate = find_by(store, by_session, arena, ret_found, error);
	return fate;
}

enum fate find_checkpoints(struct store *store, const char *id, bool open_only, struct arena *arena,
                           struct found *ret_found, struct error *error)
{
	struct checkpoint_filter by_session = { .session_id = view_of(id),
		                                    .open_only = open_only,
		                                    .limit = FIND_MAX };

	return find(store, id, &by_session, arena, ret_found, error);
}

enum fate find_in_state(struct store *store, const char *id, enum gate_state state, struct arena *arena,
                        struct found *ret_found, struct error *error)
{
	struct checkpoint_filter by_session = {
		.session_id = view_of(id), .has_state = true, .state = state, .limit = FIND_MAX
	};

	return find(store, id, &by_session, arena, ret_found, error);
}

int find_say_unknown(const char *id)
{
	struct uuid uuid;

	if (uuid_parse(view_of(id), &uuid))
		return cli_no("checkpoint %s was never saved: nothing is stored under that id", id);
	return cli_no("session %s was never saved: nothing is stored under that name", id);
}

#define SEVERAL_SAID 8

int find_say_several(const char *id, const struct found *found, const char *what)
{
	struct buffer ids;
	char text[UUID_TEXT_LEN + 1];
	int code;

	buffer_init(&ids, (size_t)1 << 20);
	for (size_t i = 0; i < found->len && i < SEVERAL_SAID; i++) {
		uuid_format(&found->rows[i]->id, text);
		buffer_printf(&ids, "%s%s (%.*s)", i > 0 ? ", " : "", text, (int)found->rows[i]->gate_id.len,
		              (const char *)found->rows[i]->gate_id.data);
	}
	code = cli_no("session %s has %zu gates that %s: say which by its checkpoint_id: %.*s%s", id, found->len,
	              what, (int)ids.len, (const char *)ids.data, found->len > SEVERAL_SAID ? ", ..." : "");
	buffer_done(&ids);
	return code;
}

int find_say_not_so(struct store *store, const char *id, const char *word, struct arena *arena)
{
	struct error error = { .fate = FATE_OK };
	char text[UUID_TEXT_LEN + 1];
	struct found found;

	if (find_checkpoints(store, id, false, arena, &found, &error) != FATE_OK)
		return cli_fail(&error);
	if (found.len == 0)
		return find_say_unknown(id);
	if (!found.by_checkpoint)
		return cli_no("session %s has no gate that is %s", id, word);
	uuid_format(&found.rows[0]->id, text);
	return cli_no("checkpoint %s is not %s: it is %s", text, word, gate_state_name(found.rows[0]->state));
}
