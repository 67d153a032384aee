//===- DepthwiseFilterGrad.cpp - gradients of filters of one plane --------===//
//
// An item is a plane of x with its plane of dy. Lanes are neighbouring pixels:
// each tap has a register of sums (of short lines, a part of one), to which the
// products of a vector of dy and what it sees at that tap, in a padded copy of
// x, are added. The lanes are added at the end.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/cpu/convolution/DepthwiseFilterGrad.h"
#include "passes/lower/common/ConvolutionProduct.h"
#include "passes/lower/common/Indices.h"
#include "passes/lower/cpu/convolution/PaddedImages.h"

#include "ir/ops/Scalar.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cpu;
using namespace tandem::lower;

namespace {
class DepthwiseFilterGrad {
public:
  explicit DepthwiseFilterGrad(AnchorKernel &kernel);
  Fit fit() const;
  double multiplyAdds() const;
  void takeScratch();
  Work emit();

private:
  Code::Values addLine(Value image, Value row, ValueRange sums);
  void finish(Value plane, Code::Values sums);

  AnchorKernel &kernel;
  Code &code;
  Convolution2d conv;
  WindowAxis y, x;
  Type type; ///< of the sums
  int64_t lanes, taps;
  Operand image, gradient;
  std::optional<PaddedImages> padded;
  Value ofTaps; ///< the sums of a block of taps
  Value plane;  ///< of the item
};
} // namespace

DepthwiseFilterGrad::DepthwiseFilterGrad(AnchorKernel &kernel)
    : kernel(kernel), code(kernel.code), conv(convolutionOf(kernel.anchor)),
      y(WindowAxis::ofOutput(conv.window, 0)),
      x(WindowAxis::ofOutput(conv.window, 1)),
      taps(conv.window.kernel[0] * conv.window.kernel[1]) {
  auto result = cast<RankedTensorType>(kernel.anchor->getResult(0).getType());
  type = scalar::computeType(result.getElementType());
  lanes = x.lanes(kernel.target.lanes(type));
  SmallVector<AffineExpr> dims = dimensions(kernel.anchor->getContext(), 4);
  image = kernel.operand(0, dims, conv.inputShape());
  gradient = kernel.operand(1, dims, conv.outputShape());
}

Fit DepthwiseFilterGrad::fit() const {
  auto isLine = [](const Operand &operand) {
    return operand.isAffine() && operand.stride(3) == 1;
  };
  if (conv.groups == 0 || conv.batch == 0 || taps == 0 || y.results == 0 ||
      x.results == 0 || y.seen == 0 || x.seen == 0)
    return Fit::impossible("expected elements but got none");
  if (conv.channels != conv.groups || conv.filters != conv.groups)
    return Fit::impossible(
        "expected groups of one plane of x and one of dy but got " +
        Twine(conv.channelsPerGroup()) + " and " +
        Twine(conv.filtersPerGroup()));
  if (x.step > 2)
    return Fit::impossible("expected windows of lines at most 2 pixels apart "
                           "but got " +
                           Twine(x.step));
  // Sums, a vector of dy and one of x are in registers.
  if (int64_t most = kernel.target.registers - 3; taps > most)
    return Fit::impossible("expected at most " + Twine(most) +
                           " taps, a register each, but got " + Twine(taps));
  if (!isLine(image) || !isLine(gradient))
    return Fit::impossible("expected x and dy whose lines are side by side in "
                           "memory but got others");
  return Fit::good();
}

/// Of whole vectors of pixels.
double DepthwiseFilterGrad::multiplyAdds() const {
  return static_cast<double>(conv.groups) * conv.batch * taps * y.results *
         llvm::alignTo(x.results, lanes);
}

/// The sums with those of a line of dy, whose padded image is in scratch.
Code::Values DepthwiseFilterGrad::addLine(Value image, Value row,
                                          ValueRange sums) {
  Value from = gradient.at(code, {image, plane, row, {}});
  Value seen = code.mul(row, y.step * padded->rowStride);
  auto add = [&](Value column, Value mask, ValueRange before) {
    Code::Values after;
    Value dy = code.widen(
        code.load(gradient.memref, code.add(from, column), lanes, mask), type);
    for (const WindowAxis::Tap &tapY : y.taps[0])
      for (const WindowAxis::Tap &tapX : x.taps[0]) {
        Value at =
            code.add(code.add(seen, column), tapY.offset * padded->rowStride +
                                                 padded->column(tapX.offset));
        after.push_back(
            code.multiplyAdd(dy, code.load(padded->memref, at, lanes, mask),
                             before[after.size()]));
      }
    return after;
  };
  int64_t whole = x.results / lanes * lanes;
  Code::Values result(sums);
  result = code.loop(
      code.index(0), code.index(whole), lanes, result,
      [&](Value column, ValueRange in) { return add(column, {}, in); });
  if (whole < x.results)
    result = add(code.index(whole),
                 code.firstLanes(code.index(x.results - whole), lanes), result);
  return result;
}

