/* UnloadTest.c - the library is unloaded, or the process ends, while threads of
 * devices sleep: they end, and nothing waits.
 *
 * usage: runtime-graph-unload MODULE */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv) {
  int i;
  if (argc != 2)
    return fprintf(stderr, "usage: runtime-graph-unload MODULE\n"), 2;
  for (i = 0; i < 3; ++i) {
    void *module = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    int (*run)(void) = module ? (int (*)(void))dlsym(module, "runBackward") : 0;
    if (!run)
      return fprintf(stderr, "%s\n", dlerror()), 1;
    if (run())
      return fprintf(stderr, "the backward failed\n"), 1;
    if (i < 2)
      dlclose(module); /* the last time the process ends it */
  }
  return 0;
}
