//===- OpsResize.cpp - ONNX: images of another size, and at other places --===//
#include "compiler/import/onnx/Ops.h"

#include "mlir/IR/Diagnostics.h"

#include <cmath>
#include <cstdio>

using namespace mlir;
using namespace tandem;
using namespace tandem::onnx;

static NamedAttribute numbersAttr(Node &node, StringRef name,
                                  ArrayRef<double> list) {
  return node.attr(name, node.builder().getDenseF64ArrayAttr(list));
}

/// Sizes that keep the proportions of the operand's.
static void keepProportions(Node &node, StringRef policy,
                            ArrayRef<int64_t> dims,
                            SmallVectorImpl<int64_t> &sizes,
                            SmallVectorImpl<double> &scales) {
  double chosen = 0;
  for (auto [i, dim] : llvm::enumerate(dims)) {
    double scale = double(sizes[i]) / double(node.shape(0)[dim]);
    bool takes =
        i == 0 || (policy == "not_larger" ? scale < chosen : scale > chosen);
    chosen = takes ? scale : chosen;
  }
  for (auto [i, dim] : llvm::enumerate(dims)) {
    sizes[i] = static_cast<int64_t>(
        std::floor(chosen * double(node.shape(0)[dim]) + 0.5));
    scales.push_back(chosen);
  }
}

/// "8.5": as C's %g.
static std::string text(float number) {
  char text[32];
  std::snprintf(text, sizeof(text), "%g", double(number));
  return text;
}

/// Aligned corners are as far apart as the ONNX reference says, by the length
/// before it is made whole.
static void warnOfLengths(Node &node, ArrayRef<int64_t> dims,
                          ArrayRef<double> scales) {
  for (auto [dim, scale] : llvm::zip(dims, scales)) {
    int64_t size = node.shape(0)[dim];
    float length = float(size) * float(scale), whole = std::floor(length);
    if (length == whole || !(whole >= 2) || size < 2)
      continue;
    emitWarning(node.loc())
        << "dimension " << dim << " of " << size << " times its scale is "
        << text(length)
        << ", by which align_corners divides as the ONNX reference does; "
           "PyTorch and ONNX Runtime take "
        << text(whole)
        << "; 'sizes' in place of scales are the same to all of them";
    return;
  }
}

static LogicalResult translateResize(Node &node) {
  if (failed(expectOperands(node, 1)))
    return failure();
  bool isFirst = node.opset() < 11; // version 10: as Upsample
  std::string mode = node.choice("mode", {"nearest", "linear", "cubic"});
  std::string coordinates = "asymmetric", rounding = "floor";
  if (!isFirst) {
    coordinates =
        node.choice("coordinate_transformation_mode",
                    {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",
                     "align_corners", "asymmetric", "tf_half_pixel_for_nn",
                     "tf_crop_and_resize"});
    rounding =
        node.choice("nearest_mode", {"round_prefer_floor", "round_prefer_ceil",
                                     "floor", "ceil"});
  }
  double cubic = node.number("cubic_coeff_a", -0.75);
  double outside = node.number("extrapolation_value", 0);
  bool excludes = node.integer("exclude_outside", 0) != 0;
  bool antialias = node.integer("antialias", 0) != 0;
  std::string policy = node.choice("keep_aspect_ratio_policy",
                                   {"stretch", "not_larger", "not_smaller"});
  SmallVector<int64_t> all;
  for (int64_t d = 0; d < node.rank(0); ++d)
    all.push_back(d);
  auto dims =
      dimensions(node, "'axes'", node.integers("axes", all), node.rank(0));
  if (failed(dims))
    return failure();
  // x, scales; or from version 11 on x, roi, scales, sizes.
  size_t scalesAt = isFirst ? 1 : 2;
  SmallVector<double> scales, roi;
  SmallVector<int64_t> sizes;
  auto isGiven = [&](size_t i) {
    return node.has(i) && node.type(i) && node.type(i).getNumElements() > 0;
  };
  if (isGiven(scalesAt)) {
    auto given = node.needNumbers(scalesAt, "the scales");
    if (failed(given))
      return failure();
    scales = *given;
  }
  if (!isFirst && isGiven(3)) {
    auto given = node.needInts(3, "the sizes");
    if (failed(given))
      return failure();
    sizes = *given;
  }
  if (sizes.empty() == scales.empty())
    return node.error("expected either scales or sizes");
  if (std::max(sizes.size(), scales.size()) != dims->size())
    return node.error("expected " + Twine(dims->size()) +
                      " scales or sizes, but got " +
                      Twine(std::max(sizes.size(), scales.size())));
  if (coordinates == "tf_crop_and_resize") {
    if (!isGiven(1))
      return node.error("expected the region to cut out");
    auto given = node.needNumbers(1, "the region");
    if (failed(given))
      return failure();
    roi = *given;
  }
  if (sizes.empty() && coordinates == "align_corners")
    warnOfLengths(node, *dims, scales);
  if (!sizes.empty() && policy != "stretch")
    keepProportions(node, policy, *dims, sizes, scales);
  OpBuilder &b = node.builder();
  SmallVector<NamedAttribute> list{
      node.attr("dims", ArrayRef<int64_t>(*dims)),
      node.attr("mode", StringRef(mode)),
      node.attr("coordinates", StringRef(coordinates)),
      node.attr("rounding", StringRef(rounding)),
      node.attr("cubic_coefficient", cubic),
      node.attr("exclude_outside", b.getBoolAttr(excludes)),
      node.attr("antialias", b.getBoolAttr(antialias)),
      node.attr("extrapolation_value", outside)};
  if (!sizes.empty())
    list.push_back(node.attr("sizes", ArrayRef<int64_t>(sizes)));
  if (!scales.empty())
    list.push_back(numbersAttr(node, "scales", scales));
  if (!roi.empty())
    list.push_back(numbersAttr(node, "roi", roi));
  return give(node, node.call("resize", node.operand(0), list));
}

