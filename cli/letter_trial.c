#include "cli/letter_trial.h"

#include "schemas/catalog.h"
#include "schemas/codec.h"

#include <string.h>

#define DECODE_FACTOR 16 /* a record's structs may take so many times the bytes of its value, as in intake */
#define SPARE_BYTES   ((size_t)16 << 20)
#define SCHEMA_HEADER "__value_schema_id"

enum fate letter_trial_open(struct letter_trial *trial, const struct cli *cli, struct error *error)
{
	const struct config *config = cli->config;
	size_t record = (size_t)config_number(config, PARAM_LIMITS_RECORD_BYTES);
	bool registry = config_text(config, PARAM_REGISTRY_URL) != NULL;
	struct catalog_settings known = {
		.folder = config_text(config, PARAM_SCHEMAS_PATH),
		.registry = registry,
		.asks = registry,
	};

	*trial = (struct letter_trial){ .scratch = arena_new(DECODE_FACTOR * record + SPARE_BYTES) };
	if (trial->scratch == NULL)
		return error_set(error, FATE_FATAL, ERR_MEMORY, "no memory to read dead letters");
	enum fate fate = catalog_new(&trial->catalog, &known, error);
	struct codec_settings settings = {
		.record_bytes = record,
		.strict_boundary = config_choice(config, PARAM_LIMITS_BOUNDARY) == CONFIG_BOUNDARY_STRICT,
		.catalog = trial->catalog,
	};

	return fate == FATE_OK ? codec_new(&trial->codec, &settings, error) : fate;
}

static struct view schema_header(const struct letter *letter)
{
	for (size_t i = letter->headers_len; i > 0; i--)
		if (!strcmp(letter->headers[i - 1].name, SCHEMA_HEADER))
			return letter->headers[i - 1].value;
	return VIEW_NULL;
}

static enum fate try_suspend(struct letter_trial *trial, const struct letter *letter,
                             struct trial_result *result)
{
	struct suspend_event event;
	struct view body;
	enum fate fate =
		codec_take_suspend(trial->codec, letter->value, trial->scratch, &event, &body, &result->why);

	if (fate == FATE_OK) {
		result->checkpoint_id = event.checkpoint_id_text;
		result->session_id = event.session_id;
	}
	return fate;
}

static enum fate try_approval(struct letter_trial *trial, const struct letter *letter,
                              struct trial_result *result)
{
	struct approval_event event;
	struct view body;
	enum fate fate =
		codec_take_approval(trial->codec, letter->value, trial->scratch, &event, &body, &result->why);

	if (fate == FATE_OK) {
		result->decision_id = event.decision_id_text;
		result->checkpoint_id = event.checkpoint_id_text;
		result->session_id = event.session_id;
	}
	return fate;
}

void letter_try(struct letter_trial *trial, const struct letter *letter, struct trial_result *ret_result)
{
	*ret_result = (struct trial_result){ .why = { .fate = FATE_OK } };
	arena_reset(trial->scratch);
	codec_schema_header(trial->codec, schema_header(letter));
	enum fate fate = view_equal_text(letter->stage, "approval") ? try_approval(trial, letter, ret_result)
	                                                            : try_suspend(trial, letter, ret_result);

	ret_result->answer = fate == FATE_OK                                            ? TRIAL_TAKEN
	                     : fate == FATE_RETRY && ret_result->why.code != ERR_MEMORY ? TRIAL_UNTOLD
	                                                                                : TRIAL_REFUSED;
}

void letter_trial_close(struct letter_trial *trial)
{
	codec_free(trial->codec);
	catalog_free(trial->catalog);
	arena_free(trial->scratch);
	*trial = (struct letter_trial){ 0 };
}
