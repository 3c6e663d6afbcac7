/* Out of avro-c's generic values, into structs that live in an arena. */
#include "schemas/codec_inner.h"

#include <assert.h>

/* The guard has passed the bytes and getters take no memory: one that fails is our own mistake. */
static void sure(int code)
{
	assert(code == 0);
}

static struct view copy(struct walk *walk, const void *data, size_t len)
{
	struct view view = arena_copy(walk->arena, (struct view){ data ? data : (const void *)"", len });

	if (!view.data)
		walk->failed = true;
	return view.data ? view : VIEW_LITERAL("");
}

struct cursor cursor_of(struct walk *walk, const avro_value_t *record)
{
	return (struct cursor){ .walk = walk, .record = *record };
}

avro_value_t next_value(struct cursor *at)
{
	avro_value_t value = { NULL, NULL };

	if (!at->record.iface) { /* writing, and there was no memory for the record */
		at->walk->failed = true;
		return value;
	}
	sure(avro_value_get_by_index(&at->record, at->next++, &value, NULL));
	return value;
}

/* Reading: every field is there. */
static avro_value_t here(struct cursor *at)
{
	avro_value_t value = next_value(at);

	assert(value.iface);
	return value;
}

struct cursor next_record(struct cursor *at)
{
	avro_value_t record = next_value(at);

	return cursor_of(at->walk, &record);
}

static struct view read_text(struct walk *walk, const avro_value_t *value)
{
	const char *text = NULL;
	size_t size = 1;

	sure(avro_value_get_string(value, &text, &size));
	return copy(walk, text, size - 1); /* size counts the NUL */
}

static struct view read_bytes(struct walk *walk, const avro_value_t *value)
{
	const void *data = NULL;
	size_t size = 0;

	sure(avro_value_get_bytes(value, &data, &size));
	return copy(walk, data, size);
}

struct view next_text(struct cursor *at)
{
	avro_value_t value = here(at);

	return read_text(at->walk, &value);
}

struct view next_bytes(struct cursor *at)
{
	avro_value_t value = here(at);

	return read_bytes(at->walk, &value);
}

int64_t next_long(struct cursor *at)
{
	avro_value_t value = here(at);
	int64_t number = 0;

	sure(avro_value_get_long(&value, &number));
	return number;
}

int32_t next_int(struct cursor *at)
{
	avro_value_t value = here(at);
	int32_t number = 0;

	sure(avro_value_get_int(&value, &number));
	return number;
}

int next_enum(struct cursor *at)
{
	avro_value_t value = here(at);
	int number = 0;

	sure(avro_value_get_enum(&value, &number));
	return number;
}

void next_fixed(struct cursor *at, uint8_t *to, size_t len)
{
	avro_value_t value = here(at);
	const void *data = NULL;
	size_t size = 0;

	sure(avro_value_get_fixed(&value, &data, &size));
	for (size_t i = 0; i < len && i < size; i++)
		to[i] = ((const uint8_t *)data)[i];
}

static bool read_branch(const avro_value_t *value, avro_value_t *ret_branch)
{
	int branch = 0;

	sure(avro_value_get_discriminant(value, &branch));
	if (branch == 1)
		sure(avro_value_get_current_branch(value, ret_branch));
	return branch == 1;
}

bool next_branch(struct cursor *at, avro_value_t *ret_branch)
{
	avro_value_t value = here(at);

	return read_branch(&value, ret_branch);
}

struct view next_text_or_null(struct cursor *at)
{
	avro_value_t branch;

	return next_branch(at, &branch) ? read_text(at->walk, &branch) : VIEW_NULL;
}

struct view next_bytes_or_null(struct cursor *at)
{
	avro_value_t branch;

	return next_branch(at, &branch) ? read_bytes(at->walk, &branch) : VIEW_NULL;
}

int64_t next_time_or_none(struct cursor *at)
{
	avro_value_t branch;
	int64_t time = 0;

	if (!next_branch(at, &branch))
		return TIME_NONE;
	sure(avro_value_get_long(&branch, &time));
	return time == TIME_NONE ? TIME_NONE + 1 : time;
}

static void *read_array(struct walk *walk, const avro_value_t *array, size_t size, size_t *ret_len)
{
	sure(avro_value_get_size(array, ret_len));
	void *items = arena_array(walk->arena, *ret_len, size);
	if (!items) {
		walk->failed = true;
		*ret_len = 0;
	}
	return items;
}

