//===- Loops.cpp - pointwise loop kernels, and what all forms share -------===//
#include "passes/lower/cuda/Methods.h"
#include "passes/lower/cuda/loops/LoopEmitter.h"
#include "passes/target/Rates.h"

#include "ir/ops/Scalar.h"
#include "passes/lower/common/Kernels.h"
#include "passes/plan/InPlace.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cuda;

static RankedTensorType typeOf(Value tensor) {
  return cast<RankedTensorType>(tensor.getType());
}

LaunchShape LaunchShape::over(int64_t items, int64_t threads) {
  LaunchShape shape;
  shape.block[0] = threads;
  shape.grid[0] = std::max<int64_t>((items + threads - 1) / threads, 1);
  return shape;
}

/// What `ask` says to the table and to what it sees of the kernel.
template <typename Made>
static FailureOr<Made>
askTable(KernelOp kernel, ThreadCode &code, KernelBody &body,
         llvm::function_ref<FailureOr<Made>(LoopKernel &)> ask) {
  std::optional<std::vector<LoopNest>> nests = findLoopNests(kernel);
  if (!nests)
    return kernel.emitOpError()
           << "expected the ops of the region to share one loop nest";
  LoopEmitter first(kernel, nests->front(), 0, code, body);
  LoopKernel loops{kernel, *nests, first, code, body};
  if (nests->size() == 1)
    first.use(shareNumbers(kernel, partsOf(kernel).front(), code, body));
  return ask(loops);
}

FailureOr<LaunchShape> lower::cuda::emitLoops(KernelOp kernel, ThreadCode &code,
                                              KernelBody &body) {
  return askTable<LaunchShape>(kernel, code, body, [&](LoopKernel &loops) {
    return emitByTable(kernel, loopMethods(), loops);
  });
}

FailureOr<ChosenMethod>
lower::cuda::chooseLoops(KernelOp kernel, ThreadCode &code, KernelBody &body,
                         const MethodQuestion &question) {
  return askTable<ChosenMethod>(kernel, code, body, [&](LoopKernel &loops) {
    return chooseByTable(kernel, loopMethods(), loops, question);
  });
}

LoopEmitter::LoopEmitter(KernelOp kernel, LoopNest nest, unsigned firstResult,
                         ThreadCode &code, const KernelBody &body)
    : kernel(kernel), nest(std::move(nest)), firstResult(firstResult),
      code(code), body(body) {}

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

/// What `values` are computed from.
static DenseSet<Operation *> makersOf(ArrayRef<Value> values) {
  DenseSet<Operation *> makers;
  SmallVector<Value> work(values);
  while (!work.empty())
    if (Operation *op = work.pop_back_val().getDefiningOp())
      if (makers.insert(op).second)
        llvm::append_range(work, op->getOperands());
  return makers;
}

SharedNumbers lower::cuda::shareNumbers(KernelOp kernel,
                                        ArrayRef<Value> results,
                                        ThreadCode &code,
                                        const KernelBody &body) {
  auto isNumber = [](Value value) {
    return typeOf(value).getNumElements() == 1 &&
           !typeOf(value).getElementType().isInteger(1);
  };
  // Where there is little else to do a thread can do it as well.
  if (llvm::all_of(results, [](Value result) {
        return typeOf(result).getNumElements() <= warpSize;
      }))
    return {};
  SharedNumbers numbers;
  DenseSet<Operation *> makers = makersOf(results);
  for (Operation &op : kernel.getBody().front().without_terminator()) {
    if (!makers.contains(&op) || !isa<PointwiseOpInterface>(op) ||
        !isNumber(op.getResult(0)) || !isCostly(op.getResult(0)) ||
        isReduced(op.getResult(0)))
      continue;
    // Only the last of a chain.
    if (llvm::all_of(op.getUsers(), [&](Operation *user) {
          return isa<PointwiseOpInterface>(user) &&
                 isNumber(user->getResult(0));
        }))
      continue;
    Type type = scalar::computeType(typeOf(op.getResult(0)).getElementType());
    numbers.push_back({op.getResult(0), code.shared({1}, type)});
  }
  if (numbers.empty())
    return {};
  // Different warps compute different numbers.
  Value zero = code.index(0);
  for (auto [i, number] : llvm::enumerate(numbers)) {
    auto [tensor, memory] = number;
    Value worker = code.index(static_cast<int64_t>(i) % 2 * warpSize);
    code.when(code.equal(code.thread(), worker), [&, tensor = tensor,
                                                  memory = memory] {
      lower::ElementEmitter elements(code.loc);
      for (auto [argument, input] :
           llvm::zip_equal(kernel.getBody().getArguments(), body.inputs))
        elements.bind(argument, input);
      elements.enter({}, {});
      SmallVector<AffineExpr> place(
          typeOf(tensor).getRank(),
          getAffineConstantExpr(0, code.b.getContext()));
      memref::StoreOp::create(code.b, code.loc,
                              elements.at(code.b, tensor, place), memory, zero);
    });
  }
  code.barrier();
  for (auto &[tensor, memory] : numbers)
    memory = memref::LoadOp::create(code.b, code.loc, memory, zero);
  return numbers;
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
  auto add = [&](Value value) {
    RankedTensorType type = typeOf(value);
    int64_t size = elementBytes(type.getElementType());
    // What is one vector is not what a thread's vectors are made of.
    if (type.getNumElements() * size > 16)
      bytes = std::max(bytes, size);
  };
  for (const LoopNest::Access &read : nest.reads)
    add(read.value);
  for (const LoopNest::Root &root : nest.roots)
    add(root.value);
  return std::clamp<int64_t>(16 / bytes, 1, 8);
}

void LoopEmitter::finishReads() {
  SmallVector<int64_t> overwritten = inPlaceInputs(kernel);
  for (auto [i, root] : llvm::enumerate(nest.roots))
    if (overwritten[firstResult + i] >= 0 && !root.isFull)
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
          store.slot->elements.storeInRows(
              code.b, store.element, typeOf(root.value), root.stored,
              body.outputs[firstResult + i], root.index);
        }
  };
  if (guard)
    code.when(guard, write);
  else
    write();
}

Value LoopEmitter::combine(const LoopNest::Reduction &reduction, Value x,
                           Value y) {
  ReductionOpInterface op = reduction.op;
  return op.emitCombine(code.b, code.loc, x, y);
}

//===----------------------------------------------------------------------===//
// Pointwise
//===----------------------------------------------------------------------===//

int64_t LoopEmitter::pointwiseVector() {
  SmallVector<unsigned> all = nest.dims(/*reduced=*/false);
  int64_t vector = vectorLength();
  // Neighbours are one apart in the innermost dimension alone.
  while (vector > 1 && (all.empty() || nest.sizes[all.back()] % vector != 0))
    vector /= 2;
  return vector;
}

int64_t LoopEmitter::pointwiseBlocks() {
  int64_t items = nest.keptSize() / pointwiseVector();
  return std::max<int64_t>((items + kPartThreads - 1) / kPartThreads, 1);
}

void LoopEmitter::emitPointwise(Value block) {
  SmallVector<unsigned> all = nest.dims(/*reduced=*/false);
  int64_t vector = pointwiseVector();
  int64_t items = nest.sizeOf(all) / vector;
  Value item = code.add(code.mul(block, kPartThreads), code.thread());
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
  if (items % kPartThreads == 0)
    emit();
  else
    code.when(code.less(item, code.index(items)), emit);
}
