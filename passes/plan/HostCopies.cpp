//===- HostCopies.cpp - when values leave for the host and come back ------===//
//
// Slot s of the order is in front of the kernel s that is no copy. A copy to
// the host has slots from behind the kernel that makes the value; until the
// last other kernel that reads it, they cost nothing. A copy back has slots up
// to the first kernel that reads it. Both are walked in time, one way for each
// kind, with the clock of the kernels and that of the copies of this kind, of
// which the device runs one at a time: a copy keeps its bytes on the device
// while it has not ended and they fit; else the kernels wait for it. A value
// that has not ended to leave when it has to come back does not leave.
//
//===----------------------------------------------------------------------===//
#include "passes/plan/HostCopies.h"
#include "passes/Passes.h"

#include "passes/plan/FormKernels.h"
#include "passes/plan/PlanMemory.h"
#include "passes/target/Rates.h"

#include "ir/Signature.h"

#include "llvm/Support/MathExtras.h"

#include <numeric>

namespace tandem {
#define GEN_PASS_DEF_PLACEHOSTCOPIES
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

Operation *tandem::hostCopyOf(KernelOp kernel) {
  Operation *first = &kernel.getBody().front().front();
  return isHostCopy(first) ? first : nullptr;
}

bool tandem::isOnHost(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto func = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
    RoleAttr role =
        func ? roleOfArgument(func, argument.getArgNumber()) : RoleAttr();
    return role && role.has(RoleAttr::kHost);
  }
  auto kernel = value.getDefiningOp<KernelOp>();
  return kernel && isa_and_nonnull<ToHostOp>(hostCopyOf(kernel));
}

/// A part of a copy's bytes that is never worth waiting for.
static constexpr int64_t kLittle = 16;

namespace {

struct HostCopy {
  KernelOp kernel;
  int64_t bytes;
  double seconds;
  size_t number; ///< among all copies
  /// The slots that it may have; and of these the one in which the device has
  /// the bytes the shortest.
  size_t first, last, cheapest;
  size_t slot;
  /// To the host: the kernel behind `cheapest` reads the value, and does not
  /// overwrite it.
  bool isRead = false;
  double end = 0; ///< of the walk
};

class Placer {
public:
  Placer(func::FuncOp func, InPlacePairs &pairs)
      : func(func), pairs(pairs), rates(Rates::of(func)) {}
  /// Finds a slot for each copy; false if there are none.
  bool place();
  /// Takes out the copies of values that would come back where they left;
  /// returns whether there were any.
  bool dropIdle();
  /// Puts the copies in their slots, or in the cheapest ones.
  void move();

private:
  void collect();
  void addToHost(KernelOp copy);
  void addFromHost(KernelOp copy);
  std::vector<KernelOp> order() const;
  int64_t saving(int64_t least) const;
  void measure();
  void walkToHost();
  void walkFromHost();
  void allowFromHost();

  func::FuncOp func;
  InPlacePairs &pairs;
  const Rates rates;
  std::vector<KernelOp> kernels; ///< but for copies
  std::vector<double> seconds;   ///< of each
  DenseMap<Operation *, size_t> numbers;
  /// Of sources: the kernels that read them, rising.
  DenseMap<Value, SmallVector<size_t, 4>> readers;
  std::vector<HostCopy> out, back; ///< as the values are made; as they are read
  /// Copies to the host of what another copy brings: right behind that.
  std::vector<KernelOp> again;
  std::vector<int64_t> inUse;     ///< bytes of the arena, by kernel
  std::vector<KernelOp> cheapest; ///< all, each copy in its cheapest slot
  int64_t limit = 0, largest = 0, slack = 0;
};

} // namespace

static HostCopy copyOf(KernelOp kernel, const Rates &rates, size_t number) {
  int64_t bytes = llvm::alignTo(
      byteSize(cast<RankedTensorType>(kernel.getResult(0).getType())),
      kBufferAlignment);
  double seconds = rates.seconds(static_cast<double>(bytes) / rates.host, 0);
  return {kernel, bytes, seconds, number, 0, 0, 0, 0};
}

void Placer::addToHost(KernelOp kernel) {
  HostCopy copy = copyOf(kernel, rates, out.size() + back.size());
  Value source = throughFreeViews(kernel.getInputs()[0]);
  if (auto other = source.getDefiningOp<KernelOp>();
      other && hostCopyOf(other)) {
    again.push_back(kernel);
    return;
  }
  auto maker = numbers.find(source.getDefiningOp());
  copy.first = copy.cheapest = maker == numbers.end() ? 0 : maker->second + 1;
  copy.last = kernels.size();
  // In front of those that copy it back, and so of who reads what they bring.
  for (Operation *user : kernel.getResult(0).getUsers())
    if (auto fetch = dyn_cast<KernelOp>(user))
      if (const auto &list = readers[fetch.getResult(0)]; !list.empty())
        copy.last = std::min(copy.last, list.front());
  if (const auto &list = readers[source];
      !list.empty() && list.back() >= copy.first) {
    copy.cheapest = std::min(list.back(), copy.last);
    if (copy.cheapest == list.back()) {
      KernelOp reader = kernels[list.back()];
      copy.isRead = llvm::none_of(pairs.of(reader), [&](InPlacePair pair) {
        return throughFreeViews(reader.getInputs()[pair.second]) == source;
      });
    }
  }
  out.push_back(copy);
}

