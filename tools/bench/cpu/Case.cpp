//===- Case.cpp - data, text and the check of results ---------------------===//
#include "tools/bench/cpu/Case.h"

#include <algorithm>
#include <bit>
#include <cmath>

using namespace tandem;
using namespace tandem::bench;

int64_t Operand::elements() const {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

std::string Operand::type() const {
  std::string text = "tensor<";
  for (int64_t size : shape)
    text += std::to_string(size) + "x";
  return text + std::string(spelling(dtype)) + ">";
}

static void write(Tensor &tensor, int64_t element, double value) {
  switch (tensor.dtype()) {
  case DType::F32:
    tensor.mutableData<float>()[element] = static_cast<float>(value);
    break;
  case DType::BF16: // of numbers with at most 8 significant bits
    tensor.mutableData<uint16_t>()[element] = static_cast<uint16_t>(
        std::bit_cast<uint32_t>(static_cast<float>(value)) >> 16);
    break;
  default:
    tensor.mutableData<int64_t>()[element] = static_cast<int64_t>(value);
  }
}

double bench::read(const Tensor &tensor, int64_t element) {
  switch (tensor.dtype()) {
  case DType::F32:
    return tensor.data<float>()[element];
  case DType::BF16:
    return std::bit_cast<float>(
        static_cast<uint32_t>(tensor.data<uint16_t>()[element]) << 16);
  default:
    return static_cast<double>(tensor.data<int64_t>()[element]);
  }
}

Tensor bench::filled(const Operand &operand, uint64_t seed) {
  Tensor tensor = *Tensor::empty(operand.dtype, operand.shape);
  uint64_t state = seed * 0x9E3779B97F4A7C15u + 1;
  for (int64_t i = 0; i < operand.elements(); ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    double unit = static_cast<double>(state >> 40) / (1 << 24);
    double value = operand.low + unit * (operand.high - operand.low);
    write(tensor, i, value);
  }
  return tensor;
}

std::string bench::programText(const std::vector<Operand> &inputs,
                               const std::vector<Operand> &outputs,
                               const std::string &body) {
  std::string arguments, results, names, types;
  for (const Operand &input : inputs)
    arguments += (arguments.empty() ? "%" : ", %") + input.name + ": " +
                 input.type() + " {tandem.role = #tandem.role<input \"" +
                 input.name + "\">}";
  for (const Operand &output : outputs) {
    std::string comma = names.empty() ? "" : ", ";
    results += comma + output.type() +
               " {tandem.role = #tandem.role<output \"" + output.name + "\">}";
    names += comma + "%" + output.name;
    types += comma + output.type();
  }
  return "module @bench attributes {tandem.phase = \"functionalize\"} {\n"
         "func.func @graph(" +
         arguments + ") -> (" + results + ") {\n" + body + "\nreturn " + names +
         " : " + types + "\n}\n}\n";
}

double bench::allBytes(const Case &c) {
  double bytes = 0;
  for (const auto *operands : {&c.inputs, &c.outputs})
    for (const Operand &operand : *operands)
      bytes += static_cast<double>(operand.bytes());
  return bytes;
}

Answers::Answers(const Case &c, const std::vector<Tensor> &inputs) : which(c) {
  constexpr int64_t kSamples = 300;
  for (size_t o = 0; o < c.outputs.size(); ++o) {
    int output = static_cast<int>(o);
    int64_t elements = c.outputs[o].elements();
    int64_t samples = std::min(elements, kSamples);
    std::vector<int64_t> chosen;
    if (c.special)
      chosen = c.special(inputs, output);
    // The first and the last element, and others at uneven distances.
    for (int64_t s = 0; s < samples; ++s)
      chosen.push_back(samples == 1 ? 0 : s * (elements - 1) / (samples - 1));
    answers.emplace_back();
    for (int64_t element : chosen)
      answers.back().push_back({element, c.expected(inputs, output, element)});
  }
}

std::string Answers::check(const Contender &contender) const {
  for (size_t o = 0; o < answers.size(); ++o) {
    double scale = 0, worst = 0;
    for (const Answer &answer : answers[o]) {
      double error =
          std::fabs(read(contender.outputs[o], answer.element) - answer.value);
      worst = std::isnan(error) ? INFINITY : std::max(worst, error);
      scale = std::max(scale, std::fabs(answer.value));
    }
    if (!(worst <= which.tolerance * scale))
      return "'" + which.outputs[o].name + "' is off by " +
             std::to_string(worst) + " where values are up to " +
             std::to_string(scale);
  }
  return "";
}
