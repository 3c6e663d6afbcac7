/* cmd_schema_list.c - `fermata schema list`: the schemas of the program, of schemas.path and of the database. */
#include "cli/cmd.h"
#include "cli/connect.h"
#include "cli/row_json.h"
#include "cli/table.h"
#include "schemas/catalog.h"
#include "schemas/fingerprint.h"
#include "schemas/schema.h"
#include "store/store_schemas.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARENA_BYTES ((size_t)512 << 20)
#define ROW_BYTES   ((size_t)16 << 20) /* of one text of the database */
#define SHA256_LEN  32

/* Where a schema is: a set. */
enum place { PLACE_PROGRAM = 1, PLACE_FOLDER = 2, PLACE_DATABASE = 4 };

struct entry {
	const char *name; /* NULL: not known */
	unsigned places;  /* 0: what waits was written with it, and it is nowhere */
	bool reader;
	bool bare; /* it has no digests: its text cannot be used */
	uint64_t fingerprint;
	uint8_t sha256[SHA256_LEN]; /* of the canonical form */
	uint8_t text_sha256[SHA256_LEN];
	const char *registry;
	int32_t registry_id; /* 0: none is known */
	int64_t seen_at;     /* by the database, or TIME_NONE */
	int64_t waiting;
	const char *fault; /* why it cannot be used, or NULL */
};

struct gathering {
	struct arena *arena;
	struct entry *entries;
	size_t len, cap;
	struct schema_use *uses; /* sorted by sha256 */
	size_t uses_len;
	bool failed;
};

/* ---- gathering ---- */

static struct entry *add(struct gathering *gathering)
{
	if (gathering->len == gathering->cap) {
		size_t cap = gathering->cap > 0 ? 2 * gathering->cap : 64;
		struct entry *grown = reallocarray(gathering->entries, cap, sizeof(*grown));
		if (grown == NULL) {
			gathering->failed = true;
			return NULL;
		}
		gathering->entries = grown;
		gathering->cap = cap;
	}
	struct entry *entry = &gathering->entries[gathering->len++];
	*entry = (struct entry){ .seen_at = TIME_NONE };
	return entry;
}

/* A copy that stays; NULL stays NULL. */
static const char *keep(struct gathering *gathering, struct view text)
{
	if (view_is_null(text))
		return NULL;
	const char *copy = arena_text(gathering->arena, text);

	gathering->failed = gathering->failed || copy == NULL;
	return copy;
}

static bool add_known(void *context, const struct catalog_entry *known)
{
	struct gathering *gathering = context;
	struct entry *entry = add(gathering);

	if (entry == NULL)
		return false;
	entry->name = keep(gathering, view_of(known->name));
	entry->places = known->from == FROM_PROGRAM ? PLACE_PROGRAM : PLACE_FOLDER;
	entry->reader = known->reader;
	entry->fingerprint = known->fingerprint;
	memcpy(entry->sha256, known->sha256, SHA256_LEN);
	fingerprint_sha256(known->text, entry->text_sha256);
	return !gathering->failed;
}

/* Of a file that cannot be used nothing is known but its name. */
static void add_broken(void *context, const struct catalog_broken *file)
{
	struct gathering *gathering = context;
	struct entry *entry = add(gathering);
	char fault[512];

	if (entry == NULL)
		return;
	snprintf(fault, sizeof(fault), "%s cannot be used: %s", file->file, file->why);
	entry->name = keep(gathering, view_of(file->name));
	entry->places = PLACE_FOLDER;
	entry->reader = file->reader;
	entry->bare = true;
	entry->fault = keep(gathering, view_of(fault));
}

/* What a row claims of its text is not believed. */
static void look_at_text(struct gathering *gathering, struct entry *entry, const struct schema_row *row)
{
	struct error error;
	struct schema *schema = NULL;

	fingerprint_sha256(row->text, entry->text_sha256);
	if (catalog_identify(row->text, &entry->fingerprint, entry->sha256, &error) != FATE_OK ||
	    schema_parse(&schema, row->text, &error) != FATE_OK) {
		entry->fault = keep(gathering, view_of(error.message));
		return;
	}
	const char *name = schema->root->name;
	entry->name = keep(gathering, view_of(name != NULL ? name : schema_kind_name(schema->root->kind)));
	if (memcmp(entry->sha256, row->sha256, SHA256_LEN) != 0 || entry->fingerprint != row->fingerprint ||
	    memcmp(entry->text_sha256, row->text_sha256, SHA256_LEN) != 0)
		entry->fault = "its row in fermata.schema_text has the digests of another text";
	schema_free(schema);
}

static bool add_seen(void *context, const struct schema_seen *seen)
{
	struct gathering *gathering = context;
	struct entry *entry = add(gathering);

	if (entry == NULL)
		return false;
	entry->places = PLACE_DATABASE;
	entry->reader = seen->reader;
	entry->seen_at = seen->seen_at;
	entry->registry = keep(gathering, seen->registry);
	entry->registry_id = seen->registry_id;
	look_at_text(gathering, entry, &seen->schema);
	return !gathering->failed;
}