void Placer::addFromHost(KernelOp kernel) {
  HostCopy copy = copyOf(kernel, rates, out.size() + back.size());
  const auto &list = readers[kernel.getResult(0)];
  copy.first = 0;
  copy.last = copy.cheapest = list.empty() ? kernels.size() : list.front();
  back.push_back(copy);
}

void Placer::collect() {
  SmallVector<KernelOp> copies;
  for (auto kernel : func.getOps<KernelOp>()) {
    if (hostCopyOf(kernel)) {
      copies.push_back(kernel);
      continue;
    }
    numbers[kernel] = kernels.size();
    for (Value input : kernel.getInputs()) {
      auto &list = readers[throughFreeViews(input)];
      if (list.empty() || list.back() != kernels.size())
        list.push_back(kernels.size());
    }
    kernels.push_back(kernel);
    seconds.push_back(rates.seconds(kernel));
  }
  for (KernelOp copy : copies)
    isa<ToHostOp>(hostCopyOf(copy)) ? addToHost(copy) : addFromHost(copy);
  llvm::sort(out, [](const HostCopy &x, const HostCopy &y) {
    return std::pair(x.first, x.number) < std::pair(y.first, y.number);
  });
  llvm::sort(back, [](const HostCopy &x, const HostCopy &y) {
    return std::pair(x.last, x.number) < std::pair(y.last, y.number);
  });
  for (auto *copies : {&out, &back})
    for (HostCopy &copy : *copies) {
      copy.slot = copy.cheapest;
      largest = std::max(largest, copy.bytes);
    }
}

/// The kernels with the copies in their slots: those to the host first, which
/// others may bring back at once.
std::vector<KernelOp> Placer::order() const {
  std::vector<std::vector<KernelOp>> slots(kernels.size() + 1);
  for (const auto *copies : {&out, &back})
    for (const HostCopy &copy : *copies)
      slots[copy.slot].push_back(copy.kernel);
  for (KernelOp kernel : again) {
    Value source = throughFreeViews(kernel.getInputs()[0]);
    for (const HostCopy &copy : back)
      if (copy.kernel == source.getDefiningOp())
        slots[copy.slot].push_back(kernel);
  }
  std::vector<KernelOp> all;
  for (size_t s = 0; s <= kernels.size(); ++s) {
    llvm::append_range(all, slots[s]);
    if (s < kernels.size())
      all.push_back(kernels[s]);
  }
  return all;
}

/// What the program would need more at its peak if no value left: bytes of
/// saved values of their own, and of the arena.
int64_t Placer::saving(int64_t least) const {
  DenseMap<Value, size_t> backAt;
  int64_t bytes = 0;
  for (const HostCopy &copy : back) {
    KernelOp kernel = copy.kernel;
    Value there = kernel.getInputs()[0];
    if (isa<BlockArgument>(there))
      bytes += copy.bytes;
    else
      backAt[there] = copy.slot;
  }
  std::vector<int64_t> stayed(kernels.size() + 1, 0);
  for (const HostCopy &copy : out) {
    KernelOp kernel = copy.kernel;
    auto end = backAt.find(kernel.getResult(0));
    if (end == backAt.end()) {
      bytes += copy.bytes;
      continue;
    }
    // The last reader, which the slot may be in front of, has the value.
    if (copy.slot + copy.isRead >= end->second)
      continue;
    stayed[copy.slot + copy.isRead] += copy.bytes;
    stayed[end->second] -= copy.bytes;
  }
  int64_t most = least, now = 0;
  for (size_t k = 0; k < kernels.size(); ++k) {
    now += stayed[k];
    most = std::max(most, inUse[k] + now);
  }
  return bytes + most - least;
}

/// What the kernels need with each copy where the device has the bytes the
/// shortest, and what they may need.
void Placer::measure() {
  std::vector<KernelOp> all = order();
  std::vector<int64_t> bytes = plannedBytesInUse(func, all, pairs);
  inUse.resize(kernels.size());
  for (auto [i, kernel] : llvm::enumerate(all)) {
    limit = std::max(limit, bytes[i]);
    if (auto number = numbers.find(kernel); number != numbers.end())
      inUse[number->second] = bytes[i];
  }
  slack = std::min(largest, std::max(saving(limit) / 2, largest / kLittle));
  limit += slack;
}

