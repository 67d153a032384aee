/* OldLibc.c - what the runtime must not ask of a newer C library.
 *
 * libstdc++ of GCC 12 was built with glibc 2.36. Linked with an older one, it
 * misses two symbols of later versions, which are given here with their
 * meaning. And of a function with two versions the older one is asked for. */
#include <stdint.h>
#include <sys/random.h>

/* Whether the process has one thread, by which libstdc++ leaves out atomic
 * instructions. 0, not known, is always right. */
char __libc_single_threaded = 0;

/* For std::random_device. */
uint32_t arc4random(void);
uint32_t arc4random(void) {
  uint32_t value;
  while (getrandom(&value, sizeof value, 0) != (ssize_t)sizeof value)
    ;
  return value;
}

/* glibc 2.29 has a log that does not set errno. */
#ifdef __x86_64__
__asm__(".symver olderLog, log@GLIBC_2.2.5");
#else
__asm__(".symver olderLog, log@GLIBC_2.17");
#endif
double olderLog(double x);
__attribute__((visibility("hidden"))) double log(double x);
double log(double x) { return olderLog(x); }