static enum fate gather_known(struct gathering *gathering, const struct config *config, struct error *error)
{
	struct catalog *catalog = NULL;
	struct catalog_settings settings = { .folder = config_text(config, PARAM_SCHEMAS_PATH) };
	enum fate fate = catalog_new(&catalog, &settings, error);

	if (fate == FATE_OK) {
		catalog_each(catalog, add_known, gathering);
		catalog_each_broken(catalog, add_broken, gathering);
	}
	catalog_free(catalog);
	return fate;
}

static enum fate gather_seen(struct gathering *gathering, const struct cli *cli, struct error *error)
{
	struct store *store = NULL;
	struct arena *row = arena_new(ROW_BYTES);
	enum fate fate = row == NULL
	                     ? error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for rows of the database")
	                     : connect_store(cli, &store, error);

	if (fate == FATE_OK)
		fate = store_schemas_each(store, row, add_seen, gathering, error);
	if (fate == FATE_OK)
		fate = store_schemas_used(store, gathering->arena, &gathering->uses, &gathering->uses_len, error);
	store_close(store);
	arena_free(row);
	return fate;
}

/* ---- putting together ---- */

static int by_text(const void *a, const void *b)
{
	const struct entry *left = a, *right = b;
	int order = memcmp(left->text_sha256, right->text_sha256, SHA256_LEN);

	return order != 0 ? order : (left->places > right->places) - (left->places < right->places);
}

static bool same_text(const struct entry *a, const struct entry *b)
{
	return memcmp(a->text_sha256, b->text_sha256, SHA256_LEN) == 0;
}

/* Of one text: what the database knows of it goes to the entries of the program and of the folder. */
static void merge_group(struct entry *group, size_t len)
{
	const struct entry *seen = &group[len - 1]; /* sorted last */

	if (seen->places != PLACE_DATABASE)
		return;
	for (size_t i = 0; i + 1 < len; i++) {
		group[i].places |= PLACE_DATABASE;
		group[i].reader = group[i].reader || seen->reader;
		group[i].seen_at = seen->seen_at;
		group[i].registry = seen->registry;
		group[i].registry_id = seen->registry_id;
	}
}

static void merge(struct gathering *gathering)
{
	struct entry *entries = gathering->entries;
	size_t kept = 0;

	qsort(entries, gathering->len, sizeof(*entries), by_text);
	for (size_t from = 0, to; from < gathering->len; from = to) {
		for (to = from + 1; to < gathering->len && same_text(&entries[from], &entries[to]);)
			to++;
		merge_group(&entries[from], to - from);
		for (size_t i = from; i < to; i++)
			if (entries[i].places != PLACE_DATABASE || i == from)
				entries[kept++] = entries[i];
	}
	gathering->len = kept;
}

static int by_sha256(const void *a, const void *b)
{
	return memcmp(a, ((const struct schema_use *)b)->sha256, SHA256_LEN);
}

/* Counts go to every text of their canonical form; those that have none are entries of their own. */
static void count_waiting(struct gathering *gathering)
{
	size_t known = gathering->len;
	bool *met = arena_array(gathering->arena, gathering->uses_len, sizeof(*met));

	if (met == NULL) {
		gathering->failed = true;
		return;
	}
	for (size_t i = 0; gathering->uses_len > 0 && i < known; i++) {
		struct entry *entry = &gathering->entries[i];
		const struct schema_use *use =
			bsearch(entry->sha256, gathering->uses, gathering->uses_len, sizeof(*gathering->uses), by_sha256);
		if (use == NULL || entry->fault != NULL)
			continue;
		entry->waiting = use->waiting;
		met[use - gathering->uses] = true;
	}
	for (size_t i = 0; i < gathering->uses_len; i++) {
		struct entry *entry = met[i] ? NULL : add(gathering);
		if (entry == NULL)
			continue;
		memcpy(entry->sha256, gathering->uses[i].sha256, SHA256_LEN);
		entry->waiting = gathering->uses[i].waiting;
		entry->fault = "what waits was written with it, and nobody has it: add it to schemas.path";
	}
}

static int for_people(const void *a, const void *b)
{
	const struct entry *left = a, *right = b;
	int order = (left->name == NULL) - (right->name == NULL);

	if (order == 0 && left->name != NULL)
		order = strcmp(left->name, right->name);
	if (order == 0)
		order = right->reader - left->reader;
	if (order == 0)
		order = (left->seen_at > right->seen_at) - (left->seen_at < right->seen_at);
	return order != 0 ? order : memcmp(left->text_sha256, right->text_sha256, SHA256_LEN);
}

/* ---- showing ---- */

static const struct {
	enum place place;
	const char *name;
} places[] = { { PLACE_PROGRAM, "program" }, { PLACE_FOLDER, "folder" }, { PLACE_DATABASE, "database" } };
#define PLACES (sizeof(places) / sizeof(places[0]))

