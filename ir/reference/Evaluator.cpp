//===- Evaluator.cpp - runs whole functions in double ---------------------===//
//
// Tensors are arrays. A ref is a storage and, for each of its elements, the
// position in that storage: a view of a ref is then the view's own reference
// evaluation, applied to positions.
//
//===----------------------------------------------------------------------===//
#include "ir/reference/Evaluator.h"

#include "ir/Ops.h"

#include <memory>
#include <numeric>

using namespace mlir;
using namespace tandem;
using namespace tandem::reference;

namespace {

struct RefArray {
  std::shared_ptr<Array> storage;
  Array positions;

  Array read() const {
    Array value(positions.shape);
    for (int64_t i = 0, n = value.size(); i < n; ++i)
      value[i] = (*storage)[static_cast<int64_t>(positions[i])];
    return value;
  }
  void write(const Array &value) const {
    for (int64_t i = 0, n = value.size(); i < n; ++i)
      (*storage)[static_cast<int64_t>(positions[i])] = value[i];
  }
  /// The whole of new storage.
  static RefArray make(const Array &value) {
    RefArray ref{std::make_shared<Array>(value), Array(value.shape)};
    std::iota(ref.positions.data.begin(), ref.positions.data.end(), 0.0);
    return ref;
  }
};

/// The values of one block while it is evaluated.
class Frame {
public:
  LogicalResult run(Block &block);
  void bind(Value value, const Array &array) {
    if (isa<RefType>(value.getType()))
      refs.try_emplace(value, RefArray::make(array));
    else
      tensors.try_emplace(value, array);
  }
  Array get(Value value) const {
    if (isa<RefType>(value.getType()))
      return refs.find(value)->second.read();
    return tensors.find(value)->second;
  }

private:
  LogicalResult run(Operation *op);
  LogicalResult runView(Operation *op);
  LogicalResult runKernel(KernelOp op);
  LogicalResult runTensors(ReferenceOpInterface op);
  /// Frees the operands that `op` was the last to use.
  void release(Operation *op);

  DenseMap<Value, Array> tensors;
  DenseMap<Value, RefArray> refs;
  DenseMap<Value, unsigned> usesLeft;
};

} // namespace

LogicalResult Frame::run(Block &block) {
  for (Operation &op : block.without_terminator()) {
    if (failed(run(&op)))
      return failure();
    release(&op);
  }
  return success();
}

LogicalResult Frame::run(Operation *op) {
  if (auto make = dyn_cast<MakeRefOp>(op)) {
    refs.try_emplace(make.getRef(), RefArray::make(get(make.getValue())));
    return success();
  }
  if (auto read = dyn_cast<ReadOp>(op)) {
    tensors.try_emplace(read.getValue(), get(read.getRef()));
    return success();
  }
  if (auto write = dyn_cast<WriteOp>(op)) {
    refs.find(write.getRef())
        ->second.write(tensors.find(write.getValue())->second);
    return success();
  }
  if (auto kernel = dyn_cast<KernelOp>(op))
    return runKernel(kernel);
  if (isa<RefViewOpInterface>(op) && isa<RefType>(op->getResult(0).getType()))
    return runView(op);
  return runTensors(cast<ReferenceOpInterface>(op));
}

LogicalResult Frame::runView(Operation *op) {
  auto type = cast<RefType>(op->getResult(0).getType());
  const RefArray &source =
      refs.find(cast<RefViewOpInterface>(op).getViewSource())->second;
  RefArray view{source.storage, Array(type.getShape())};
  const Array *in = &source.positions;
  cast<ReferenceOpInterface>(op).evaluate(in, view.positions);
  refs.try_emplace(op->getResult(0), std::move(view));
  return success();
}

LogicalResult Frame::runKernel(KernelOp op) {
  Frame frame;
  Block &body = op.getBody().front();
  for (auto [argument, input] :
       llvm::zip_equal(body.getArguments(), op.getInputs()))
    frame.bind(argument, get(input));
  if (failed(frame.run(body)))
    return failure();
  for (auto [result, value] :
       llvm::zip_equal(op.getResults(), body.getTerminator()->getOperands()))
    tensors.try_emplace(result, frame.get(value));
  return success();
}

LogicalResult Frame::runTensors(ReferenceOpInterface op) {
  SmallVector<const Array *> in;
  for (Value operand : op->getOperands())
    in.push_back(&tensors.find(operand)->second);
  SmallVector<Array> out;
  for (Type type : op->getResultTypes())
    out.emplace_back(cast<RankedTensorType>(type));
  op.evaluate(in, out);
  for (auto [result, array] : llvm::zip_equal(op->getResults(), out))
    tensors.try_emplace(result, std::move(array));
  return success();
}

void Frame::release(Operation *op) {
  for (Value operand : op->getOperands()) {
    auto [it, first] = usesLeft.try_emplace(operand, 0);
    if (first)
      it->second = std::distance(operand.use_begin(), operand.use_end());
    if (--it->second == 0) {
      tensors.erase(operand);
      if (!isa<BlockArgument>(operand))
        refs.erase(operand);
    }
  }
  for (Value result : op->getResults())
    if (result.use_empty())
      tensors.erase(result);
}

/// Everything in `func` can be evaluated.
static LogicalResult check(func::FuncOp func, ArrayRef<Array> arguments) {
  if (func.isExternal())
    return func.emitError()
           << "expected function '" << func.getName() << "' to have a body";
  if (!func.getBody().hasOneBlock())
    return func.emitError()
           << "expected function '" << func.getName() << "' to have one block";
  if (arguments.size() != func.getNumArguments())
    return func.emitError() << "expected " << func.getNumArguments()
                            << " arguments but got " << arguments.size();
  bool ok = true;
  for (auto [i, pair] :
       llvm::enumerate(llvm::zip_equal(func.getArgumentTypes(), arguments))) {
    auto [type, array] = pair;
    auto ref = dyn_cast<RefType>(type);
    auto tensor = dyn_cast<RankedTensorType>(type);
    ArrayRef<int64_t> expected = ref      ? ref.getShape()
                                 : tensor ? tensor.getShape()
                                          : ArrayRef<int64_t>();
    if ((ref || tensor) && expected == ArrayRef<int64_t>(array.shape))
      continue;
    auto error = func.emitError() << "expected argument #" << i << " of type "
                                  << type << " but got shape [";
    llvm::interleaveComma(array.shape, error);
    error << "]";
    ok = false;
  }
  func.getBody().walk([&](Operation *op) {
    if (isa<ReferenceOpInterface, MakeRefOp, ReadOp, WriteOp, KernelOp>(op) ||
        op->hasTrait<OpTrait::IsTerminator>())
      return;
    op->emitError() << "'" << op->getName() << "' op has no reference";
    ok = false;
  });
  return success(ok);
}

FailureOr<SmallVector<Array>>
reference::evaluate(func::FuncOp func, ArrayRef<Array> arguments,
                    SmallVectorImpl<Array> *refsAfter) {
  if (failed(check(func, arguments)))
    return failure();
  Frame frame;
  Block &body = func.getBody().front();
  for (auto [argument, array] : llvm::zip_equal(body.getArguments(), arguments))
    frame.bind(argument, array);
  if (failed(frame.run(body)))
    return failure();
  SmallVector<Array> results;
  for (Value value : body.getTerminator()->getOperands())
    results.push_back(frame.get(value));
  if (refsAfter) {
    refsAfter->clear();
    for (auto [argument, array] :
         llvm::zip_equal(body.getArguments(), arguments))
      refsAfter->push_back(
          isa<RefType>(argument.getType()) ? frame.get(argument) : array);
  }
  return results;
}
