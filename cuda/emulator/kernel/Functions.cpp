//===- Functions.cpp - the table of what kernels call ---------------------===//
#include "cuda/emulator/kernel/Functions.h"

#include <unordered_map>

namespace tandem::emulator::kernel {

void *findFunction(std::string_view name) {
  static const std::unordered_map<std::string_view, void *> table = {
#define PURE(name, function)                                                   \
  {name, reinterpret_cast<void *>(functions::function)},
#define THREAD PURE
#define WARP PURE
#define BLOCK PURE
#define PARTIAL PURE
#include "runtime/artifact/EmulatedFunctions.def"
  };
  auto it = table.find(name);
  return it == table.end() ? nullptr : it->second;
}

} // namespace tandem::emulator::kernel
