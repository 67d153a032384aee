//===- Saved.h - a value that a node keeps for its backward ---------------===//
//
// A saved value is checked when it is used: a write to its storage since then
// is an error. With hooks of the thread's modes it is packed when it is saved
// and unpacked before each use. A result of the node itself is kept without its
// history, since the node would keep itself. The values of a node are freed
// with the last backward, once no thread runs the node. No lock is held while a
// hook runs.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_GRAPH_SAVED_H
#define TANDEM_RUNTIME_GRAPH_SAVED_H

#include "runtime/graph/Node.h"
#include "runtime/model/Model.h"

#include <mutex>

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

/// All that a node saved. Threads may use and release it at the same time.
class SavedValues {
public:
  SavedValues() = default;
  ~SavedValues();
  SavedValues(const SavedValues &) = delete;
  SavedValues &operator=(const SavedValues &) = delete;

  /// In a forward: keeps another value.
  void add(SavedValue value) {
    kept.push_back(std::make_shared<SavedValue>(std::move(value)));
  }

  /// Runs `backward`, of node `of`, and keeps the values until it has ended.
  /// Fails if another backward has or had them and does not retain them. If
  /// `backward` fails, they are there for another one.
  template <typename Fn> Status lend(const Node &of, bool retain, Fn backward) {
    Loan loan(*this);
    if (Status status = loan.begin(of, retain); !status)
      return status;
    Status status = backward();
    if (status)
      loan.succeed();
    return status;
  }

  /// Frees them when no backward uses them.
  void release();
  /// Returns value `index` of `node`, unpacked.
  Result<Value> use(Node &node, size_t index);
  Result<std::vector<Value>> useAll(Node &node);
  int64_t bytes() const;
  /// Exchanges all values with others, or, if one does not fit, none.
  Status swap(Node &node, std::vector<Value> &others);

private:
  class Loan {
  public:
    explicit Loan(SavedValues &values) : values(values) {}
    ~Loan();
    Loan(const Loan &) = delete;
    Loan &operator=(const Loan &) = delete;
    Status begin(const Node &of, bool retain);
    void succeed() { isTaken = false; }

  private:
    SavedValues &values;
    bool isHeld = false, isTaken = false;
  };

  static Status used(const Node &node);

  mutable std::mutex mutex; ///< guards the rest; not while a hook runs
  std::vector<std::shared_ptr<SavedValue>> kept;
  bool isUsed = false;     ///< by a backward that does not retain them
  bool isReleased = false; ///< they go when `running` is 0
  int running = 0;
};

} // namespace tandem::graph

#endif
