/* torture_high.c - linked right before the rooms: what is behind it in memory is ours. */
#include "tests/torture/torture.h"

void torture_high(void)
{
}
