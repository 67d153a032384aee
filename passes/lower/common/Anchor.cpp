//===- Anchor.cpp - a kernel around one anchor op, taken apart ------------===//
#include "passes/lower/common/Anchor.h"

#include "passes/plan/LoopNest.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower;

static RankedTensorType typeOf(Value tensor) {
  return cast<RankedTensorType>(tensor.getType());
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

Value Operand::at(Code &code, ArrayRef<Value> dims) const {
  // The constant is the position of dimensions that are all 0.
  SmallVector<AffineExpr> zeros(
      dims.size(), getAffineConstantExpr(0, position.getContext()));
  auto first = cast<AffineConstantExpr>(position.replaceDims(zeros));
  Value sum = code.index(first.getValue());
  for (auto [d, value] : llvm::enumerate(dims))
    if (value)
      sum = code.add(sum, code.mul(value, stride(d)));
  return sum;
}

AnchorKernel::AnchorKernel(KernelOp kernel, Operation *anchor, KernelBody &body,
                           Code &code)
    : kernel(kernel), anchor(anchor), companion(companionOf(anchor)),
      body(body), code(code), target(CpuModel::of(kernel)),
      scratch(body.scratch), elements(code.loc) {
  llvm::append_range(results, anchor->getResults());
  if (companion)
    llvm::append_range(results, companion->getResults());
  bindArguments();
  traceOutputs();
}

void AnchorKernel::bindArguments() {
  Block &block = kernel.getBody().front();
  for (auto [argument, memref] :
       llvm::zip_equal(block.getArguments(), body.inputs))
    elements.bind(argument, memref);
  for (auto [number, result] : llvm::enumerate(results))
    elements.bind(result, [this, result = result, number = number](
                              OpBuilder &, Location, const Place &place) {
      if (ArrayRef(place.index) != ArrayRef(currentIndex(sources[result])))
        problem = "an element of a result follows from several elements of "
                  "the anchor's";
      return current[number];
    });
}

Operand AnchorKernel::operand(unsigned number, ArrayRef<AffineExpr> index,
                              ArrayRef<int64_t> sizes, bool ofCast) {
  Operand operand;
  operand.tensor = anchor->getOperand(number);
  if (ofCast)
    operand.tensor = operand.tensor.getDefiningOp<CastOp>()->getOperand(0);
  operand.element = typeOf(operand.tensor).getElementType();
  Place place;
  for (AffineExpr expr : index)
    place.index.push_back(simplifyIndex(expr, sizes));
  Value tensor = operand.tensor;
  while (auto view = tensor.getDefiningOp<ViewOpInterface>()) {
    Place source;
    SmallVector<IndexGuard> inside;
    if (!throughView(view, place, sizes, source, inside) || !inside.empty())
      return operand;
    place = source;
    tensor = view->getOperand(0);
  }
  auto argument = dyn_cast<BlockArgument>(tensor);
  if (!argument)
    return operand;
  operand.position = simplifyIndex(
      linearize(place.index, typeOf(tensor).getShape(), kernel.getContext()),
      sizes);
  for (size_t d = 0; d < sizes.size(); ++d)
    if (!coefficientOf(operand.position, d))
      return operand;
  Value memref = body.inputs[argument.getArgNumber()];
  OpBuilder::InsertionGuard guard(code.b);
  code.b.setInsertionPointAfterValue(memref);
  operand.memref = flatten(code.b, code.loc, memref);
  return operand;
}

Value AnchorKernel::element(unsigned number, ArrayRef<AffineExpr> index,
                            ValueRange dims, ArrayRef<int64_t> sizes) {
  elements.enter(dims, sizes);
  return elements.at(code.b, anchor->getOperand(number), index);
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

/// The index in the view's result of the operand's element at `index`: the
/// inverse of the view's map, for views that only reorder.
static std::optional<SmallVector<AffineExpr>>
throughInverse(ViewOpInterface view, ArrayRef<AffineExpr> index,
               ArrayRef<int64_t> sizes) {
  RankedTensorType from = typeOf(view->getOperand(0));
  RankedTensorType to = typeOf(view->getResult(0));
  if (view.isFree())
    return delinearize(linearize(index, from.getShape(), view->getContext()),
                       to.getShape(), sizes);
  AffineMap map = view.getIndexMap();
  if (view.getIndexDomain() || !map.isPermutation())
    return std::nullopt;
  SmallVector<AffineExpr> result(to.getRank());
  for (auto [d, expr] : llvm::enumerate(map.getResults()))
    result[cast<AffineDimExpr>(expr).getPosition()] = index[d];
  return result;
}

static OperandRange storedBy(KernelOp kernel) {
  return kernel.getBody().front().getTerminator()->getOperands();
}

/// What the results of a kernel around `anchor` are computed as, element by
/// element.
static SmallVector<Value> yieldedBy(KernelOp kernel, Operation *anchor) {
  return llvm::map_to_vector(storedBy(kernel), [&](Value stored) {
    Value summed = summedInTiles(stored, anchor);
    return summed ? summed : withoutRowPadding(stored);
  });
}

void AnchorKernel::traceOutputs() {
  auto sizesOf = [&](unsigned result) {
    return typeOf(results[result]).getShape();
  };
  for (auto [number, result] : llvm::enumerate(results)) {
    ArrayRef<int64_t> sizes = typeOf(result).getShape();
    Source &source = sources[result];
    source.result = number;
    for (size_t d = 0; d < sizes.size(); ++d)
      source.index.push_back(
          simplifyIndex(getAffineDimExpr(d, kernel.getContext()), sizes));
  }
  for (Operation &op : kernel.getBody().front().without_terminator())
    traceForward(op);
  // What meets these values element by element may be a result too.
  for (Operation &op : llvm::reverse(kernel.getBody().front())) {
    if (&op == anchor || op.getNumResults() != 1 ||
        !sources.count(op.getResult(0)))
      continue;
    Source source = sources[op.getResult(0)];
    if (auto view = dyn_cast<ViewOpInterface>(op)) {
      Place place, before;
      place.index.assign(source.index.begin(), source.index.end());
      SmallVector<IndexGuard> inside;
      if ((view.isFree() || view.getIndexMap().isPermutation()) &&
          throughView(view, place, sizesOf(source.result), before, inside) &&
          inside.empty()) {
        source.index.assign(before.index.begin(), before.index.end());
        sources.try_emplace(op.getOperand(0), source);
      }
    } else if (isa<PointwiseOpInterface>(op)) {
      for (Value operand : op.getOperands())
        sources.try_emplace(operand, source);
    }
  }
  // And so may what is made of these beside the anchor.
  for (Operation &op : kernel.getBody().front().without_terminator())
    if (&op != anchor && &op != companion && op.getNumResults() == 1 &&
        !sources.count(op.getResult(0)))
      traceForward(op);
  for (Value yielded : yieldedBy(kernel, anchor))
    if (!sources.count(yielded) && !traceByPosition(yielded))
      problem = "a result is no reordering of the anchor's";
}

/// Where the op's result is, if one of its operands is known.
void AnchorKernel::traceForward(Operation &op) {
  auto follows = llvm::find_if(op.getOperands(),
                               [&](Value x) { return sources.count(x) != 0; });
  if (follows == op.operand_end())
    return;
  Source source = sources[*follows];
  if (auto view = dyn_cast<ViewOpInterface>(op)) {
    auto index = throughInverse(view, source.index,
                                typeOf(results[source.result]).getShape());
    if (!index)
      return;
    source.index = *index;
  } else if (!isa<PointwiseOpInterface>(op)) {
    return;
  }
  sources[op.getResult(0)] = source;
}

/// A result that comes from the anchor's by views that do more than reorder,
/// and yet has its elements in their order: the last piece of a concatenation
/// whose last piece this is.
bool AnchorKernel::traceByPosition(Value yielded) {
  Block *block = &kernel.getBody().front();
  MLIRContext *context = kernel.getContext();
  auto isAround = [&](Operation *op) {
    return op->getBlock() == block && op != anchor && op != companion;
  };
  auto nest = findLoopNest(yielded, isAround, context);
  if (!nest || !nest->reductions.empty() || !nest->partials.empty())
    return false;
  ArrayRef<int64_t> shape = typeOf(yielded).getShape();
  AffineExpr own = simplifyIndex(
      linearize(nest->roots.front().index, shape, context), nest->sizes);
  const Source *source = nullptr;
  for (const LoopNest::Access &read : nest->reads) {
    if (!llvm::is_contained(results, read.value))
      continue;
    const Source &from = sources[read.value];
    ArrayRef<int64_t> sizes = typeOf(read.value).getShape();
    if ((source && source->result != from.result) ||
        !read.place.guards.empty() ||
        typeOf(read.value).getNumElements() !=
            typeOf(yielded).getNumElements() ||
        simplifyIndex(linearize(read.place.index, sizes, context),
                      nest->sizes) != own)
      return false;
    source = &from;
  }
  if (!source)
    return false;
  Source made;
  made.result = source->result;
  ArrayRef<int64_t> sizes = typeOf(results[made.result]).getShape();
  made.index =
      delinearize(linearize(source->index, sizes, context), shape, sizes);
  sources[yielded] = made;
  return true;
}

bool AnchorKernel::isWanted(unsigned result) const {
  return llvm::any_of(yieldedBy(kernel, anchor), [&](Value tensor) {
    return sources.lookup(tensor).result == result;
  });
}

std::optional<Operand> AnchorKernel::directOutput(Type type,
                                                  ArrayRef<AffineExpr> index,
                                                  ArrayRef<int64_t> sizes,
                                                  unsigned line,
                                                  unsigned result) {
  Value tensor, memref;
  if (!problem.empty())
    return std::nullopt;
  for (auto [yielded, output] :
       llvm::zip_equal(yieldedBy(kernel, anchor), body.outputs)) {
    if (sources.lookup(yielded).result != result)
      continue;
    if (tensor)
      return std::nullopt;
    tensor = yielded;
    memref = output;
  }
  if (!tensor || typeOf(tensor).getElementType() != type ||
      !llvm::is_contained(storedBy(kernel), tensor))
    return std::nullopt;
  for (Operation *op = tensor.getDefiningOp(); op != results[result].getOwner();
       op = op->getOperand(0).getDefiningOp())
    if (!isa_and_nonnull<ViewOpInterface>(op))
      return std::nullopt;
  Operand output;
  output.tensor = tensor;
  output.element = type;
  AffineExpr position =
      linearize(sources.lookup(tensor).index, typeOf(tensor).getShape(),
                kernel.getContext());
  output.position = simplifyIndex(position.replaceDims(index), sizes);
  for (size_t d = 0; d < sizes.size(); ++d) {
    auto stride = coefficientOf(output.position, d);
    if (!stride || (d == line && *stride != 1 && sizes[d] > 1))
      return std::nullopt;
  }
  OpBuilder::InsertionGuard guard(code.b);
  code.b.setInsertionPointAfterValue(memref);
  output.memref = flatten(code.b, code.loc, memref);
  return output;
}

SmallVector<AffineExpr> AnchorKernel::currentIndex(const Source &source) const {
  SmallVector<AffineExpr> index(source.index);
  if (!currentAt.empty())
    for (AffineExpr &expr : index)
      expr = simplifyIndex(expr.replaceDims(currentAt), currentSizes);
  return index;
}

SmallVector<Value> AnchorKernel::compute(ArrayRef<unsigned> outputs) {
  SmallVector<Value> yielded = yieldedBy(kernel, anchor), scalars;
  for (unsigned i : outputs)
    scalars.push_back(
        elements.at(code.b, yielded[i], currentIndex(sources[yielded[i]])));
  return scalars;
}

void AnchorKernel::put(unsigned output, Value scalar) {
  Value stored = storedBy(kernel)[output], yielded = withoutRowPadding(stored);
  elements.storeInRows(code.b, scalar, typeOf(yielded),
                       typeOf(stored).getShape(), body.outputs[output],
                       currentIndex(sources[yielded]));
}

/// Stores the outputs with these numbers, whose elements of the anchor are
/// `current`.
void AnchorKernel::store(ArrayRef<unsigned> outputs) {
  // All elements before the first store: a result may overwrite an input.
  for (auto [i, scalar] : llvm::zip_equal(outputs, compute(outputs)))
    put(i, scalar);
}

SmallVector<unsigned> AnchorKernel::tileSums() const {
  SmallVector<unsigned> sums;
  for (auto [i, stored] : llvm::enumerate(storedBy(kernel)))
    if (summedInTiles(stored, anchor))
      sums.push_back(i);
  return sums;
}

SmallVector<Value> AnchorKernel::finishTogether(ArrayRef<Element> together) {
  if (!problem.empty())
    return {};
  SmallVector<unsigned> sums = tileSums();
  auto outputs = llvm::to_vector(llvm::seq<unsigned>(0, body.outputs.size()));
  ArrayRef<int64_t> sizes = typeOf(anchor->getResult(0)).getShape();
  SmallVector<SmallVector<Value>> scalars;
  for (const Element &element : together) {
    current.assign(1, element.value);
    elements.enter(element.index, sizes);
    scalars.push_back(compute(outputs));
  }
  // Neighbours of one output side by side: they are stored as vectors.
  SmallVector<Value> addends;
  for (unsigned output : outputs)
    for (auto [element, scalar] : llvm::zip_equal(together, scalars)) {
      if (llvm::is_contained(sums, output)) {
        addends.push_back(scalar[output]);
        continue;
      }
      elements.enter(element.index, sizes);
      put(output, scalar[output]);
    }
  return addends;
}

void AnchorKernel::finish(ValueRange index, ValueRange values) {
  if (!problem.empty())
    return;
  current.assign(values.begin(), values.end());
  elements.enter(index, typeOf(anchor->getResult(0)).getShape());
  store(llvm::to_vector(llvm::seq<unsigned>(0, body.outputs.size())));
}

bool AnchorKernel::keepsIndices() const {
  return llvm::all_of(sources, [&](const auto &entry) {
    const Source &source = entry.second;
    Value result = anchor->getResult(source.result);
    return ArrayRef(source.index) == ArrayRef(sources.lookup(result).index);
  });
}

SmallVector<unsigned> AnchorKernel::inputsInOrder() {
  ArrayRef<int64_t> sizes = typeOf(results[0]).getShape();
  auto placeIn = [&](Value tensor, const Source &source) {
    return simplifyIndex(
        linearize(source.index, typeOf(tensor).getShape(), kernel.getContext()),
        sizes);
  };
  AffineExpr place = placeIn(results[0], sources.lookup(results[0]));
  SmallVector<unsigned> inputs;
  for (BlockArgument argument : kernel.getBody().getArguments())
    if (auto known = sources.find(argument);
        known != sources.end() && placeIn(argument, known->second) == place)
      inputs.push_back(argument.getArgNumber());
  return inputs;
}

void AnchorKernel::finish(ArrayRef<AffineExpr> index, ValueRange dims,
                          ArrayRef<int64_t> sizes, ValueRange values) {
  if (!problem.empty())
    return;
  current.assign(values.begin(), values.end());
  currentAt.assign(index.begin(), index.end());
  currentSizes.assign(sizes.begin(), sizes.end());
  elements.enter(dims, sizes);
  store(llvm::to_vector(llvm::seq<unsigned>(0, body.outputs.size())));
  currentAt.clear();
}

void AnchorKernel::finishResult(unsigned result, ValueRange index,
                                Value value) {
  if (!problem.empty())
    return;
  current.assign(results.size(), Value());
  current[result] = value;
  elements.enter(index, typeOf(results[result]).getShape());
  SmallVector<unsigned> outputs;
  for (auto [i, tensor] : llvm::enumerate(yieldedBy(kernel, anchor)))
    if (sources[tensor].result == result)
      outputs.push_back(i);
  store(outputs);
}

void AnchorKernel::forEachItem(llvm::function_ref<void(Value)> emit) {
  code.loop(body.begin, body.end, 1, emit);
}

int64_t AnchorKernel::countScratch(llvm::function_ref<void()> layOut) {
  Scratch own = std::exchange(scratch, Scratch());
  layOut();
  return std::exchange(scratch, own).bytes();
}

LogicalResult AnchorKernel::check() {
  if (problem.empty())
    return success();
  return kernel->emitError() << "kernel '" << kernel.getName()
                             << "' cannot be lowered: " << problem;
}

AnchorFamily lower::familyOf(OperationName op) {
  auto isOne = [&](auto... ids) { return ((op.getTypeID() == ids) || ...); };
  if (isOne(TypeID::get<MatmulOp>()))
    return AnchorFamily::Matmul;
  if (isOne(TypeID::get<Conv2dOp>(), TypeID::get<Conv2dInputGradOp>(),
            TypeID::get<Conv2dFilterGradOp>()))
    return AnchorFamily::Convolution;
  if (isOne(TypeID::get<MaxPool2dOp>(), TypeID::get<MaxPool2dGradOp>(),
            TypeID::get<MaxPool2dTakeOp>(), TypeID::get<AvgPool2dOp>(),
            TypeID::get<AvgPool2dGradOp>()))
    return AnchorFamily::Window;
  if (isOne(TypeID::get<TakeOp>(), TypeID::get<TakeGradOp>(),
            TypeID::get<ScatterOp>()))
    return AnchorFamily::Indexed;
  if (isOne(TypeID::get<CumsumOp>(), TypeID::get<SortOp>()))
    return AnchorFamily::Lines;
  if (isOne(TypeID::get<AttentionForwardOp>(),
            TypeID::get<AttentionQueryGradOp>(),
            TypeID::get<AttentionKeyGradOp>()))
    return AnchorFamily::Attention;
  return AnchorFamily::None;
}

Operation *lower::companionOf(Operation *anchor) {
  if (!isa<AttentionKeyGradOp>(anchor))
    return nullptr;
  for (auto op : anchor->getBlock()->getOps<AttentionQueryGradOp>())
    if (llvm::equal(op->getOperands(), anchor->getOperands()) &&
        op->getAttrs() == anchor->getAttrs())
      return op;
  return nullptr;
}

Operation *lower::findAnchor(KernelOp kernel) {
  Operation *anchor = nullptr;
  for (Operation &op : kernel.getBody().front())
    if (auto cost = dyn_cast<CostOpInterface>(op))
      if (llvm::is_contained(
              {OpClass::Contraction, OpClass::Window, OpClass::Indexed},
              cost.getOpClass())) {
        if (anchor && companionOf(anchor) == &op)
          continue;
        if (anchor && companionOf(&op) != anchor) {
          kernel->emitError()
              << "kernel '" << kernel.getName()
              << "' has more than one contraction, window or indexed op";
          return nullptr;
        }
        anchor = &op;
      }
  if (!anchor)
    kernel->emitError() << "kernel '" << kernel.getName()
                        << "' has no contraction, window or indexed op";
  return anchor;
}
