//===- Methods.h - the methods of kernels for CUDA ------------------------===//
//
// The tables, one a family of kernels. The page to read is Methods.cpp; how to
// add a row is docs/ADDING_A_METHOD.md.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_CUDA_METHODS_H
#define TANDEM_PASSES_LOWER_CUDA_METHODS_H

#include "passes/lower/common/Method.h"
#include "passes/lower/cuda/products/Gemm.h"
#include "passes/plan/LoopNest.h"

namespace tandem::lower::cuda {

class LoopEmitter;

/// What methods see of a product: of a matmul or a convolution.
struct ProductKernel {
  KernelOp kernel;
  ThreadCode &code;
  const Gemm &gemm;
  /// The same product of what its factors are casts of, where tensor cores
  /// multiply that (passes/target/ByteProducts.h); else null.
  const Gemm *bytes = nullptr;
};
using ProductMethods = MethodTable<Method<ProductKernel, LaunchShape>>;
const ProductMethods &productMethods();

/// Calls `ask` with the product that a matmul or a convolution is, unless its
/// result has no elements.
using AskProduct = llvm::function_ref<void(ProductKernel &)>;
void withMatmul(AnchorKernel &kernel, ThreadCode &code, AskProduct ask);
void withConvolution(AnchorKernel &kernel, ThreadCode &code, AskProduct ask);

/// What methods see of a kernel around another op.
struct AroundAnchor {
  AnchorKernel &kernel;
  ThreadCode &code;
};
using AnchorMethods = MethodTable<Method<AroundAnchor, LaunchShape>>;
/// Null for products and for families without code.
const AnchorMethods *methodsOf(AnchorFamily family);

/// What methods see of a loop kernel: the nests of its parts, and the emitter
/// of the first, which is the only one in most.
struct LoopKernel {
  KernelOp kernel;
  llvm::ArrayRef<LoopNest> nests;
  LoopEmitter &first;
  ThreadCode &code;
  const KernelBody &body;

  bool isPointwise() const {
    return llvm::all_of(
        nests, [](const LoopNest &nest) { return nest.reductions.empty(); });
  }
};
using LoopMethods = MethodTable<Method<LoopKernel, LaunchShape>>;
const LoopMethods &loopMethods();

/// The code of the parts, pointwise ones and columns, each with blocks of its
/// own (loops/LoopsParts.cpp).
LaunchShape emitParts(const LoopKernel &loops);

} // namespace tandem::lower::cuda

#endif
