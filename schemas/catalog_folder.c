/* The folder of schemas: which files there are, and what is in them. */
#include "schemas/catalog.h"

#include "schemas/catalog_inner.h"
#include "schemas/codec_inner.h"
#include "schemas/fingerprint.h"
#include "schemas/schema_parser.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES_MAX 4096
#define PATH_SIZE 4096
#define SEEN_MAX  ((size_t)8 * 1024 * 1024)

/* A file, until the catalog has it. */
struct found {
	struct known_schema *known;
	struct schema *schema; /* of a reader, until it is known's */
	bool reader;
	bool taken; /* known is the catalog's */
};

struct folder {
	const char *path;
	bool just_look;
	struct buffer seen; /* a line for each file */
	size_t files;
	struct found *found;
	size_t len, cap;
	struct broken broken;
	struct error *error;
};

static enum fate FM_PRINTF(2, 3) refuse(struct folder *folder, const char *fmt, ...)
{
	char text[200];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	return error_set(folder->error, FATE_FATAL, ERR_USAGE, "schemas.path: %s", text);
}

/* Of one file: the others are read. */
static enum fate FM_PRINTF(2, 3) find_fault(struct folder *folder, const char *fmt, ...)
{
	char text[200];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	return error_set(folder->error, FATE_REJECT, ERR_USAGE, "%s", text);
}

/* What is short here and now is no fault of a file. */
static bool is_shortage(int errnum)
{
	return errnum == EMFILE || errnum == ENFILE || errnum == ENOMEM || errnum == EAGAIN;
}

static enum fate cannot_read(struct folder *folder, const char *path, int errnum)
{
	if (is_shortage(errnum))
		return error_set_errno(folder->error, FATE_RETRY, errnum, "schemas.path: could not read %.150s",
		                       path);
	return find_fault(folder, "it could not be read: %s", strerror(errnum));
}

static int not_hidden(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* The name without ".avsc"; false when it does not end so. */
static bool strip(const char *file, char *name, size_t cap)
{
	size_t len = strlen(file);

	if (len <= 5 || len - 5 >= cap || strcmp(file + len - 5, ".avsc") != 0)
		return false;
	memcpy(name, file, len - 5);
	name[len - 5] = '\0';
	return true;
}

static enum fate no_memory(struct folder *folder)
{
	return error_set(folder->error, FATE_RETRY, ERR_MEMORY, "no memory for the schemas of schemas.path");
}

static enum fate read_fd(struct folder *folder, int fd, const char *path, struct buffer *text)
{
	for (;;) {
		uint8_t *room = buffer_reserve(text, 65536);
		ssize_t count = room ? read(fd, room, 65536) : 0;
		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0)
			return cannot_read(folder, path, errno);
		text->len += (size_t)count;
		if (text->starved)
			return no_memory(folder);
		if (!room || text->len > SCHEMA_TEXT_MAX)
			return find_fault(folder, "it has more than %zu bytes", SCHEMA_TEXT_MAX);
		if (count == 0)
			return FATE_OK;
	}
}

static struct found *next(struct folder *folder)
{
	if (folder->len == folder->cap) {
		size_t cap = folder->cap ? 2 * folder->cap : 16;
		struct found *found = realloc(folder->found, cap * sizeof(*found));
		if (!found)
			return NULL;
		folder->found = found;
		folder->cap = cap;
	}
	return &folder->found[folder->len];
}

/* Sixty-four bits can be made to clash: then nothing could tell which of the two a state was written with. */
static enum fate check_clash(struct folder *folder, const struct known_schema *known)
{
	for (size_t i = 0; i < folder->len; i++) {
		const struct known_schema *other = folder->found[i].known;
		if (other->fingerprint == known->fingerprint && memcmp(other->sha256, known->sha256, 32) != 0)
			return find_fault(folder, "it has the fingerprint of another schema, one for %.60s", other->name);
	}
	return FATE_OK;
}

static enum fate take_text(struct folder *folder, const char *name, bool reader, struct view text)
{
	struct found *found = next(folder);
	if (!found)
		return no_memory(folder);
	*found = (struct found){ .reader = reader };
	enum fate fate = known_new(&found->known, &found->schema, name, text, false, folder->error);
	if (fate != FATE_OK)
		return fate;
	fate = check_clash(folder, found->known);
	if (!reader || fate != FATE_OK) {
		schema_free(found->schema);
		found->schema = NULL;
	}
	if (fate == FATE_OK)
		folder->len++;
	else
		known_free(found->known);
	return fate;
}

/* A file at fault is noted with what it is called, and does not keep the others from being taken. */
static enum fate pass_over(struct folder *folder, const char *name, bool reader, struct view text,
                           const char *path)
{
	if (folder->error->fate != FATE_REJECT)
		return folder->error->fate;
	const char *file = path + strlen(folder->path) + 1;
	return broken_add(&folder->broken, file, name, reader, text, folder->error->message) ? FATE_OK
	                                                                                     : no_memory(folder);
}

