//===- FlowKernel.cpp - branches and loops as kernels that call kernels ---===//
//
// The code is LLVM's dialect: pointers to buffers are put into a table, and
// functions with the kernel ABI are called with it. Of each carry there are two
// buffers, by turns what an iteration reads and what it writes. A slice that
// does not begin at a multiple of 64 bytes, as kernels want their buffers to,
// is copied to one that does, and what is made of it back.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/cpu/FlowKernel.h"

#include "passes/lower/common/ChooseMethods.h"
#include "passes/lower/cpu/ChooseMethod.h"
#include "passes/plan/FormKernels.h"
#include "passes/plan/Parts.h"
#include "passes/plan/PlanMemory.h"
#include "passes/plan/PlanPasses.h"

#include "ir/Signature.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cpu;

Operation *lower::cpu::flowOf(KernelOp kernel) {
  for (Operation &op : kernel.getBody().front())
    if (isa<IfOp, ScanOp, WhileOp>(op))
      return &op;
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Regions as programs
//===----------------------------------------------------------------------===//

/// What tandem-choose-methods does for cpu: that pass knows every target's
/// tables, and lies above this room.
static LogicalResult chooseHere(func::FuncOp region) {
  return chooseMethods(region, lower::cpu::chooseMethodOf);
}

FailureOr<func::FuncOp> lower::cpu::planRegion(ModuleOp module, Region &region,
                                               StringRef name) {
  MLIRContext *context = module.getContext();
  Block &block = region.front();
  Operation *yield = block.getTerminator();
  OpBuilder b = OpBuilder::atBlockEnd(module.getBody());
  auto func = func::FuncOp::create(
      b, yield->getLoc(), name,
      b.getFunctionType(block.getArgumentTypes(), yield->getOperandTypes()));
  Block *body = func.addEntryBlock();
  IRMapping map;
  map.map(block.getArguments(), body->getArguments());
  b.setInsertionPointToEnd(body);
  for (Operation &op : block.without_terminator())
    b.clone(op, map);
  SmallVector<Value> results;
  for (Value value : yield->getOperands())
    results.push_back(map.lookup(value));
  func::ReturnOp::create(b, yield->getLoc(), results);
  for (unsigned i = 0; i < func.getNumArguments(); ++i)
    setRoleOfArgument(func, i,
                      RoleAttr::get(context, RoleKind::Input,
                                    "argument " + std::to_string(i)));
  for (unsigned i = 0; i < func.getNumResults(); ++i)
    setRoleOfResult(func, i,
                    RoleAttr::get(context, RoleKind::Output,
                                  "result " + std::to_string(i)));
  if (failed(planProgram(func, chooseHere)))
    return failure();
  return func;
}

static FailureOr<FlowBuffer> bufferOf(Value value) {
  auto [source, offset, isPart] = shownBy(value);
  value = source;
  if (auto argument = dyn_cast<BlockArgument>(value))
    return FlowBuffer{FlowBuffer::In::Argument, argument.getArgNumber()};
  auto kernel = value.getDefiningOp<KernelOp>();
  if (!kernel)
    return value.getDefiningOp()->emitError()
           << "expected a kernel in the region of a branch or a loop, but got "
              "'"
           << value.getDefiningOp()->getName() << "'";
  auto place = cast<BufferAttr>(
      (*kernel.getBuffers())[cast<OpResult>(value).getResultNumber()]);
  auto position = static_cast<int64_t>(place.getPosition());
  switch (place.getPlace()) {
  case BufferPlace::Argument:
    return FlowBuffer{FlowBuffer::In::Argument, position};
  case BufferPlace::Result:
    return FlowBuffer{FlowBuffer::In::Result, position};
  case BufferPlace::Arena:
    return FlowBuffer{FlowBuffer::In::Arena, position + offset};
  case BufferPlace::Constant:
    break;
  }
  return kernel.emitError() << "expected no kernel to write a constant";
}

FailureOr<SmallVector<FlowBuffer>> lower::cpu::flowBuffersOf(KernelOp kernel) {
  SmallVector<FlowBuffer> buffers;
  SmallVector<Value> values(kernel.getInputs());
  llvm::append_range(values, kernel.getResults());
  for (Value value : values) {
    auto buffer = bufferOf(value);
    if (failed(buffer))
      return failure();
    buffers.push_back(*buffer);
  }
  return buffers;
}

//===----------------------------------------------------------------------===//
// The scratch
//===----------------------------------------------------------------------===//

namespace {

/// Which bytes of the scratch are what.
class Layout {
public:
  Layout(KernelOp kernel, ArrayRef<FlowSteps> regions);

  int64_t arena = 0, nested = 0, total = 0;
  SmallVector<int64_t> first, second; ///< of each carry
  SmallVector<int64_t> input;         ///< of each scanned input: a slice
  SmallVector<int64_t> result;        ///< of each result, or a slice of it
  int64_t condition = 0;

private:
  int64_t add(int64_t bytes) {
    int64_t offset = total;
    total = llvm::alignTo(total + bytes, kBufferAlignment);
    return offset;
  }
};

int64_t bytesOf(Type type) { return byteSize(cast<RankedTensorType>(type)); }

} // namespace

Layout::Layout(KernelOp kernel, ArrayRef<FlowSteps> regions) {
  int64_t arenaBytes = 0, nestedBytes = 0;
  for (const FlowSteps &region : regions) {
    arenaBytes = std::max(arenaBytes, region.arenaBytes);
    for (const FlowStep &step : region.steps)
      nestedBytes = std::max(nestedBytes, step.scratchBytes);
  }
  arena = add(arenaBytes);
  nested = add(nestedBytes);
  Operation *op = flowOf(kernel);
  OperandRange carries = op->getOperands().take_front(0);
  if (auto scan = dyn_cast<ScanOp>(op)) {
    carries = scan.getCarries();
    unsigned numCarries = carries.size();
    for (unsigned i = 0; i < scan.getInputs().size(); ++i)
      input.push_back(
          add(bytesOf(scan.getBody().getArgument(numCarries + i).getType())));
  } else if (auto loop = dyn_cast<WhileOp>(op)) {
    carries = loop.getCarries();
    condition = add(1);
  }
  for (Value carry : carries) {
    first.push_back(add(bytesOf(carry.getType())));
    second.push_back(add(bytesOf(carry.getType())));
  }
  // Carries have their places; of the rest what nobody asks for has one here,
  // and slices of stacks.
  Operation *yield = op->getRegion(0).front().getTerminator();
  for (unsigned i = 0; i < op->getNumResults(); ++i)
    result.push_back(isa<WhileOp>(op) || i < carries.size()
                         ? 0
                         : add(bytesOf(yield->getOperand(i).getType())));
}

int64_t lower::cpu::flowScratchBytes(KernelOp kernel,
                                     ArrayRef<FlowSteps> regions) {
  return Layout(kernel, regions).total;
}

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

namespace {

class FlowEmitter {
public:
  FlowEmitter(KernelOp kernel, ArrayRef<FlowSteps> regions,
              LLVM::LLVMFuncOp function);
  void emit();

private:
  using Values = SmallVector<Value>;

  void emitIf(IfOp op);
  void emitScan(ScanOp op);
  void emitWhile(WhileOp op);
  void run(const FlowSteps &region, ArrayRef<Value> arguments,
           ArrayRef<Value> results);

  Value number(int64_t value) {
    return LLVM::ConstantOp::create(b, loc, b.getI64Type(),
                                    b.getI64IntegerAttr(value));
  }
  Value move(Value base, Value bytes) {
    return LLVM::GEPOp::create(b, loc, pointer, b.getI8Type(), base,
                               ArrayRef<LLVM::GEPArg>{bytes});
  }
  Value inScratch(int64_t offset) { return move(scratch, number(offset)); }
  Value times(Value a, int64_t bytes) {
    return LLVM::MulOp::create(b, loc, a, number(bytes));
  }
  void copy(Value to, Value from, int64_t bytes) {
    LLVM::MemcpyOp::create(b, loc, to, from, number(bytes), false);
  }
  Value isTrue(Value place) {
    Value byte = LLVM::LoadOp::create(b, loc, b.getI8Type(), place);
    Value zero =
        LLVM::ConstantOp::create(b, loc, b.getI8Type(), b.getI8IntegerAttr(0));
    return LLVM::ICmpOp::create(b, loc, LLVM::ICmpPredicate::ne, byte, zero);
  }
  Block *addBlock(unsigned pointers, bool hasCounter) {
    Block *block = new Block;
    function.getBody().push_back(block);
    if (hasCounter)
      block->addArgument(b.getI64Type(), loc);
    for (unsigned i = 0; i < pointers; ++i)
      block->addArgument(pointer, loc);
    return block;
  }
  void jump(Block *to, ValueRange values = {}) {
    LLVM::BrOp::create(b, loc, values, to);
  }
  void branch(Value condition, Block *yes, Block *no) {
    LLVM::CondBrOp::create(b, loc, condition, yes, no);
  }
  void ret() { LLVM::ReturnOp::create(b, loc, ValueRange{}); }

  KernelOp kernel;
  Operation *op;
  ArrayRef<FlowSteps> regions;
  LLVM::LLVMFuncOp function;
  Layout layout;
  OpBuilder b;
  Location loc;
  Type pointer;
  Value scratch, table;
  Values operands; ///< of the op
  Values results;  ///< of the op; null where the kernel does not give it
};

} // namespace

FlowEmitter::FlowEmitter(KernelOp kernel, ArrayRef<FlowSteps> regions,
                         LLVM::LLVMFuncOp function)
    : kernel(kernel), op(flowOf(kernel)), regions(regions), function(function),
      layout(kernel, regions), b(kernel.getContext()), loc(kernel.getLoc()),
      pointer(LLVM::LLVMPointerType::get(kernel.getContext())) {
  Block *entry = function.addEntryBlock(b);
  b.setInsertionPointToStart(entry);
  scratch = entry->getArgument(3);
  size_t most = 1;
  for (const FlowSteps &region : regions)
    for (const FlowStep &step : region.steps)
      most = std::max(most, step.buffers.size());
  table = LLVM::AllocaOp::create(b, loc, pointer, pointer,
                                 number(static_cast<int64_t>(most)));
  auto load = [&](unsigned i) -> Value {
    Value place =
        LLVM::GEPOp::create(b, loc, pointer, pointer, entry->getArgument(0),
                            ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(i)});
    return LLVM::LoadOp::create(b, loc, pointer, place);
  };
  for (Value operand : op->getOperands())
    operands.push_back(load(cast<BlockArgument>(operand).getArgNumber()));
  results.resize(op->getNumResults());
  unsigned inputs = kernel.getInputs().size();
  for (auto [i, value] :
       llvm::enumerate(kernel.getBody().front().getTerminator()->getOperands()))
    results[cast<OpResult>(value).getResultNumber()] = load(inputs + i);
}

