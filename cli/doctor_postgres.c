/* doctor_postgres.c - what `fermata doctor` asks PostgreSQL. */
#include "cli/connect.h"
#include "cli/doctor.h"

void doctor_postgres(struct doctor *doctor)
{
	struct error error = { .fate = FATE_OK };
	struct store *store = NULL;

	if (connect_store_bare(doctor->cli, &store, &error) != FATE_OK) {
		doctor_say_error(doctor, FINDING_WRONG, "PostgreSQL", NULL, &error);
		return;
	}
	doctor_say(doctor, FINDING_OK, "PostgreSQL", NULL, "can be reached, and takes writes");
	if (store_check_version(store, &error) == FATE_OK)
		doctor_say(doctor, FINDING_OK, "tables", NULL, "are those of this version");
	else
		doctor_say_error(doctor, FINDING_WRONG, "tables", NULL, &error);
	store_close(store);
}