/// Forwards in time: a copy begins when its value is made and those before it
/// have ended.
void Placer::walkToHost() {
  SmallVector<HostCopy *> pending; // begun, and in the order of that
  double now = 0, free = 0;
  size_t next = 0;
  for (size_t k = 0; k <= kernels.size(); ++k) {
    for (; next < out.size() && out[next].first == k; ++next) {
      out[next].end = free = std::max(now, free) + out[next].seconds;
      pending.push_back(&out[next]);
    }
    auto costAt = [&](const HostCopy &copy) {
      bool isThere = k < copy.cheapest || (k == copy.cheapest && copy.isRead);
      return isThere ? int64_t(0) : copy.bytes;
    };
    int64_t held = 0;
    for (HostCopy *copy : pending)
      held += costAt(*copy);
    llvm::erase_if(pending, [&](HostCopy *copy) {
      if (k < copy->cheapest)
        return false;
      bool fits = k < kernels.size() && inUse[k] + held <= limit;
      if (copy->end > now && fits && k < copy->last)
        return false;
      held -= costAt(*copy);
      copy->slot = k;
      now = std::max(now, copy->end);
      return true;
    });
    if (k == kernels.size())
      break;
    inUse[k] += held;
    now += seconds[k];
  }
}

/// Brings back no sooner than it is there.
void Placer::allowFromHost() {
  DenseMap<Value, size_t> there;
  for (HostCopy &copy : out)
    there[copy.kernel.getResult(0)] = copy.slot;
  for (HostCopy &copy : back)
    copy.first = there.lookup(copy.kernel.getInputs()[0]);
}

/// Backwards in time: a copy has to have ended when it is read, and when the
/// one behind it begins.
void Placer::walkFromHost() {
  SmallVector<HostCopy *> pending;
  double now = 0, free = 0;
  size_t next = back.size();
  for (size_t s = kernels.size() + 1; s-- > 0;) {
    for (; next > 0 && back[next - 1].last == s; --next) {
      HostCopy &copy = back[next - 1];
      copy.end = free = std::max(now, free) + copy.seconds;
      pending.push_back(&copy);
    }
    // Held while the kernel in front of the slot runs.
    int64_t held = 0;
    for (HostCopy *copy : pending)
      held += copy->bytes;
    llvm::erase_if(pending, [&](HostCopy *copy) {
      bool fits = s > 0 && inUse[s - 1] + held <= limit;
      if (copy->end > now && fits && s > copy->first)
        return false;
      held -= copy->bytes;
      copy->slot = s;
      now = std::max(now, copy->end);
      return true;
    });
    if (s == 0)
      break;
    inUse[s - 1] += held;
    now += seconds[s - 1];
  }
}

bool Placer::place() {
  collect();
  if (out.empty() && back.empty())
    return false;
  cheapest = order();
  measure();
  walkToHost();
  allowFromHost();
  walkFromHost();
  return true;
}

bool Placer::dropIdle() {
  DenseMap<Operation *, size_t> slots;
  for (const HostCopy &copy : back)
    slots[copy.kernel] = copy.slot;
  bool any = false;
  for (const HostCopy &copy : out) {
    KernelOp leaving = copy.kernel;
    Value source = leaving.getInputs()[0], there = leaving.getResult(0);
    // An argument may be overwritten meanwhile.
    if (isa<BlockArgument>(throughFreeViews(source)) ||
        !llvm::all_of(there.getUsers(), [&](Operation *user) {
          auto found = slots.find(user);
          return found != slots.end() && found->second == copy.slot;
        }))
      continue;
    for (Operation *coming : llvm::make_early_inc_range(there.getUsers())) {
      pairs.forget(cast<KernelOp>(coming));
      coming->getResult(0).replaceAllUsesWith(source);
      coming->erase();
    }
    pairs.forget(leaving);
    leaving.erase();
    any = true;
  }
  return any;
}

void Placer::move() {
  std::vector<KernelOp> timely = order();
  // What overwrites what, and what fits where, is only estimated so far.
  bool fits = plannedBytes(func, timely, pairs) <=
              plannedBytes(func, cheapest, pairs) + slack;
  moveKernels(func, fits ? timely : cheapest);
}

static void placeHostCopies(func::FuncOp func, InPlacePairs &pairs) {
  while (true) {
    Placer placer(func, pairs);
    if (!placer.place())
      return;
    if (!placer.dropIdle())
      return placer.move();
  }
}

namespace {
struct PlaceHostCopies : tandem::impl::PlaceHostCopiesBase<PlaceHostCopies> {
  void runOnOperation() final {
    placeHostCopies(getOperation(), getAnalysis<InPlacePairs>());
    markAnalysesPreserved<InPlacePairs>();
  }
};
} // namespace
