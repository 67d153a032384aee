/*===- CApiCheck.h - what tests of the C API check ------------------------===
 *
 * A C program that includes this ends with 1 if `failures` is not 0.
 *
 *===----------------------------------------------------------------------===*/
#ifndef TANDEM_TESTS_RUNTIME_CAPICHECK_H
#define TANDEM_TESTS_RUNTIME_CAPICHECK_H

#include "runtime/tandem.h"

#include <stdio.h>
#include <string.h>

static int failures;

#define CHECK(condition)                                                       \
  do {                                                                         \
    if (!(condition)) {                                                        \
      fprintf(stderr, "%s:%d: expected %s (last error: %s)\n", __FILE__,       \
              __LINE__, #condition, tdm_last_error());                         \
      ++failures;                                                              \
    }                                                                          \
  } while (0)

#define CHECK_FAILS(call, code, part)                                          \
  do {                                                                         \
    CHECK((call) == (code));                                                   \
    CHECK(strstr(tdm_last_error(), (part)) != NULL);                           \
  } while (0)

#endif
