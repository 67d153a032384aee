//===- OverlapCollectives.cpp - computing while ranks communicate ---------===//
//
// The runtime runs a collective beside the launches that follow, until one
// needs what it writes (runtime/device/CollectiveThread.h). So all that a plan
// says of this is the order of kernels. A step is played through with the
// target's rates: kernels one after the other, collectives one after the other
// beside them. Whoever would wait for a collective lets those go first that can
// run now, as far as memory allows.
//
// Ranks on processors communicate in turn with computing, unless a processor is
// left free for it. In each exchange they wait for the slowest of them, and no
// rate says how long. So small sums wait there until they fill a bucket.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/plan/Collectives.h"
#include "passes/plan/FormKernels.h"
#include "passes/plan/KernelGraph.h"
#include "passes/plan/PlanMemory.h"
#include "passes/target/Rates.h"
#include "passes/target/Target.h"
#include "runtime/artifact/Buckets.h"

#include <numeric>

namespace tandem {
#define GEN_PASS_DEF_OVERLAPCOLLECTIVES
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

namespace {

/// What is known of a kernel, or of the collective that stands in its place.
struct Step {
  Operation *collective = nullptr; ///< that communicates
  double seconds = 0;              ///< of computing, or of communicating
  int64_t resultBytes = 0;
  unsigned firstReader = 0; ///< of a collective; the end if there is none
  SmallVector<unsigned, 2> waitsFor; ///< collectives whose results it reads
};

class Player {
public:
  Player(func::FuncOp func, InPlacePairs &pairs, int64_t window);
  /// Returns whether kernels moved.
  bool play();

private:
  void describe();
  double secondsOf(ArrayRef<unsigned> order, unsigned &exchanges) const;
  bool isBetter(ArrayRef<unsigned> order, ArrayRef<unsigned> than) const;
  std::vector<unsigned> chooseOrder();
  bool isFree(unsigned step) const;
  bool shouldWaitForNext(unsigned collective, unsigned front) const;
  bool shouldFill(unsigned collective, unsigned front) const;
  bool waits(unsigned step) const;
  bool shouldStart(unsigned collective, unsigned front) const;
  bool canJoin(unsigned first, unsigned next, int64_t bytes) const;
  unsigned chooseNext(unsigned front) const;
  void put(unsigned step, bool isJoined = false);
  void startFrom(unsigned first);

  func::FuncOp func;
  InPlacePairs &pairs;
  int64_t window;
  KernelGraph graph;
  SmallVector<Step> steps;
  SmallVector<unsigned> collectives; ///< in their order
  SmallVector<double> before; ///< seconds of the kernels in front of each step
  double message = 0;         ///< seconds of a collective without bytes
  int64_t bucket = 0;         ///< bytes that small sums wait for
  bool inTurn = false;        ///< ranks communicate or compute, as a rule