void *next_array(struct cursor *at, size_t size, avro_value_t *ret_array, size_t *ret_len)
{
	*ret_array = here(at);
	return read_array(at->walk, ret_array, size, ret_len);
}

struct cursor item_record(struct walk *walk, const avro_value_t *array, size_t position)
{
	avro_value_t item = { NULL, NULL };

	sure(avro_value_get_by_index(array, position, &item, NULL));
	assert(item.iface);
	return cursor_of(walk, &item);
}

static struct view *read_texts(struct walk *walk, const avro_value_t *array, size_t *ret_len)
{
	struct view *texts = read_array(walk, array, sizeof(*texts), ret_len);

	for (size_t i = 0; i < *ret_len; i++) {
		struct cursor item = item_record(walk, array, i);
		texts[i] = read_text(walk, &item.record);
	}
	return texts;
}

struct view *next_texts(struct cursor *at, size_t *ret_len)
{
	avro_value_t array = here(at);

	return read_texts(at->walk, &array, ret_len);
}

static void read_config_value(struct walk *walk, const avro_value_t *value, struct config_entry *entry)
{
	avro_value_t branch;
	int number = 0;

	sure(avro_value_get_discriminant(value, &number));
	sure(avro_value_get_current_branch(value, &branch));
	entry->kind = (enum config_kind)number;
	switch (entry->kind) {
	case CONFIG_NULL:
		return;
	case CONFIG_BOOLEAN:
		sure(avro_value_get_boolean(&branch, &number));
		entry->value.boolean = number != 0;
		return;
	case CONFIG_LONG:
		sure(avro_value_get_long(&branch, &entry->value.number));
		return;
	case CONFIG_DOUBLE:
		sure(avro_value_get_double(&branch, &entry->value.real));
		return;
	case CONFIG_STRING:
		entry->value.string = read_text(walk, &branch);
		return;
	case CONFIG_STRINGS:
		entry->value.strings.items = read_texts(walk, &branch, &entry->value.strings.len);
		return;
	}
}

struct config_entry *next_config(struct cursor *at, size_t *ret_len)
{
	avro_value_t map;
	struct config_entry *config = next_array(at, sizeof(*config), &map, ret_len);

	for (size_t i = 0; i < *ret_len; i++) {
		struct cursor pair = item_record(at->walk, &map, i);
		config[i].key = next_text(&pair);
		avro_value_t value = here(&pair);
		read_config_value(at->walk, &value, &config[i]);
	}
	return config;
}

void next_action(struct cursor *at, struct action *ret_action)
{
	avro_value_t branch;

	*ret_action = (struct action){ .present = next_branch(at, &branch) };
	if (!ret_action->present)
		return;
	struct cursor action = cursor_of(at->walk, &branch);
	ret_action->tool = next_text(&action);
	ret_action->arguments = next_text(&action);
	ret_action->risk = (enum risk)next_enum(&action);
	ret_action->summary = next_text(&action);
}

void read_edits(struct cursor *at, struct edits *ret_edits)
{
	ret_edits->present = true;
	ret_edits->config = next_config(at, &ret_edits->config_len);
	ret_edits->action_arguments = next_text_or_null(at);
}

void next_edits(struct cursor *at, struct edits *ret_edits)
{
	avro_value_t branch;

	*ret_edits = (struct edits){ 0 };
	if (!next_branch(at, &branch))
		return;
	struct cursor edits = cursor_of(at->walk, &branch);
	read_edits(&edits, ret_edits);
}

void next_approver(struct cursor *at, struct approver *ret_approver)
{
	struct cursor approver = next_record(at);

	ret_approver->issuer = next_text(&approver);
	ret_approver->subject = next_text(&approver);
	ret_approver->display = next_text(&approver);
}

void next_source(struct cursor *at, struct source *ret_source)
{
	struct cursor source = next_record(at);

	ret_source->system = next_text(&source);
	ret_source->ref = next_text(&source);
	ret_source->delivery_id = next_text(&source);
}

void next_signature(struct cursor *at, struct signature *ret_signature)
{
	avro_value_t branch;

	*ret_signature = (struct signature){ 0 };
	if (!next_branch(at, &branch))
		return;
	struct cursor signature = cursor_of(at->walk, &branch);
	ret_signature->present = true;
	ret_signature->key_id = next_text(&signature);
	ret_signature->body = next_bytes(&signature);
	ret_signature->value = next_bytes(&signature);
}