static LogicalResult translateUpsample(Node &node) {
  if (failed(expectOperands(node, 1)))
    return failure();
  std::string mode = node.choice("mode", {"nearest", "linear", "bilinear"});
  SmallVector<double> scales;
  if (node.opset() >= 9) {
    if (failed(expectOperands(node, 2)))
      return failure();
    auto given = node.needNumbers(1, "the scales");
    if (failed(given))
      return failure();
    scales = *given;
  } else if (node.opset() >= 7) {
    scales = node.numbers("scales");
  } else {
    scales.assign(node.rank(0), 1.0);
    if (node.rank(0) != 4)
      return node.error("expected rank 4, but got " + Twine(node.rank(0)));
    scales[2] = node.number("height_scale", 1);
    scales[3] = node.number("width_scale", 1);
  }
  if (int64_t(scales.size()) != node.rank(0))
    return node.error("expected " + Twine(node.rank(0)) + " scales, but got " +
                      Twine(scales.size()));
  return give(
      node,
      node.call("resize", node.operand(0),
                {node.attr("mode",
                           StringRef(mode == "nearest" ? "nearest" : "linear")),
                 node.attr("coordinates", StringRef("asymmetric")),
                 node.attr("rounding", StringRef("floor")),
                 numbersAttr(node, "scales", scales)}));
}

static LogicalResult translateGridSample(Node &node) {
  if (failed(expectOperands(node, 2)))
    return failure();
  std::string mode = node.choice(
      "mode", {"bilinear", "linear", "nearest", "bicubic", "cubic"});
  std::string padding =
      node.choice("padding_mode", {"zeros", "border", "reflection"});
  bool align = node.integer("align_corners", 0) != 0;
  StringRef name = mode == "linear"  ? "bilinear"
                   : mode == "cubic" ? "bicubic"
                                     : StringRef(mode);
  return give(node, node.call("grid_sample", {node.operand(0), node.operand(1)},
                              {node.attr("mode", name),
                               node.attr("padding_mode", StringRef(padding)),
                               node.attr("align_corners",
                                         node.builder().getBoolAttr(align))}));
}

/// A grid of the places that an affine map takes each element from.
static LogicalResult translateAffineGrid(Node &node) {
  if (failed(expectOperands(node, 2)))
    return failure();
  auto size = node.needInts(1, "the size");
  bool align = node.integer("align_corners", 0) != 0;
  if (failed(size))
    return failure();
  return give(node, node.call("affine_grid", node.operand(0),
                              {node.attr("size", ArrayRef<int64_t>(*size)),
                               node.attr("align_corners",
                                         node.builder().getBoolAttr(align))}));
}

static LogicalResult translateRoiAlign(Node &node) {
  if (failed(expectOperands(node, 3)))
    return failure();
  std::string mode = node.choice("mode", {"avg", "max"});
  std::string coordinates = "output_half_pixel";
  if (node.opset() >= 16)
    coordinates = node.choice("coordinate_transformation_mode",
                              {"half_pixel", "output_half_pixel"});
  int64_t size[] = {node.integer("output_height", 1),
                    node.integer("output_width", 1)};
  int64_t ratio = node.integer("sampling_ratio", 0);
  if (ratio < 1)
    return node.unsupported("a 'sampling_ratio' of 0: the number of samples "
                            "depends on the data");
  return give(
      node,
      node.call("roi_align",
                {node.operand(0), node.operand(1), node.operand(2)},
                {node.attr("output_size", ArrayRef<int64_t>(size)),
                 node.attr("spatial_scale", node.number("spatial_scale", 1)),
                 node.attr("sampling_ratio", ratio),
                 node.attr("aligned", node.builder().getBoolAttr(coordinates ==
                                                                 "half_pixel")),
                 node.attr("mode", StringRef(mode))}));
}

void onnx::addResizeOps(OpTable &table) {
  table.add("Resize", translateResize, 10);
  table.add("Upsample", translateUpsample, 1, 9);
  table.add("GridSample", translateGridSample, 16);
  table.add("AffineGrid", translateAffineGrid, 20);
  table.add("RoiAlign", translateRoiAlign, 10);
}
