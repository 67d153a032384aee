//===- ToNVVM.cpp - from the code of emitters to the NVVM dialect ---------===//
#include "passes/lower/cuda/ToNVVM.h"
#include "passes/lower/common/DoubleFunctions.h"
#include "passes/lower/common/ElementaryFunctions.h"
#include "passes/lower/common/HalfConversions.h"
#include "passes/lower/common/Polynomials.h"
#include "passes/lower/cuda/Functions.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Affine/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace tandem;

namespace {
/// An op of math that the GPU has instructions for, as an intrinsic of LLVM.
/// Left to itself, convert-gpu-to-nvvm makes calls of libdevice of them, and an
/// approximate sqrt.
template <typename Op> struct ToIntrinsic : OpRewritePattern<Op> {
  ToIntrinsic(MLIRContext *context, StringRef name)
      : OpRewritePattern<Op>(context), name(name) {}

  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    auto call = LLVM::CallIntrinsicOp::create(
        rewriter, op.getLoc(), op.getType(), rewriter.getStringAttr(name),
        op->getOperands());
    rewriter.replaceOp(op, call.getResults());
    return success();
  }
  StringRef name;
};

/// Functions as arithmetic, and instructions as intrinsics.
struct ExpandFunctions
    : PassWrapper<ExpandFunctions, OperationPass<gpu::GPUModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ExpandFunctions)
  StringRef getName() const override { return "ExpandFunctions"; }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<arith::ArithDialect, LLVM::LLVMDialect, math::MathDialect,
                    scf::SCFDialect>();
  }
  void runOnOperation() override {
    MLIRContext *context = &getContext();
    RewritePatternSet quotients(context), patterns(context);
    lower::cuda::populateLogistic(quotients);
    if (failed(applyPatternsGreedily(getOperation(), std::move(quotients))))
      return signalPassFailure();
    lower::cuda::populateFunctions(patterns);
    lower::populatePolynomials(patterns);
    lower::populateDoubleFunctions(patterns);
    lower::populateElementaryFunctions(patterns);
    lower::populateIntegersToHalf(patterns);
    patterns.add<ToIntrinsic<math::AbsFOp>>(context, "llvm.fabs");
    patterns.add<ToIntrinsic<math::CeilOp>>(context, "llvm.ceil");
    patterns.add<ToIntrinsic<math::CopySignOp>>(context, "llvm.copysign");
    patterns.add<ToIntrinsic<math::FloorOp>>(context, "llvm.floor");
    patterns.add<ToIntrinsic<math::RoundOp>>(context, "llvm.round");
    patterns.add<ToIntrinsic<math::RoundEvenOp>>(context, "llvm.roundeven");
    patterns.add<ToIntrinsic<math::SqrtOp>>(context, "llvm.sqrt");
    patterns.add<ToIntrinsic<math::TruncOp>>(context, "llvm.trunc");
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

/// Dynamic shared memory is declared by the launch, not by the module: with any
/// other linkage it would be a byte of its own.
struct FixSharedMemory
    : PassWrapper<FixSharedMemory, OperationPass<gpu::GPUModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(FixSharedMemory)
  StringRef getName() const override { return "FixSharedMemory"; }
  void runOnOperation() override {
    getOperation().walk([](LLVM::GlobalOp global) {
      auto type = dyn_cast<LLVM::LLVMArrayType>(global.getGlobalType());
      if (global.getAddrSpace() != 3 || !type || type.getNumElements() != 0)
        return;
      global.setLinkage(LLVM::Linkage::External);
      global.setAlignment(1024);
    });
  }
};
} // namespace

void lower::cuda::buildToNVVM(OpPassManager &module) {
  OpPassManager &pm = module.nest<gpu::GPUModuleOp>();
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(std::make_unique<ExpandFunctions>());
  pm.addPass(createConvertVectorToSCFPass(
      VectorTransferToSCFOptions().enableFullUnroll()));
  pm.addPass(createSCFToControlFlowPass());
  pm.addPass(memref::createExpandStridedMetadataPass());
  pm.addPass(createLowerAffinePass());
  pm.addPass(createConvertNVGPUToNVVMPass());
  ConvertVectorToLLVMPassOptions vectors;
  vectors.useVectorAlignment = true;
  pm.addPass(createConvertVectorToLLVMPass(vectors));
  pm.addPass(createConvertMathToLLVMPass());
  ConvertGpuOpsToNVVMOpsOptions gpu;
  gpu.useBarePtrCallConv = true;
  pm.addPass(createConvertGpuOpsToNVVMOps(gpu));
  pm.addPass(createConvertNVVMToLLVMPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
  pm.addPass(std::make_unique<FixSharedMemory>());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
}
