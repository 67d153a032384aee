// A program that needs a library which the runtime's tool may not need: what
// the lint 'linkage' must refuse.
#include <zlib.h>

int main(void) { return zlibVersion()[0] == '\0'; }
