#include "cli/signals.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t came;

static void on_signal(int number)
{
	(void)number;
	came = 1;
}

/* Without SA_RESTART. */
void signals_catch(void)
{
	struct sigaction action = { .sa_handler = on_signal };

	came = 0;
	sigemptyset(&action.sa_mask);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

bool signals_came(void)
{
	return came != 0;
}
