#include "core/kafka_env.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define PREFIX         "FERMATA_KAFKA_"
#define PROPERTIES_MAX 128
#define NAME_MAX_LEN   128
#define SECRET_MAX     65536

extern char **environ;

struct list {
	struct arena *arena;
	struct property *properties;
	size_t len;
};

static bool ends_in(const char *text, const char *end)
{
	size_t len = strlen(text);
	size_t end_len = strlen(end);

	return len >= end_len && !strcmp(text + len - end_len, end);
}

/* FERMATA_KAFKA_SERVICE_HOST, FERMATA_KAFKA_PORT_9092_TCP_ADDR and the like. */
static bool is_service_link(const char *name)
{
	const char *port = strstr(name, "PORT_");

	return ends_in(name, "SERVICE_HOST") || strstr(name, "SERVICE_PORT") || ends_in(name, "PORT") ||
	       (port && isdigit((unsigned char)port[5]));
}

/* "SASL_PASSWORD" to "sasl.password"; log_level is the one property with an underscore. */
static void to_property(const char *variable, size_t len, char name[NAME_MAX_LEN])
{
	for (size_t i = 0; i < len; i++)
		name[i] = variable[i] == '_' ? '.' : (char)tolower((unsigned char)variable[i]);
	name[len] = '\0';
	if (!strcmp(name, "log.level"))
		name[strlen("log")] = '_';
}

static enum fate read_secret(struct arena *arena, const char *path, const char *name, char **ret_value,
                             struct error *error)
{
	FILE *file = fopen(path, "re");
	char *value = arena_alloc(arena, SECRET_MAX);
	size_t len;

	if (!file)
		return error_set(error, FATE_REJECT, ERR_USAGE, "cannot read the file that holds %s: %s: %s", name,
		                 path, strerror(errno));
	len = value ? fread(value, 1, SECRET_MAX - 1, file) : 0;
	fclose(file);
	if (!value)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "could not read the file that holds %s", name);
	value[len] = '\0';
	value[strcspn(value, "\r\n")] = '\0';
	*ret_value = value;
	return FATE_OK;
}

static enum fate add(struct list *list, const char *variable, size_t len, const char *value,
                     struct error *error)
{
	char name[NAME_MAX_LEN];
	char *taken = (char *)value;
	char *kept;
	enum fate fate = FATE_OK;

	if (!len || len >= sizeof(name) || list->len == PROPERTIES_MAX)
		return FATE_OK;
	to_property(variable, len, name);
	if (ends_in(name, ".file")) {
		name[len - strlen(".file")] = '\0';
		fate = read_secret(list->arena, value, name, &taken, error);
	}
	if (fate != FATE_OK)
		return fate;
	kept = arena_text(list->arena, view_of(name));
	taken = arena_text(list->arena, view_of(taken));
	if (!kept || !taken)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "could not keep kafka.%s", name);
	list->properties[list->len++] = (struct property){ kept, taken };
	return FATE_OK;
}

/* The general ones (half NULL) or those of one half; the other half's never. */
static enum fate add_all(struct list *list, const char *half, struct error *error)
{
	static const char *const halves[] = { "CONSUMER_", "PRODUCER_" };
	enum fate fate = FATE_OK;

	for (char **at = environ; *at && fate == FATE_OK; at++) {
		const char *equals = strchr(*at, '=');
		const char *variable = *at + strlen(PREFIX);
		const char *found = NULL;
		char name[NAME_MAX_LEN];

		if (!equals || strncmp(*at, PREFIX, strlen(PREFIX)) != 0)
			continue;
		for (size_t i = 0; i < 2; i++)
			if (!strncmp(variable, halves[i], strlen(halves[i])))
				found = halves[i];
		snprintf(name, sizeof(name), "%.*s", (int)(equals - variable), variable);
		if (is_service_link(name) ||
		    (half ? !found || strncasecmp(found, half, strlen(half)) != 0 : found != NULL))
			continue;
		variable += found ? strlen(found) : 0;
		fate = add(list, variable, (size_t)(equals - variable), equals + 1, error);
	}
	return fate;
}

enum fate kafka_environment(const char *half, struct arena *arena, struct property **ret_properties,
                            size_t *ret_len, struct error *error)
{
	struct list list = { arena, arena_array(arena, PROPERTIES_MAX, sizeof(struct property)), 0 };
	enum fate fate;

	if (!list.properties)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "could not read the environment");
	fate = add_all(&list, NULL, error);
	if (fate == FATE_OK)
		fate = add_all(&list, half, error);
	*ret_properties = list.properties;
	*ret_len = list.len;
	return fate;
}
