//===- Saved.h - a value that a node keeps for its backward ---------------===//
//
// A saved value is checked when it is used: a write to its storage since then
// is an error. With hooks of the thread's modes it is packed when it is saved
// and unpacked before each use. A result of the node itself is kept without its
// history, since the node would keep itself.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_GRAPH_SAVED_H
#define TANDEM_RUNTIME_GRAPH_SAVED_H

#include "runtime/graph/Node.h"
#include "runtime/model/Model.h"

namespace tandem::graph {

class SavedValue {
public:
  SavedValue() = default;
  /// `input` is the node's input if the value is a result of the node, else -1.
  /// `name` is for messages and hooks.
  static Result<SavedValue> make(std::string name, const Value &value,
                                 int input = -1);

  /// Returns the value; `node` is the one that saved it.
  Result<Value> use(Node &node) const;
  int64_t bytes() const;
  /// Takes another value of the same type and shape, and gives the old one.
  Status swap(Node &node, Value &other);

private:
  std::string name;
  Value value; ///< undefined if it is packed
  artifact::DType dtype = artifact::DType::F32;
  std::vector<int64_t> shape;
  uint64_t version = 0;
  int input = -1;
  std::shared_ptr<const runtime::SavedHooks> hooks;
  std::shared_ptr<void> packed;
};

/// Exchanges all saved values of a node with others, or, if one does not fit,
/// none.
Status swapAll(Node &node, std::vector<SavedValue> &saved,
               std::vector<Value> &values);

} // namespace tandem::graph

#endif
