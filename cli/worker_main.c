/* worker_main.c - the program `fermata-worker`: the same as `fermata worker`. */
#include "cli/cli.h"

int main(int argc, char **argv)
{
	return cli_main("fermata-worker", argc, argv);
}
