/* gen_man.c - writes docs/man/fermata.1 to stdout. */
#include "cli/help.h"

#include <stdio.h>

int main(void)
{
	struct buffer out;

	buffer_init(&out, (size_t)1 << 20);
	help_man(&out);
	if (!buffer_failed(&out))
		(void)fwrite(out.data, 1, out.len, stdout);
	int code = buffer_failed(&out) || fflush(stdout) != 0;
	buffer_done(&out);
	return code;
}
