/* main.c - the program `fermata`. */
#include "cli/cli.h"

int main(int argc, char **argv)
{
	return cli_main("fermata", argc, argv);
}
