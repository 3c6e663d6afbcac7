/* Everything that is known, in order: for people. */
#include "schemas/catalog_inner.h"
#include "schemas/codec_inner.h"

#include <stdlib.h>
#include <string.h>

static int compare(const void *left, const void *right)
{
	const struct catalog_entry *a = left, *b = right;
	int order = strcmp(a->name, b->name);

	if (order == 0)
		order = b->reader - a->reader;
	if (order == 0)
		order = (int)a->from - (int)b->from;
	if (order == 0)
		order = memcmp(a->sha256, b->sha256, sizeof(a->sha256));
	return order != 0 ? order : view_compare(a->text, b->text);
}

static struct catalog_entry entry_of(const struct known_schema *known)
{
	struct catalog_entry entry = {
		.name = known->name,
		.full = known->full,
		.reader = known->reads > 0,
		.from = known->elsewhere ? FROM_ELSEWHERE : FROM_FOLDER,
		.registry_id = known->registry_id,
		.fingerprint = known->fingerprint,
		.text = known->text.text,
	};

	memcpy(entry.sha256, known->sha256, sizeof(entry.sha256));
	return entry;
}

/* The registry may have it too. */
static struct catalog_entry entry_of_program(const struct catalog *catalog, enum part part)
{
	const struct part_class *class = class_of(part);
	const struct key key = key_sha256(class->sha256);
	const struct known_schema *known = map_get(&catalog->learnt, catalog->seed, &key);
	struct catalog_entry entry = {
		.name = class->type->name,
		.full = class->type->name,
		.reader = true,
		.from = FROM_PROGRAM,
		.registry_id = known ? known->registry_id : 0,
		.fingerprint = class->fingerprint,
		.text = schema_texts[part].text,
	};

	memcpy(entry.sha256, class->sha256, sizeof(entry.sha256));
	return entry;
}

void catalog_each(struct catalog *catalog, bool (*each)(void *context, const struct catalog_entry *entry),
                  void *context)
{
	size_t len = 0;

	pthread_mutex_lock(&catalog->listing);
	pthread_rwlock_rdlock(&catalog->lock);
	for (int part = PART_SUSPEND; part <= PART_GATE; part++)
		catalog->list[len++] = entry_of_program(catalog, (enum part)part);
	for (size_t i = 0; i < catalog->len; i++)
		catalog->list[len++] = entry_of(catalog->known[i]);
	qsort(catalog->list, len, sizeof(*catalog->list), compare);
	for (size_t i = 0; i < len && each(context, &catalog->list[i]);)
		i++;
	pthread_rwlock_unlock(&catalog->lock);
	pthread_mutex_unlock(&catalog->listing);
}