void FlowEmitter::run(const FlowSteps &region, ArrayRef<Value> arguments,
                      ArrayRef<Value> made) {
  Value arena = inScratch(layout.arena), nested = inScratch(layout.nested);
  for (const FlowStep &step : region.steps) {
    for (auto [i, buffer] : llvm::enumerate(step.buffers)) {
      Value place = buffer.in == FlowBuffer::In::Argument
                        ? arguments[buffer.position]
                    : buffer.in == FlowBuffer::In::Result
                        ? made[buffer.position]
                        : move(arena, number(buffer.position));
      Value entry =
          LLVM::GEPOp::create(b, loc, pointer, pointer, table,
                              ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(i)});
      LLVM::StoreOp::create(b, loc, place, entry);
    }
    if (step.scratchBytes > 0) // begins as a launch does
      LLVM::StoreOp::create(b, loc, number(0), nested);
    LLVM::CallOp::create(
        b, loc, TypeRange(), step.function,
        ValueRange{table, number(0), number(step.items), nested});
  }
}

void FlowEmitter::emitIf(IfOp branches) {
  Values made;
  for (auto [i, result] : llvm::enumerate(results))
    made.push_back(result ? result : inScratch(layout.result[i]));
  Block *then = addBlock(0, false), *otherwise = addBlock(0, false);
  branch(isTrue(operands[0]), then, otherwise);
  for (auto [block, region] : {std::pair(then, 0), std::pair(otherwise, 1)}) {
    b.setInsertionPointToStart(block);
    run(regions[region], ArrayRef(operands).drop_front(), made);
    ret();
  }
}

