//===- Check.cpp - compares a workload's numbers with expected ones -------===//
#include "tools/bench/workloads/Check.h"
#include "runtime/model/Initialize.h"
#include "runtime/model/Model.h"

#include "nlohmann/json.hpp"

#include <cmath>
#include <cstdio>
#include <fstream>

using namespace tandem;
using namespace tandem::workloads;
using runtime::Argument;
using runtime::CounterStream;
using runtime::Destination;
using runtime::Model;

static constexpr uint64_t kSeed = 1;

Result<runtime::Tensor> workloads::makeBatch(const DataSpec &spec, int b,
                                             DType dtype) {
  bool isFloat = spec.kind == DataSpec::Uniform;
  auto tensor =
      runtime::Tensor::empty(isFloat ? DType::F32 : DType::I64, spec.shape);
  if (!tensor)
    return tensor.status();
  int64_t stream = spec.fixedStream >= 0 ? spec.fixedStream
                                         : 1000 + 10 * b + spec.streamOffset;
  CounterStream counter(kSeed, static_cast<uint64_t>(stream));
  auto integer = [&](int64_t i) {
    return static_cast<int64_t>(
        ((counter.bits(i) >> 32) * static_cast<uint64_t>(spec.below)) >> 32);
  };
  int64_t n = tensor->elements();
  if (isFloat) {
    auto *data = tensor->mutableData<float>();
    for (int64_t i = 0; i < n; ++i)
      data[i] = counter.centered(i) * static_cast<float>(spec.scale);
    return tensor->to(dtype);
  }
  auto *data = tensor->mutableData<int64_t>();
  int64_t first = spec.kind == DataSpec::NextTokens ? 1 : 0;
  for (int64_t i = 0; i < n; ++i)
    data[i] = integer(i + first);
  return tensor;
}

/// Compares numbers and remembers whether all agreed.
class Comparison {
public:
  explicit Comparison(double tolerance) : tolerance(tolerance) {}
  void compare(const std::string &what, double expected, double got) {
    double error =
        std::abs(got - expected) / std::max(std::abs(expected), 1e-30);
    bool agrees = error <= tolerance; // false for NaN
    worst = std::isnan(error) ? INFINITY : std::max(worst, error);
    if (!agrees) {
      ++wrong;
      std::fprintf(stderr, "%s: expected %.9g but got %.9g (off by %.2g)\n",
                   what.c_str(), expected, got, error);
    }
    ++count;
  }
  double tolerance;
  int count = 0, wrong = 0;
  double worst = 0;
};

static double normOf(const runtime::Tensor &tensor) {
  double sum = 0;
  for (int64_t i = 0, n = tensor.elements(); i < n; ++i)
    sum += tensor.at(i) * tensor.at(i);
  return std::sqrt(sum);
}

/// Forward and backward once: the norm of every gradient.
static Status compareGradients(Model &model, std::span<const Argument> inputs,
                               const nlohmann::json &expected,
                               Comparison &comparison) {
  auto context = model.forward(inputs, {});
  if (!context)
    return context.status();
  auto one = runtime::Tensor::empty(
      model.manifest().findOutput(model.manifest().loss)->dtype, {});
  if (!one)
    return one.status();
  if (Status s = one->fill(1.0); !s)
    return s;
  const auto *backward = model.manifest().findProgram("backward");
  std::vector<runtime::Tensor> grads(backward->results.size());
  std::vector<Destination> destinations;
  for (size_t i = 0; i < grads.size(); ++i)
    destinations.push_back({backward->results[i].name, &grads[i]});
  std::vector<Argument> cotangents = {{model.manifest().loss, &*one}};
  if (Status s = model.backward(*context, cotangents, destinations); !s)
    return s;
  for (auto &[name, norm] : expected.items()) {
    bool found = false;
    for (size_t i = 0; i < grads.size(); ++i)
      if (backward->results[i].name == name) {
        auto host = grads[i].onHost();
        if (!host)
          return host.status();
        comparison.compare("gradient of '" + name + "'", norm.get<double>(),
                           normOf(*host));
        found = true;
      }
    if (!found)
      return Status::failed("the artifact has no gradient of '" + name + "'");
  }
  return Status::success();
}

Status workloads::check(const Workload &workload, const std::string &artifact,
                        const std::string &expectedFolder,
                        std::optional<double> tolerance,
                        const runtime::Options &options) {
  std::string path = expectedFolder + "/" + workload.name + ".json";
  std::ifstream file(path);
  nlohmann::json expected = nlohmann::json::parse(file, nullptr, false);
  if (!file || expected.is_discarded())
    return Status::failed("cannot read '" + path + "'");
  runtime::Options seeded = options;
  seeded.seed = kSeed;
  auto model = Model::load(artifact, seeded);
  if (!model)
    return model.status();

  const artifact::Value *lossValue =
      model->manifest().findOutput(model->manifest().loss);
  if (!lossValue)
    return Status::usage("the artifact has no loss");
  bool wide = lossValue->dtype == DType::F64;
  const nlohmann::json &numbers = wide ? expected["f64"] : expected;

  std::vector<std::vector<runtime::Tensor>> batches(kBatches);
  std::vector<std::vector<Argument>> inputs(kBatches);
  for (int b = 0; b < kBatches; ++b) {
    for (const DataSpec &spec : workload.data) {
      auto tensor = makeBatch(spec, b, lossValue->dtype);
      if (!tensor)
        return tensor.status();
      batches[b].push_back(std::move(*tensor));
    }
    for (size_t i = 0; i < workload.data.size(); ++i)
      inputs[b].push_back({workload.data[i].name, &batches[b][i]});
  }

  Comparison comparison(tolerance.value_or(wide ? 1e-6 : 1e-4));
  if (Status s = compareGradients(*model, inputs[0], numbers["grad_norms"],
                                  comparison);
      !s)
    return s;
  const auto &losses = numbers["losses"];
  runtime::Tensor loss;
  std::vector<Destination> outputs = {{model->manifest().loss, &loss}};
  for (size_t step = 0; step < losses.size(); ++step) {
    if (Status s = model->step(inputs[step % kBatches], outputs); !s)
      return s;
    double got = loss.at(0);
    std::printf("step %zu: loss %.9g, expected %.9g\n", step, got,
                losses[step].get<double>());
    comparison.compare("loss of step " + std::to_string(step),
                       losses[step].get<double>(), got);
  }
  std::printf("%s: %d numbers compared, largest difference %.2g\n",
              workload.name.c_str(), comparison.count, comparison.worst);
  if (comparison.wrong)
    return Status(Code::Differs, std::to_string(comparison.wrong) +
                                     " numbers differ by more than allowed");
  return Status::success();
}
