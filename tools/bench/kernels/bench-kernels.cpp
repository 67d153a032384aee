//===- bench-kernels.cpp - how fast single kernels are --------------------===//
//
// Compiles products, convolutions and attention one by one, as the compiler
// does, and reports the best rate of one thread (in the time that it ran) over
// some repetitions. A table, or JSON with --json; other arguments select the
// cases whose names contain one of them.
//
//===----------------------------------------------------------------------===//
#include "tests/support/JitKernel.h"

#include <cstdio>
#include <cstring>
#include <functional>

using namespace tandem::test;

namespace {
struct Case {
  std::string name, module;
  double flops;
};
} // namespace

/// The least time of a round, over at least 0.3 s and 5 rounds.
static double best(const std::function<void()> &body) {
  double least = 1e30, total = 0;
  for (int round = 0; round < 5 || (total < 0.3 && round < 10000); ++round) {
    double begin = threadSeconds();
    body();
    double time = threadSeconds() - begin;
    least = std::min(least, time);
    total += time;
  }
  return least;
}

static std::string tensor(std::vector<int64_t> shape) {
  std::string text = "tensor<";
  for (int64_t size : shape)
    text += std::to_string(size) + "x";
  return text + "f32>";
}

/// "%a0, %a1: T", "%r0" ...; or the types alone.
static std::string join(const std::vector<std::string> &types,
                        const std::string &name, bool areTyped) {
  std::string text;
  for (size_t i = 0; i < types.size(); ++i) {
    text += i ? ", " : "";
    text += name.empty() ? "" : name + std::to_string(i);
    text += areTyped && !name.empty() ? ": " : "";
    text += areTyped ? types[i] : "";
  }
  return text;
}

using Types = std::vector<std::string>;

/// A kernel of inputs %0, %1, ... around the op that makes %r0, ...
static std::string module(const Types &inputs, const Types &results,
                          const std::string &op) {
  std::string in = join(inputs, "", true), out = join(results, "", true);
  std::string made = join(results, "%r", false), buffers, yielded;
  for (size_t i = 0; i < results.size(); ++i) {
    buffers += (i ? ", #tandem.buffer<result " : "#tandem.buffer<result ") +
               std::to_string(i) + ">";
    yielded += (i ? ", %k#" : "%k#") + std::to_string(i);
  }
  return "func.func @f(" + join(inputs, "%a", true) + ") -> (" + out +
         ") {\n %k:" + std::to_string(results.size()) +
         " = tandem.kernel \"k\" (" + join(inputs, "%a", false) +
         ") {\n ^bb0(" + join(inputs, "%", true) + "):\n " + made + " = " + op +
         "\n tandem.yield " + made + " : " + out + "\n } {buffers = [" +
         buffers + "]} : (" + in + ") -> (" + out + ")\n return " + yielded +
         " : " + out + "\n}\n";
}

/// Of two factors.
static std::string module(const std::string &a, const std::string &b,
                          const std::string &y, const std::string &op) {
  return module(Types{a, b}, {y}, op + " : " + a + ", " + b + " -> " + y);
}

/// `form` is "nn", "nt" or "tn".
static Case product(int64_t batch, int64_t M, int64_t N, int64_t K,
                    std::string form) {
  auto shape = [&](int64_t rows, int64_t columns) {
    return batch > 1 ? tensor({batch, rows, columns}) : tensor({rows, columns});
  };
  bool tl = form[0] == 't', tr = form[1] == 't';
  std::string name = "matmul-" + form + "-";
  if (batch > 1)
    name += std::to_string(batch) + "x";
  name += std::to_string(M) + "x" + std::to_string(N) + "x" + std::to_string(K);
  return {
      name,
      module(tl ? shape(K, M) : shape(M, K), tr ? shape(N, K) : shape(K, N),
             shape(M, N),
             std::string("tandem.matmul %0, %1") + (tl   ? " {transpose_lhs}"
                                                    : tr ? " {transpose_rhs}"
                                                         : "")),
      2.0 * batch * M * N * K};
}

static std::string list(std::vector<int64_t> numbers) {
  std::string text = "[";
  for (size_t i = 0; i < numbers.size(); ++i)
    text += (i ? ", " : "") + std::to_string(numbers[i]);
  return text + "]";
}

/// The same case without Winograd's method.
static Case direct(const Case &c) {
  return {c.name + "-direct",
          "module attributes {tandem.target = {winograd = \"no\"}} {\n" +
              c.module + "}\n",
          c.flops};
}

/// A square convolution, padded to keep the size (up to the stride), and both
/// gradients; those that Winograd's method may compute also without it.
static void addConvolution(std::vector<Case> &cases, int64_t batch,
                           int64_t channels, int64_t size, int64_t filters,
                           int64_t kernel, int64_t stride) {
  int64_t pad = kernel / 2, out = (size + 2 * pad - kernel) / stride + 1;
  std::vector<int64_t> xs{batch, channels, size, size};
  std::vector<int64_t> ws{filters, channels, kernel, kernel};
  std::vector<int64_t> ys{batch, filters, out, out};
  std::string x = tensor(xs), w = tensor(ws), y = tensor(ys);
  std::string geometry = " strides " + list({stride, stride}) + " padding " +
                         list({pad, pad, pad, pad});
  std::string name = "conv2d-" + std::to_string(batch) + "x" +
                     std::to_string(channels) + "x" + std::to_string(size) +
                     "-" + std::to_string(filters) + "-k" +
                     std::to_string(kernel) + "s" + std::to_string(stride);
  double flops = 2.0 * batch * filters * out * out * channels * kernel * kernel;
  size_t first = cases.size();
  cases.push_back(
      {name, module(x, w, y, "tandem.conv2d %0, %1" + geometry), flops});
  cases.push_back(
      {name + "-input-grad",
       module(y, w, x,
              "tandem.conv2d_input_grad %0, %1 to " + list(xs) + geometry),
       flops});
  cases.push_back(
      {name + "-filter-grad",
       module(x, y, w,
              "tandem.conv2d_filter_grad %0, %1 to " + list(ws) + geometry),
       flops});
  if (kernel == 3 && stride == 1)
    for (size_t i = first; i < first + 3; ++i)
      cases.push_back(direct(cases[i]));
}

