//===- Loops.cpp - pointwise loop kernels, and what all forms share -------===//
#include "passes/lower/cuda/LoopEmitter.h"

#include "ir/ops/Scalar.h"
#include "passes/lower/common/Kernels.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::cuda_lower;

static RankedTensorType typeOf(Value tensor) {
  return cast<RankedTensorType>(tensor.getType());
}

LaunchShape LaunchShape::over(int64_t items, int64_t threads) {
  LaunchShape shape;
  shape.block[0] = threads;
  shape.grid[0] = std::max<int64_t>((items + threads - 1) / threads, 1);
  return shape;
}

FailureOr<LaunchShape> cuda_lower::emitLoops(KernelOp kernel, ThreadCode &code,
                                             KernelBody &body) {
  std::optional<LoopNest> nest = findLoopNest(kernel);
  if (!nest)
    return kernel.emitOpError()
           << "expected the ops of the region to share one loop nest";
  bool hasReductions = !nest->reductions.empty();
  bool columns = hasReductions && !nest->reduced.empty() &&
                 !nest->reduced.back() &&
                 llvm::is_contained(nest->reduced, true);
  LoopEmitter emitter(kernel, std::move(*nest), code, body);
  if (!hasReductions)
    return emitter.emitPointwise();
  return columns ? emitter.emitColumns() : emitter.emitRows();
}

LoopEmitter::LoopEmitter(KernelOp kernel, LoopNest nest, ThreadCode &code,
                         KernelBody &body)
    : kernel(kernel), nest(std::move(nest)), code(code), body(body) {
  shareNumbers();
}

/// True if one element of `value`, an op's result or a view of one, costs much.
static bool isCostly(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || isa<ReductionOpInterface>(op))
    return false;
  auto pointwise = dyn_cast<PointwiseOpInterface>(op);
  return (pointwise && isExpensive(pointwise)) ||
         llvm::any_of(op->getOperands(), isCostly);
}

/// True if reductions take part in `value`.
static bool isReduced(Value value) {
  Operation *op = value.getDefiningOp();
  return op && (isa<ReductionOpInterface>(op) ||
                llvm::any_of(op->getOperands(), isReduced));
}

void LoopEmitter::shareNumbers() {
  if (nest.keptSize() * nest.reducedSize() <= warpSize)
    return;
  auto isNumber = [](Value value) {
    return typeOf(value).getNumElements() == 1 &&
           !typeOf(value).getElementType().isInteger(1);
  };
  Block &region = kernel.getBody().front();
  struct Shared {
    Value tensor, memory;
  };
  SmallVector<Shared> shared;
  for (Operation &op : region.without_terminator()) {
    if (!isa<PointwiseOpInterface>(op) || !isNumber(op.getResult(0)) ||
        !isCostly(op.getResult(0)) || isReduced(op.getResult(0)))
      continue;
    // Only the last of a chain.
    if (llvm::all_of(op.getUsers(), [&](Operation *user) {
          return isa<PointwiseOpInterface>(user) &&
                 isNumber(user->getResult(0));
        }))
      continue;
    Type type = scalar::computeType(typeOf(op.getResult(0)).getElementType());
    shared.push_back({op.getResult(0), code.shared({1}, type)});
  }
  if (shared.empty())
    return;
  // Different warps compute different numbers.
  Value zero = code.index(0);
  for (auto [i, number] : llvm::enumerate(shared)) {
    Value worker = code.index(static_cast<int64_t>(i) % 4 * warpSize);
    code.when(code.equal(code.thread(), worker), [&] {
      Slot &slot = addSlot();
      slot.index.assign(nest.sizes.size(), zero);
      slot.elements.enter(slot.index, nest.sizes);
      SmallVector<AffineExpr> place(
          typeOf(number.tensor).getRank(),
          getAffineConstantExpr(0, code.b.getContext()));
      memref::StoreOp::create(code.b, code.loc,
                              slot.elements.at(code.b, number.tensor, place),
                              number.memory, zero);
      slots.clear();
    });
  }
  code.barrier();
  for (const Shared &number : shared)
    totals.push_back(
        {number.tensor, memref::LoadOp::create(code.b, code.loc, number.memory,
                                               ValueRange{zero})});
}

//===----------------------------------------------------------------------===//
// Shared
//===----------------------------------------------------------------------===//

LoopEmitter::Slot &LoopEmitter::addSlot() {
  Slot &slot = slots.emplace_back(
      Slot{lower::ElementEmitter(code.loc), Values(nest.sizes.size())});
  for (auto [argument, memref] :
       llvm::zip_equal(kernel.getBody().getArguments(), body.inputs))
    slot.elements.bind(argument, memref);
  for (auto [result, total] : totals)
    slot.elements.bind(result,
                       [total = total](OpBuilder &, Location, const Place &) {
                         return total;
                       });
  return slot;
}

void LoopEmitter::bindTotal(const LoopNest::Reduction &reduction, Value total) {
  Value result = reduction.op->getResult(0);
  totals.push_back({result, total});
  for (Slot &slot : slots)
    slot.elements.bind(result, [total](OpBuilder &, Location, const Place &) {
      return total;
    });
}

