/* OldLibc.c - what the static libstdc++ of GCC 12 asks of a newer C library.
 *
 * libstdc++ was built with glibc 2.36. Linked with an older one, it misses two
 * symbols of later versions, which are given here with their meaning. */
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
