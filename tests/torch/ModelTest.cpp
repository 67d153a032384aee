//===- ModelTest.cpp - archives of torch.export, against PyTorch ----------===//
//
// What each model gives, and its parameters and buffers after one step of SGD
// with a rate of 1 (so: its gradients), have to be what PyTorch computed of the
// same archive. make-fixtures wrote both.
//
//===----------------------------------------------------------------------===//
#include "compiler/Compile.h"
#include "runtime/io/Safetensors.h"
#include "tools/onnx/Tensors.h"

#include "mlir/IR/MLIRContext.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

using namespace tandem;
using runtime::Tensor;

namespace {

struct Case {
  const char *name;
  std::map<std::string, int64_t> dims;
  double within = 1e-5; ///< of the largest element
};

void PrintTo(const Case &one, std::ostream *out) { *out << one.name; }

class Archives : public testing::TestWithParam<Case> {
protected:
  Result<runtime::Model> compiled() {
    std::string path = folder + GetParam().name + ".pt2";
    mlir::DialectRegistry registry;
    registerCompiler(registry);
    mlir::MLIRContext context(registry);
    CompileOptions options;
    options.loss = "loss";
    options.optimizer = "sgd:lr=1";
    options.import.loss = "loss";
    options.import.dims = GetParam().dims;
    Status status;
    Weights weights;
    auto module = readModel(path, context, status, options.import, &weights);
    if (!status)
      return status;
    std::vector<PhaseTime> times;
    auto modules = runTargets(std::move(module), options, times);
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
    auto model = runtime::Model::load(std::move(*reader), {});
    if (!model)
      return model.status();
    if (Status s = onnx::setWeights(*model, weights); !s)
      return s;
    return model;
  }

  /// The tensors of PyTorch whose names begin with `prefix`.
  std::map<std::string, Tensor> expected(const std::string &prefix) {
    std::map<std::string, Tensor> tensors;
    auto file =
        io::Safetensors::read(folder + GetParam().name + ".safetensors");
    EXPECT_TRUE(file) << file.status().message();
    for (const auto &[name, entry] : file->entries()) {
      if (!name.starts_with(prefix))
        continue;
      auto tensor = Tensor::empty(entry.dtype, entry.shape);
      EXPECT_TRUE(tensor) << tensor.status().message();
      auto bytes = file->find(name)->bytes;
      std::memcpy(tensor->mutableData(), bytes.data(), bytes.size());
      tensors.emplace(name.substr(prefix.size()), *tensor);
    }
    return tensors;
  }

  void expectNear(const Tensor &got, const Tensor &wanted,
                  const std::string &name) {
    ASSERT_TRUE(std::ranges::equal(got.shape(), wanted.shape())) << name;
    ASSERT_EQ(got.dtype(), wanted.dtype()) << name;
    double largest = 0, worst = 0;
    for (int64_t i = 0; i < wanted.elements(); ++i) {
      // No maximum has a NaN behind it.
      ASSERT_EQ(std::isnan(got.at(i)), std::isnan(wanted.at(i))) << name;
      largest = std::max(largest, std::abs(wanted.at(i)));
      worst = std::max(worst, std::abs(got.at(i) - wanted.at(i)));
    }
    bool isLow = wanted.dtype() == artifact::DType::BF16;
    EXPECT_LE(worst,
              (isLow ? 1e-2 : GetParam().within) * std::max(largest, 1e-2))
        << name;
  }

  std::string folder = TANDEM_TORCH_FIXTURES "/";
};

} // namespace

TEST_P(Archives, GiveWhatPyTorchGives) {
  auto model = compiled();
  ASSERT_TRUE(model) << model.status().message();
  auto inputs = expected("in."), outputs = expected("out.");
  ASSERT_FALSE(outputs.empty());
  std::vector<runtime::Argument> arguments;
  for (auto &[name, tensor] : inputs)
    arguments.push_back({name, &tensor});
  std::map<std::string, Tensor> got;
  std::vector<runtime::Destination> destinations;
  for (auto &[name, tensor] : outputs)
    destinations.push_back({name, &got[name]});
  Status s = model->step(arguments, destinations);
  ASSERT_TRUE(s) << s.message();
  for (auto &[name, tensor] : outputs)
    expectNear(got[name], tensor, "output '" + name + "'");
  for (auto &[name, tensor] : expected("after.")) {
    auto now = model->get(name);
    ASSERT_TRUE(now) << now.status().message();
    expectNear(*now, tensor, "'" + name + "' after a step");
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, Archives,
    testing::Values(Case{"mlp", {}}, Case{"cnn", {{"s77", 4}}},
                    Case{"in-place", {}}, Case{"tied", {}}, Case{"frozen", {}},
                    Case{"operators", {}}, Case{"experts", {}},
                    Case{"ends", {}}, Case{"samples", {}}, Case{"spectral", {}},
                    Case{"random", {}}, Case{"distances", {}},
                    Case{"truths", {}}, Case{"edges", {}}, Case{"numbers", {}},
                    // The layout before PyTorch 2.8.
                    Case{"tied-2.6", {}}, Case{"cnn-2.6", {{"s1", 4}}},
                    Case{"frozen-2.7", {}},
                    // Have products in bf16; of the gradients of attention
                    // PyTorch's are the farther ones from what f64 gives.
                    Case{"flow", {}, 1e-3}, Case{"masked", {}, 3e-2}),
    [](const auto &info) {
      std::string name = info.param.name;
      std::erase_if(name, [](char c) { return c == '-' || c == '.'; });
      return name;
    });
