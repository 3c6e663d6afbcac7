/* Files of the folder that cannot be used: which they are, and what might stand in them. */
#include "schemas/catalog_broken.h"

#include "schemas/catalog_inner.h"
#include "schemas/codec_inner.h"
#include "schemas/json_fault.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Names are compared by what is behind their last dot: an alias may be meant in any namespace. */
static const char *last_part(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot ? dot + 1 : name;
}

static bool add_name(json_t *names, const json_t *text)
{
	return json_is_string(text) &&
	       json_array_append_new(names, json_string(last_part(json_string_value(text)))) == 0;
}

static bool read_own_names(const json_t *object, json_t *names)
{
	const json_t *name = json_object_get(object, "name"), *aliases = json_object_get(object, "aliases"),
				 *alias;
	bool good = !aliases || json_is_array(aliases);
	size_t i;

	if (name)
		good = add_name(names, name) && good;
	json_array_foreach(aliases, i, alias) good = add_name(names, alias) && good;
	return good;
}

/* Whole JSON that is no schema still says what it wants to be called, also where the record is the "type" of an object
 * around it. False: that cannot be told. */
static bool read_names(const json_t *root, json_t *names)
{
	bool good = true;

	for (; json_is_object(root); root = json_object_get(root, "type"))
		good = read_own_names(root, names) && good;
	return good;
}

/* False: no memory. */
static bool fill_names(struct broken_file *file, struct view text)
{
	json_error_t why;
	bool starved;

	file->opaque = true;
	if (view_is_null(text))
		return true;
	json_t *root = json_take(text, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &why, &starved);
	if (!root)
		return !starved;
	uint64_t refusals = memory_refusals();
	file->names = json_array();
	file->opaque = !file->names || !read_names(root, file->names);
	json_decref(root);
	return memory_refusals() == refusals;
}

static void file_done(struct broken_file *file)
{
	free(file->file);
	free(file->name);
	free(file->why);
	json_decref(file->names);
}

bool broken_add(struct broken *broken, const char *path, const char *name, bool reader, struct view text,
                const char *why)
{
	if (broken->len == broken->cap) {
		size_t cap = broken->cap ? 2 * broken->cap : 8;
		struct broken_file *files = reallocarray(broken->files, cap, sizeof(*files));
		if (!files)
			return false;
		broken->files = files;
		broken->cap = cap;
	}
	struct broken_file *file = &broken->files[broken->len];
	*file = (struct broken_file){
		.file = strdup(path), .name = strdup(name), .why = strdup(why), .reader = reader
	};
	if (file->file && file->name && file->why && (!reader || fill_names(file, text))) {
		broken->len++;
		return true;
	}
	file_done(file);
	return false;
}

void broken_done(struct broken *broken)
{
	for (size_t i = 0; i < broken->len; i++)
		file_done(&broken->files[i]);
	free(broken->files);
	*broken = (struct broken){ 0 };
}

/* ---- might it stand in one? ---- */

const struct broken_file *broken_reader(const struct broken *broken, const char *name)
{
	for (size_t i = 0; i < broken->len; i++)
		if (broken->files[i].reader && !strcmp(broken->files[i].name, name))
			return &broken->files[i];
	return NULL;
}

static bool claims(const struct broken_file *file, const char *last)
{
	size_t i;
	const json_t *name;

	if (!file->reader || file->opaque)
		return file->reader;
	json_array_foreach(file->names, i, name) if (!strcmp(json_string_value(name), last)) return true;
	return false;
}

const struct broken_file *broken_claim(const struct broken *broken, const char *name)
{
	for (size_t i = 0; i < broken->len; i++)
		if (claims(&broken->files[i], last_part(name)))
			return &broken->files[i];
	return NULL;
}

const struct broken_file *broken_written(const struct broken *broken, const struct schema_want *want,
                                         const char *folder)
{
	const char *name = want->kind == WANT_STATE    ? folder
	                   : want->kind == WANT_SHA256 ? class_of(PART_SUSPEND)->type->name
	                                               : want->name;

	if (want->kind == WANT_ID || want->kind == WANT_GUID)
		return NULL;
	for (size_t i = 0; i < broken->len && name; i++)
		if (!strcmp(broken->files[i].name, name))
			return &broken->files[i];
	return want->kind == WANT_STATE && broken->len > 0 ? &broken->files[0] : NULL;
}

/* ---- looking at it ---- */

size_t catalog_broken(struct catalog *catalog)
{
	if (!catalog)
		return 0;
	pthread_rwlock_rdlock(&catalog->lock);
	size_t len = catalog->broken.len;
	pthread_rwlock_unlock(&catalog->lock);
	return len;
}

void catalog_each_broken(struct catalog *catalog,
                         void (*each)(void *context, const struct catalog_broken *file), void *context)
{
	pthread_rwlock_rdlock(&catalog->lock);
	for (size_t i = 0; i < catalog->broken.len; i++) {
		const struct broken_file *file = &catalog->broken.files[i];
		each(context, &(struct catalog_broken){ file->file, file->name, file->reader, file->why });
	}
	pthread_rwlock_unlock(&catalog->lock);
}

bool catalog_is_broken(struct catalog *catalog, const struct schema_want *want, char *text, size_t size)
{
	const struct known_schema *known;
	char why[DENIED_WHY_MAX + 1];

	/* Of a state the folder is that of its own name: where its reader has another, any file that is broken will do. */
	if (catalog_find(catalog, want, want->name, &known, why) != ANSWER_BROKEN)
		return false;
	snprintf(text, size, "%s", why);
	return true;
}