/// Causal attention of `batch` heads, and its gradients. What nobody sees is no
/// work.
static void addAttention(std::vector<Case> &cases, int64_t batch, int64_t time,
                         int64_t width) {
  std::string x = tensor({batch, time, width}), row = tensor({batch, time});
  double scores = static_cast<double>(batch * time * (time + 1) / 2);
  auto add = [&](const std::string &op, const Types &inputs,
                 const Types &results, double products) {
    std::string line = "tandem." + op + " " + join(inputs, "%", false) +
                       " {causal, scale = 0.125 : f64} : (" +
                       join(inputs, "", true) + ") -> (" +
                       join(results, "", true) + ")";
    cases.push_back({op + "-" + std::to_string(batch) + "x" +
                         std::to_string(time) + "x" + std::to_string(width),
                     module(inputs, results, line),
                     2 * products * scores * static_cast<double>(width)});
  };
  add("attention_forward", {x, x, x}, {x, row}, 2);
  add("attention_query_grad", {x, x, x, x, row, row}, {x}, 3);
  add("attention_key_grad", {x, x, x, x, row, row}, {x, x}, 4);
}

static std::vector<Case> allCases() {
  std::vector<Case> cases;
  for (const char *form : {"nn", "nt", "tn"}) {
    cases.push_back(product(1, 512, 512, 512, form));
    cases.push_back(product(1, 1024, 1024, 1024, form));
    cases.push_back(product(1, 768, 768, 3072, form));
  }
  cases.push_back(product(1, 64, 1024, 1024, "nn"));
  cases.push_back(product(1, 1024, 64, 1024, "nn"));
  cases.push_back(product(1, 64, 10, 128, "nt"));
  cases.push_back(product(1, 1, 1024, 1024, "nt"));
  for (const char *form : {"nn", "nt", "tn"}) {
    cases.push_back(product(128, 64, 64, 32, form));
    cases.push_back(product(512, 12, 12, 32, form));
    cases.push_back(product(96, 128, 128, 64, form));
  }
  addConvolution(cases, 8, 64, 56, 64, 3, 1);
  addConvolution(cases, 8, 64, 56, 64, 1, 1);
  addConvolution(cases, 8, 128, 56, 128, 3, 2);
  addConvolution(cases, 8, 256, 14, 256, 3, 1);
  addConvolution(cases, 8, 512, 7, 512, 3, 1);
  addConvolution(cases, 4, 3, 224, 64, 7, 2);
  addConvolution(cases, 32, 64, 32, 64, 3, 1);
  addConvolution(cases, 32, 128, 16, 128, 3, 1);
  addConvolution(cases, 32, 256, 8, 256, 3, 1);
  addConvolution(cases, 32, 512, 4, 512, 3, 1);
  addAttention(cases, 32, 128, 64);
  addAttention(cases, 48, 64, 64);
  addAttention(cases, 8, 1024, 64);
  return cases;
}

int main(int argc, char **argv) {
  bool json = false;
  std::vector<std::string> wanted;
  for (int i = 1; i < argc; ++i)
    if (!std::strcmp(argv[i], "--json"))
      json = true;
    else
      wanted.push_back(argv[i]);
  if (json)
    std::printf("{\"kernels\": [");
  else
    std::printf("%-44s %9s %8s %10s\n", "kernel", "ms", "GFLOP/s",
                "compile ms");
  bool first = true;
  for (const Case &c : allCases()) {
    bool selected = wanted.empty();
    for (const std::string &name : wanted)
      selected |= c.name.find(name) != std::string::npos;
    if (!selected)
      continue;
    JitKernel kernel(c.module);
    if (!kernel.ok()) {
      std::fprintf(stderr, "%s: %s\n", c.name.c_str(), kernel.error.c_str());
      return 1;
    }
    std::vector<KernelBuffer> memory;
    std::vector<void *> buffers;
    for (auto &types : {kernel.inputTypes, kernel.outputTypes})
      for (mlir::RankedTensorType type : types)
        memory.emplace_back(tandem::byteSize(type), 0x3C); // small numbers
    for (KernelBuffer &buffer : memory)
      buffers.push_back(buffer.data());
    KernelBuffer scratch(kernel.scratchBytes);
    double time = best([&] { kernel.runAll(buffers, scratch.data()); });
    double rate = c.flops / time * 1e-9;
    if (json)
      std::printf("%s\n {\"name\": \"%s\", \"ms\": %.4f, \"gflops\": %.2f, "
                  "\"compile_ms\": %.1f}",
                  first ? "" : ",", c.name.c_str(), time * 1e3, rate,
                  kernel.compileSeconds * 1e3);
    else
      std::printf("%-44s %9.3f %8.1f %10.0f\n", c.name.c_str(), time * 1e3,
                  rate, kernel.compileSeconds * 1e3);
    std::fflush(stdout);
    first = false;
  }
  if (json)
    std::printf("\n]}\n");
  return 0;
}
