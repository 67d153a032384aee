//===- NarrowInputs.cpp - kernels take the parts of values they read ------===//
//
// An iteration of a loop that was expanded reads its own slice of what all
// iterations share:
//
//   kernel (%all: [64, 32, 1024]) { slice %all [t : t + 1] ... }
//
// and so each is a kernel of its own. Here the slice leaves the kernel, through
// reshapes, pointwise ops and what is broadcast to all rows:
//
//   %part = slice %all [t : t + 1]; kernel (%part: [1, 32, 1024]) { ... }
//
// Where the value lies in the arena, the part's buffer begins inside of its.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/plan/FormKernels.h"
#include "passes/plan/InPlace.h"
#include "passes/plan/Parts.h"
#include "passes/plan/PlanMemory.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/MapVector.h"

namespace tandem {
#define GEN_PASS_DEF_NARROWINPUTS
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

namespace {

/// Elements of a value that lie side by side.
struct Elements {
  int64_t first, count;
  bool operator==(const Elements &) const = default;
};

/// One slice in a kernel, and what has to be narrowed for it to disappear.
struct Cut {
  SliceOp slice;
  SmallVector<std::pair<BlockArgument, Elements>> arguments;
  DenseMap<Value, Elements> seen; ///< looked at; a value may be reached often
};

class Narrower {
public:
  explicit Narrower(KernelOp kernel)
      : kernel(kernel), body(kernel.getBody().front()) {}
  /// How many inputs became parts.
  unsigned run();

private:
  bool isCandidate(BlockArgument argument, Elements range);
  bool canCut(Value value, Elements range, Cut &cut);
  void keepCovered();
  Value cutOf(Value value, Elements range, OpBuilder &b);

  KernelOp kernel;
  Block &body;
  SmallVector<Cut> cuts;
  llvm::MapVector<BlockArgument, Elements> narrowed; ///< in a fixed order
  /// The body's values that were narrowed.
  DenseMap<Value, SmallVector<std::pair<Elements, Value>, 1>> made;
};

} // namespace

/// Elements of all dimensions but the first; 0 of a scalar.
static int64_t rowOf(RankedTensorType type) {
  if (type.getRank() == 0)
    return 0;
  int64_t row = 1;
  for (int64_t size : type.getShape().drop_front())
    row *= size;
  return row;
}

/// The type of a range of rows; null if it is none.
static RankedTensorType rowsOf(RankedTensorType type, Elements range) {
  int64_t row = rowOf(type);
  if (row == 0 || range.first % row || range.count % row)
    return {};
  SmallVector<int64_t> shape(type.getShape());
  shape[0] = range.count / row;
  return RankedTensorType::get(shape, type.getElementType());
}

/// A value in the arena that nothing here overwrites, and that begins where a
/// buffer may.
bool Narrower::isCandidate(BlockArgument argument, Elements range) {
  RankedTensorType type = typeOf(argument);
  if (!rowsOf(type, range))
    return false;
  int64_t bytes = range.first * (byteSize(type) / type.getNumElements());
  Value input = kernel.getInputs()[argument.getArgNumber()];
  Value source = shownBy(input).source;
  auto maker = source.getDefiningOp<KernelOp>();
  if (bytes % kBufferAlignment || !maker || !maker.getBuffersAttr())
    return false;
  auto place = cast<BufferAttr>(
      maker.getBuffers().value()[cast<OpResult>(source).getResultNumber()]);
  if (place.getPlace() != BufferPlace::Arena)
    return false;
  for (int64_t overwritten : inPlaceInputs(kernel))
    if (overwritten >= 0 &&
        shownBy(kernel.getInputs()[overwritten]).source == source)
      return false;
  return true;
}

bool Narrower::canCut(Value value, Elements range, Cut &cut) {
  RankedTensorType type = typeOf(value);
  if (auto [known, isNew] = cut.seen.try_emplace(value, range); !isNew)
    return known->second == range;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    cut.arguments.push_back({argument, range});
    return isCandidate(argument, range);
  }
  Operation *op = value.getDefiningOp();
  if (auto slice = dyn_cast<SliceOp>(op)) {
    auto start = contiguousStart(slice);
    return start &&
           canCut(slice.getX(), {*start + range.first, range.count}, cut);
  }
  if (isa<ReshapeOp>(op))
    return canCut(op->getOperand(0), range, cut);
  if (!rowsOf(type, range))
    return false;
  if (auto constant = dyn_cast<ConstantOp>(op))
    return constant.getSplat() != nullptr;
  if (auto broadcast = dyn_cast<BroadcastOp>(op))
    return !llvm::is_contained(broadcast.getDims(), 0);
  return isa<PointwiseOpInterface>(op) && op->getNumResults() == 1 &&
         llvm::all_of(op->getOperands(), [&](Value operand) {
           return canCut(operand, range, cut);
         });
}

/// Leaves the cuts whose arguments are read through cuts alone, the same in
/// all.
void Narrower::keepCovered() {
  for (bool isStable = false; !isStable;) {
    isStable = true;
    narrowed.clear();
    DenseSet<BlockArgument> refused;
    DenseSet<Operation *> gone;
    for (Cut &cut : cuts) {
      gone.insert(cut.slice);
      for (auto [argument, range] : cut.arguments)
        if (!(narrowed.try_emplace(argument, range).first->second == range))
          refused.insert(argument);
    }
    for (Operation &op : llvm::reverse(body.without_terminator()))
      if (llvm::all_of(op.getUsers(),
                       [&](Operation *user) { return gone.contains(user); }))
        gone.insert(&op);
    for (auto &[argument, range] : narrowed)
      if (!llvm::all_of(argument.getUsers(),
                        [&](Operation *user) { return gone.contains(user); }))
        refused.insert(argument);
    llvm::erase_if(cuts, [&](Cut &cut) {
      bool isRefused = llvm::any_of(cut.arguments, [&](auto &part) {
        return refused.contains(part.first);
      });
      isStable &= !isRefused;
      return isRefused;
    });
  }
}

