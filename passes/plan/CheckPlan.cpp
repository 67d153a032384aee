//===- CheckPlan.cpp - whether what lives at once lies apart --------------===//
//
// Derives anew from the IR who reads what last, and compares: with the places
// of results, with what overwrites what, with the sizes that the plan says. For
// a planned program and for a lowered one.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/plan/FormKernels.h"
#include "passes/plan/HostCopies.h"
#include "passes/plan/Pack.h"
#include "passes/plan/Parts.h"
#include "passes/plan/PlanMemory.h"
#include "passes/plan/PlannedSteps.h"
#include "passes/plan/Storage.h"

#include "ir/EmptyTensors.h"
#include "ir/Signature.h"

#include "llvm/Support/MathExtras.h"

#include <map>

namespace tandem {
#define GEN_PASS_DEF_CHECKPLAN
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

static int64_t bytesOf(Value value) {
  return byteSize(cast<RankedTensorType>(value.getType()));
}

static int64_t aligned(int64_t bytes) {
  return llvm::alignTo(bytes, kBufferAlignment);
}

namespace {

class PlanChecker {
public:
  PlanChecker(func::FuncOp func, const std::vector<PlannedStep> &steps,
              InPlacePairs *pairs)
      : func(func), steps(steps), pairs(pairs), storage(func) {}

  LogicalResult check();

private:
  /// A value in the arena, or in the host's memory.
  struct Living {
    int64_t end;
    Value value;
    unsigned block; ///< in `blocks`
  };
  using Space = std::map<int64_t, Living>; ///< by where it begins

  InFlightDiagnostic error(Operation *op) {
    failed = true;
    return op->emitOpError();
  }
  void findReaders();
  void findWritable();
  void free(Value value);
  void checkStep(size_t k);
  void checkWorkspace(size_t k);
  void checkParts(const PlannedStep &step);
  void checkHostCopy(const PlannedStep &step);
  void checkChoices(const PlannedStep &step);
  /// The value that result `r` of step `k` overwrites; null if there is none.
  Value overwritten(size_t k, unsigned r);
  void place(size_t k, unsigned r);
  void placeInArgument(size_t k, unsigned r, Value source);
  void placeInSpace(size_t k, unsigned r, Value source);
  void checkReturned();
  void checkSizes();
  BufferAttr placeOf(Value source) const;

  func::FuncOp func;
  const std::vector<PlannedStep> &steps;
  InPlacePairs *pairs; ///< null at lower, where the kernels are code
  ArgumentStorage storage;
  PlanAttr said; ///< what is checked
  bool failed = false;

