//===- Classifier.h - a little artifact that can be trained ---------------===//
//
// A linear classifier (inputs x [4, 3] and labels [4], param w [2, 3], outputs
// logits [4, 2] and loss []) with the programs `evaluate` and `step`, the
// kernels compiled from C, and data for it whose rows are told apart by one
// feature.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TESTS_RUNTIME_CLI_CLASSIFIER_H
#define TANDEM_TESTS_RUNTIME_CLI_CLASSIFIER_H

#include "runtime/artifact/ArtifactWriter.h"
#include "runtime/io/Npy.h"
#include "tests/runtime/io/Bytes.h"

namespace tandem::commands::test {

using artifact::DType;
using io::Array;
using io::test::arrayOf;

/// Returns the manifest; without `training` it has only `evaluate`.
inline artifact::Manifest classifierManifest(bool training = true) {
  using namespace artifact;
  Manifest m;
  m.model = "classifier";
  m.producer = "test";
  m.loss = "loss";
  m.optimizer = training ? "momentum" : "";
  m.graph = std::string(64, 'c');
  auto value = [&](Role role, const char *name, DType dtype,
                   std::vector<int64_t> shape) -> Value & {
    Value &result = m.values.emplace_back();
    result.role = role;
    result.name = name;
    result.dtype = dtype;
    result.shape = std::move(shape);
    return result;
  };
  value(Role::Input, "x", DType::F32, {4, 3});
  value(Role::Input, "labels", DType::I32, {4}).high = 2;
  Value &w = value(Role::Param, "w", DType::F32, {2, 3});
  w.requiresGrad = true;
  w.init = Init::uniform(-0.5, 0.5);
  if (training) {
    value(Role::State, "momentum.m:w", DType::F32, {2, 3}).init =
        Init::constant(0);
    value(Role::State, "momentum.lr", DType::F32, {}).init =
        Init::constant(0.125);
  }
  value(Role::Output, "logits", DType::F32, {4, 2});
  value(Role::Output, "loss", DType::F32, {});

  m.kernels = {{"scores", "contraction", {}, 48, 104, 0},
               {"loss", "reduction", {}, 24, 52, 0},
               {"descend", "contraction", {}, 60, 200, 0}};
  auto slot = [&](Role role, const char *name) {
    const Value *v =
        role == Role::Output ? m.findOutput(name) : m.findValue(name);
    return Slot{role, name, v->dtype, v->shape, role == Role::Update, ""};
  };
  auto launch = [](int64_t kernel, std::vector<int64_t> buffers,
                   std::vector<int64_t> reads, std::vector<int64_t> writes,
                   int64_t work) {
    Launch made;
    made.kernel = kernel;
    made.buffers = std::move(buffers);
    made.reads = std::move(reads);
    made.writes = std::move(writes);
    made.work = work;
    return made;
  };
  Program evaluate;
  evaluate.name = "evaluate";
  evaluate.arguments = {slot(Role::Input, "x"), slot(Role::Input, "labels"),
                        slot(Role::Param, "w")};
  evaluate.results = {slot(Role::Output, "logits"), slot(Role::Output, "loss")};
  evaluate.results[0].inputs = {"x"};
  evaluate.results[0].rows = Rows::Each;
  evaluate.results[1].inputs = {"x", "labels"};
  evaluate.results[1].rows = Rows::Mean;
  evaluate.buffers = {Buffer::argument(0), Buffer::argument(1),
                      Buffer::argument(2), Buffer::result(0),
                      Buffer::result(1)};
  evaluate.launches = {launch(0, {0, 2, 3}, {0, 1}, {2}, 4),
                       launch(1, {3, 1, 4}, {0, 1}, {2}, 1)};
  evaluate.peakBytes = 36;
  m.programs.push_back(evaluate);
  if (!training)
    return m;
  Program step;
  step.name = "step";
  step.arguments = {slot(Role::Input, "x"), slot(Role::Input, "labels"),
                    slot(Role::Param, "w"), slot(Role::State, "momentum.m:w"),
                    slot(Role::State, "momentum.lr")};
  step.results = {slot(Role::Output, "loss"), slot(Role::Update, "w"),
                  slot(Role::Update, "momentum.m:w")};
  step.arenaBytes = 64;
  step.peakBytes = 36;
  step.buffers = {Buffer::argument(0), Buffer::argument(1),
                  Buffer::argument(2), Buffer::argument(3),
                  Buffer::argument(4), Buffer::arena(0, 32),
                  Buffer::result(0)};
  step.launches = {
      launch(0, {0, 2, 5}, {0, 1}, {2}, 4),
      launch(1, {5, 1, 6}, {0, 1}, {2}, 1),
      launch(2, {0, 5, 1, 4, 3, 2}, {0, 1, 2, 3, 4, 5}, {4, 5}, 2)};
  m.programs.push_back(step);
  return m;
}

/// Writes the artifact to `path`.
inline void writeClassifier(const std::string &path, bool training = true) {
  auto object = io::readFile(TANDEM_CLASSIFIER_OBJECT);
  ASSERT_TRUE(object.ok()) << object.status().message();
  artifact::ArtifactWriter writer;
  writer.setObject(std::string(io::asText(*object)));
  writer.setManifest(classifierManifest(training));
  Status status = writer.write(path);
  ASSERT_TRUE(status.ok()) << status.message();
}

/// Features: row `i` belongs to class `i % 2`, which the sign of the first one
/// tells; the others are noise.
inline Array features(int64_t rows) {
  std::vector<float> values;
  for (int64_t i = 0; i < rows; ++i)
    for (int f = 0; f < 3; ++f) {
      float noise = float((i * 37 + f * 11) % 17) / 16.0f - 0.5f;
      values.push_back(f == 0 ? (i % 2 ? 1.0f : -1.0f) + noise / 4 : noise);
    }
  return arrayOf<float>(DType::F32, {rows, 3}, values);
}

/// Labels as NumPy would have them, in i64.
inline Array labels(int64_t rows) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < rows; ++i)
    values.push_back(i % 2);
  return arrayOf<int64_t>(DType::I64, {rows}, values);
}

} // namespace tandem::commands::test

#endif