Value Narrower::cutOf(Value value, Elements range, OpBuilder &b) {
  if (isa<BlockArgument>(value))
    return value; // has the type of the part by now
  for (auto &[known, part] : made[value])
    if (known == range)
      return part;
  Operation *op = value.getDefiningOp();
  Value part;
  if (auto slice = dyn_cast<SliceOp>(op)) {
    return cutOf(slice.getX(),
                 {*contiguousStart(slice) + range.first, range.count}, b);
  } else if (isa<ReshapeOp>(op)) {
    part = cutOf(op->getOperand(0), range, b);
    // Rows of the result, if it has such; else the next view shapes it.
    if (RankedTensorType type = rowsOf(typeOf(value), range))
      part = ReshapeOp::create(b, op->getLoc(), part, type.getShape());
  } else {
    RankedTensorType type = rowsOf(typeOf(value), range);
    if (auto constant = dyn_cast<ConstantOp>(op)) {
      part = ConstantOp::create(b, op->getLoc(),
                                cast<ElementsAttr>(DenseElementsAttr::get(
                                    type, Attribute(constant.getSplat()))));
    } else if (auto broadcast = dyn_cast<BroadcastOp>(op)) {
      part = BroadcastOp::create(b, op->getLoc(), broadcast.getX(),
                                 type.getShape(), broadcast.getDims());
    } else {
      IRMapping map;
      for (Value operand : op->getOperands()) {
        Value x = cutOf(operand, range, b);
        if (typeOf(x).getShape() != type.getShape())
          x = ReshapeOp::create(b, op->getLoc(), x, type.getShape());
        map.map(operand, x);
      }
      Operation *copy = b.clone(*op, map);
      copy->getResult(0).setType(
          RankedTensorType::get(type.getShape(), type.getElementType()));
      part = copy->getResult(0);
    }
  }
  made[value].push_back({range, part});
  return part;
}

/// Whether inputs are prefetched hangs on their sizes: lowering chooses it
/// anew.
static void forgetPrefetches(KernelOp kernel) {
  ScheduleAttr schedule = kernel.getScheduleAttr();
  if (!schedule)
    return;
  SmallVector<ScheduleEntry> entries(schedule.getEntries());
  llvm::erase_if(entries, [](const ScheduleEntry &entry) {
    return entry.isChosen && entry.key == ScheduleKey::Ahead;
  });
  kernel.setScheduleAttr(entries.empty()
                             ? ScheduleAttr()
                             : ScheduleAttr::get(kernel.getContext(), entries));
}

unsigned Narrower::run() {
  // What a launch copies instead has a whole value's size, a library reads
  // operands of its own types.
  if (kernel.getChoicesAttr() || kernel.getLibraryAttr())
    return 0;
  for (auto slice : body.getOps<SliceOp>()) {
    auto start = contiguousStart(slice);
    int64_t count = typeOf(slice.getY()).getNumElements();
    Cut cut;
    cut.slice = slice;
    if (start && count < typeOf(slice.getX()).getNumElements() &&
        canCut(slice.getX(), {*start, count}, cut) && !cut.arguments.empty())
      cuts.push_back(std::move(cut));
  }
  keepCovered();
  if (cuts.empty())
    return 0;

  OpBuilder outside(kernel);
  for (auto &[argument, range] : narrowed) {
    RankedTensorType type = typeOf(argument);
    RankedTensorType part = rowsOf(type, range);
    SmallVector<int64_t> starts(type.getRank(), 0), limits(type.getShape()),
        strides(type.getRank(), 1);
    starts[0] = range.first / rowOf(type);
    limits[0] = starts[0] + part.getDimSize(0);
    OpOperand &input = kernel->getOpOperand(argument.getArgNumber());
    input.set(SliceOp::create(outside, kernel.getLoc(), input.get(), starts,
                              limits, strides));
    argument.setType(part);
  }
  for (Cut &cut : cuts) {
    OpBuilder b(cut.slice);
    Value whole = cut.slice.getX();
    int64_t count = typeOf(cut.slice.getY()).getNumElements();
    Value part = cutOf(whole, {*contiguousStart(cut.slice), count}, b);
    ArrayRef<int64_t> shape = typeOf(cut.slice.getY()).getShape();
    if (typeOf(part).getShape() != shape)
      part = ReshapeOp::create(b, cut.slice.getLoc(), part, shape);
    cut.slice.getResult().replaceAllUsesWith(part);
  }
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
    if (isOpTriviallyDead(&op))
      op.erase();
  forgetPrefetches(kernel);
  return narrowed.size();
}

namespace {
struct NarrowInputs : tandem::impl::NarrowInputsBase<NarrowInputs> {
  void runOnOperation() final {
    for (auto kernel : getOperation().getOps<KernelOp>())
      narrowed += Narrower(kernel).run();
    // A narrowed input is one that nothing is written over.
    markAnalysesPreserved<InPlacePairs>();
  }
};
} // namespace