static enum fate take_file(struct folder *folder, const char *name, bool reader, const char *path)
{
	struct buffer text;
	struct view whole = VIEW_NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	buffer_init(&text, SCHEMA_TEXT_MAX + 2 * 65536);
	enum fate fate = fd < 0 ? cannot_read(folder, path, errno) : read_fd(folder, fd, path, &text);
	if (fd >= 0)
		close(fd);
	if (fate == FATE_OK) {
		whole = text.len > 0 ? buffer_view(&text) : VIEW_LITERAL("");
		fate = take_text(folder, name, reader, whole);
	}
	if (fate != FATE_OK)
		fate = pass_over(folder, name, reader, whole, path);
	buffer_done(&text);
	return fate;
}

/* A file or folder that cannot be looked at. */
static enum fate see_fault(struct folder *folder, const char *name, bool reader, const char *path, int errnum)
{
	buffer_printf(&folder->seen, "%s %d\n", path, errnum);
	enum fate fate = cannot_read(folder, path, errnum);
	if (fate == FATE_REJECT && folder->just_look)
		return FATE_OK;
	return fate == FATE_REJECT ? pass_over(folder, name, reader, VIEW_NULL, path) : fate;
}

/* The time of its last change of any kind tells of rights, too. */
static enum fate see_file(struct folder *folder, const char *name, bool reader, const char *path,
                          const struct stat *stat)
{
	if (++folder->files > FILES_MAX)
		return refuse(folder, "there are more than %d files in it", FILES_MAX);
	buffer_printf(&folder->seen, "%s %lld %lld.%09ld %lld.%09ld\n", path, (long long)stat->st_size,
	              (long long)stat->st_mtim.tv_sec, stat->st_mtim.tv_nsec, (long long)stat->st_ctim.tv_sec,
	              stat->st_ctim.tv_nsec);
	return folder->just_look ? FATE_OK : take_file(folder, name, reader, path);
}

static enum fate read_folder(struct folder *folder, const char *path, const char *name);

/* name: that of the folder it is in; NULL: in the folder itself, where files are readers and folders hold what was
 * written. */
static enum fate read_entry(struct folder *folder, const char *path, const char *file, const char *name)
{
	char full[PATH_SIZE], stripped[PATH_SIZE];
	struct stat stat;

	if (snprintf(full, sizeof(full), "%s/%s", path, file) >= (int)sizeof(full))
		return refuse(folder, "a path in it is too long");
	bool ours = strip(file, stripped, sizeof(stripped));
	if (fstatat(AT_FDCWD, full, &stat, 0) != 0)
		return ours ? see_fault(folder, name ? name : stripped, !name, full, errno) : FATE_OK;
	if (S_ISDIR(stat.st_mode))
		return name ? FATE_OK : read_folder(folder, full, file);
	if (!S_ISREG(stat.st_mode) || !ours)
		return FATE_OK;
	return see_file(folder, name ? name : stripped, !name, full, &stat);
}

static enum fate cannot_list(struct folder *folder, const char *path, const char *name, int errnum)
{
	if (name)
		return see_fault(folder, name, false, path, errnum);
	(void)error_set_errno(folder->error, is_shortage(errnum) ? FATE_RETRY : FATE_FATAL, errnum,
	                      "schemas.path: could not read %.150s", path);
	if (!is_shortage(errnum))
		folder->error->code = ERR_USAGE;
	return folder->error->fate;
}

static enum fate read_folder(struct folder *folder, const char *path, const char *name)
{
	struct dirent **entries = NULL;
	int len = scandir(path, &entries, not_hidden, alphasort);
	enum fate fate = len < 0 ? cannot_list(folder, path, name, errno) : FATE_OK;

	for (int i = 0; i < len; i++) {
		if (fate == FATE_OK)
			fate = read_entry(folder, path, entries[i]->d_name, name);
		free(entries[i]);
	}
	free(entries);
	return fate;
}

static enum fate look(struct folder *folder, bool just_look, uint8_t ret_seen[32])
{
	folder->just_look = just_look;
	folder->files = 0;
	buffer_init(&folder->seen, SEEN_MAX);
	enum fate fate = read_folder(folder, folder->path, NULL);
	if (fate == FATE_OK && buffer_failed(&folder->seen))
		fate = no_memory(folder);
	fingerprint_sha256(buffer_view(&folder->seen), ret_seen);
	buffer_done(&folder->seen);
	return fate;
}

/* ---- under the lock ---- */

/* What was written in a folder is found there, the last file before the others; where no file of a folder
 * has the fingerprint, the first of any. */
static bool bind_written(struct catalog *catalog, struct known_schema *known)
{
	const struct key here = key_named(WANT_FINGERPRINT, known->name, known->fingerprint);
	const struct key any = key_named(WANT_STATE, "", known->fingerprint);
	const struct key sha256 = key_sha256(known->sha256);
	const struct known_schema *before = map_get(&catalog->written, catalog->seed, &any);
	bool suspend = strcmp(known->name, class_of(PART_SUSPEND)->type->name) == 0;

	return map_set(&catalog->written, catalog->seed, &here, known) &&
	       ((before && before->loaded == catalog->loads) ||
	        map_set(&catalog->written, catalog->seed, &any, known)) &&
	       (!suspend || map_set(&catalog->written, catalog->seed, &sha256, known));
}

