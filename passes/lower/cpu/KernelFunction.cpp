//===- KernelFunction.cpp - the function around a kernel's code -----------===//
#include "passes/lower/cpu/KernelFunction.h"
#include "passes/lower/common/Kernels.h"
#include "passes/plan/InPlace.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower;

std::string lower::cpu::bodyName(StringRef name) {
  return (name + ".body").str();
}

FailureOr<Work> lower::cpu::emitKernelBody(ModuleOp target, KernelOp kernel,
                                           StringRef name, MethodLog *log) {
  Location loc = kernel.getLoc();
  OpBuilder b = OpBuilder::atBlockEnd(target.getBody());
  SmallVector<int64_t> overwrites = inPlaceInputs(kernel);
  SmallVector<Type> types;
  for (Type type : kernel->getOperandTypes())
    types.push_back(memrefOf(type));
  for (auto [type, input] :
       llvm::zip_equal(kernel->getResultTypes(), overwrites))
    if (input < 0)
      types.push_back(memrefOf(type));
  unsigned buffers = types.size();
  types.append({b.getIndexType(), b.getIndexType(),
                MemRefType::get({1}, b.getI8Type())});
  auto func = func::FuncOp::create(b, loc, bodyName(name),
                                   b.getFunctionType(types, {}));
  func.setPrivate();
  for (unsigned i = 0; i < types.size(); ++i)
    if (isa<MemRefType>(types[i])) {
      func.setArgAttr(i, LLVM::LLVMDialect::getNoAliasAttrName(),
                      b.getUnitAttr());
      func.setArgAttr(i, LLVM::LLVMDialect::getAlignAttrName(),
                      b.getI64IntegerAttr(64));
    }

  Block *entry = func.addEntryBlock();
  b.setInsertionPointToStart(entry);
  auto end = func::ReturnOp::create(b, loc);
  b.setInsertionPoint(end);
  KernelBody body;
  body.log = log;
  unsigned inputs = kernel->getNumOperands(), next = inputs;
  for (unsigned i = 0; i < inputs; ++i)
    body.inputs.push_back(entry->getArgument(i));
  for (int64_t input : overwrites)
    body.outputs.push_back(
        entry->getArgument(input < 0 ? next++ : static_cast<unsigned>(input)));
  body.begin = entry->getArgument(buffers);
  body.end = entry->getArgument(buffers + 1);
  BlockArgument scratch = entry->getArgument(buffers + 2);
  body.scratch = memref::CastOp::create(
      b, loc, MemRefType::get({ShapedType::kDynamic}, b.getI8Type()), scratch);

  FailureOr<Work> work = isLoopKernel(kernel)
                             ? lower::cpu::emitLoops(kernel, b, body)
                             : lower::cpu::emitAnchor(kernel, b, body);
  if (failed(work))
    return failure();
  if (llvm::any_of(body.ahead, [](int64_t bytes) { return bytes != 0; }))
    func->setAttr("passthrough",
                  b.getArrayAttr(b.getStrArrayAttr(
                      {kLoadsAheadAttr,
                       llvm::join(llvm::map_range(body.ahead,
                                                  [](int64_t bytes) {
                                                    return std::to_string(
                                                        bytes);
                                                  }),
                                  ",")})));
  // Only now is the scratch's size known.
  auto scratchType = MemRefType::get({std::max<int64_t>(work->scratchBytes, 1)},
                                     b.getI8Type());
  scratch.setType(scratchType);
  types.back() = scratchType;
  func.setFunctionType(b.getFunctionType(types, {}));
  return work;
}
