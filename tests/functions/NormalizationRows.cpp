//===- NormalizationRows.cpp - calls of normalizations --------------------===//
#include "tests/functions/Rows.h"

using namespace tandem::test;

void tandem::test::addNormalizationFunctionRows(
    std::vector<FunctionRow> &rows) {
  RowOperand image{tensorOf("2x4x3")}, channels{tensorOf("4")};
  RowOperand variance{tensorOf("4"), 0.5, 2};
  rows.push_back({"native_layer_norm",
                  "native_layer_norm",
                  {image, {tensorOf("4x3")}, {tensorOf("4x3")}},
                  "{axis = 1}"});
  rows.push_back({"native_layer_norm", "native_layer_norm_plain", {image}, ""});
  rows.push_back({"rms_norm", "rms_norm", {image, {tensorOf("3")}}, ""});
  rows.push_back({"group_norm",
                  "group_norm",
                  {image, channels, channels},
                  "{num_groups = 2}"});
  rows.push_back({"instance_norm", "instance_norm", {image, channels}, ""});
  rows.push_back({"batch_norm_functional",
                  "batch_norm_training",
                  {image, channels, channels, channels, variance},
                  "{momentum = 0.3}"});
  rows.push_back({"batch_norm_functional",
                  "batch_norm_inference",
                  {image, channels, channels, channels, variance},
                  "{training = false}"});
  rows.push_back({"local_response_norm",
                  "local_response_norm",
                  {image},
                  "{size = 3, alpha = 0.1, beta = 0.6}"});
  rows.push_back({"normalize", "normalize", {image}, ""});
  rows.push_back({"normalize", "normalize_cubic", {image}, "{p = 3.0}"});
  rows.push_back({"mean_variance_norm",
                  "mean_variance_norm",
                  {image},
                  "{dims = array<i64: 0, 2>}"});
}
