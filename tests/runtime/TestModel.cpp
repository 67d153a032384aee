//===- TestModel.cpp - artifacts made by hand -----------------------------===//
//
// See TestModel.h.
//
//===----------------------------------------------------------------------===//
#include "tests/runtime/TestModel.h"

#include <cmath>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <span>

namespace tandem::test {

using namespace artifact;
using runtime::Model;
using runtime::Tensor;

namespace {

Slot slot(Role role, const char *name, std::vector<int64_t> shape,
          bool inPlace = false) {
  Slot made;
  made.role = role;
  made.name = name;
  made.shape = std::move(shape);
  made.inPlace = inPlace;
  return made;
}

Value value(Role role, const char *name, std::vector<int64_t> shape) {
  Value made;
  made.role = role;
  made.name = name;
  made.shape = std::move(shape);
  return made;
}

Kernel kernel(const char *symbol) {
  Kernel made;
  made.symbol = symbol;
  made.kind = "pointwise";
  made.ops = {"tandem.test"};
  return made;
}

enum KernelIndex {
  Predict,
  Residual,
  MeanSquare,
  GradW,
  GradB,
  Sgd,
  Increment,
  Mul, // from here on: of the scaled regression
  ToHalf,
  FromHalf,
  AllFinite,
  SgdScaled,
  NextScale
};

/// Adds a launch over buffers of which the last is written.
void launch(Program &program, int64_t kernel, std::vector<int64_t> buffers,
            int64_t work) {
  Launch made;
  made.kernel = kernel;
  made.buffers = std::move(buffers);
  auto count = static_cast<int64_t>(made.buffers.size());
  for (int64_t i = 0; i + 1 < count; ++i)
    made.reads.push_back(i);
  made.writes = {count - 1};
  made.work = work;
  program.launches.push_back(made);
}

Program evaluateProgram() {
  Program p;
  p.name = "evaluate";
  p.arguments = {slot(Role::Input, "x", {8, 3}), slot(Role::Param, "w", {3}),
                 slot(Role::Param, "b", {})};
  p.results = {slot(Role::Output, "pred", {8})};
  p.buffers = {Buffer::argument(0), Buffer::argument(1), Buffer::argument(2),
               Buffer::result(0)};
  launch(p, Predict, {0, 1, 2, 3}, 8);
  return p;
}

Program forwardProgram() {
  Program p;
  p.name = "forward";
  p.arguments = {slot(Role::Input, "x", {8, 3}), slot(Role::Input, "y", {8}),
                 slot(Role::Param, "w", {3}), slot(Role::Param, "b", {}),
                 slot(Role::State, "steps", {})};
  p.results = {slot(Role::Output, "loss", {}), slot(Role::Output, "pred", {8}),
               slot(Role::Saved, "r", {8}), slot(Role::Update, "steps", {})};
  p.results[2].reason = "the backward of mean_square reads it";
  for (int64_t i = 0; i < 5; ++i)
    p.buffers.push_back(Buffer::argument(i));
  for (int64_t i = 0; i < 4; ++i)
    p.buffers.push_back(Buffer::result(i));
  launch(p, Predict, {0, 2, 3, 6}, 8);
  launch(p, Residual, {6, 1, 7}, 8);
  launch(p, MeanSquare, {7, 5}, 1);
  launch(p, Increment, {4, 8}, 1);
  p.peakBytes = 512;
  return p;
}

Program backwardProgram() {
  Program p;
  p.name = "backward";
  p.arguments = {slot(Role::Cotangent, "loss", {}), slot(Role::Saved, "r", {8}),
                 slot(Role::Input, "x", {8, 3})};
  p.results = {slot(Role::Grad, "w", {3}), slot(Role::Grad, "b", {})};
  p.buffers = {Buffer::argument(0), Buffer::argument(1), Buffer::argument(2),
               Buffer::result(0), Buffer::result(1)};
  launch(p, GradW, {2, 1, 0, 3}, 3);
  launch(p, GradB, {1, 0, 4}, 1);
  return p;
}

Program updateProgram() {
  Program p;
  p.name = "update";
  p.arguments = {slot(Role::Grad, "w", {3}), slot(Role::Grad, "b", {}),
                 slot(Role::Param, "w", {3}), slot(Role::Param, "b", {}),
                 slot(Role::State, "rate", {})};
  // One update in place, and one through a buffer of its own.
  p.results = {slot(Role::Update, "w", {3}, true), slot(Role::Update, "b", {})};
  for (int64_t i = 0; i < 5; ++i)
    p.buffers.push_back(Buffer::argument(i));
  p.buffers.push_back(Buffer::result(1));
  launch(p, Sgd, {2, 0, 4, 2}, 3);
  launch(p, Sgd, {3, 1, 4, 5}, 1);
  return p;
}

Program stepProgram() {
  Program p;
  p.name = "step";
  p.arguments = {
      slot(Role::Input, "x", {8, 3}), slot(Role::Input, "y", {8}),
      slot(Role::Param, "w", {3}),    slot(Role::Param, "b", {}),
      slot(Role::State, "rate", {}),  slot(Role::State, "steps", {})};
  p.results = {
      slot(Role::Output, "loss", {}), slot(Role::Update, "w", {3}, true),
      slot(Role::Update, "b", {}, true), slot(Role::Update, "steps", {}, true)};
  for (int64_t i = 0; i < 6; ++i)
    p.buffers.push_back(Buffer::argument(i));
  p.buffers.push_back(Buffer::result(0));
  for (int64_t i = 0; i < 4; ++i) // pred, r, grad w, grad b
    p.buffers.push_back(Buffer::arena(64 * i, 64));
  p.buffers.push_back(Buffer::constant(0, 64)); // 1: the loss's cotangent
  p.arenaBytes = 256;
  p.peakBytes = 512;
  launch(p, Predict, {0, 2, 3, 7}, 8);
  launch(p, Residual, {7, 1, 8}, 8);
  launch(p, MeanSquare, {8, 6}, 1);
  launch(p, GradW, {0, 8, 11, 9}, 3);
  launch(p, GradB, {8, 11, 10}, 1);
  launch(p, Sgd, {2, 9, 4, 2}, 3);
  launch(p, Sgd, {3, 10, 4, 3}, 1);
  launch(p, Increment, {5, 5}, 1);
  return p;
}

} // namespace

std::string kernelObject() {
  std::ifstream file(TANDEM_TEST_KERNELS, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Manifest regression() {
  Manifest m;
  m.model = "regression";
  m.producer = "test";
  m.loss = "loss";
  m.optimizer = "sgd";
  m.values = {
      value(Role::Input, "x", {8, 3}), value(Role::Input, "y", {8}),
      value(Role::Param, "w", {3}),    value(Role::Param, "b", {}),
      value(Role::State, "rate", {}),  value(Role::State, "steps", {}),
      value(Role::Output, "loss", {}), value(Role::Output, "pred", {8})};
  m.values[2].requiresGrad = m.values[3].requiresGrad = true;
  m.values[2].init = Init::uniform(-1, 1);
  m.values[3].init = Init::constant(0);
  m.values[4].init = Init::constant(0.1);
  m.values[5].init = Init::constant(0);
  for (const char *symbol : {"predict", "residual", "mean_square", "grad_w",
                             "grad_b", "sgd", "increment"})
    m.kernels.push_back(kernel(symbol));
  m.programs = {evaluateProgram(), forwardProgram(), backwardProgram(),
                updateProgram(), stepProgram()};
  return m;
}

/// The parameters are used as f16, and the loss is scaled.
static Program scaledForward() {
  Program p = forwardProgram();
  std::vector<Launch> before = std::move(p.launches);
  p.arguments.push_back(slot(Role::State, "scale", {}));
  p.results.push_back(slot(Role::Output, "scaled", {}));
  p.buffers.insert(p.buffers.end(), {Buffer::argument(5), Buffer::result(4),
                                     Buffer::arena(0, 64), // w as f16
                                     Buffer::arena(64, 64)});
  launch(p, ToHalf, {2, 11}, 3);
  launch(p, FromHalf, {11, 12}, 3);
  before[0].buffers[1] = 12;
  p.launches.insert(p.launches.end(), before.begin(), before.end());
  launch(p, Mul, {5, 9, 10}, 1);
  p.arenaBytes = 128;
  return p;
}

static Program scaledBackward() {
  Program p = backwardProgram();
  p.arguments[0].name = "scaled";
  p.arguments.push_back(slot(Role::State, "scale", {}));
  p.launches.clear();
  p.buffers.push_back(Buffer::argument(3));
  for (int64_t i = 0; i < 5; ++i) // cotangent, grads, and these as f16
    p.buffers.push_back(Buffer::arena(64 * i, 64));
  p.arenaBytes = 320;
  p.peakBytes = 512;
  launch(p, Mul, {0, 5, 6}, 1);
  launch(p, GradW, {2, 1, 6, 7}, 3);
  launch(p, GradB, {1, 6, 8}, 1);
  launch(p, ToHalf, {7, 9}, 3);
  launch(p, ToHalf, {8, 10}, 1);
  launch(p, FromHalf, {9, 3}, 3);
  launch(p, FromHalf, {10, 4}, 1);
  return p;
}

static Program scaledUpdate() {
  Program p = updateProgram();
  p.arguments.push_back(slot(Role::State, "scale", {}));
  p.results = {slot(Role::Update, "w", {3}, true),
               slot(Role::Update, "b", {}, true),
               slot(Role::Update, "scale", {}, true)};
  p.buffers.back() = Buffer::argument(5);
  p.buffers.push_back(Buffer::arena(0, 64)); // whether all is finite
  p.arenaBytes = 64;
  p.peakBytes = 512;
  p.launches.clear();
  launch(p, AllFinite, {0, 1, 6}, 1);
  launch(p, SgdScaled, {2, 0, 4, 5, 6, 2}, 3);
  launch(p, SgdScaled, {3, 1, 4, 5, 6, 3}, 1);
  launch(p, NextScale, {5, 6, 5}, 1);
  return p;
}

Manifest scaledRegression() {
  Manifest m = regression();
  m.model = "scaled regression";
  Value scale = value(Role::State, "scale", {});
  scale.init = Init::constant(1024);
  m.values.insert(m.values.begin() + 6, scale);
  m.values.push_back(value(Role::Output, "scaled", {}));
  for (const char *symbol : {"mul", "to_half", "from_half", "all_finite",
                             "sgd_scaled", "next_scale"})
    m.kernels.push_back(kernel(symbol));
  m.programs = {scaledForward(), scaledBackward(), scaledUpdate()};
  return m;
}

Manifest wide(int64_t count, int64_t grain) {
  Manifest m;
  m.model = "wide";
  m.producer = "test";
  m.values = {value(Role::Input, "x", {count}),
              value(Role::Output, "big", {count}),
              value(Role::Output, "scaled", {count})};
  m.kernels = {kernel("square_scratch"), kernel("times_constant")};
  m.kernels[0].scratchBytes = 64;
  Program p;
  p.name = "evaluate";
  p.arguments = {slot(Role::Input, "x", {count})};
  p.results = {slot(Role::Output, "big", {count}),
               slot(Role::Output, "scaled", {count})};
  p.buffers = {Buffer::argument(0), Buffer::result(0), Buffer::result(1),
               Buffer::constant(64, 16)};
  launch(p, 0, {0, 1}, count);
  launch(p, 1, {0, 3, 2}, count);
  for (Launch &l : p.launches)
    l.grain = grain;
  m.programs = {p};
  return m;
}

Manifest forDevice(Manifest manifest) {
  manifest.target = {"cuda", "sm_90", {}};
  for (Kernel &kernel : manifest.kernels)
    kernel.block = {1, 1, 1};
  for (Program &program : manifest.programs)
    for (Launch &launch : program.launches) {
      launch.grid = {launch.work, 1, 1};
      launch.grain = 1;
    }
  return manifest;
}

static OutputAlias outputAlias(const char *name, std::vector<int64_t> shape,
                               Alias alias) {
  OutputAlias made;
  made.name = name;
  made.shape = std::move(shape);
  made.alias = std::move(alias);
  return made;
}

Manifest mutatingRegression() {
  Manifest m = regression();
  for (const char *name : {"p", "q"})
    m.values.push_back(value(Role::Input, name, {4, 2}));
  m.values.push_back(value(Role::Input, "f", {4}));
  m.values.push_back(value(Role::Output, "xt", {3, 8}));
  m.values.push_back(value(Role::Output, "rows", {2, 4}));

  Program &forward = m.programs[1];
  forward.arguments.push_back(slot(Role::Input, "p", {4, 2}));
  forward.arguments.push_back(slot(Role::Input, "q", {4, 2}));
  forward.arguments.push_back(slot(Role::Input, "f", {4}));
  Slot &x = forward.arguments[0], &p = forward.arguments[5];
  Slot &q = forward.arguments[6], &f = forward.arguments[7];
  x.metadata = aliasOf("x", {View::permute({1, 0})});
  x.where = "'tandem.transpose_' at m.mlir:3:1";
  p.alias = aliasOf("base", {View::slice({0, 0}, {4, 2}, {1, 1})});
  p.alias->storage = TensorType{DType::F32, {4, 4}};
  q.alias = aliasOf("base",
                    {View::reshape({16}), View::asStrided({4, 2}, {4, 1}, 1)});
  q.alias->storage = p.alias->storage;
  q.storage = aliasOf("y", {View::broadcast({8, 1}, {0}), View::detach(),
                            View::bitcast(DType::I32)});
  f.freed = true;
  f.resize = 4;
  Slot &saved = forward.results[2];
  saved.unchecked = true;
  saved.where = "'tandem.sub' at m.mlir:4:2";
  forward.results.push_back(slot(Role::Saved, "pred.saved", {2, 4}));
  forward.results.back().alias = aliasOfOutput("pred", {View::reshape({2, 4})});
  forward.aliases = {
      outputAlias("xt", {3, 8}, aliasOf("x", {View::permute({1, 0})})),
      outputAlias("rows", {2, 4},
                  aliasOfOutput("pred", {View::reshape({2, 4})}))};
  forward.aliases[0].partOf = "split";

  Program &backward = m.programs[2];
  backward.arguments.push_back(slot(Role::Cotangent, "pred", {8}));
  backward.arguments.push_back(slot(Role::Saved, "pred.saved", {2, 4}));
  backward.arguments.push_back(slot(Role::Param, "w", {3}));
  backward.arguments.push_back(slot(Role::Param, "w", {3}));
  backward.arguments.back().asFound = true;
  backward.arguments[1].unchecked = true;
  backward.results[0].needs = {{"loss"}};
  backward.results.push_back(slot(Role::Update, "w", {3}));
  backward.results.back().inPlace = true;
  backward.results.back().visible = true;
  backward.results.back().needs = {{"loss", "pred"}};
  backward.buffers.push_back(Buffer::argument(6));
  Launch copy;
  copy.kernel = 5;
  copy.buffers = {5, 5};
  copy.reads = {0};
  copy.writes = {1};
  copy.needs = {{"loss", "pred"}};
  copy.choices.resize(3);
  copy.choices[0].when = {{"loss"}, {"pred"}};
  copy.choices[1].when = {{"loss"}};
  copy.choices[1].copy = 0;
  copy.choices[2].copy = -1;
  backward.launches.push_back(copy);
  return m;
}

Manifest labelledRegression(DType type) {
  Manifest manifest = regression();
  for (artifact::Value &value : manifest.values)
    if (value.name == "y") {
      value.dtype = type;
      value.low = -2;
      value.high = 10;
      value.ignored = 255;
    }
  for (artifact::Program &program : manifest.programs)
    for (artifact::Slot &slot : program.arguments)
      if (slot.name == "y")
        slot.dtype = type;
  return manifest;
}

Manifest offloadedRegression() {
  Manifest m = forDevice(regression());
  Program &forward = m.programs[1], &backward = m.programs[2],
          &step = m.programs[4];
  // r is made and brought back in the arena.
  forward.results[2].onHost = backward.arguments[1].onHost = true;
  forward.arenaBytes = backward.arenaBytes = 64;
  forward.buffers.push_back(Buffer::arena(0, 32));
  for (size_t user : {1, 2})
    for (int64_t &buffer : forward.launches[user].buffers)
      buffer = buffer == 7 ? 9 : buffer;
  forward.launches.push_back(Launch::copy(9, 7));
  backward.buffers.push_back(Buffer::arena(0, 32));
  for (Launch &launch : backward.launches)
    for (int64_t &buffer : launch.buffers)
      buffer = buffer == 1 ? 5 : buffer;
  backward.launches.insert(backward.launches.begin(), Launch::copy(1, 5));
  // In the step it comes back to where pred was.
  step.hostBytes = 64;
  step.buffers[8].bytes = 32;
  step.buffers.push_back(Buffer::host(0, 32));
  step.buffers.push_back(Buffer::arena(0, 32));
  for (size_t user : {3, 4})
    for (int64_t &buffer : step.launches[user].buffers)
      buffer = buffer == 8 ? 13 : buffer;
  step.launches.insert(step.launches.begin() + 3,
                       {Launch::copy(8, 12), Launch::copy(12, 13)});
  return m;
}

/// PTX without code: a stand-in for the driver knows kernels by their names.
static std::string kernelNames(const Manifest &manifest) {
  std::string text = ".version 7.0\n.target sm_80\n.address_size 64\n";
  for (const Kernel &kernel : manifest.kernels)
    text += ".visible .entry " + kernel.symbol + "()\n{\n  ret;\n}\n";
  return text + '\0';
}

ArtifactWriter writerFor(const Manifest &manifest) {
  ArtifactWriter writer;
  std::vector<float> one = {1}, four = {1, 2, 3, 4};
  EXPECT_EQ(writer.addConstant(std::as_bytes(std::span(one))), 0);
  EXPECT_EQ(writer.addConstant(std::as_bytes(std::span(four))), 64);
  writer.setObject(kernelObject());
  if (manifest.target.kind == "cuda")
    writer.addCode("ptx", kernelNames(manifest));
  writer.setManifest(manifest);
  return writer;
}

ArtifactWriter writerForBoth(const Manifest &manifest) {
  ArtifactWriter first = writerFor(manifest), second;
  std::vector<float> constants(32);
  second.addConstant(std::as_bytes(std::span(constants)));
  second.addCode("ptx", std::string(".version 8.0\n") + '\0');
  second.setManifest(forDevice(manifest));
  first.join(std::move(second));
  return first;
}

ArtifactReader readerFor(const Manifest &manifest) {
  Result<std::string> bytes = writerFor(manifest).bytes();
  EXPECT_TRUE(bytes) << bytes.status().message();
  auto reader = ArtifactReader::fromMemory(std::as_bytes(std::span(*bytes)));
  EXPECT_TRUE(reader) << reader.status().message();
  return *reader;
}

runtime::Device &testDevice() {
  static runtime::Device device;
  return device;
}

runtime::Device &tensorDevice() {
  static runtime::Device device;
  return device;
}

Model modelFor(const Manifest &manifest, const runtime::Options &options) {
  bool isHost = testDevice().isHost();
  runtime::Options given = options;
  given.device = testDevice();
  Result<Model> model =
      Model::load(readerFor(isHost ? manifest : forDevice(manifest)), given);
  EXPECT_TRUE(model) << model.status().message();
  return *model;
}

Tensor tensorOf(const std::vector<float> &values,
                const std::vector<int64_t> &shape) {
  return *Tensor::copyOf(values.data(), DType::F32, shape)
              ->copyTo(tensorDevice());
}

std::vector<float> valuesOf(const Tensor &tensor) {
  std::vector<float> values;
  for (int64_t i = 0; i < tensor.elements(); ++i)
    values.push_back(static_cast<float>(tensor.at(i)));
  return values;
}

void setAt(const Tensor &tensor, int64_t index, float value) {
  std::vector<int64_t> none;
  EXPECT_TRUE(tensor.view(none, none, index)->fill(value).ok());
}

Tensor sampleX() {
  std::vector<float> x;
  for (int i = 0; i < 24; ++i)
    x.push_back(static_cast<float>(std::sin(1.7 * i)));
  return tensorOf(x, {8, 3});
}

Tensor sampleY() {
  std::vector<float> x = valuesOf(sampleX()), y;
  for (int i = 0; i < 8; ++i)
    y.push_back(x[3 * i] - 2 * x[3 * i + 1] + 3 * x[3 * i + 2] + 0.5f);
  return tensorOf(y, {8});
}

} // namespace tandem::test
