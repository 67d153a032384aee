//===- KernelFunction.cpp - the function around a kernel's code -----------===//
#include "passes/lower/cpu/KernelFunction.h"
#include "passes/lower/common/Kernels.h"
#include "passes/lower/cpu/FlowKernel.h"
#include "passes/plan/Collectives.h"
#include "passes/plan/InPlace.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower;

std::string lower::cpu::bodyName(StringRef name) {
  return (name + ".body").str();
}

namespace {
/// The function of a kernel, whose body is to be written.
struct Opened {
  func::FuncOp func;
  KernelBody body;
  BlockArgument scratch; ///< of a size that is not known yet
};
} // namespace

/// Makes the function at the end of `target`; its code goes to the builder.
static Opened open(ModuleOp target, KernelOp kernel, StringRef name,
                   OpBuilder &b) {
  Location loc = kernel.getLoc();
  b.setInsertionPointToEnd(target.getBody());
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
  auto func = func::FuncOp::create(b, loc, lower::cpu::bodyName(name),
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
  Opened opened{func, {}, entry->getArgument(buffers + 2)};
  KernelBody &body = opened.body;
  unsigned inputs = kernel->getNumOperands(), next = inputs;
  for (unsigned i = 0; i < inputs; ++i)
    body.inputs.push_back(entry->getArgument(i));
  for (int64_t input : overwrites)
    body.outputs.push_back(
        entry->getArgument(input < 0 ? next++ : static_cast<unsigned>(input)));
  body.begin = entry->getArgument(buffers);
  body.end = entry->getArgument(buffers + 1);
  body.scratch = memref::CastOp::create(
      b, loc, MemRefType::get({ShapedType::kDynamic}, b.getI8Type()),
      opened.scratch);
  return opened;
}

/// The parameter of scratch says how much there is.
static void setScratch(Opened &opened, int64_t bytes) {
  auto type = MemRefType::get({std::max<int64_t>(bytes, 1)},
                              IntegerType::get(opened.func.getContext(), 8));
  opened.scratch.setType(type);
  SmallVector<Type> types(opened.func.getArgumentTypes());
  types.back() = type;
  opened.func.setFunctionType(
      FunctionType::get(opened.func.getContext(), types, {}));
}

FailureOr<Work> lower::cpu::emitKernelBody(ModuleOp target, KernelOp kernel,
                                           StringRef name) {
  OpBuilder b(kernel.getContext());
  Opened opened = open(target, kernel, name, b);
  KernelBody &body = opened.body;
  FailureOr<Work> work = isLoopKernel(kernel)
                             ? lower::cpu::emitLoops(kernel, b, body)
                             : lower::cpu::emitAnchor(kernel, b, body);
  if (failed(work))
    return failure();
  if (llvm::any_of(body.ahead, [](int64_t bytes) { return bytes != 0; }))
    opened.func->setAttr(
        "passthrough",
        b.getArrayAttr(b.getStrArrayAttr(
            {kLoadsAheadAttr,
             llvm::join(llvm::map_range(body.ahead,
                                        [](int64_t bytes) {
                                          return std::to_string(bytes);
                                        }),
                        ",")})));
  setScratch(opened, work->scratchBytes);
  return work;
}

bool lower::cpu::hasMethods(KernelOp kernel) {
  return !flowOf(kernel) && !standsAlone(kernel);
}

FailureOr<ChosenMethod>
lower::cpu::chooseAlone(KernelOp kernel, const MethodQuestion &question) {
  OpBuilder b(kernel.getContext());
  Opened opened =
      open(kernel->getParentOfType<ModuleOp>(), kernel, "choice", b);
  return isLoopKernel(kernel) ? chooseLoops(kernel, b, opened.body, question)
                              : chooseAnchor(kernel, b, opened.body, question);
}

void lower::cpu::loadDialectsOfCode(MLIRContext *context) {
  context
      ->loadDialect<affine::AffineDialect, arith::ArithDialect,
                    func::FuncDialect, index::IndexDialect, LLVM::LLVMDialect,
                    math::MathDialect, memref::MemRefDialect, scf::SCFDialect,
                    ub::UBDialect, vector::VectorDialect>();
}
