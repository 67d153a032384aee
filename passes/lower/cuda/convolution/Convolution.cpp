//===- Convolution.cpp - convolutions as implicit products for CUDA -------===//
//
// The dimensions of the code are those of ConvolutionProduct. The pixels of all
// images are n of one product for each group, so that small images fill tiles.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/cuda/Methods.h"
#include "passes/lower/cuda/convolution/GemmWindow.h"
#include "passes/lower/cuda/products/GemmFactor.h"
#include "passes/target/Target.h"

#include "ir/ops/Scalar.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cuda;

void lower::cuda::withConvolution(AnchorKernel &kernel, ThreadCode &code,
                                  AskProduct ask) {
  using enum ConvolutionProduct::Dim;
  auto p = ConvolutionProduct::of(kernel.anchor);
  auto type = cast<RankedTensorType>(kernel.anchor->getResult(0).getType());
  if (type.getNumElements() == 0)
    return;
  Gemm gemm;
  gemm.element = type.getElementType();
  gemm.type = scalar::computeType(gemm.element);
  gemm.isTf32 = productPrecision(kernel.anchor) == "tf32";
  gemm.batches = p.sizes[Group];
  gemm.M = p.sizes[M];
  gemm.N = p.sizes[Image] * p.sizes[N];
  gemm.K = p.sizes[K0] * p.sizes[K1];
  gemm.neighbours = p.lineLength;

  SmallVector<Value> at(Dims, code.index(0)); // of the block
  MatrixFactor a(kernel, code, p.aNumber, p.a, p.sizes, {M}, {K0, K1});
  std::optional<MatrixFactor> matrix;
  std::optional<WindowFactor> windows;
  if (p.isPointwise())
    matrix.emplace(kernel, code, p.bNumber, p.b, p.sizes,
                   ArrayRef<unsigned>{Image, N}, ArrayRef<unsigned>{K0, K1});
  else
    windows.emplace(kernel, code, p);
  gemm.a = &a;
  gemm.b = matrix ? static_cast<GemmFactor *>(&*matrix) : &*windows;
  gemm.enter = [&](Value group) {
    at[Group] = group;
    a.enter(at);
    if (matrix)
      matrix->enter(at);
    if (windows)
      windows->enter(group);
  };
  gemm.finish = [&](ArrayRef<GemmElement> elements) {
    SmallVector<AnchorKernel::Element> together;
    for (const GemmElement &element : elements) {
      auto [image, inImage] = code.split(element.n, p.sizes[N]);
      auto [line, column] = code.split(inImage, p.lineLength);
      together.push_back({p.index(code, image, at[Group], element.m, line,
                                  code.add(column, element.j)),
                          element.sum});
    }
    return kernel.finishTogether(together);
  };
  ProductKernel product{kernel.kernel, code, gemm};
  ask(product);
}
