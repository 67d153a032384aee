//===- PadRows.cpp - products find rows at multiples of 16 bytes ----------===//
//
// What one kernel hands to a product on tensor cores lies there in rows that
// begin at multiples of 16 bytes (ir/RowPadding.h):
//
//   %d = kernel { ... yield %y: 16384x50257xbf16 }
//   kernel (%d) { matmul %d ... }
// ->
//   %d = kernel { ... yield pad %y: 16384x50264xbf16 }
//   kernel (%d: 16384x50264xbf16) { matmul (slice %d) ... }
//
// Otherwise the product would fetch elements one by one. Values of the caller's
// keep their shapes, and so does what could no longer overwrite its input.
//
//===----------------------------------------------------------------------===//
#include "ir/RowPadding.h"
#include "passes/Passes.h"
#include "passes/plan/FormKernels.h"
#include "passes/plan/InPlace.h"
#include "passes/plan/Storage.h"
#include "passes/target/Target.h"

#include "llvm/ADT/SetVector.h"

namespace tandem {
#define GEN_PASS_DEF_PADROWS
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

/// Of shorter rows the padding would be more than a sixteenth.
static constexpr int64_t kLeastRowBytes = 256;

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

static RankedTensorType padded(RankedTensorType type) {
  SmallVector<int64_t> shape(type.getShape());
  shape.back() += rowPaddingOf(type);
  return RankedTensorType::get(shape, type.getElementType());
}

/// A kernel whose emitters store rows as they are told to: loops, or a product.
static bool isSupported(KernelOp kernel) {
  if (kernel.getChoicesAttr() || kernel.getLibraryAttr())
    return false;
  return llvm::all_of(
      kernel.getBody().front().without_terminator(), [](Operation &op) {
        return isa<PointwiseOpInterface, ViewOpInterface, ReductionOpInterface,
                   ConstantOp, IotaOp, MatmulOp>(op);
      });
}

/// Whether tensor cores multiply what the kernel reads as `argument`.
static bool isFactor(KernelOp kernel, BlockArgument argument) {
  Type element = typeOf(argument).getElementType();
  bool isHalf = element.isF16() || element.isBF16();
  for (auto product : kernel.getBody().getOps<MatmulOp>())
    if (isHalf || (element.isF32() && productPrecision(product) == "tf32"))
      for (Value factor : product->getOperands()) {
        while (auto view = factor.getDefiningOp<ViewOpInterface>())
          factor = view->getOperand(0);
        if (factor == argument)
          return true;
      }
  return false;
}

/// Whether the program returns the value, or a free view of it.
static bool isReturned(Value value) {
  return llvm::any_of(value.getUsers(), [](Operation *user) {
    if (auto view = dyn_cast<ViewOpInterface>(user))
      return view.isFree() && isReturned(user->getResult(0));
    return user->hasTrait<OpTrait::IsTerminator>();
  });
}

static bool keepsRows(ReshapeOp reshape) {
  ArrayRef<int64_t> from = typeOf(reshape.getX()).getShape(),
                    to = typeOf(reshape.getY()).getShape();
  return !from.empty() && !to.empty() && from.back() == to.back();
}

namespace {
class RowPadder {
public:
  explicit RowPadder(func::FuncOp func) : func(func), storage(func) {}
  /// How many values have longer rows.
  unsigned run();

private:
  /// The kernels' operands that show the value, through reshapes that leave
  /// rows as they are; false if anything else does.
  bool findReaders(Value value, SmallVectorImpl<OpOperand *> &readers) const;
  bool isWanted(Value value) const;
  /// Adds the value and all that it would be written over to `group`; false if
  /// one of them has to keep its shape.
  bool gather(Value value, llvm::SetVector<Value> &group);
  void lengthen(Value value);

