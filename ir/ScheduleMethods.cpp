//===- ScheduleMethods.cpp - the names of ways to compute a kernel --------===//
#include "ir/ScheduleMethods.h"

#include "llvm/ADT/STLExtras.h"

using namespace tandem;

/// The first three are those that the enumeration of Attributes.td names.
static constexpr llvm::StringRef names[] = {
    "winograd", "direct",    "windows",    // convolutions
    "pixels",   "depthwise", "pointwise",  // and loops
    "tiles",    "dots",      "gemm",       // products; tiles also of attention
    "wgmma",    "mma",       "simt",       // products for cuda
    "rows",     "columns",   "transposed", // loops; rows also of attention
    "pooling",  "indexed",   "lines"};

llvm::ArrayRef<llvm::StringRef> tandem::methodNames() { return names; }

llvm::StringRef tandem::nameOf(ScheduleMethod method) {
  return names[static_cast<size_t>(method)];
}

std::optional<ScheduleMethod> tandem::methodNamed(llvm::StringRef name) {
  const auto *at = llvm::find(names, name);
  if (at == std::end(names))
    return std::nullopt;
  return static_cast<ScheduleMethod>(at - std::begin(names));
}

std::string tandem::listOf(llvm::ArrayRef<llvm::StringRef> names) {
  std::string list;
  for (auto [i, name] : llvm::enumerate(names))
    list += (i == 0                  ? "'"
             : i + 1 == names.size() ? " or '"
                                     : ", '") +
            name.str() + "'";
  return list;
}
