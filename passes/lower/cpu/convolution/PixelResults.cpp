//===- PixelResults.cpp - kernels whose vectors are pixels of results -----===//
#include "passes/lower/cpu/convolution/PixelResults.h"
#include "passes/lower/common/Indices.h"

#include "ir/ops/Scalar.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower;
using namespace tandem::lower::cpu;

PixelResults::PixelResults(AnchorKernel &kernel, const Product &product)
    : ConvolutionSides(kernel, product), kernel(kernel), code(kernel.code),
      product(product), conv(product.conv), lanes(kernel.target.lanes(type)) {
  bool isForward = product.lanes == Product::OutputPixels;
  SmallVector<AffineExpr> dims = dimensions(kernel.anchor->getContext(), 5);
  // Group, row, plane and tap.
  AffineExpr ofFilter =
      dims[0] * conv.filtersPerGroup() + dims[isForward ? 1 : 2];
  AffineExpr ofChannel = dims[isForward ? 2 : 1];
  filter =
      kernel.operand(product.aNumber, {ofFilter, ofChannel, dims[3], dims[4]},
                     {conv.groups, across, planes, conv.window.kernel[0],
                      conv.window.kernel[1]});
}

void PixelResults::bindResults(bool areWhole) {
  output = kernel.directOutput(type, product.y, product.sizes, Product::N);
  if (!output && areWhole)
    ends = VectorFinish::of(kernel, product.y, product.sizes, Product::N);
}

Value PixelResults::tap(Value row, Value plane, int64_t tapY, int64_t tapX) {
  Value at = filter.at(
      code, {atGroup, row, plane, code.index(tapY), code.index(tapX)});
  Value element =
      memref::LoadOp::create(code.b, code.loc, filter.memref, ValueRange{at});
  return code.splat(code.widen(element, type), lanes);
}

void PixelResults::storeVector(Value sums, Value row, Value pixel, Value mask) {
  using enum Product::Dim;
  SmallVector<Value> index(Dims);
  index[Image] = atImage;
  index[Group] = atGroup;
  index[M] = row;
  index[N] = pixel;
  if (ends)
    return ends->emit(code, index, sums, mask);
  code.store(sums, output->memref, output->at(code, index), mask);
}

void PixelResults::finishPixels(Value sums, Value row, Value first,
                                Value count) {
  bool isFlat = kernel.keepsIndices();
  Value none = code.index(0);
  code.loop(none, count, 1, [&](Value pixel) {
    Value sum =
        memref::LoadOp::create(code.b, code.loc, sums, ValueRange{pixel});
    Value result = code.add(first, pixel);
    if (!isFlat)
      return kernel.finish(product.index(code, atImage, atGroup, row,
                                         code.div(result, x.results),
                                         code.rem(result, x.results)),
                           sum);
    Value dims[] = {atImage, atGroup, row, result, none, none};
    kernel.finish(product.y, dims, product.sizes, sum);
  });
}
