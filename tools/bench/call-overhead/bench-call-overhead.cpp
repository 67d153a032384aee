//===- bench-call-overhead.cpp - what a backward costs beside its kernels -===//
//
// Compiles programs of 10 and of 1,000 small inputs that require grad, none of
// which the backward writes, and calls their backwards without and with
// `createGraph`, by turns, on one thread. The second call asks whether the
// backward writes an input that requires grad; the artifact's list of those is
// empty, so that asking must cost nothing, however many inputs there are.
// Reports medians: a table, or JSON with --json; a number sets the rounds.
//
//===----------------------------------------------------------------------===//
#include "runtime/Model.h"
#include "tools/bench/compile/CompileText.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>

using namespace tandem;
using namespace tandem::runtime;

namespace {

constexpr const char *kType = "tensor<16xf32>";

std::string inputName(int i) { return "x" + std::to_string(i); }

/// loss = sum(w * (x0 + x1 + ...)).
std::string program(int inputs) {
  std::string arguments = std::string("%w: ") + kType +
                          " {tandem.role = #tandem.role<param \"w\" "
                          "{requires_grad, init = {kind = \"uniform\", low = "
                          "-1.0, high = 1.0}}>}",
              body, sum;
  for (int i = 0; i < inputs; ++i) {
    std::string name = inputName(i);
    arguments += ", %" + name + ": " + kType +
                 " {tandem.role = #tandem.role<input \"" + name +
                 "\" {requires_grad}>}";
    if (i == 0) {
      sum = "%" + name;
      continue;
    }
    std::string next = "%s" + std::to_string(i);
    body += next + " = tandem.add " + sum + ", %" + name + " : " + kType + "\n";
    sum = next;
  }
  return "module @overhead attributes {tandem.phase = \"functionalize\"} {\n"
         "func.func @graph(" +
         arguments +
         ") -> (tensor<f32> {tandem.role = #tandem.role<output \"loss\">}) "
         "{\n" +
         body + "%y = tandem.mul %w, " + sum + " : " + kType +
         "\n%loss = tandem.reduce_sum %y over [0] : " + kType +
         " -> tensor<f32>\nreturn %loss : tensor<f32>\n}\n}\n";
}

Result<Model> compiled(int inputs) {
  auto bytes = bench::compileText(program(inputs), {});
  if (!bytes)
    return bytes.status();
  auto reader = bench::read(*bytes);
  if (!reader)
    return reader.status();
  Options one;
  one.threads = 1;
  return Model::load(std::move(*reader), one);
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2,
                   values.end());
  return values[values.size() / 2];
}

struct Measured {
  int inputs;
  double plain, graph; ///< microseconds of a backward
  double difference;   ///< the median of the differences within a round
};

Result<Measured> measure(int inputs, int rounds) {
  auto model = compiled(inputs);
  if (!model)
    return model.status();
  std::vector<std::string> names;
  for (int i = 0; i < inputs; ++i)
    names.push_back(inputName(i));
  const int64_t shape[] = {16};
  std::vector<Tensor> tensors, grads(inputs);
  std::vector<Argument> arguments;
  std::vector<Destination> destinations;
  tensors.reserve(inputs);
  for (int i = 0; i < inputs; ++i) {
    auto tensor = Tensor::zeros(artifact::DType::F32, shape);
    if (!tensor)
      return tensor.status();
    tensors.push_back(std::move(*tensor));
    arguments.push_back({names[i], &tensors.back()});
    destinations.push_back({names[i], &grads[i]});
  }
  auto one = Tensor::zeros(artifact::DType::F32, {});
  if (!one)
    return one.status();
  const Argument cotangents[] = {{"loss", &*one}};
  auto context = model->forward(arguments, {});
  if (!context)
    return context.status();

  std::vector<double> plain, graph, differences;
  for (int round = -rounds / 10; round < rounds; ++round) {
    double seconds[2];
    // Each comes first in every other round.
    for (int turn = 0; turn < 2; ++turn) {
      int which = (turn + round) & 1;
      BackwardOptions options{.retainGraph = true, .createGraph = which == 1};
      auto begin = std::chrono::steady_clock::now();
      Status status =
          model->backward(*context, cotangents, destinations, options);
      std::chrono::duration<double> spent =
          std::chrono::steady_clock::now() - begin;
      if (!status)
        return status;
      seconds[which] = spent.count();
    }
    if (round < 0)
      continue; // warms up
    plain.push_back(seconds[0] * 1e6);
    graph.push_back(seconds[1] * 1e6);
    differences.push_back((seconds[1] - seconds[0]) * 1e6);
  }
  return Measured{inputs, median(plain), median(graph), median(differences)};
}

} // namespace

int main(int argc, char **argv) {
  bool json = false;
  int rounds = 2000;
  for (int i = 1; i < argc; ++i)
    if (!std::strcmp(argv[i], "--json"))
      json = true;
    else
      rounds = std::max(std::atoi(argv[i]), 10);
  if (json)
    std::printf("{\"call_overhead\": [");
  else
    std::printf("%8s %14s %14s %14s %16s\n", "inputs", "backward us",
                "with graph us", "difference us", "per input ns");
  bool first = true;
  for (int inputs : {10, 1000}) {
    auto measured = measure(inputs, rounds);
    if (!measured) {
      std::fprintf(stderr, "%d inputs: %s\n", inputs,
                   measured.status().message().c_str());
      return measured.status().exitCode();
    }
    double perInput = measured->difference * 1e3 / inputs;
    if (json)
      std::printf("%s\n {\"inputs\": %d, \"backward_us\": %.3f, "
                  "\"with_graph_us\": %.3f, \"difference_us\": %.4f, "
                  "\"difference_per_input_ns\": %.4f}",
                  first ? "" : ",", inputs, measured->plain, measured->graph,
                  measured->difference, perInput);
    else
      std::printf("%8d %14.3f %14.3f %14.4f %16.4f\n", inputs, measured->plain,
                  measured->graph, measured->difference, perInput);
    first = false;
  }
  if (json)
    std::printf("\n]}\n");
  return 0;
}