static bool bind_name(const struct catalog *catalog, struct map *readers, const char *name,
                      struct known_schema *known)
{
	const struct key key = key_named(WANT_READER, name, 0);

	return map_get(readers, catalog->seed, &key) || map_set(readers, catalog->seed, &key, known);
}

/* The root's name and its aliases; one without a dot is in the namespace of the root. */
static bool bind_root(const struct catalog *catalog, struct map *readers, struct known_schema *known)
{
	const struct schema_type *root = known->schema->root;
	const json_t *aliases = root->name ? json_object_get(root->json, "aliases") : NULL;
	const char *dot = root->name ? strrchr(root->name, '.') : NULL;
	int space = dot ? (int)(dot - root->name) + 1 : 0;
	char full[2 * SCHEMA_NAME_MAX + 2];
	bool good = bind_name(catalog, readers, known->full, known);
	size_t i;
	const json_t *alias;

	json_array_foreach(aliases, i, alias)
	{
		const char *text = json_string_value(alias);
		snprintf(full, sizeof(full), "%.*s%s", strchr(text, '.') ? 0 : space, root->name, text);
		good = good && bind_name(catalog, readers, full, known);
	}
	return good;
}

/* A file's own name stands before what is in it. */
static bool bind_readers(const struct catalog *catalog, const struct folder *folder, struct map *readers)
{
	bool good = true;

	for (size_t i = 0; i < folder->len && good; i++)
		good = !folder->found[i].reader ||
		       bind_name(catalog, readers, folder->found[i].known->name, folder->found[i].known);
	for (size_t i = 0; i < folder->len && good; i++)
		good = !folder->found[i].reader || bind_root(catalog, readers, folder->found[i].known);
	return good;
}

static enum fate add_all(struct catalog *catalog, struct folder *folder)
{
	for (size_t i = 0; i < folder->len; i++) {
		struct found *found = &folder->found[i];
		enum fate fate =
			known_add(catalog, &found->known, found->reader ? &found->schema : NULL, folder->error);
		found->taken = true;
		if (fate != FATE_OK)
			return fate;
	}
	return FATE_OK;
}

static enum fate change(struct catalog *catalog, struct folder *folder)
{
	struct map readers = { 0 };
	enum fate fate = add_all(catalog, folder);
	bool good = fate == FATE_OK && bind_readers(catalog, folder, &readers);

	catalog->loads++;
	for (size_t i = 0; i < folder->len && good; i++) {
		good = bind_written(catalog, folder->found[i].known);
		folder->found[i].known->loaded = catalog->loads;
	}
	if (!good) {
		map_done(&readers);
		return fate != FATE_OK ? fate : no_memory(folder);
	}
	for (size_t i = 0; i < catalog->len; i++)
		catalog->known[i]->reads = catalog->known[i]->elsewhere ? catalog->known[i]->reads : 0;
	for (size_t i = 0; i < folder->len; i++)
		folder->found[i].known->reads += folder->found[i].reader;
	map_done(&catalog->readers);
	catalog->readers = readers;
	broken_done(&catalog->broken);
	catalog->broken = folder->broken;
	folder->broken = (struct broken){ 0 };
	denials_clear(catalog->denials);
	return FATE_OK;
}

/* ---- the whole ---- */

static void folder_done(struct folder *folder)
{
	for (size_t i = 0; i < folder->len; i++) {
		schema_free(folder->found[i].schema);
		if (!folder->found[i].taken)
			known_free(folder->found[i].known);
	}
	free(folder->found);
	broken_done(&folder->broken);
}

static enum fate read_again(struct catalog *catalog, struct folder *folder)
{
	uint8_t seen[32];
	enum fate fate = look(folder, false, seen);

	if (fate == FATE_OK) {
		pthread_rwlock_wrlock(&catalog->lock);
		fate = change(catalog, folder);
		pthread_rwlock_unlock(&catalog->lock);
	}
	folder_done(folder);
	if (fate == FATE_OK) {
		memcpy(catalog->seen, seen, sizeof(seen));
		catalog->seen_once = true;
	}
	return fate;
}

/* Texts are read and parsed before the lock is taken, so nobody waits for that who looks something up. */
enum fate catalog_folder(struct catalog *catalog, bool *ret_changed, struct error *error)
{
	struct error ignored = { 0 };
	struct folder folder = { .path = catalog->folder, .error = error ? error : &ignored };
	uint8_t seen[32];
	bool changed = false;
	enum fate fate = FATE_OK;

	pthread_mutex_lock(&catalog->reload);
	if (folder.path && catalog->seen_once)
		fate = look(&folder, true, seen);
	if (folder.path && fate == FATE_OK)
		changed = !catalog->seen_once || memcmp(seen, catalog->seen, sizeof(seen)) != 0;
	if (changed)
		fate = read_again(catalog, &folder);
	pthread_mutex_unlock(&catalog->reload);
	if (ret_changed)
		*ret_changed = changed && fate == FATE_OK;
	return fate;
}