SmallVector<unsigned> LoopEmitter::dims(bool reduced) {
  SmallVector<unsigned> result;
  for (auto [d, isReduced] : llvm::enumerate(nest.reduced))
    if (isReduced == reduced)
      result.push_back(d);
  return result;
}

int64_t LoopEmitter::sizeOf(ArrayRef<unsigned> dims) {
  int64_t n = 1;
  for (unsigned d : dims)
    n *= nest.sizes[d];
  return n;
}

void LoopEmitter::setIndices(Slot &slot, ArrayRef<unsigned> dims,
                             Value position) {
  for (size_t i = dims.size(); i-- > 0;) {
    int64_t size = std::max<int64_t>(nest.sizes[dims[i]], 1);
    slot.index[dims[i]] = i == 0 ? position : code.rem(position, size);
    position = code.div(position, size);
  }
}

int64_t LoopEmitter::vectorLength() {
  int64_t bytes = 1;
  for (Type type : kernel->getOperandTypes())
    bytes = std::max(
        bytes, elementBytes(cast<RankedTensorType>(type).getElementType()));
  for (Type type : kernel->getResultTypes())
    bytes = std::max(
        bytes, elementBytes(cast<RankedTensorType>(type).getElementType()));
  return std::clamp<int64_t>(16 / bytes, 1, 8);
}

void LoopEmitter::finishReads() {
  for (auto [i, input] : llvm::enumerate(lower::inPlaceInputs(kernel)))
    if (input >= 0 && !nest.roots[i].isFull)
      return code.barrier();
}

void LoopEmitter::storeRoots(ArrayRef<Slot *> slots, Which which, Value guard) {
  struct Store {
    Slot *slot;
    size_t root;
    Value element;
  };
  SmallVector<Store> stores;
  for (Slot *slot : slots)
    for (auto [i, root] : llvm::enumerate(nest.roots))
      if (which(root))
        stores.push_back(
            {slot, i, slot->elements.at(code.b, root.value, root.index)});
  if (stores.empty())
    return;
  auto write = [&] {
    for (size_t i = 0; i < nest.roots.size(); ++i)
      for (const Store &store : stores)
        if (store.root == i) {
          const LoopNest::Root &root = nest.roots[i];
          RankedTensorType type = typeOf(root.value);
          store.slot->elements.store(
              code.b, store.element, type.getElementType(), body.outputs[i],
              linearize(root.index, type.getShape(), code.b.getContext()));
        }
  };
  if (guard)
    code.when(guard, write);
  else
    write();
}

Value LoopEmitter::neutral(const LoopNest::Reduction &reduction) {
  ReductionOpInterface op = reduction.op;
  return scalar::constant(
      code.b, code.loc,
      scalar::computeType(typeOf(op->getResult(0)).getElementType()),
      op.getNeutral());
}

Value LoopEmitter::combine(const LoopNest::Reduction &reduction, Value x,
                           Value y) {
  ReductionOpInterface op = reduction.op;
  return op.emitCombine(code.b, code.loc, x, y);
}

SmallVector<const LoopNest::Reduction *>
LoopEmitter::reductionsAt(unsigned level) {
  SmallVector<const LoopNest::Reduction *> result;
  for (const LoopNest::Reduction &reduction : nest.reductions)
    if (reduction.level == level)
      result.push_back(&reduction);
  return result;
}

bool LoopEmitter::hasFullRootAt(unsigned level) {
  return llvm::any_of(nest.roots, [&](const LoopNest::Root &root) {
    return root.isFull && root.level == level;
  });
}

//===----------------------------------------------------------------------===//
// Pointwise
//===----------------------------------------------------------------------===//

LaunchShape LoopEmitter::emitPointwise() {
  constexpr int64_t threads = 256;
  SmallVector<unsigned> all = dims(/*reduced=*/false);
  int64_t elements = sizeOf(all);
  int64_t vector = vectorLength();
  // Neighbours are one apart in the innermost dimension alone.
  while (vector > 1 && (all.empty() || nest.sizes[all.back()] % vector != 0))
    vector /= 2;
  int64_t items = elements / vector;
  Value item = code.add(code.mul(code.block(), threads), code.thread());
  auto emit = [&] {
    Value first = code.mul(item, vector);
    SmallVector<Slot *> slots;
    for (int64_t v = 0; v < vector; ++v) {
      Slot &slot = addSlot();
      if (v == 0) {
        setIndices(slot, all, first);
      } else {
        slot.index = slots[0]->index;
        slot.index[all.back()] = code.add(slot.index[all.back()], v);
      }
      slot.elements.enter(slot.index, nest.sizes);
      slots.push_back(&slot);
    }
    storeRoots(
        slots, [](const LoopNest::Root &) { return true; }, Value());
  };
  if (items % threads == 0)
    emit();
  else
    code.when(code.less(item, code.index(items)), emit);
  return LaunchShape::over(items, threads);
}
