//===- TestKernels.h - machine code that tests have in common -------------===//
#ifndef TANDEM_TESTS_SUPPORT_TESTKERNELS_H
#define TANDEM_TESTS_SUPPORT_TESTKERNELS_H

#include "compiler/emit/KernelCache.h"

#include <cstdlib>
#include <memory>
#include <string_view>

namespace tandem {

/// The kernels that the tests of this build keep (Hermetic.cmake.in), for tests
/// that compile within their process; null beside ctest.
inline std::unique_ptr<KernelCache> testKernels() {
  const char *folder = std::getenv("TANDEM_KERNEL_CACHE");
  if (!folder || !*folder || std::string_view(folder) == "off")
    return nullptr;
  return std::make_unique<KernelCache>(folder, uint64_t(1) << 30);
}

} // namespace tandem

#endif
