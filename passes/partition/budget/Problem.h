//===- Problem.h - what to keep and what to make again, as numbers --------===//
//
// A training step as an abstract graph, without MLIR: ops of the forward in
// order, ops of the backward in order, values with bytes. The question is which
// values of the forward are saved. What is needed in the backward and not saved
// is made again there, once, just before its first use.
//
// Peaks are in bytes, times in seconds. Everything is deterministic.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_PARTITION_BUDGET_PROBLEM_H
#define TANDEM_PASSES_PARTITION_BUDGET_PROBLEM_H

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <vector>

namespace tandem::budget {

/// The values that are saved, by number.
using Set = llvm::BitVector;

inline constexpr unsigned kNone = ~0u;

struct Value {
  /// What it takes where it is saved; 0 if it lies in an output's storage.
  int64_t bytes = 0;
  /// What it takes from the op that makes it to the last that reads it where it
  /// is not saved: 0 if it would live in a kernel alone.
  int64_t ownBytes = 0;
  /// The same of a value of the forward that is made again in the backward.
  int64_t againBytes = 0;
  /// What it takes to write and to read it for the backward's sake.
  double saveSeconds = 0;
  /// Both programs have it without anybody saving it.
  bool isFree = false;
  bool mustSave = false;      ///< saved wherever the backward needs it
  bool mustRecompute = false; ///< never saved
  /// It lives until the end: a gradient that is returned.
  bool isKept = false;
  /// Values of one kind are the same value of blocks that repeat.
  uint64_t kind = 0;
  /// The op that makes it; kNone for an argument.
  unsigned producer = kNone;
};

struct Op {
  llvm::SmallVector<unsigned, 4> operands;
  llvm::SmallVector<unsigned, 2> results;
  double seconds = 0;
  /// What it takes to run it (again) within the backward.
  double againSeconds = 0;
  double flops = 0;
  bool mayNotRepeat = false;
  /// An op of the forward's values that the backward alone needs: it runs in
  /// the forward only for what is saved.
  bool isLazy = false;
  /// Its result can take the place of an operand of its size that dies here.
  bool overwrites = false;
};

struct Problem {
  std::vector<Value> values;
  /// First those of the forward, then those of the backward, each in order of
  /// execution. An op follows those that make its operands.
  std::vector<Op> ops;
  unsigned forwardOps = 0;
  /// What is there all the time: parameters, states, inputs, outputs.
  int64_t residentBytes = 0;

  /// Adds a value or an op and returns its number. Ops of the forward are added
  /// before those of the backward.
  unsigned addValue(const Value &value);
  unsigned addOp(const Op &op, bool isForward);
  bool isForward(unsigned op) const { return op < forwardOps; }
};

/// What follows from saving a set.
struct Evaluation {
  double seconds = 0; ///< of the whole step
  int64_t peak = 0;
  double recomputedFlops = 0;
  int64_t savedBytes = 0;
};

/// Runs a problem's step in thought: forward with frees, then the backward with
/// what is made again. Takes time linear in the problem. The problem must
/// outlive it.
class Simulator {
public:
  explicit Simulator(const Problem &problem);

  /// Values of `wanted` that the backward does not come to need are not saved;
  /// those that must be saved, or cannot be made again, are in any case.
  Evaluation run(const Set &wanted);
  /// After run(): what was saved.
  const Set &saved() const { return isSaved; }
  /// After run(): true if the op of the forward runs in the backward.
  bool runsAgain(unsigned op) const { return again[op]; }

  /// After run(): the op of the backward at which, or for which, the most bytes
  /// are live; kNone if that is in the forward.
  unsigned peakAt() const { return peakOp; }

  /// Which values can be saved or not: neither free nor settled by what they
  /// are, made by an op that may run again, and of use to the backward.
  const llvm::SmallVector<unsigned> &choices() const { return choosable; }
  /// The first and the last op of the backward that read the value; kNone.
  unsigned firstUse(unsigned value) const { return firstDirect[value]; }
  unsigned lastUse(unsigned value) const { return lastDirect[value]; }

private:
  void settle(const Set &wanted);
  void schedule();
  void sweep();

  const Problem &problem;
  std::vector<unsigned> firstDirect, lastDirect;
  llvm::SmallVector<unsigned> choosable;
  // Of the last run.
  Evaluation now;
  Set isSaved, needed, inForward, again;
  std::vector<unsigned> when; ///< before which op of the backward it runs again
  std::vector<unsigned> sequence, bucket, start;
  size_t forwardLength = 0;
  unsigned peakOp = kNone;
  std::vector<int64_t> lastForward, lastBackward, place;
};

} // namespace tandem::budget

#endif
