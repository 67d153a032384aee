//===- KernelFunction.cpp - the function around a kernel's code -----------===//
#include "passes/lower/cuda/KernelFunction.h"
#include "passes/lower/common/Kernels.h"
#include "passes/plan/InPlace.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower;
using lower::cuda::LaunchShape;

/// Its numbers are those of a CPU.
static LogicalResult checkSchedule(KernelOp kernel) {
  ScheduleAttr schedule = kernel.getScheduleAttr();
  if (!schedule)
    return success();
  auto method = schedule.getMethod();
  if (method && schedule == ScheduleAttr::get(kernel.getContext(), method, 0, 0,
                                              0, 0, {}, {}))
    return success();
  return kernel.emitError()
         << "expected the schedule of a kernel for cuda to say its method "
            "alone, but got "
         << schedule;
}

LogicalResult lower::cuda::emitKernelFunction(gpu::GPUModuleOp target,
                                              KernelOp kernel,
                                              KernelFunction &lowered,
                                              MethodLog *log) {
  if (failed(checkSchedule(kernel)))
    return failure();
  Location loc = kernel.getLoc();
  OpBuilder b = OpBuilder::atBlockEnd(target.getBody());
  SmallVector<int64_t> overwrites = inPlaceInputs(kernel);
  SmallVector<Type> types;
  for (Type type : kernel->getOperandTypes())
    types.push_back(memrefOf(type));
  for (Type type : kernel->getResultTypes())
    types.push_back(memrefOf(type));
  auto func = gpu::GPUFuncOp::create(b, loc, lowered.name,
                                     b.getFunctionType(types, {}));
  func->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), b.getUnitAttr());
  unsigned inputs = kernel->getNumOperands();
  for (unsigned i = 0; i < types.size(); ++i) {
    bool isWritten =
        i >= inputs || llvm::is_contained(overwrites, static_cast<int64_t>(i));
    func.setArgAttr(i, LLVM::LLVMDialect::getAlignAttrName(),
                    b.getI64IntegerAttr(64));
    // What is overwritten in place is no longer read through its own pointer.
    func.setArgAttr(i, LLVM::LLVMDialect::getNoAliasAttrName(),
                    b.getUnitAttr());
    if (!isWritten)
      func.setArgAttr(i, LLVM::LLVMDialect::getReadonlyAttrName(),
                      b.getUnitAttr());
  }
  Block &entry = func.getBody().front();
  b.setInsertionPointToEnd(&entry);
  auto end = gpu::ReturnOp::create(b, loc);
  b.setInsertionPoint(end);

  KernelBody body;
  body.log = log;
  for (unsigned i = 0; i < inputs; ++i)
    body.inputs.push_back(entry.getArgument(i));
  for (auto [i, input] : llvm::enumerate(overwrites))
    body.outputs.push_back(entry.getArgument(
        input < 0 ? inputs + i : static_cast<unsigned>(input)));
  lower::cuda::ThreadCode code(b, loc, lower::cuda::CudaTarget::of(kernel));
  FailureOr<LaunchShape> shape =
      isLoopKernel(kernel) ? lower::cuda::emitLoops(kernel, code, body)
                           : lower::cuda::emitAnchor(kernel, code, body);
  if (failed(shape))
    return failure();
  lowered.shape = *shape;
  lowered.sharedBytes = code.sharedBytes();
  lowered.buffers = static_cast<int64_t>(types.size());
  llvm::append_range(lowered.tensorMaps, code.tensorMaps());
  if (lowered.sharedBytes > code.target.sharedBytes())
    return kernel->emitError()
           << "kernel '" << kernel.getName() << "' needs "
           << lowered.sharedBytes << " bytes of shared memory, but 'sm_"
           << code.target.sm << "' has " << code.target.sharedBytes();
  func.setKnownBlockSizeAttr(b.getDenseI32ArrayAttr(llvm::map_to_vector<3>(
      shape->block, [](int64_t n) { return static_cast<int32_t>(n); })));
  // Known ranges make divisions of indices ones of 32 bits.
  auto bound = [&](auto id, ArrayRef<int64_t> sizes) {
    id.setUpperBoundAttr(
        b.getIndexAttr(sizes[static_cast<size_t>(id.getDimension())]));
  };
  func.walk([&](gpu::ThreadIdOp id) { bound(id, shape->block); });
  func.walk([&](gpu::BlockIdOp id) { bound(id, shape->grid); });
  return success();
}