static size_t list_places(const struct entry *entry, struct view names[PLACES])
{
	size_t len = 0;

	for (size_t i = 0; i < PLACES; i++)
		if (entry->places & places[i].place)
			names[len++] = view_of(places[i].name);
	return len;
}

static void hex(const uint8_t sha256[SHA256_LEN], char text[2 * SHA256_LEN + 1])
{
	for (size_t i = 0; i < SHA256_LEN; i++)
		snprintf(text + 2 * i, 3, "%02x", sha256[i]);
}

static enum fate show_json(const struct entry *entry, struct error *error)
{
	struct json_line *line = json_line_new();
	char fingerprint[FINGERPRINT_HEX_LEN + 1], sha256[2 * SHA256_LEN + 1];
	struct view from[PLACES];
	size_t from_len = list_places(entry, from);
	bool known = entry->name != NULL && !entry->bare;

	fingerprint_hex(entry->fingerprint, fingerprint);
	hex(entry->sha256, sha256);
	json_line_text(line, "name", view_of(entry->name));
	json_line_flag(line, "reader", entry->reader);
	json_line_text(line, "fingerprint", known ? view_of(fingerprint) : VIEW_NULL);
	json_line_text(line, "sha256", known || entry->places == 0 ? view_of(sha256) : VIEW_NULL);
	json_line_texts(line, "from", from, from_len);
	json_line_text(line, "registry", view_of(entry->registry));
	if (entry->registry_id != 0)
		json_line_number(line, "registry_id", entry->registry_id);
	else
		json_line_text(line, "registry_id", VIEW_NULL);
	json_line_time(line, "seen_at", entry->seen_at);
	json_line_number(line, "waiting", entry->waiting);
	json_line_text(line, "fault", view_of(entry->fault));
	return json_line_write(line, error);
}

static enum fate show_row(struct table *table, const struct entry *entry, struct error *error)
{
	char fingerprint[FINGERPRINT_HEX_LEN + 1], id[16] = "-", waiting[24], from[48] = "-";
	struct view names[PLACES];
	size_t used = 0, len = list_places(entry, names);

	fingerprint_hex(entry->fingerprint, fingerprint);
	if (entry->registry_id != 0)
		snprintf(id, sizeof(id), "%" PRId32, entry->registry_id);
	snprintf(waiting, sizeof(waiting), "%" PRId64, entry->waiting);
	for (size_t i = 0; i < len; i++)
		used += (size_t)snprintf(from + used, sizeof(from) - used, "%s%s", i > 0 ? ", " : "",
		                         (const char *)names[i].data);
	const struct cell cells[] = {
		{ view_of(entry->name != NULL ? entry->name : "?"), COLOUR_BOLD },
		{ view_of(entry->reader ? "reader" : "-"), COLOUR_NONE },
		{ view_of(entry->name != NULL && !entry->bare ? fingerprint : "-"), COLOUR_NONE },
		{ view_of(id), COLOUR_NONE },
		{ view_of(from), COLOUR_NONE },
		{ view_of(waiting), COLOUR_NONE },
		{ view_of(entry->fault != NULL ? entry->fault : ""), COLOUR_RED },
	};
	return table_row(table, cells, error);
}

static enum fate show(const struct gathering *gathering, bool json, struct error *error)
{
	static const char *const titles[] = { "NAME", "READS", "FINGERPRINT", "ID", "FROM", "WAIT", "FAULT" };
	struct table table;
	enum fate fate = table_init(&table, titles, sizeof(titles) / sizeof(titles[0]), error);

	for (size_t i = 0; fate == FATE_OK && i < gathering->len; i++)
		fate =
			json ? show_json(&gathering->entries[i], error) : show_row(&table, &gathering->entries[i], error);
	if (fate == FATE_OK && !json)
		table_flush(&table);
	table_done(&table);
	return fate;
}

int cmd_schema_list(struct cli *cli)
{
	struct gathering gathering = { .arena = arena_new(ARENA_BYTES) };
	struct error error = { .fate = FATE_OK };
	enum fate fate = gathering.arena == NULL
	                     ? error_set(&error, FATE_FATAL, ERR_MEMORY, "no memory for the list of schemas")
	                     : gather_known(&gathering, cli->config, &error);

	if (fate == FATE_OK)
		fate = gather_seen(&gathering, cli, &error);
	if (fate == FATE_OK) {
		merge(&gathering);
		count_waiting(&gathering);
		qsort(gathering.entries, gathering.len, sizeof(*gathering.entries), for_people);
	}
	if (fate == FATE_OK && gathering.failed)
		fate = error_set(&error, FATE_FATAL, ERR_MEMORY, "no memory for the list of schemas");
	if (fate == FATE_OK)
		fate = show(&gathering, cli->json, &error);
	free(gathering.entries);
	arena_free(gathering.arena);
	return fate == FATE_OK ? EXIT_YES : cli_fail(&error);
}
