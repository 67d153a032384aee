//===- LightTest.cpp - the light models of the ONNX project ---------------===//
//
// AlexNet, DenseNet-121, Inception v1 and v2, ResNet-50, ShuffleNet,
// SqueezeNet, VGG-19 and ZFNet, published without their weights, which are
// drawn here. The scores of the forward must be those that PyTorch computed
// (make-light-outputs), and the loss must fall over 20 steps on one input. The
// files are not in the repository: TANDEM_ONNX_LIGHT names their folder, and
// without it the tests are skipped.
//
//===----------------------------------------------------------------------===//
#include "compiler/Compile.h"
#include "compiler/import/onnx/Import.h"
#include "compiler/import/onnx/OnnxFile.h"
#include "runtime/io/Safetensors.h"
#include "runtime/model/Initialize.h"
#include "tools/onnx/Tensors.h"

#include "mlir/IR/MLIRContext.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/resource.h>

using namespace tandem;
using namespace tandem::onnx;
using runtime::CounterStream;
using runtime::Tensor;

namespace {

constexpr int64_t kMostBytes = int64_t(8) << 30;

class Light : public testing::TestWithParam<const char *> {
protected:
  void SetUp() override {
    const char *folder = std::getenv("TANDEM_ONNX_LIGHT");
    if (!folder)
      GTEST_SKIP() << "TANDEM_ONNX_LIGHT names no folder with light_*.onnx";
    path = std::string(folder) + "/" + GetParam() + ".onnx";
    if (!std::ifstream(path))
      GTEST_SKIP() << "there is no '" << path << "'";
  }
  std::string path;
};

/// The value before the softmax, or the output.
std::string scoresOf(const Model &model) {
  for (const NodeData &node : model.graph.nodes)
    if (node.op == "Softmax")
      return node.inputs[0];
  return model.graph.outputs[0].name;
}

/// The one input that is no initializer.
std::string inputOf(const Model &model) {
  for (const NamedType &input : model.graph.inputs) {
    bool isInitializer = false;
    for (const TensorPtr &data : model.graph.initializers)
      isInitializer |= data->name == input.name;
    if (!isInitializer)
      return input.name;
  }
  return "";
}

template <typename Fn>
Tensor drawn(const std::string &name, const std::vector<int64_t> &shape,
             Fn value) {
  Tensor tensor = *Tensor::empty(artifact::DType::F32, shape);
  CounterStream stream(0, runtime::streamOf(name));
  auto *to = tensor.mutableData<float>();
  for (int64_t i = 0; i < tensor.elements(); ++i)
    to[i] = static_cast<float>(value(stream.unit(i)));
  return tensor;
}

/// What stands for a weight that was left out.
Tensor drawnWeight(const std::string &name, const std::vector<int64_t> &shape) {
  if (shape.size() == 1)
    return drawn(name, shape, [](double u) { return 0.5 + u; });
  double inputs = 1;
  for (size_t i = 1; i < shape.size(); ++i)
    inputs *= static_cast<double>(shape[i]);
  return drawn(name, shape,
               [&](double u) { return (2 * u - 1) * std::sqrt(6 / inputs); });
}

Result<runtime::Model> compiled(const Model &model, const std::string &path,
                                const std::string &scores) {
  mlir::DialectRegistry registry;
  registerCompiler(registry);
  mlir::MLIRContext context(registry);
  CompileOptions options;
  options.optimizer = "adam:lr=1e-4";
  options.import.loss = "cross_entropy:" + scores + ",labels";
  Import import = importModel(model, path, options.import, context);
  if (Status s = import.status(); !s)
    return s;
  std::vector<PhaseTime> times;
  auto modules = runTargets(std::move(import.module), options, times);
  if (!modules)
    return modules.status();
  auto writer = emitTargets(*modules, options, times);
  if (!writer)
    return writer.status();
  auto bytes = writer->bytes();
  if (!bytes)
    return bytes.status();
  auto reader =
      artifact::ArtifactReader::fromMemory(std::as_bytes(std::span(*bytes)));
  if (!reader)
    return reader.status();
  auto loaded = runtime::Model::load(std::move(*reader), {});
  if (!loaded)
    return loaded.status();
  for (const auto &[name, weight] : import.weights) {
    // Those that were left out are all one number.
    Tensor tensor =
        weight->isSplat ? drawnWeight(name, weight->shape) : *toTensor(*weight);
    if (Status s = loaded->set(name, tensor); !s)
      return s;
  }
  return loaded;
}

} // namespace

TEST_P(Light, ForwardMatchesAndTheLossFalls) {
  auto file = readModelFile(path);
  ASSERT_TRUE(file) << file.status().message();
  std::string scores = scoresOf(*file), input = inputOf(*file);
  if (file->graph.outputs[0].name != scores)
    file->graph.outputs.push_back({scores, {}});
  auto model = compiled(*file, path, scores);
  ASSERT_TRUE(model) << model.status().message();

  auto expected = io::Safetensors::read(TANDEM_LIGHT_OUTPUTS);
  ASSERT_TRUE(expected) << expected.status().message();
  auto values = expected->find(GetParam());
  ASSERT_TRUE(values);
  const artifact::Value *x = model->manifest().findValue(input);
  const artifact::Value *y = model->manifest().findValue("labels");
  ASSERT_TRUE(x && y);
  Tensor image = drawn(input, x->shape, [](double u) { return 2 * u - 1; });
  Tensor labels = *Tensor::empty(y->dtype, y->shape);
  ASSERT_TRUE(labels.fill(7));

  Tensor got, loss;
  const artifact::Program *program = model->manifest().findProgram("evaluate");
  ASSERT_TRUE(program);
  std::vector<runtime::Argument> arguments = {{input, &image},
                                              {"labels", &labels}};
  std::vector<runtime::Destination> outputs = {{scores, &got}};
  Status s = model->run("evaluate", arguments, outputs);
  ASSERT_TRUE(s) << s.message();
  const auto *numbers = reinterpret_cast<const float *>(values->bytes.data());
  double largest = 0, worst = 0;
  ASSERT_EQ(got.elements(), 1000);
  for (int64_t i = 0; i < 1000; ++i) {
    ASSERT_FALSE(std::isnan(got.at(i))); // no maximum has one behind it
    largest = std::max(largest, double(std::abs(numbers[i])));
    worst = std::max(worst, std::abs(got.at(i) - numbers[i]));
  }
  EXPECT_LE(worst, 1e-4 * largest);

  std::vector<double> losses;
  outputs = {{"loss", &loss}};
  for (int i = 0; i < 20; ++i) {
    s = model->step(arguments, outputs);
    ASSERT_TRUE(s) << s.message();
    losses.push_back(loss.at(0));
    ASSERT_TRUE(std::isfinite(losses.back())) << "step " << i;
  }
  EXPECT_LT(losses.back(), losses.front());
  std::printf("%s: scores within %.1e of the largest, loss %.4g to %.4g\n",
              GetParam(), worst / largest, losses.front(), losses.back());
  rusage usage;
  ASSERT_EQ(getrusage(RUSAGE_SELF, &usage), 0);
  EXPECT_LT(usage.ru_maxrss * 1024, kMostBytes);
}

INSTANTIATE_TEST_SUITE_P(
    Models, Light,
    testing::Values("light_bvlc_alexnet", "light_densenet121",
                    "light_inception_v1", "light_inception_v2",
                    "light_resnet50", "light_shufflenet", "light_squeezenet",
                    "light_vgg19", "light_zfnet512"),
    [](const auto &info) { return std::string(info.param); });
