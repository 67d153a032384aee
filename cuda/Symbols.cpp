//===- Symbols.cpp - functions of an opened library ----------------------===//
#include "cuda/Symbols.h"

#include <dlfcn.h>

namespace tandem::cuda {

void *findSymbol(void *library, const char *symbol, std::string &missing) {
  void *address = ::dlsym(library, symbol);
  if (!address)
    missing += (missing.empty() ? "'" : ", '") + std::string(symbol) + "'";
  return address;
}

} // namespace tandem::cuda
