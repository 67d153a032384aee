//===- ImageRows.cpp - calls of interpolation, sampling and signals -------===//
#include "tests/functions/Rows.h"

using namespace tandem::test;

static const RowOperand images{tensorOf("1x2x3x4")};

void tandem::test::addInterpolationFunctionRows(
    std::vector<FunctionRow> &rows) {
  auto add = [&](std::string name, RowOperand x, std::string attributes) {
    rows.push_back({"interpolate",
                    "interpolate_" + name,
                    {std::move(x)},
                    "{" + attributes + "}"});
  };
  add("nearest", images, "size = array<i64: 5, 3>");
  add("nearest_scale", images, "scale_factor = array<f64: 2.0, 1.5>");
  add("nearest_exact", images,
      "size = array<i64: 5, 3>, mode = \"nearest-exact\"");
  add("linear", {tensorOf("2x2x5")}, "size = 8 : i64, mode = \"linear\"");
  add("bilinear", images, "size = array<i64: 5, 3>, mode = \"bilinear\"");
  add("aligned", images,
      "size = array<i64: 5, 1>, mode = \"bilinear\", align_corners = true");
  add("trilinear", {tensorOf("1x1x2x3x2")},
      "size = array<i64: 3, 4, 4>, mode = \"trilinear\"");
  add("bicubic", images,
      "scale_factor = array<f64: 1.7, 0.6>, mode = \"bicubic\"");
  auto resize = [&](std::string name, std::string attributes) {
    rows.push_back({"resize",
                    "resize_" + name,
                    {images},
                    "{dims = array<i64: 2, 3>, " + attributes + "}"});
  };
  resize("nearest", "sizes = array<i64: 2, 9>, rounding = \"ceil\"");
  resize("antialias", "sizes = array<i64: 2, 2>, mode = \"linear\", "
                      "antialias = true");
  resize("cubic", "sizes = array<i64: 2, 9>, mode = \"cubic\", "
                  "exclude_outside = true, coordinates = \"asymmetric\"");
  resize("crop", "sizes = array<i64: 3, 3>, mode = \"linear\", coordinates = "
                 "\"tf_crop_and_resize\", extrapolation_value = 3.0, roi = "
                 "array<f64: 0.4, 0.6, 1.2, 1.7>");
}

void tandem::test::addSamplingFunctionRows(std::vector<FunctionRow> &rows) {
  RowOperand grid{tensorOf("1x2x3x2"), -0.9, 0.9},
      far{tensorOf("1x2x3x2"), -2, 2};
  // The kinks of a grid are everywhere: one differentiation, of its values.
  for (const char *padding : {"zeros", "border", "reflection"})
    for (const char *mode : {"bilinear", "nearest", "bicubic"})
      rows.push_back({"grid_sample",
                      std::string("grid_sample_") + mode + "_" + padding,
                      {images, far},
                      std::string("{mode = \"") + mode +
                          "\", padding_mode = \"" + padding + "\"}",
                      1,
                      1e-5});
  rows.push_back({"grid_sample",
                  "grid_sample_aligned",
                  {images, grid},
                  "{align_corners = true}",
                  1});
  rows.push_back({"grid_sample",
                  "grid_sample_pixels",
                  {images, {tensorOf("1x2x2x2"), 0.1, 0.9}},
                  "{pixels = true}",
                  1});
  rows.push_back({"grid_sample",
                  "grid_sample_3d",
                  {{tensorOf("1x1x2x3x2")}, {tensorOf("1x2x2x1x3"), -0.9, 0.9}},
                  "{padding_mode = \"border\"}",
                  1});
  rows.push_back({"affine_grid",
                  "affine_grid",
                  {{tensorOf("2x2x3")}},
                  "{size = array<i64: 2, 1, 3, 4>}"});
  rows.push_back({"affine_grid",
                  "affine_grid_aligned",
                  {{tensorOf("1x3x4")}},
                  "{size = array<i64: 1, 1, 2, 3, 1>, align_corners = true}"});
  RowOperand rois{tensorOf("2x4"), 0.3, 2.6, false};
  RowOperand batch{tensorOf("2", "i64"), 0, 1};
  for (const char *mode : {"avg", "max"})
    rows.push_back({"roi_align",
                    std::string("roi_align_") + mode,
                    {images, rois, batch},
                    std::string("{output_size = array<i64: 2, 2>, "
                                "sampling_ratio = 2 : i64, mode = \"") +
                        mode + "\"}"});
  rows.push_back({"roi_align",
                  "roi_align_aligned",
                  {images, rois, batch},
                  "{aligned = true, sampling_ratio = 1 : i64, spatial_scale = "
                  "0.5}"});
}

void tandem::test::addSignalFunctionRows(std::vector<FunctionRow> &rows) {
  for (const char *name : {"hann_window", "hamming_window", "blackman_window"})
    rows.push_back(
        {name, name, {}, "{periodic = false, window_length = 5 : i64}", 0});
  RowOperand real{tensorOf("2x5x1")}, pairs{tensorOf("2x5x2")};
  rows.push_back({"dft", "dft", {real}, "{onesided = true}"});
  rows.push_back(
      {"dft", "dft_inverse", {pairs}, "{inverse = true, length = 6 : i64}"});
  rows.push_back({"dft",
                  "dft_real_signal",
                  {pairs},
                  "{inverse = true, onesided = true, length = 7 : i64}"});
  rows.push_back({"stft",
                  "stft",
                  {{tensorOf("1x9x1")}, {tensorOf("4")}},
                  "{frame_step = 2 : i64}"});
}

void tandem::test::addQuantizationFunctionRows(std::vector<FunctionRow> &rows) {
  RowOperand x{tensorOf("3x4")}, scale{tensorOf("4"), 0.1, 0.2};
  RowOperand zero{tensorOf("4", "i8"), 0, 3},
      bytes{tensorOf("3x4", "i8"), 0, 9};
  RowOperand one{tensorOf(""), 0.1, 0.2}, shift{tensorOf("", "i8"), 0, 3};
  RowOperand right{tensorOf("4x2", "i8"), 0, 9};
  rows.push_back(
      {"quantize_linear", "quantize_linear", {x, scale, zero}, "", 0});
  rows.push_back(
      {"dequantize_linear", "dequantize_linear", {bytes, scale, zero}, ""});
  rows.push_back(
      {"dynamic_quantize_linear", "dynamic_quantize_linear", {x}, "", 0});
  rows.push_back({"integer_matmul",
                  "integer_matmul",
                  {bytes, right, shift, shift},
                  "",
                  0});
  rows.push_back({"quantized_matmul",
                  "quantized_matmul",
                  {bytes, one, shift, right, one, shift, one, shift},
                  "",
                  0});
}
