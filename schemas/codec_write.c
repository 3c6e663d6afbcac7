/* Out of structs, into avro-c's generic values, which borrow texts and bytes until they are reset. */
#include "schemas/codec_inner.h"

static void must(struct walk *walk, int code)
{
	if (code != 0)
		walk->failed = true;
}

/* A setter gets a value only where the getter before it worked. */
static bool is_there(struct walk *walk, const avro_value_t *value)
{
	if (!value->iface)
		walk->failed = true;
	return value->iface != NULL;
}

static const void *data_of(struct view view)
{
	return view.data ? view.data : (const void *)"";
}

static bool wrap(struct walk *walk, avro_wrapped_buffer_t *ret_wrapped, struct view view, size_t len)
{
	bool good = avro_wrapped_buffer_new(ret_wrapped, data_of(view), len) == 0;

	walk->failed = walk->failed || !good;
	return good;
}

/* What a getter gives: nothing where it failed, for then avro-c leaves half of a value behind. */
static avro_value_t given(struct walk *walk, int code, avro_value_t value)
{
	must(walk, code);
	return code == 0 ? value : (avro_value_t){ NULL, NULL };
}

/* avro-c counts the NUL of a string in its size and never reads it when it writes. */
static void set_text(struct walk *walk, avro_value_t *value, struct view text)
{
	avro_wrapped_buffer_t wrapped;

	if (is_there(walk, value) && wrap(walk, &wrapped, text, text.len + 1))
		must(walk, avro_value_give_string_len(value, &wrapped));
}

static void set_bytes(struct walk *walk, avro_value_t *value, struct view bytes)
{
	avro_wrapped_buffer_t wrapped;

	if (is_there(walk, value) && wrap(walk, &wrapped, bytes, bytes.len))
		must(walk, avro_value_give_bytes(value, &wrapped));
}

void put_text(struct cursor *at, struct view text)
{
	avro_value_t value = next_value(at);

	set_text(at->walk, &value, text);
}

void put_bytes(struct cursor *at, struct view bytes)
{
	avro_value_t value = next_value(at);

	set_bytes(at->walk, &value, bytes);
}

void put_long(struct cursor *at, int64_t number)
{
	avro_value_t value = next_value(at);

	if (is_there(at->walk, &value))
		must(at->walk, avro_value_set_long(&value, number));
}

void put_int(struct cursor *at, int32_t number)
{
	avro_value_t value = next_value(at);

	if (is_there(at->walk, &value))
		must(at->walk, avro_value_set_int(&value, number));
}

void put_enum(struct cursor *at, int number)
{
	avro_value_t value = next_value(at);

	if (is_there(at->walk, &value))
		must(at->walk, avro_value_set_enum(&value, number));
}

void put_fixed(struct cursor *at, const uint8_t *data, size_t len)
{
	avro_value_t value = next_value(at);

	/* avro-c takes no const, and copies. */
	if (is_there(at->walk, &value))
		must(at->walk, avro_value_set_fixed(&value, (void *)(uintptr_t)data, len));
}

avro_value_t put_branch(struct cursor *at, int number)
{
	avro_value_t value = next_value(at), branch = { NULL, NULL };

	if (!is_there(at->walk, &value))
		return branch;
	int code = avro_value_set_branch(&value, number, &branch);
	return given(at->walk, code, branch);
}

void put_text_or_null(struct cursor *at, struct view text)
{
	avro_value_t branch = put_branch(at, !view_is_null(text));

	if (!view_is_null(text))
		set_text(at->walk, &branch, text);
}

void put_bytes_or_null(struct cursor *at, struct view bytes)
{
	avro_value_t branch = put_branch(at, !view_is_null(bytes));

	if (!view_is_null(bytes))
		set_bytes(at->walk, &branch, bytes);
}

void put_time_or_none(struct cursor *at, int64_t time)
{
	avro_value_t branch = put_branch(at, time != TIME_NONE);

	if (time != TIME_NONE && is_there(at->walk, &branch))
		must(at->walk, avro_value_set_long(&branch, time));
}

