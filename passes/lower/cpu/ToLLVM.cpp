//===- ToLLVM.cpp - from the code of emitters to the LLVM dialect ---------===//
#include "passes/lower/cpu/ToLLVM.h"
#include "ir/Dialect.h"
#include "passes/lower/common/ElementaryFunctions.h"
#include "passes/lower/common/HalfConversions.h"
#include "passes/lower/common/Polynomials.h"
#include "passes/target/Target.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Affine/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/Transforms/LoweringPatterns.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace tandem;

namespace {
/// Lowers vector.transpose by shuffles. It comes before any canonicalization,
/// which would turn transposes into element-wise moves.
struct LowerTransposes : PassWrapper<LowerTransposes, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LowerTransposes)
  StringRef getName() const override { return "LowerTransposes"; }

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    vector::populateVectorTransposeLoweringPatterns(
        patterns, vector::VectorTransposeLowering::Shuffle16x16);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

/// Polynomials for functions of f32, whose vectors libm has no names for; and
/// integer code for bf16 and f16 where the processor does not convert them.
struct ExpandScalars : PassWrapper<ExpandScalars, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ExpandScalars)
  StringRef getName() const override { return "ExpandScalars"; }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<arith::ArithDialect, math::MathDialect, scf::SCFDialect>();
  }

  void runOnOperation() override {
    bool isFast = usesFastMath(getOperation());
    lower::FloatOptions options{
        .hasScale = hasFeature(getOperation(), "avx512f"), .isFast = isFast};
    RewritePatternSet sigmoids(&getContext()), patterns(&getContext());
    lower::populateLogistic(sigmoids, options);
    if (failed(applyPatternsGreedily(getOperation(), std::move(sigmoids))))
      return signalPassFailure();
    lower::populatePolynomials(patterns, options);
    lower::populateElementaryFunctions(patterns);
    lower::populateHalfConversions(patterns,
                                   hasFeature(getOperation(), "f16c"));
    arith::populateExpandBFloat16Patterns(patterns);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      return signalPassFailure();
    if (isFast)
      contract();
  }

  /// Lets products and sums be rounded as one.
  void contract() {
    auto flags = arith::FastMathFlags::contract;
    getOperation().walk([&](arith::ArithFastMathInterface op) {
      if (isa<arith::AddFOp, arith::SubFOp, arith::MulFOp>(op))
        op->setAttr(
            op.getFastMathAttrName(),
            arith::FastMathFlagsAttr::get(
                &getContext(), op.getFastMathFlagsAttr().getValue() | flags));
    });
  }
};
} // namespace

void lower::cpu::buildToLLVM(OpPassManager &pm) {
  pm.addPass(std::make_unique<LowerTransposes>());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(std::make_unique<ExpandScalars>());
  pm.addPass(createConvertVectorToSCFPass(
      VectorTransferToSCFOptions().enableFullUnroll()));
  pm.addPass(memref::createExpandStridedMetadataPass());
  pm.addPass(createLowerAffinePass());
  pm.addPass(createSCFToControlFlowPass());
  pm.addPass(createConvertVectorToLLVMPass());
  pm.addPass(createConvertMathToLLVMPass());
  pm.addPass(createConvertMathToLibmPass());
  pm.addPass(createUBToLLVMConversionPass());
  pm.addPass(createArithToLLVMConversionPass());
  pm.addPass(createConvertIndexToLLVMPass());
  pm.addPass(createFinalizeMemRefToLLVMConversionPass());
  pm.addPass(createConvertControlFlowToLLVMPass());
  ConvertFuncToLLVMPassOptions functions;
  functions.useBarePtrCallConv = true;
  pm.addPass(createConvertFuncToLLVMPass(functions));
  pm.addPass(createReconcileUnrealizedCastsPass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
}
