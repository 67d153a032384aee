//===- Hooks.h - what a user wants called at a node -----------------------===//
//
// Lists of hooks. A hook is removed by its key, also while it runs; one that is
// added while the list is gone through is called, too. Threads may add, remove
// and go through a list at the same time: a lock is held between hooks, never
// while one runs or ends.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_GRAPH_HOOKS_H
#define TANDEM_RUNTIME_GRAPH_HOOKS_H

#include "runtime/graph/Node.h"

#include <algorithm>
#include <iterator>
#include <mutex>
#include <utility>

namespace tandem::graph {

class Leaf;

template <typename Fn> class HookList {
public:
  void add(uint64_t key, Fn fn, int input = 0) {
    auto entry = std::make_shared<Entry>(key, input, std::move(fn));
    std::lock_guard lock(mutex);
    entries.push_back(std::move(entry));
  }

  bool remove(uint64_t key) {
    std::shared_ptr<Entry> removed; // ends without the lock
    std::lock_guard lock(mutex);
    auto found = std::ranges::find_if(entries, [&](const auto &entry) {
      return entry->key == key && !entry->isRemoved;
    });
    if (found == entries.end())
      return false;
    (*found)->isRemoved = true;
    if (running > 0) { // it is erased when nobody goes through the list
      hasRemoved = true;
      return true;
    }
    removed = std::move(*found);
    entries.erase(found);
    return true;
  }

  size_t size() const {
    std::lock_guard lock(mutex);
    return static_cast<size_t>(std::ranges::count_if(
        entries, [](const auto &entry) { return !entry->isRemoved; }));
  }
  bool empty() const { return size() == 0; }

  /// Calls `call(hook, input)` for each, until one fails.
  template <typename Call> Status forEach(Call call) {
    Running scope(*this);
    for (size_t i = 0;; ++i) {
      std::shared_ptr<Entry> entry; // kept: the hook may remove itself
      {
        std::lock_guard lock(mutex);
        if (i >= entries.size())
          return Status::success();
        if (entries[i]->isRemoved)
          continue;
        entry = entries[i];
      }
      if (Status status = call(entry->fn, entry->input); !status)
        return status;
    }
  }

private:
  struct Entry {
    uint64_t key;
    int input;
    Fn fn;
    bool isRemoved = false;
    Entry(uint64_t key, int input, Fn fn)
        : key(key), input(input), fn(std::move(fn)) {}
  };
  struct Running {
    explicit Running(HookList &list) : list(list) {
      std::lock_guard lock(list.mutex);
      ++list.running;
    }
    ~Running() {
      std::vector<std::shared_ptr<Entry>> removed; // end without the lock
      std::lock_guard lock(list.mutex);
      if (--list.running > 0 || !std::exchange(list.hasRemoved, false))
        return;
      auto isRemoved = [](const auto &entry) { return entry->isRemoved; };
      std::ranges::copy_if(list.entries, std::back_inserter(removed),
                           isRemoved);
      std::erase_if(list.entries, isRemoved);
    }
    HookList &list;
  };

  mutable std::mutex mutex; ///< guards the members below
  std::vector<std::shared_ptr<Entry>> entries;
  int running = 0; ///< those that go through the list
  bool hasRemoved = false;
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

/// The places where gradients of a node's inputs are kept; threads may use it
/// at the same time.
class Places {
public:
  /// Returns the number of inputs that may have a place.
  size_t size() const;
  /// Returns the place of an input, or null.
  std::shared_ptr<Retained> at(size_t input) const;
  /// Returns the place of an input, a new one perhaps.
  std::shared_ptr<Retained> make(size_t input);
  /// Gives the place of an input another place, or none, and returns the old.
  std::shared_ptr<Retained> exchange(size_t input,
                                     std::shared_ptr<Retained> place);

private:
  mutable std::mutex mutex; ///< guards the vector
  std::vector<std::shared_ptr<Retained>> places;
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

  HookList<TensorHook> tensor; ///< each of one input
  Places retained;
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