void FlowEmitter::emitScan(ScanOp scan) {
  auto length = static_cast<int64_t>(scan.getLength());
  unsigned numCarries = scan.getCarries().size();
  unsigned numInputs = scan.getInputs().size();
  ArrayRef<Value> rest = operands;
  Value trips = number(length);
  if (scan.getTrips()) {
    Value given = LLVM::LoadOp::create(b, loc, b.getI64Type(), rest[0]);
    given = LLVM::SMaxOp::create(b, loc, given, number(0));
    trips = LLVM::SMinOp::create(b, loc, given, trips);
    rest = rest.drop_front();
  }
  ArrayRef<Value> inputs = rest.slice(numCarries, numInputs);
  ArrayRef<Value> constants = rest.drop_front(numCarries + numInputs);
  auto sliceBytes = [&](unsigned argument) {
    return bytesOf(scan.getBody().getArgument(argument).getType());
  };
  Operation *yield = scan.getBody().front().getTerminator();

  Block *header = addBlock(numCarries, true), *body = addBlock(0, false),
        *exit = addBlock(0, false);
  Values begin = {number(0)};
  llvm::append_range(begin, rest.take_front(numCarries));
  jump(header, begin);
  b.setInsertionPointToStart(header);
  Value k = header->getArgument(0);
  Values carries(header->getArguments().drop_front());
  branch(LLVM::ICmpOp::create(b, loc, LLVM::ICmpPredicate::slt, k, trips), body,
         exit);

  b.setInsertionPointToStart(body);
  Value t = k;
  if (scan.getReverse())
    t = LLVM::SubOp::create(b, loc,
                            LLVM::SubOp::create(b, loc, trips, number(1)), k);
  Value odd = LLVM::ICmpOp::create(b, loc, LLVM::ICmpPredicate::ne,
                                   LLVM::AndOp::create(b, loc, k, number(1)),
                                   number(0));
  Values arguments = carries, made;
  for (unsigned i = 0; i < numInputs; ++i) {
    int64_t bytes = sliceBytes(numCarries + i);
    Value slice = move(inputs[i], times(t, bytes));
    if (bytes % kBufferAlignment) {
      Value aligned = inScratch(layout.input[i]);
      copy(aligned, slice, bytes);
      slice = aligned;
    }
    arguments.push_back(slice);
  }
  llvm::append_range(arguments, constants);
  for (unsigned i = 0; i < numCarries; ++i)
    made.push_back(LLVM::SelectOp::create(
        b, loc, odd, inScratch(layout.second[i]), inScratch(layout.first[i])));
  Values next = {LLVM::AddOp::create(b, loc, k, number(1))};
  llvm::append_range(next, made);
  SmallVector<std::pair<unsigned, int64_t>> copied;
  for (unsigned i = numCarries; i < results.size(); ++i) {
    int64_t bytes = bytesOf(yield->getOperand(i).getType());
    if (results[i] && bytes % kBufferAlignment == 0) {
      made.push_back(move(results[i], times(t, bytes)));
      continue;
    }
    made.push_back(inScratch(layout.result[i]));
    if (results[i])
      copied.push_back({i, bytes});
  }
  run(regions[0], arguments, made);
  for (auto [i, bytes] : copied)
    copy(move(results[i], times(t, bytes)), made[i], bytes);
  jump(header, next);

  b.setInsertionPointToStart(exit);
  for (unsigned i = 0; i < numCarries; ++i)
    if (results[i])
      copy(results[i], carries[i], sliceBytes(i));
  // The slices behind the trips.
  if (scan.getTrips())
    for (unsigned i = numCarries; i < results.size(); ++i) {
      if (!results[i])
        continue;
      int64_t bytes = bytesOf(yield->getOperand(i).getType());
      Value zero = LLVM::ConstantOp::create(b, loc, b.getI8Type(),
                                            b.getI8IntegerAttr(0));
      Value missing = LLVM::SubOp::create(b, loc, number(length), trips);
      LLVM::MemsetOp::create(b, loc, move(results[i], times(trips, bytes)),
                             zero, times(missing, bytes), false);
    }
  ret();
}

