//===- MethodFamilies.h - the tables of a target, by families of anchors --===//
#ifndef TANDEM_PASSES_LOWER_COMMON_METHODFAMILIES_H
#define TANDEM_PASSES_LOWER_COMMON_METHODFAMILIES_H

#include "passes/lower/common/Anchor.h"
#include "passes/lower/common/Method.h"

namespace tandem::lower {

template <typename Methods> struct MethodFamily {
  AnchorFamily family;
  Methods methods;
};

/// The table of a family; null if the target has none.
template <typename Methods, size_t count>
const Methods *tableOf(const MethodFamily<Methods> (&families)[count],
                       AnchorFamily wanted) {
  for (const MethodFamily<Methods> &one : families)
    if (one.family == wanted)
      return &one.methods;
  return nullptr;
}

} // namespace tandem::lower

#endif