  func::FuncOp func;
  ArgumentStorage storage;
  InPlacePairs pairs;
};
} // namespace

bool RowPadder::findReaders(Value value,
                            SmallVectorImpl<OpOperand *> &readers) const {
  for (OpOperand &use : value.getUses()) {
    if (auto kernel = dyn_cast<KernelOp>(use.getOwner())) {
      if (!isSupported(kernel))
        return false;
      readers.push_back(&use);
    } else if (auto reshape = dyn_cast<ReshapeOp>(use.getOwner());
               !reshape || !keepsRows(reshape) ||
               !findReaders(reshape.getY(), readers)) {
      return false;
    }
  }
  return true;
}

bool RowPadder::isWanted(Value value) const {
  RankedTensorType type = typeOf(value);
  int64_t padding = rowPaddingOf(type);
  SmallVector<OpOperand *> readers;
  return padding > 0 && type.getRank() > 1 &&
         type.getShape().back() * elementBytes(type.getElementType()) >=
             kLeastRowBytes &&
         findReaders(value, readers) &&
         llvm::any_of(readers, [](OpOperand *reader) {
           auto kernel = cast<KernelOp>(reader->getOwner());
           return isFactor(kernel, kernel.getBody().getArgument(
                                       reader->getOperandNumber()));
         });
}

bool RowPadder::gather(Value value, llvm::SetVector<Value> &group) {
  auto maker = value.getDefiningOp<KernelOp>();
  SmallVector<OpOperand *> readers;
  if (!maker || !isSupported(maker) || !findReaders(value, readers))
    return false;
  if (!group.insert(value))
    return true;
  for (auto [result, input] : pairs.of(maker)) {
    if (maker.getResult(result) != value)
      continue;
    Value source = throughFreeViews(maker.getInputs()[input]);
    if (auto argument = dyn_cast<BlockArgument>(source)) {
      if (storage.isDonated(argument.getArgNumber()))
        return false;
      continue;
    }
    // What is returned is not written over.
    if (!isReturned(source) &&
        (typeOf(source).getShape().back() != typeOf(value).getShape().back() ||
         !gather(source, group)))
      return false;
  }
  return true;
}

void RowPadder::lengthen(Value value) {
  SmallVector<OpOperand *> readers;
  findReaders(value, readers);
  auto maker = value.getDefiningOp<KernelOp>();
  OpOperand &yielded = maker.getBody().front().getTerminator()->getOpOperand(
      cast<OpResult>(value).getResultNumber());
  RankedTensorType type = typeOf(yielded.get());
  OpBuilder b(yielded.getOwner());
  SmallVector<int64_t> none(type.getRank(), 0), high(none);
  high.back() = rowPaddingOf(type);
  TypedAttr zero = b.getFloatAttr(type.getElementType(), 0.0);
  auto pad = PadOp::create(b, yielded.get().getLoc(), yielded.get(), none, high,
                           none, zero);
  pad->setAttr(kRowPaddingAttr, b.getUnitAttr());
  yielded.set(pad);
  value.setType(pad.getType());

  SmallVector<Value> shown{value};
  for (size_t i = 0; i < shown.size(); ++i)
    for (Operation *user : shown[i].getUsers())
      if (auto reshape = dyn_cast<ReshapeOp>(user))
        shown.push_back(reshape.getY());
  for (Value view : ArrayRef(shown).drop_front()) {
    auto reshape = view.getDefiningOp<ReshapeOp>();
    b.setInsertionPoint(reshape);
    Value longer = ReshapeOp::create(b, reshape.getLoc(), reshape.getX(),
                                     padded(typeOf(view)).getShape());
    view.replaceAllUsesWith(longer);
    reshape.erase();
  }
  for (OpOperand *reader : readers) {
    auto kernel = cast<KernelOp>(reader->getOwner());
    BlockArgument argument =
        kernel.getBody().getArgument(reader->getOperandNumber());
    RankedTensorType rows = typeOf(argument);
    argument.setType(typeOf(reader->get()));
    b.setInsertionPointToStart(&kernel.getBody().front());
    SmallVector<int64_t> starts(rows.getRank(), 0), strides(rows.getRank(), 1);
    auto slice = SliceOp::create(b, argument.getLoc(), argument, starts,
                                 rows.getShape(), strides);
    argument.replaceAllUsesExcept(slice, slice);
  }
}

unsigned RowPadder::run() {
  llvm::SetVector<Value> longer;
  for (auto kernel : func.getOps<KernelOp>())
    for (Value value : kernel.getResults())
      if (isWanted(value)) {
        llvm::SetVector<Value> group(longer);
        if (gather(value, group))
          longer = std::move(group);
      }
  for (Value value : longer)
    lengthen(value);
  return longer.size();
}

namespace {
struct PadRows : tandem::impl::PadRowsBase<PadRows> {
  void runOnOperation() final {
    if (!isForCuda(getOperation()))
      return markAllAnalysesPreserved();
    lengthened += RowPadder(getOperation()).run();
    if (lengthened == 0)
      markAllAnalysesPreserved();
  }
};
} // namespace
