//===- ScheduleCheck.h - kernels that say how they are cut ----------------===//
#ifndef TANDEM_TESTS_LOWER_ANCHOR_SCHEDULECHECK_H
#define TANDEM_TESTS_LOWER_ANCHOR_SCHEDULECHECK_H

#include "tests/lower/anchor/KernelCheck.h"
#include "tests/lower/anchor/MethodRows.h"

namespace tandem::test {

/// Expects the bits of the kernel of `text` with every schedule that tuning
/// tries, and some extreme ones, to be those without one, or with `method`
/// alone, and those to be right. Some of them cut it otherwise.
void checkBits(const std::string &text, Tolerance tolerance,
               const std::string &method = "");

} // namespace tandem::test

#endif
