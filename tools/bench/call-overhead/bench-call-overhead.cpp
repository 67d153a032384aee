//===- bench-call-overhead.cpp - what a call costs beside its kernels -----===//
//
// Calls a program of one small op, which is on the calling thread however many
// there are. Then compiles programs of 10 and of 1,000 small inputs that
// require grad, none of which the backward writes, and calls their backwards
// without and with `createGraph`, by turns, on one thread. The second call asks
// whether the backward writes an input that requires grad; the artifact's list
// of those is empty, so that asking must cost nothing, however many inputs
// there are. Reports medians: a table, or JSON with --json; a number sets the
// rounds.
//
//===----------------------------------------------------------------------===//
#include "runtime/model/Model.h"
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

/// y = x + x.
std::string oneOp() {
  return std::string("module @one attributes {tandem.phase = "
                     "\"functionalize\"} {\nfunc.func @graph(%x: ") +
         kType + " {tandem.role = #tandem.role<input \"x\">}) -> (" + kType +
         " {tandem.role = #tandem.role<output \"y\">}) {\n%y = tandem.add %x, "
         "%x : " +
         kType + "\nreturn %y : " + kType + "\n}\n}\n";
}

Result<Model> compiled(const std::string &text, int threads,
                       bool inference = false) {
  CompileOptions options;
  options.inference = inference;
  auto bytes = bench::compileText(text, options);
  if (!bytes)
    return bytes.status();
  auto reader = bench::read(*bytes);
  if (!reader)
    return reader.status();
  Options loading;
  loading.threads = threads;
  return Model::load(std::move(*reader), loading);
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2,
                   values.end());
  return values[values.size() / 2];
}

/// Returns the median time of a call in microseconds.
Result<double> measureOneOp(int rounds) {
  auto model = compiled(oneOp(), 0, /*inference=*/true);
  if (!model)
    return model.status();
  const int64_t shape[] = {16};
  auto x = Tensor::zeros(artifact::DType::F32, shape);
  auto y = Tensor::zeros(artifact::DType::F32, shape);
  if (!x || !y)
    return Status::failed("out of memory");
  const Argument inputs[] = {{"x", &*x}};
  const Destination outputs[] = {{"y", &*y}};
  constexpr int calls = 100; // so that the clock itself does not count
  std::vector<double> times;
  for (int round = -rounds / 10; round < rounds; ++round) {
    auto begin = std::chrono::steady_clock::now();
    for (int call = 0; call < calls; ++call)
      if (Status status = model->run("evaluate", inputs, outputs); !status)
        return status;
    std::chrono::duration<double> spent =
        std::chrono::steady_clock::now() - begin;
    if (round >= 0)
      times.push_back(spent.count() * 1e6 / calls);
  }
  return median(times);
}

struct Measured {
  int inputs;
  double plain, graph; ///< microseconds of a backward
  double difference;   ///< the median of the differences within a round
};

Result<Measured> measure(int inputs, int rounds) {
  auto model = compiled(program(inputs), 1);
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
  auto one = measureOneOp(rounds);
  if (!one) {
    std::fprintf(stderr, "one op: %s\n", one.status().message().c_str());
    return one.status().exitCode();
  }
  if (json)
    std::printf("{\"one_op_us\": %.4f, \"call_overhead\": [", *one);
  else
    std::printf("a program of one small op: %.4f us a call\n\n", *one);
  if (!json)
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
