//===- Symbols.h - functions of an opened library ------------------------===//
#ifndef TANDEM_CUDA_SYMBOLS_H
#define TANDEM_CUDA_SYMBOLS_H

#include <string>

namespace tandem::cuda {

/// Returns the symbol's address. If there is none, null, and its name is added
/// to the list `missing`. Not inline: a table of functions asks a hundred
/// times.
void *findSymbol(void *library, const char *symbol, std::string &missing);

template <typename Function>
void find(void *library, const char *symbol, Function &function,
          std::string &missing) {
  function = reinterpret_cast<Function>(findSymbol(library, symbol, missing));
}

} // namespace tandem::cuda

#endif
