#include "cli/schema_file.h"

#include "cli/whole.h"
#include "schemas/fingerprint.h"

static enum fate take_fingerprint(struct schema_file *file, struct error *error)
{
	struct buffer canonical;

	buffer_init(&canonical, SCHEMA_CANONICAL_MAX);
	enum fate fate = schema_canonical(file->schema, &canonical, error);
	if (fate == FATE_OK)
		file->fingerprint = fingerprint_crc64(buffer_view(&canonical));
	buffer_done(&canonical);
	return fate;
}

enum fate schema_file_load(const char *path, struct schema_file *ret_file, struct error *error)
{
	enum fate fate;

	*ret_file = (struct schema_file){ .path = path };
	buffer_init(&ret_file->text, 2 * SCHEMA_TEXT_MAX);
	fate = whole_read(path, SCHEMA_TEXT_MAX, &ret_file->text, error);
	if (fate != FATE_OK)
		return fate;
	fate = schema_parse(&ret_file->schema, buffer_view(&ret_file->text), error);
	if (fate == FATE_OK)
		fate = take_fingerprint(ret_file, error);
	return fate == FATE_OK ? FATE_OK : error_wrap(error, "%.100s", path);
}

void schema_file_done(struct schema_file *file)
{
	schema_free(file->schema);
	buffer_done(&file->text);
}

const char *schema_file_name(const struct schema_file *file)
{
	const struct schema_type *root = file->schema->root;

	return root->name != NULL ? root->name : schema_kind_name(root->kind);
}