/// Adds the lanes of each tap's sums: those of `lanes` taps are turned, and
/// their vectors added in pairs.
void DepthwiseFilterGrad::finish(Value plane, Code::Values sums) {
  int64_t width = conv.window.kernel[1];
  for (int64_t first = 0; first < taps; first += lanes) {
    Code::Values rows(sums.begin() + first,
                      sums.begin() + std::min(first + lanes, taps));
    rows.resize(lanes, code.zeros(type, lanes));
    rows = code.transpose(rows);
    for (size_t count = rows.size(); count > 1; count /= 2)
      for (size_t i = 0; i < count / 2; ++i)
        rows[i] = arith::AddFOp::create(code.b, code.loc, rows[i],
                                        rows[i + count / 2]);
    code.store(rows[0], ofTaps, {code.index(0)});
    for (int64_t tap = first; tap < std::min(first + lanes, taps); ++tap) {
      Value sum = memref::LoadOp::create(code.b, code.loc, ofTaps,
                                         ValueRange{code.index(tap - first)});
      kernel.finish({plane, code.index(0), code.index(tap / width),
                     code.index(tap % width)},
                    sum);
    }
  }
}

void DepthwiseFilterGrad::takeScratch() {
  padded.emplace(kernel, image, y, x, /*images=*/1, /*planes=*/1,
                 y.neighbours(), type, /*splits=*/x.step == 2);
  ofTaps = kernel.scratch.take(code, {lanes}, type);
}

Work DepthwiseFilterGrad::emit() {
  int64_t lines = y.neighbours();
  takeScratch();
  Value zero = code.index(0);
  kernel.forEachItem([&](Value item) {
    plane = item;
    Code::Values none(taps, code.zeros(type, lanes));
    // Sums of images are short.
    Code::Values sums =
        code.loop(zero, code.index(conv.batch), 1, none,
                  [&](Value image, ValueRange before) {
                    padded->fill({image, code.add(image, 1)},
                                 {item, code.add(item, 1)}, zero);
                    Code::Values own =
                        code.loop(zero, code.index(lines), 1, none,
                                  [&](Value row, ValueRange in) {
                                    return addLine(image, row, in);
                                  });
                    for (auto [sum, old] : llvm::zip_equal(own, before))
                      sum = arith::AddFOp::create(code.b, code.loc, old, sum);
                    return own;
                  });
    finish(item, sums);
  });
  Work work;
  work.items = conv.groups;
  double pixels = static_cast<double>(conv.batch) * y.results * x.results;
  double seen = static_cast<double>(conv.batch) * y.seen * x.seen;
  work.grain = grainFor(work.items, 2 * pixels * taps,
                        elementBytes(type) * (pixels + seen));
  work.scratchBytes = kernel.scratch.bytes();
  return work;
}

Fit lower::cpu::fitDepthwiseFilterGrad(AnchorKernel &kernel) {
  if (!isa<Conv2dFilterGradOp>(kernel.anchor))
    return Fit::impossible("expected a gradient of filters but got '" +
                           kernel.anchor->getName().getStringRef() + "'");
  return DepthwiseFilterGrad(kernel).fit();
}

double lower::cpu::secondsOfDepthwiseFilterGrad(AnchorKernel &kernel) {
  return secondsOf(kernel.kernel, kernel.anchor,
                   DepthwiseFilterGrad(kernel).multiplyAdds());
}

int64_t lower::cpu::scratchOfDepthwiseFilterGrad(AnchorKernel &kernel) {
  DepthwiseFilterGrad gradient(kernel);
  return kernel.countScratch([&] { gradient.takeScratch(); });
}

FailureOr<Work> lower::cpu::emitDepthwiseFilterGrad(AnchorKernel &kernel) {
  return DepthwiseFilterGrad(kernel).emit();
}