  // While an order is chosen.
  std::vector<unsigned> order;
  std::vector<bool> isPut;
  std::vector<double> ends; ///< of collectives that have started
  double now = 0, linkIsFree = 0;
  size_t started = 0; ///< of `collectives`
  int64_t ahead = 0;  ///< bytes of what was put before its place
};

} // namespace

Player::Player(func::FuncOp func, InPlacePairs &pairs, int64_t window)
    : func(func), pairs(pairs), window(window), graph(func, pairs) {
  describe();
}

void Player::describe() {
  Rates rates = Rates::of(func);
  message = 1 / rates.messages;
  inTurn = !isForCuda(func);
  bucket = bucketBytes(func);
  DenseMap<Operation *, unsigned> numbers;
  double all = 0;
  for (auto [k, kernel] : llvm::enumerate(graph.kernels)) {
    numbers[kernel] = k;
    Step step;
    step.firstReader = graph.kernels.size();
    for (Value result : kernel.getResults())
      step.resultBytes += byteSize(cast<RankedTensorType>(result.getType()));
    CollectiveOpInterface op = collectiveOf(kernel);
    if (op && op.communicates()) {
      step.collective = op;
      step.seconds =
          message + static_cast<double>(op.getLinkBytes()) / rates.links;
      collectives.push_back(k);
    } else {
      step.seconds = rates.seconds(kernel);
    }
    for (Value input : kernel.getInputs())
      if (auto maker = throughFreeViews(input).getDefiningOp<KernelOp>()) {
        unsigned m = numbers.lookup(maker);
        if (!steps[m].collective)
          continue;
        step.waitsFor.push_back(m);
        steps[m].firstReader = std::min<unsigned>(steps[m].firstReader, k);
      }
    before.push_back(all);
    if (!step.collective)
      all += step.seconds;
    steps.push_back(std::move(step));
  }
  before.push_back(all);
}

/// The time of a step in this order, and how often ranks meet in it.
double Player::secondsOf(ArrayRef<unsigned> order, unsigned &exchanges) const {
  double now = 0, link = 0;
  exchanges = 0;
  SmallVector<double> ends(steps.size(), 0);
  int64_t bytes = 0;
  unsigned first = steps.size(); // of the exchange that may go on
  for (unsigned k : order) {
    for (unsigned collective : steps[k].waitsFor)
      if (!steps[k].collective)
        now = std::max(now, ends[collective]);
    if (!steps[k].collective) {
      now += steps[k].seconds;
      first = steps.size();
      continue;
    }
    bool joins = first < steps.size() && canJoin(first, k, bytes);
    if (!joins)
      first = k, bytes = 0, ++exchanges;
    bytes += steps[k].resultBytes;
    link = ends[k] =
        std::max(now, link) + steps[k].seconds - (joins ? message : 0);
  }
  return std::max(now, link);
}

bool Player::isBetter(ArrayRef<unsigned> order, ArrayRef<unsigned> than) const {
  unsigned exchanges, exchangesThen;
  double seconds = secondsOf(order, exchanges),
         secondsThen = secondsOf(than, exchangesThen);
  if (inTurn && exchanges != exchangesThen)
    return exchanges < exchangesThen;
  return seconds < secondsThen;
}

/// True if all that must run before it has been put.
bool Player::isFree(unsigned step) const {
  return llvm::all_of(graph.steps.steps[step].before,
                      [&](unsigned other) { return isPut[other]; });
}

bool Player::canJoin(unsigned first, unsigned next, int64_t bytes) const {
  auto one = dyn_cast<AllReduceOp>(steps[first].collective),
       other = dyn_cast<AllReduceOp>(steps[next].collective);
  return one && other && one.getAxes() == other.getAxes() &&
         one.getReduce() == other.getReduce() &&
         getElementTypeOrSelf(one.getX()) ==
             getElementTypeOrSelf(other.getX()) &&
         steps[first].resultBytes <= artifact::smallSumBytes(bucket) &&
         steps[next].resultBytes <= artifact::smallSumBytes(bucket) &&
         llvm::none_of(steps[next].waitsFor,
                       [&](unsigned other) { return other >= first; }) &&
         bytes + steps[next].resultBytes <= artifact::joinedSumBytes(bucket);
}

/// True if the next collective can go with this one, and cannot start yet, but
/// sooner than one more exchange would take.
bool Player::shouldWaitForNext(unsigned collective, unsigned front) const {
  if (started + 1 == collectives.size())
    return false;
  unsigned next = collectives[started + 1];
  return canJoin(collective, next, steps[collective].resultBytes) &&
         steps[collective].firstReader > next &&
         before[next] - before[front] < message &&
         llvm::any_of(graph.steps.steps[next].before, [&](unsigned other) {
           return !isPut[other] && other != collective;
         });
}

/// True of small sums that are not many yet, while there is something else to
/// compute.
bool Player::shouldFill(unsigned collective, unsigned front) const {
  if (!inTurn)
    return false;
  int64_t bytes = steps[collective].resultBytes;
  size_t next = started + 1;
  auto isThere = [&](unsigned other) {
    return isPut[other] || steps[other].collective;
  };
  for (; next < collectives.size(); ++next) {
    if (!llvm::all_of(graph.steps.steps[collectives[next]].before, isThere))
      break;
    if (!canJoin(collective, collectives[next], bytes))
      return false;
    bytes += steps[collectives[next]].resultBytes;
  }
  if (next == collectives.size() || bytes >= bucket ||
      !canJoin(collective, collectives[next], bytes))
    return false;
  unsigned kernel = chooseNext(front);
  return !steps[kernel].collective && isFree(kernel) && !waits(kernel);
}

/// One whose operand the program makes starts as soon as it is there, unless it
/// goes with the next one. One of arguments starts in time for its first
/// reader, with as much time again to spare.
bool Player::shouldStart(unsigned collective, unsigned front) const {
  const Step &step = steps[collective];
  if (shouldFill(collective, front))
    return false;
  if (front >= step.firstReader)
    return true;
  if (front != collective && ahead + step.resultBytes > window)
    return false;
  if (shouldWaitForNext(collective, front))
    return false;
  if (before[step.firstReader] - before[front] < 2 * step.seconds)
    return true;
  return front == collective ||
         llvm::any_of(graph.steps.steps[collective].before,
                      [&](unsigned other) { return !steps[other].collective; });
}

void Player::put(unsigned step, bool isJoined) {
  order.push_back(step);
  isPut[step] = true;
  const Step &what = steps[step];
  for (unsigned collective : what.waitsFor)
    if (!what.collective)
      now = std::max(now, ends[collective]);
  if (what.collective) {
    linkIsFree = ends[step] =
        std::max(now, linkIsFree) + what.seconds - (isJoined ? message : 0);
    ++started;
  } else {
    now += what.seconds;
  }
}

/// Starts a collective, and those behind it that can go with it.
void Player::startFrom(unsigned first) {
  int64_t bytes = steps[first].resultBytes;
  put(first);
  while (started < collectives.size()) {
    unsigned next = collectives[started];
    if (!canJoin(first, next, bytes) || !isFree(next))
      return;
    bytes += steps[next].resultBytes;
    put(next, /*isJoined=*/true);
  }
}

/// True if it reads what is not there yet.
bool Player::waits(unsigned step) const {
  return llvm::any_of(steps[step].waitsFor, [&](unsigned collective) {
    return !isPut[collective] || ends[collective] > now;
  });
}

/// The first of the kernels from `front` on that can run without a wait, or
/// `front`, for which nothing is left to do but to wait.
unsigned Player::chooseNext(unsigned front) const {
  constexpr unsigned farthest = 512; // that is looked at
  unsigned end = std::min<unsigned>(steps.size(), front + farthest);
  int64_t bytes = ahead;
  for (unsigned k = front; k < end; ++k) {
    if (isPut[k] || steps[k].collective)
      continue;
    if (waits(k) || !isFree(k))
      continue;
    if (k == front || bytes + steps[k].resultBytes <= window)
      return k;
  }
  return front;
}

std::vector<unsigned> Player::chooseOrder() {
  isPut.assign(steps.size(), false);
  ends.assign(steps.size(), 0);
  std::vector<int64_t> early(steps.size(), 0);
  for (unsigned front = 0; front < steps.size();) {
    if (isPut[front]) {
      ahead -= early[front++];
      continue;
    }
    auto note = [&](size_t since) {
      for (size_t i = since; i < order.size(); ++i)
        if (order[i] != front)
          ahead += early[order[i]] = steps[order[i]].resultBytes;
    };
    size_t since = order.size();
    if (started < collectives.size() && isFree(collectives[started]) &&
        shouldStart(collectives[started], front)) {
      startFrom(collectives[started]);
    } else {
      unsigned next = chooseNext(front);
      if (steps[next].collective)
        startFrom(next);
      else
        put(next);
    }
    note(since);
  }
  return order;
}

bool Player::play() {
  if (collectives.empty() || window == 0)
    return false;
  std::vector<unsigned> old(steps.size());
  std::iota(old.begin(), old.end(), 0);
  std::vector<unsigned> chosen = chooseOrder();
  if (chosen == old || !isBetter(chosen, old))
    return false;
  SmallVector<KernelOp> ordered;
  for (unsigned k : chosen)
    ordered.push_back(graph.kernels[k]);
  if (plannedBytes(func, ordered, pairs) >
      plannedBytes(func, graph.kernels, pairs) + window)
    return false;
  moveKernels(func, ordered);
  return true;
}

namespace {
struct OverlapCollectives
    : tandem::impl::OverlapCollectivesBase<OverlapCollectives> {
  using OverlapCollectivesBase::OverlapCollectivesBase;
  void runOnOperation() final {
    moved += Player(getOperation(), getAnalysis<InPlacePairs>(), window).play();
    markAnalysesPreserved<InPlacePairs>();
  }
};
} // namespace
