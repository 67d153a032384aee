//===- CreateGraph.h - may a backward run with gradients enabled? ---------===//
//
// Internal to the runtime. With gradients enabled, a backward must not write an
// input that requires grad. The compiler made the list of those; the check is
// over that list and looks at nothing else: `valueAt` is called once for each
// entry, so not at all where the list is empty, however many inputs there are.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_CALL_CREATEGRAPH_H
#define TANDEM_RUNTIME_CALL_CREATEGRAPH_H

#include "runtime/artifact/Manifest.h"

#include <span>

namespace tandem::runtime {

/// Returns an error with the index and name of every value on the list, and
/// with what writes it: `writerOf` gives that, or "".
template <typename Fn, typename Writer>
Status checkCreateGraph(std::span<const int64_t> mutatedInBackward, Fn valueAt,
                        Writer writerOf) {
  if (mutatedInBackward.empty())
    return Status::success();
  std::string text;
  for (int64_t index : mutatedInBackward) {
    const artifact::Value &value = valueAt(index);
    text += (text.empty() ? "" : ", ") + std::string(spelling(value.role)) +
            " '" + value.name + "' (index " + std::to_string(index) + ")";
    if (std::string writer = writerOf(value); !writer.empty())
      text += " by " + writer;
  }
  return Status::usage("create_graph was asked for, but the backward writes "
                       "values that require grad: " +
                       text);
}

} // namespace tandem::runtime

#endif
