//===- CallFrame.h - the tables of one call -------------------------------===//
//
// Internal to the runtime. What the steps of a call (Steps.h) find out and hand
// on. Each table is written by one step and read by later ones, which get it as
// an argument. A program keeps its frame between calls, so that tables have
// their sizes and a call allocates nothing; nothing else of a call is kept.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_CALL_CALLFRAME_H
#define TANDEM_RUNTIME_CALL_CALLFRAME_H

#include "runtime/call/Program.h"
#include "runtime/tensor/Overlap.h"
#include "runtime/tensor/Tensor.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tandem::runtime {

struct KeptValue;

/// What is wrong with a call: all of it, for one message.
class Problems {
public:
  void clear() { all.clear(); }
  bool empty() const { return all.empty(); }
  void add(const std::string &problem) {
    all += (all.empty() ? "" : "; ") + problem;
  }
  const std::string &text() const { return all; }

private:
  std::string all;
};

/// By `match`: who gave what, and who wants what. The places that can meet are
/// called entries: first all arguments, then all results, then all aliases.
struct MatchedCall {
  std::vector<const Tensor *> given; ///< for each argument, or null
  std::vector<Tensor *> handles;     ///< the same, if it may be changed
  /// For each argument: the caller's, the store's or the forward's tensor, or
  /// null if there is none: undefined, or a saved value.
  std::vector<const Tensor *> tensors;
  std::vector<char> isDefined;   ///< for each argument
  std::vector<char> isZeros;     ///< defined, but by other ranks alone
  std::vector<Tensor *> wanted;  ///< for each result, or null
  std::vector<Tensor *> aliases; ///< for each alias, or null
  /// Gradients that the program never gives.
  std::vector<std::pair<Tensor *, std::string_view>> absent;
  bool allDefined = true; ///< every cotangent (gradient, for an update)
  bool isIdle = false;    ///< none of them: nothing runs

  void resize(const artifact::Program &plan);
  void clear();

  /// Returns the tensor of an entry, or null.
  Tensor *entry(int entry) const {
    auto index = static_cast<size_t>(entry);
    if (index < tensors.size())
      return const_cast<Tensor *>(tensors[index]);
    index -= tensors.size();
    return index < wanted.size() ? wanted[index]
                                 : aliases[index - wanted.size()];
  }
  bool holds(const BoundCondition &condition) const;
  /// True if a result has a value in this call.
  bool has(const BoundResult &result) const {
    return allDefined || holds(result.needs);
  }
};

/// By `checkSharing`: what the call shows, and where what is written lies.
struct SharedViews {
  std::vector<Tensor> views;      ///< for each alias, what it shows
  std::vector<char> isShown;      ///< its destination shows just that already
  std::vector<Tensor> newHandles; ///< for each argument, if it changes
  /// What is written and has addresses: where, and its entry; sorted.
  std::vector<std::pair<AddressRange, int>> ranges;

  void resize(const artifact::Program &plan);
};

/// An argument that the program sees a copy of.
struct ArgumentCopy {
  size_t argument;
  Tensor *to;
  const Tensor *from;         ///< null: zeros
  KeptValue *stamp = nullptr; ///< gets the version of the copy
};

/// By `place`: where each argument and result is computed.
struct PlacedCall {
  std::vector<void *> argumentData, resultData;
  std::vector<Tensor *> homes;      ///< of each result
  std::vector<Tensor> fresh;        ///< new tensors for undefined destinations
  std::vector<Tensor> unpacked;     ///< for each argument that hooks packed
  std::vector<ArgumentCopy> copies; ///< made before the first launch

  void resize(const artifact::Program &plan);
};

/// By `launch`: what a device's code is told.
struct LaunchTables {
  std::vector<void *> buffers;
  std::vector<Action> actions; ///< where not all launches run

  void resize(const artifact::Program &plan);
};

struct CallFrame {
  explicit CallFrame(const Program &program);

  Problems problems;
  MatchedCall matched;
  SharedViews shared;
  PlacedCall placed;
  LaunchTables launched;
};

} // namespace tandem::runtime

#endif
