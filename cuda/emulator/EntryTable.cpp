//===- EntryTable.cpp - the driver's functions by name --------------------===//
#include "cuda/emulator/Entry.h"

#include <cstring>

using namespace tandem::cuda::driver;

namespace {
struct Named {
  const char *symbol;
  void *function;
};

const Named table[] = {
#define TANDEM_DRIVER_FUNCTION(member, symbol, parameters)                     \
  {#symbol, reinterpret_cast<void *>(&symbol)},
#include "cuda/DriverFunctions.def"
#undef TANDEM_DRIVER_FUNCTION
};
} // namespace

/// The newest of "NAME", "NAME_v2", ... that there is.
extern "C" __attribute__((visibility("default"))) CUresult
cuGetProcAddress_v2(const char *symbol, void **function, int /*version*/,
                    uint64_t /*flags*/, int *status) {
  if (!symbol || !function)
    return CUDA_ERROR_INVALID_VALUE;
  const size_t length = std::strlen(symbol);
  *function = nullptr;
  for (const Named &entry : table)
    if (std::strncmp(entry.symbol, symbol, length) == 0 &&
        (!entry.symbol[length] ||
         (entry.symbol[length] == '_' && entry.symbol[length + 1] == 'v')))
      *function = entry.function;
  if (status)
    *status = *function ? 0 : 1;
  return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
