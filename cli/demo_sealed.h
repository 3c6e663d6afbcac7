/* demo_sealed.h - what the database says about a session in clear, and that it says no more. */
#ifndef FERMATA_CLI_DEMO_SEALED_H
#define FERMATA_CLI_DEMO_SEALED_H

#include "cli/demo_scene.h"

/* The state of the session's only gate, as `fermata show --json` has it; "" when the session is unknown.
 * As world_run; FATAL with ERR_BUG: the answer cannot be understood. */
FM_MUSTCHECK enum fate sealed_state(struct world *world, const char *session, char ret_state[32],
                                    struct error *error);

/*
 * Opens the checkpoint with the key (`fermata show --state --json`), has PostgreSQL write all that it has in
 * memory, and looks for the texts of the history, for every run of four words of them and for the variables in
 * all files of the database, and for the summary of the action. That the search can find something is shown with the gate's title, which stands in
 * clear. FATAL with ERR_BUG: something was found, or the title was not.
 */
FM_MUSTCHECK enum fate sealed_look(struct scene *scene, const char *session, struct error *error);

#endif