  /// The step that reads a value last; a returned one lives to the end.
  DenseMap<Value, size_t> last;
  DenseMap<Value, BufferAttr> places;
  /// What is in each argument's storage, and which ones may be overwritten.
  SmallVector<Value> held;
  llvm::BitVector isUpdated, isDonated;
  /// Of the results that are updates in place: the arguments.
  DenseMap<Value, unsigned> newValues;
  Space spaces[2]; ///< the arena, the host's memory
  std::multimap<size_t, Value> dying;
  /// What was ever in the arena, for its peak.
  std::vector<PackedBlock> blocks;
  int64_t ends[2] = {0, 0};
};

} // namespace

void PlanChecker::findReaders() {
  for (auto [k, step] : llvm::enumerate(steps))
    for (Value input : step.op->getOperands())
      last[shownBy(input).source] = k;
  for (Value value : func.getBody().front().getTerminator()->getOperands())
    last[throughFreeViews(value)] = steps.size();
}

void PlanChecker::findWritable() {
  unsigned count = func.getNumArguments();
  held.assign(func.getArguments().begin(), func.getArguments().end());
  isUpdated.resize(count);
  isDonated.resize(count);
  Operation *terminator = func.getBody().front().getTerminator();
  for (unsigned i = 0, n = func.getNumResults(); i < n; ++i) {
    RoleAttr role = roleOfResult(func, i);
    if (!role || role.getKind() != RoleKind::Update ||
        !role.has(RoleAttr::kInPlace))
      continue;
    auto argument = storage.updatedArgument(role.getName());
    if (!argument || !storage.isOwn(*argument)) {
      error(func) << "expected '" << role.str()
                  << "' not to be in place: other arguments show the storage";
      continue;
    }
    isUpdated.set(*argument);
    newValues[throughFreeViews(terminator->getOperand(i))] = *argument;
  }
  for (unsigned i = 0; i < count; ++i)
    isDonated[i] = storage.isOwn(i) && storage.isDonated(i);
}

/// Where a value lies that is no view.
BufferAttr PlanChecker::placeOf(Value source) const {
  if (auto argument = dyn_cast<BlockArgument>(source))
    return BufferAttr::get(source.getContext(), BufferPlace::Argument,
                           argument.getArgNumber());
  return places.lookup(source);
}

void PlanChecker::free(Value value) {
  BufferAttr place = places.lookup(value);
  if (!place || place.getPlace() != BufferPlace::Arena)
    return;
  for (Space &space : spaces)
    if (auto found = space.find(place.getPosition());
        found != space.end() && found->second.value == value)
      space.erase(found);
}

//===----------------------------------------------------------------------===//
// A step
//===----------------------------------------------------------------------===//

void PlanChecker::checkWorkspace(size_t k) {
  const PlannedStep &step = steps[k];
  if (!step.workspaceBytes)
    return;
  int64_t begin = step.workspace, arena = said.getArenaBytes();
  if (begin < 0 || begin % kBufferAlignment || begin > arena ||
      step.workspaceBytes > arena - begin) {
    error(step.op) << "expected an aligned workspace within the arena";
    return;
  }
  int64_t end = begin + step.workspaceBytes;
  for (auto &[from, living] : spaces[0])
    if (begin < living.end && from < end)
      error(step.op) << "has its workspace where a value lives";
  for (auto [result, own] : llvm::zip_equal(step.op->getResults(), step.places))
    if (own.getPlace() == BufferPlace::Arena && own.getPosition() < end &&
        begin - own.getPosition() < bytesOf(result))
      error(step.op) << "has its workspace where its result is";
  auto number = static_cast<int64_t>(k);
  blocks.push_back({step.workspaceBytes, number, number});
  ends[0] = std::max(ends[0], begin + aligned(step.workspaceBytes));
}

/// Only values in the arena have parts with places.
void PlanChecker::checkParts(const PlannedStep &step) {
  for (Value input : step.op->getOperands()) {
    Shown shown = shownBy(input);
    BufferAttr place = placeOf(shown.source);
    if (shown.isPart && (!place || place.getPlace() != BufferPlace::Arena))
      error(step.op) << "expected to read parts of values in the arena alone, "
                        "but got a part of "
                     << shown.source.getType() << " outside of it";
  }
}

/// Only a copy leads to the host's memory, or away from it.
void PlanChecker::checkHostCopy(const PlannedStep &step) {
  for (Value input : step.op->getOperands()) {
    Value source = shownBy(input).source;
    bool isThere = isOnHost(source) || source.getDefiningOp<ToHostOp>();
    if (isThere == step.isToDevice)
      continue;
    error(step.op) << "expected a copy from the host's memory, and nothing "
                      "else, to read what is there";
    return;
  }
}

/// What may be copied instead has the size of its storage.
void PlanChecker::checkChoices(const PlannedStep &step) {
  if (!step.hasChoices)
    return;
  auto check = [&](Value value) {
    BufferAttr place = placeOf(shownBy(value).source);
    if (place && place.getPlace() == BufferPlace::Argument &&
        bytesOf(value) != bytesOf(func.getArgument(place.getPosition())))
      error(step.op) << "expected a value of the size of " << place
                     << ", since it may be copied whole, but got "
                     << value.getType();
  };
  llvm::for_each(step.op->getOperands(), check);
  llvm::for_each(step.op->getResults(), check);
}

Value PlanChecker::overwritten(size_t k, unsigned r) {
  const PlannedStep &step = steps[k];
  const auto *pair = llvm::find_if(
      step.inPlace, [&](InPlacePair one) { return one.first == r; });
  if (pair == step.inPlace.end())
    return {};
  Value source = shownBy(step.op->getOperand(pair->second)).source;
  auto refuse = [&](const Twine &why) {
    error(step.op) << "expected result #" << r << " not to overwrite input #"
                   << pair->second << ": " << why;
    return Value();
  };
  if (last[source] != k)
    return refuse("it is read later");
  if (llvm::count_if(step.op->getOperands(), [&](Value input) {
        return shownBy(input).source == source;
      }) != 1)
    return refuse("the kernel reads it twice");
  if (placeOf(source) != step.places[r])
    return refuse("they lie in different places");
  if (bytesOf(source) != bytesOf(step.op->getResult(r)))
    return refuse("they have different sizes");
  auto kernel = dyn_cast<KernelOp>(step.op);
  if (kernel && pairs && !llvm::is_contained(pairs->of(kernel), *pair))
    return refuse("the kernel reads it elsewhere than where it writes, or "
                  "after it has written");
  return source;
}

void PlanChecker::placeInArgument(size_t k, unsigned r, Value source) {
  Operation *op = steps[k].op;
  Value result = op->getResult(r);
  BufferAttr place = steps[k].places[r];
  auto index = static_cast<size_t>(place.getPosition());
  auto update = newValues.find(result);
  bool isNew = update != newValues.end() && update->second == index;
  if (index >= held.size() || !(isDonated[index] || isNew)) {
    error(op) << "expected to overwrite only what is updated in place or not "
                 "needed any more, but got "
              << place;
    return;
  }
  if (bytesOf(result) > bytesOf(func.getArgument(index)))
    error(op) << "expected a value that fits into " << place << ", "
              << func.getArgumentTypes()[index] << ", but got "
              << result.getType();
  auto reader = last.find(held[index]);
  if (reader != last.end() && reader->second >= k && held[index] != source)
    error(op) << "overwrites " << place << ", which is read later";
  held[index] = result;
}

void PlanChecker::placeInSpace(size_t k, unsigned r, Value source) {
  const PlannedStep &step = steps[k];
  Value result = step.op->getResult(r);
  BufferAttr place = step.places[r];
  Space &space = spaces[step.isToHost];
  int64_t begin = place.getPosition(), bytes = bytesOf(result);
  int64_t limit = step.isToHost ? said.getHostBytes() : said.getArenaBytes();
  // Neither sum overflows: a tensor has at most 2^43 bytes.
  if (begin % kBufferAlignment || begin > limit || bytes > limit - begin) {
    error(step.op) << "expected aligned places within the arena, but got "
                   << place;
    return;
  }
  auto number = static_cast<int64_t>(k);
  auto reader = last.find(result);
  size_t until = reader == last.end() ? k : reader->second;
  unsigned block = blocks.size();
  auto found = source ? space.find(begin) : space.end();
  // A source whose own place was refused is not there.
  bool isReuse = found != space.end() && found->second.value == source;
  if (isReuse) {
    block = found->second.block;
    blocks[block].last = static_cast<int64_t>(until);
    space.erase(found);
  }
  auto after = space.lower_bound(begin);
  bool isTaken = after != space.end() && after->first < begin + bytes;
  if (after != space.begin())
    isTaken |= std::prev(after)->second.end > begin;
  if (isTaken) {
    error(step.op) << "expected values that live at once to have places of "
                      "their own, but "
                   << place << " is taken";
    return;
  }
  if (!isReuse && !step.isToHost)
    blocks.push_back({bytes, number, static_cast<int64_t>(until)});
  space[begin] = {begin + bytes, result, block};
  dying.insert({until, result});
  int64_t &end = ends[step.isToHost];
  end = std::max(end, begin + aligned(bytes));
}

void PlanChecker::place(size_t k, unsigned r) {
  const PlannedStep &step = steps[k];
  Value result = step.op->getResult(r), source = overwritten(k, r);
  BufferAttr own = step.places[r];
  places[result] = own;
  switch (own.getPlace()) {
  case BufferPlace::Argument:
    return placeInArgument(k, r, source);
  case BufferPlace::Arena:
    return placeInSpace(k, r, source);
  case BufferPlace::Constant:
    error(step.op) << "expected no result in " << own;
    return;
  case BufferPlace::Result:
    break; // checkReturned
  }
  Operation *terminator = func.getBody().front().getTerminator();
  auto index = static_cast<size_t>(own.getPosition());
  if (index >= terminator->getNumOperands() ||
      throughFreeViews(terminator->getOperand(index)) != result)
    error(step.op) << "expected only what is returned as result #" << index
                   << " to lie in " << own;
}

void PlanChecker::checkStep(size_t k) {
  const PlannedStep &step = steps[k];
  while (!dying.empty() && dying.begin()->first < k) {
    free(dying.begin()->second);
    dying.erase(dying.begin());
  }
  checkWorkspace(k);
  checkParts(step);
  checkHostCopy(step);
  for (unsigned r = 0, n = step.op->getNumResults(); r < n; ++r)
    place(k, r);
  checkChoices(step);
}

//===----------------------------------------------------------------------===//
// The program
//===----------------------------------------------------------------------===//

/// Each result is returned from where its role says that it lies.
void PlanChecker::checkReturned() {
  Operation *terminator = func.getBody().front().getTerminator();
  for (auto [i, value] : llvm::enumerate(terminator->getOperands())) {
    if (isEmptyTensor(value.getType()))
      continue;
    RoleAttr role = roleOfResult(func, i);
    Value source = throughFreeViews(value);
    BufferAttr place = places.lookup(source);
    Alias alias =
        role && role.getKind() == RoleKind::Saved ? role.getAlias() : Alias();
    if (alias) {
      StringAttr name = alias.output;
      auto output = name ? findResult(func, RoleKind::Output, name)
                         : std::optional<unsigned>();
      if (!output ||
          throughFreeViews(terminator->getOperand(*output)) != source)
        error(func) << "expected '" << role.str()
                    << "' to be what is returned as the output that it lies in";
      continue;
    }
    auto update = newValues.find(source);
    bool isInPlace = role && role.getKind() == RoleKind::Update &&
                     role.has(RoleAttr::kInPlace) && update != newValues.end();
    auto expected =
        BufferAttr::get(func.getContext(),
                        isInPlace ? BufferPlace::Argument : BufferPlace::Result,
                        isInPlace ? update->second : i);
    if (place != expected) {
      InFlightDiagnostic diagnostic = error(func);
      diagnostic << "expected result #" << i << " to lie in " << expected
                 << ", but got ";
      if (place)
        diagnostic << place;
      else
        diagnostic << "no result of a kernel";
    }
  }
}

/// What the plan says is what its places come to.
void PlanChecker::checkSizes() {
  std::vector<PackedBlock> alignedBlocks = blocks;
  for (PackedBlock &block : alignedBlocks)
    block.bytes = aligned(block.bytes);
  auto check = [&](StringRef name, int64_t own, int64_t bytes) {
    if (own != bytes)
      error(func) << "expected '" << name << "' of '" << kPlanAttr << "' to be "
                  << bytes << ", which the places come to, but got " << own;
  };
  check("arena_bytes", said.getArenaBytes(), ends[0]);
  check("host_bytes", said.getHostBytes(), ends[1]);
  check("peak_bytes", said.getPeakBytes(), mostInUse(alignedBlocks));
  check("lower_bound_bytes", said.getLowerBoundBytes(), mostInUse(blocks));
}

LogicalResult PlanChecker::check() {
  said = planOf(func);
  // A lowered program without a plan has no arena.
  if (!said && !pairs)
    said = PlanAttr::get(func.getContext(), 0, 0, 0, 0);
  if (!said)
    return error(func) << "expected '" << kPlanAttr << "'";
  findReaders();
  findWritable();
  for (size_t k = 0; k < steps.size(); ++k)
    checkStep(k);
  checkReturned();
  // Of wrong places the sizes follow from nothing.
  if (!failed)
    checkSizes();
  return failure(failed);
}

LogicalResult tandem::checkPlan(func::FuncOp func, InPlacePairs *pairs) {
  SymbolTableCollection symbols;
  auto steps = plannedSteps(func, symbols);
  if (failed(steps))
    return failure();
  return PlanChecker(func, *steps, pairs).check();
}

namespace {
struct CheckPlan : tandem::impl::CheckPlanBase<CheckPlan> {
  void runOnOperation() final {
    if (failed(checkPlan(getOperation(), &getAnalysis<InPlacePairs>())))
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