static avro_value_t append(struct walk *walk, avro_value_t *array)
{
	avro_value_t item = { NULL, NULL };

	if (!is_there(walk, array))
		return item;
	int code = avro_value_append(array, &item, NULL);
	return given(walk, code, item);
}

struct cursor append_record(struct walk *walk, avro_value_t *array)
{
	avro_value_t item = append(walk, array);

	return cursor_of(walk, &item);
}

static void set_texts(struct walk *walk, avro_value_t *array, const struct view *texts, size_t len)
{
	for (size_t i = 0; i < len && !walk->failed; i++) {
		avro_value_t item = append(walk, array);
		set_text(walk, &item, texts[i]);
	}
}

void put_texts(struct cursor *at, const struct view *texts, size_t len)
{
	avro_value_t array = next_value(at);

	set_texts(at->walk, &array, texts, len);
}

void put_uuid(struct cursor *at, struct view text, const struct uuid *uuid, char text_room[UUID_TEXT_LEN + 1])
{
	if (view_is_null(text)) {
		uuid_format(uuid, text_room);
		text = view_of(text_room);
	}
	put_text(at, text);
}

static void put_config_value(struct cursor *at, const struct config_entry *entry)
{
	struct walk *walk = at->walk;
	avro_value_t branch = put_branch(at, (int)entry->kind);

	if (!is_there(walk, &branch))
		return;
	switch (entry->kind) {
	case CONFIG_NULL:
		return;
	case CONFIG_BOOLEAN:
		must(walk, avro_value_set_boolean(&branch, entry->value.boolean));
		return;
	case CONFIG_LONG:
		must(walk, avro_value_set_long(&branch, entry->value.number));
		return;
	case CONFIG_DOUBLE:
		must(walk, avro_value_set_double(&branch, entry->value.real));
		return;
	case CONFIG_STRING:
		set_text(walk, &branch, entry->value.string);
		return;
	case CONFIG_STRINGS:
		set_texts(walk, &branch, entry->value.strings.items, entry->value.strings.len);
		return;
	}
}

void put_config(struct cursor *at, const struct config_entry *config, size_t len)
{
	avro_value_t map = next_value(at);

	for (size_t i = 0; i < len && !at->walk->failed; i++) {
		struct cursor pair = append_record(at->walk, &map);
		put_text(&pair, config[i].key);
		put_config_value(&pair, &config[i]);
	}
}

void put_action(struct cursor *at, const struct action *action)
{
	avro_value_t branch = put_branch(at, action->present);

	if (!action->present)
		return;
	struct cursor inner = cursor_of(at->walk, &branch);
	put_text(&inner, action->tool);
	put_text(&inner, action->arguments);
	put_enum(&inner, (int)action->risk);
	put_text(&inner, action->summary);
}

void write_edits(struct cursor *at, const struct edits *edits)
{
	put_config(at, edits->config, edits->config_len);
	put_text_or_null(at, edits->action_arguments);
}

void put_edits(struct cursor *at, const struct edits *edits)
{
	avro_value_t branch = put_branch(at, edits->present);

	if (!edits->present)
		return;
	struct cursor inner = cursor_of(at->walk, &branch);
	write_edits(&inner, edits);
}

void put_approver(struct cursor *at, const struct approver *approver)
{
	struct cursor inner = next_record(at);

	put_text(&inner, approver->issuer);
	put_text(&inner, approver->subject);
	put_text(&inner, approver->display);
}

void put_source(struct cursor *at, const struct source *source)
{
	struct cursor inner = next_record(at);

	put_text(&inner, source->system);
	put_text(&inner, source->ref);
	put_text(&inner, source->delivery_id);
}

void put_signature(struct cursor *at, const struct signature *signature)
{
	avro_value_t branch = put_branch(at, signature->present);

	if (!signature->present)
		return;
	struct cursor inner = cursor_of(at->walk, &branch);
	put_text(&inner, signature->key_id);
	put_bytes(&inner, signature->body);
	put_bytes(&inner, signature->value);
}