void FlowEmitter::emitWhile(WhileOp loop) {
  unsigned numCarries = loop.getCarries().size();
  ArrayRef<Value> constants = ArrayRef(operands).drop_front(numCarries);
  Block *header = addBlock(numCarries, true), *body = addBlock(0, false),
        *exit = addBlock(0, false);
  Values begin = {number(0)};
  llvm::append_range(begin, ArrayRef(operands).take_front(numCarries));
  jump(header, begin);
  b.setInsertionPointToStart(header);
  Value k = header->getArgument(0);
  Values carries(header->getArguments().drop_front());
  Values arguments = carries;
  llvm::append_range(arguments, constants);
  Value goesOn = inScratch(layout.condition);
  run(regions[0], arguments, goesOn);
  branch(isTrue(goesOn), body, exit);

  b.setInsertionPointToStart(body);
  Value odd = LLVM::ICmpOp::create(b, loc, LLVM::ICmpPredicate::ne,
                                   LLVM::AndOp::create(b, loc, k, number(1)),
                                   number(0));
  Values made;
  for (unsigned i = 0; i < numCarries; ++i)
    made.push_back(LLVM::SelectOp::create(
        b, loc, odd, inScratch(layout.second[i]), inScratch(layout.first[i])));
  run(regions[1], arguments, made);
  Values next = {LLVM::AddOp::create(b, loc, k, number(1))};
  llvm::append_range(next, made);
  jump(header, next);

  b.setInsertionPointToStart(exit);
  for (unsigned i = 0; i < numCarries; ++i)
    if (results[i])
      copy(results[i], carries[i], bytesOf(loop.getCarries()[i].getType()));
  ret();
}

void FlowEmitter::emit() {
  if (auto branches = dyn_cast<IfOp>(op))
    emitIf(branches);
  else if (auto scan = dyn_cast<ScanOp>(op))
    emitScan(scan);
  else
    emitWhile(cast<WhileOp>(op));
}

void lower::cpu::emitFlow(KernelOp kernel, ArrayRef<FlowSteps> regions,
                          LLVM::LLVMFuncOp function) {
  FlowEmitter(kernel, regions, function).emit();
}
