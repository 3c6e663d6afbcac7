/* The classes: each schema parsed once, by us and by avro-c, for all threads. */
#include "schemas/codec_inner.h"

#include "schemas/fingerprint.h"
#include "schemas/json_fault.h"
#include "schemas/texts.h"

#include <avro/allocation.h>
#include <avro/generic.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define RESUME_HEAD_FIELDS 4
#define RESUME_TAIL_FIELDS 4

static struct part_class classes[PART_COUNT];
static struct schema_type resume_head, resume_tail;
static struct error classes_error;
static pthread_once_t classes_once = PTHREAD_ONCE_INIT;

/* avro-c tells the allocator how long a block was, so plaintext can be wiped on its way out. */
static void *allocate(void *user_data, void *old, size_t old_len, size_t len)
{
	(void)user_data;
	if (len == 0) {
		if (old)
			memory_wipe(old, old_len);
		free(old);
		return NULL;
	}
	void *data = malloc(len);
	if (!data)
		memory_note_refusal();
	if (!old || !data)
		return data;
	memcpy(data, old, old_len < len ? old_len : len);
	memory_wipe(old, old_len);
	free(old);
	return data;
}

static enum fate parse_record(enum part part, struct error *error)
{
	struct part_class *class = &classes[part];
	struct schema *schema;
	struct buffer canonical;

	class->name = schema_texts[part].name;
	enum fate fate = schema_parse(&schema, schema_texts[part].text, error);
	if (fate != FATE_OK)
		return fate;
	class->schema = schema;
	class->type = schema->root;
	class->text.text = schema_texts[part].text;
	fingerprint_sha256(class->text.text, class->text.sha256);
	buffer_init(&canonical, SCHEMA_CANONICAL_MAX);
	fate = schema_canonical(schema, &canonical, error);
	class->fingerprint = fingerprint_crc64(buffer_view(&canonical));
	fingerprint_sha256(buffer_view(&canonical), class->sha256);
	buffer_done(&canonical);
	return fate;
}

static const struct schema_type *field_type(const struct schema_type *record, const char *name)
{
	long position = schema_find(record, name);

	return position < 0 ? NULL : record->fields[position].type;
}

static void define_part(enum part part, const char *name, enum part whole, const struct schema_type *type)
{
	classes[part].name = name;
	classes[part].schema = classes[whole].schema;
	classes[part].type = type;
}

/* Pieces of records: their types are those of the whole. */
static void define_pieces(void)
{
	const struct schema_type *resume = classes[PART_RESUME].type;

	resume_head = *resume;
	resume_head.name = "fermata.wire.ResumeHead";
	resume_head.len = RESUME_HEAD_FIELDS;
	resume_tail = *resume;
	resume_tail.name = "fermata.wire.ResumeTail";
	resume_tail.fields += resume->len - RESUME_TAIL_FIELDS;
	resume_tail.len = RESUME_TAIL_FIELDS;
	define_part(PART_RESUME_HEAD, "ResumeEvent", PART_RESUME, &resume_head);
	define_part(PART_RESUME_TAIL, "ResumeEvent", PART_RESUME, &resume_tail);
	const struct schema_type *edits = field_type(classes[PART_APPROVAL].type, "edits");
	define_part(PART_EDITS, "Edits", PART_APPROVAL, edits->branches[1]);
}

static enum fate make_iface(struct part_class *class, struct error *error)
{
	struct buffer text;
	avro_schema_t schema = NULL;
	uint64_t refusals = memory_refusals();

	buffer_init(&text, SCHEMA_CANONICAL_MAX);
	enum fate fate = schema_wire_text(class->schema, class->type, &text, error);
	if (fate == FATE_OK && (avro_schema_from_json_length((const char *)text.data, text.len, &schema) != 0 ||
	                        !(class->iface = avro_generic_class_from_schema(schema))))
		fate = error_set(error, FATE_FATAL, memory_refusals() == refusals ? ERR_BUG : ERR_MEMORY,
		                 "avro-c does not take our schema %s", class->name);
	if (schema)
		avro_schema_decref(schema); /* the class holds its own */
	buffer_done(&text);
	return fate;
}

static void classes_make(void)
{
	enum fate fate = FATE_OK;

	avro_set_allocator(allocate, NULL);
	json_count_refusals(); /* avro-c reads schemas with jansson */
	for (int part = PART_SUSPEND; part <= PART_GATE && fate == FATE_OK; part++)
		fate = parse_record((enum part)part, &classes_error);
	if (fate == FATE_OK)
		define_pieces();
	for (int part = 0; part < PART_COUNT && fate == FATE_OK; part++)
		fate = make_iface(&classes[part], &classes_error);
	if (fate != FATE_OK) {
		classes_error.fate = FATE_FATAL;
		classes_error.code = classes_error.code == ERR_MEMORY ? ERR_MEMORY : ERR_BUG;
	}
}

enum fate classes_ready(struct error *error)
{
	pthread_once(&classes_once, classes_make);
	if (classes_error.fate != FATE_OK && error)
		*error = classes_error;
	return classes_error.fate;
}

const struct part_class *class_of(enum part part)
{
	pthread_once(&classes_once, classes_make);
	return &classes[part];
}
