//===- Hooks.h - what a user wants called at a node -----------------------===//
//
// Lists of hooks. A hook is removed by its key, also while it runs; one that is
// added while the list is gone through is called, too. One thread at a time
// adds and removes; several may go through a list.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_GRAPH_HOOKS_H
#define TANDEM_RUNTIME_GRAPH_HOOKS_H

#include "runtime/graph/Node.h"

#include <algorithm>
#include <mutex>

namespace tandem::graph {

class Leaf;

template <typename Fn> class HookList {
public:
  void add(uint64_t key, Fn fn, int input = 0) {
    entries.push_back(
        std::make_shared<Entry>(Entry{key, input, std::move(fn), false}));
  }

  bool remove(uint64_t key) {
    for (size_t i = 0; i < entries.size(); ++i)
      if (entries[i]->key == key && !entries[i]->isRemoved) {
        entries[i]->isRemoved = true;
        if (running == 0)
          entries.erase(entries.begin() + static_cast<ptrdiff_t>(i));
        return true;
      }
    return false;
  }

  size_t size() const {
    return static_cast<size_t>(
        std::count_if(entries.begin(), entries.end(),
                      [](const auto &entry) { return !entry->isRemoved; }));
  }
  bool empty() const { return size() == 0; }

  /// Calls `call(hook, input)` for each, until one fails.
  template <typename Call> Status forEach(Call call) {
    Running scope(*this);
    for (size_t i = 0; i < entries.size(); ++i) {
      if (entries[i]->isRemoved)
        continue;
      std::shared_ptr<Entry> kept = entries[i]; // it may remove itself
      if (Status status = call(kept->fn, kept->input); !status)
        return status;
    }
    return Status::success();
  }

private:
  struct Entry {
    uint64_t key;
    int input;
    Fn fn;
    std::atomic<bool> isRemoved;
    Entry(uint64_t key, int input, Fn fn, bool isRemoved)
        : key(key), input(input), fn(std::move(fn)), isRemoved(isRemoved) {}
    Entry(Entry &&other) noexcept
        : key(other.key), input(other.input), fn(std::move(other.fn)),
          isRemoved(other.isRemoved.load()) {}
  };
  struct Running {
    explicit Running(HookList &list) : list(list) { ++list.running; }
    ~Running() { --list.running; }
    HookList &list;
  };

  std::vector<std::shared_ptr<Entry>> entries;
  std::atomic<int> running{0};
};

/// Where the gradient of a value that is no leaf is kept. Gradients of several
/// backwards add up.
class Retained {
public:
  Status add(const Value &gradient);
  Value get() const;
  void set(Value gradient);

private:
  mutable std::mutex mutex;
  Value gradient;
};

/// The hooks of a node, in the order in which they are called.
struct NodeHooks {
  /// May replace the gradient, by one of its type and shape or by an undefined
  /// one.
  using TensorHook = std::function<Status(Value &gradient)>;
  /// May replace gradients, but not their number.
  using PreHook = std::function<Status(Gradients &inputs)>;
  /// After the gradient was added to the leaf's.
  using AccumulatedHook = std::function<Status(Leaf &leaf)>;
  /// May replace what the node gives.
  using PostHook =
      std::function<Status(Gradients &outputs, const Gradients &inputs)>;

  HookList<TensorHook> tensor;                     ///< each of one input
  std::vector<std::shared_ptr<Retained>> retained; ///< for each input, or fewer
  HookList<PreHook> pre;
  HookList<AccumulatedHook> accumulated; ///< of leaves alone
  HookList<PostHook> post;

  bool remove(uint64_t key) {
    return tensor.remove(key) || pre.remove(key) || accumulated.remove(key) ||
           post.remove(key);
  }
  size_t count() const {
    return tensor.size() + pre.size() + accumulated.size() + post.size();
  }
};

// Each adds a hook and returns its key, which is no other hook's.
uint64_t addTensorHook(const Edge &edge, NodeHooks::TensorHook hook);
uint64_t addPreHook(Node &node, NodeHooks::PreHook hook);
uint64_t addPostHook(Node &node, NodeHooks::PostHook hook);
/// An error if the node is no leaf.
Result<uint64_t> addAccumulatedHook(Node &node,
                                    NodeHooks::AccumulatedHook hook);
/// True if the node had the hook.
bool removeHook(Node &node, uint64_t key);

/// Keeps the gradients of the input from now on; one place per input: what was
/// asked for before is given again.
std::shared_ptr<Retained> retain(const Edge &edge);
/// What `retain` asked for at `from` is asked for at `to` alone.
void moveRetained(const Edge &from, const Edge &to);

} // namespace tandem::graph

#endif
