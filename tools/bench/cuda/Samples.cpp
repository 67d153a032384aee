//===- Samples.cpp - inputs of single kernels, and what comes of them -----===//
#include "tools/bench/cuda/Samples.h"
#include "runtime/io/Safetensors.h"
#include "runtime/io/Tensors.h"
#include "runtime/model/Initialize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

using namespace tandem;
using namespace tandem::gpu;
using runtime::Tensor;

static constexpr uint64_t seed = 1;

Result<std::vector<NamedTensor>>
gpu::makeSamples(const artifact::Manifest &manifest,
                 const artifact::Program &program, DType rounding) {
  std::vector<NamedTensor> samples;
  for (const artifact::Slot &slot : program.arguments) {
    if (slot.role != artifact::Role::Input)
      continue;
    runtime::CounterStream counter(seed, runtime::streamOf(slot.name) >> 32);
    bool isFloat = artifact::isFloat(slot.dtype);
    auto made = Tensor::empty(isFloat ? DType::F32 : DType::I64, slot.shape);
    if (!made)
      return std::move(made).status();
    auto range = manifest.findValue(slot.name)->commonRange();
    int64_t high = range ? range->second : 2;
    for (int64_t i = 0, n = made->elements(); i < n; ++i)
      if (isFloat)
        made->mutableData<float>()[i] = 2 * counter.centered(i);
      else
        made->mutableData<int64_t>()[i] = int64_t(
            ((counter.bits(i) >> 32) * static_cast<uint64_t>(high)) >> 32);
    auto rounded = isFloat ? made->to(rounding) : std::move(made);
    auto tensor = rounded ? rounded->to(slot.dtype) : std::move(rounded);
    if (!tensor)
      return std::move(tensor).status();
    samples.push_back({slot.name, std::move(*tensor)});
  }
  return samples;
}

/// Which elements of a large output are kept.
static constexpr int64_t large = 32768, kept = 16384;

/// Returns the elements that files have of an output: all, or in a row those
/// that are drawn. The last one is among them.
static Result<Tensor> keptOf(const Tensor &output) {
  if (output.elements() <= large)
    return output;
  auto drawn = Tensor::empty(output.dtype(), std::array{kept});
  if (!drawn)
    return drawn;
  runtime::CounterStream counter(seed, 0);
  size_t size = size_t(artifact::byteSize(output.dtype()));
  auto count = uint64_t(output.elements());
  for (int64_t i = 0; i < kept; ++i) {
    uint64_t place = i + 1 == kept
                         ? count - 1
                         : ((counter.bits(uint64_t(i)) >> 32) * count) >> 32;
    std::memcpy(drawn->mutableData<std::byte>() + size_t(i) * size,
                output.data<std::byte>() + place * size, size);
  }
  return drawn;
}

/// The largest difference of two tensors of equal shape.
static double differenceOf(const Tensor &expected, const Tensor &got) {
  double most = 0, largest = 0;
  for (int64_t i = 0, n = expected.elements(); i < n; ++i) {
    double e = expected.at(i), difference = std::abs(got.at(i) - e);
    if (std::isnan(difference) && !(std::isnan(e) && std::isnan(got.at(i))) &&
        got.at(i) != e)
      return INFINITY;
    if (std::isnan(difference))
      continue;
    most = std::max(most, difference);
    if (std::isfinite(e))
      largest = std::max(largest, std::abs(e));
  }
  if (!artifact::isFloat(got.dtype()))
    return most > 0 ? INFINITY : 0;
  return most > 0 ? most / std::max(largest, 1e-30) : 0;
}

Result<Difference> gpu::compareWith(const std::string &file,
                                    const std::vector<NamedTensor> &outputs) {
  auto expected = io::Safetensors::read(file);
  if (!expected)
    return std::move(expected).status();
  if (expected->entries().size() != outputs.size())
    return Status::failed(
        "'" + file + "' has " + std::to_string(expected->entries().size()) +
        " outputs, and the program " + std::to_string(outputs.size()));
  Difference found;
  for (const NamedTensor &output : outputs) {
    auto array = expected->find(output.name);
    auto got = keptOf(output.tensor);
    if (!got)
      return std::move(got).status();
    if (!array || !std::ranges::equal(array->shape, got->shape()))
      return Status::failed("'" + file + "' has no output '" + output.name +
                            "' of shape " + runtime::toString(got->shape()));
    auto tensor = io::toTensor(*array);
    if (!tensor)
      return std::move(tensor).status();
    double difference = differenceOf(*tensor, *got);
    if (difference > found.largest || found.output.empty())
      found = {difference, output.name};
  }
  return found;
}

Status gpu::saveOutputs(const std::string &file, DType type,
                        const std::vector<NamedTensor> &outputs) {
  std::vector<Tensor> tensors;
  std::map<std::string, io::ArrayView> views;
  tensors.reserve(outputs.size());
  for (const NamedTensor &output : outputs) {
    auto some = keptOf(output.tensor);
    auto tensor = !some                              ? std::move(some)
                  : artifact::isFloat(some->dtype()) ? some->to(type)
                                                     : some->dense();
    if (!tensor)
      return std::move(tensor).status();
    tensors.push_back(std::move(*tensor));
    views.emplace(output.name, io::viewOf(tensors.back()));
  }
  return io::writeSafetensors(file, views, {});
}

bool gpu::haveSameBits(const std::vector<NamedTensor> &some,
                       const std::vector<NamedTensor> &others) {
  return std::ranges::equal(
      some, others, [](const NamedTensor &one, const NamedTensor &other) {
        return one.tensor.bytes() == other.tensor.bytes() &&
               std::memcmp(one.tensor.data(), other.tensor.data(),
                           size_t(one.tensor.bytes())) == 0;
      });
}
