//===- models.cpp - three programs that write to their states -------------===//
//
//   mutation-models running-statistics|amax-history|main-gradients OUTPUT.mlir
//
// Each is compiled with `tandem compile` and run by the program of the same
// name, which says what happens.
//
//===----------------------------------------------------------------------===//
#include "compiler/trace/CustomVjp.h"
#include "compiler/trace/Functions.h"

#include <cstdio>
#include <cstring>

using namespace tandem;

/// The forward writes: batch norm's statistics, and how many batches it saw.
static void runningStatistics(Trace &trace) {
  constexpr int64_t rows = 64, columns = 3;
  Tensor x = trace.input("x", {rows, columns});
  Tensor target = trace.input("target", {rows, 1});
  Tensor w = trace.parameter("w", {1, columns}, Init::uniform(-0.5, 0.5));
  Tensor scale = trace.parameter("scale", {columns}, Init::constant(1));
  Tensor bias = trace.parameter("bias", {columns}, Init::constant(0));
  Tensor mean = trace.state("mean", {columns}, Init::constant(0));
  Tensor variance = trace.state("variance", {columns}, Init::constant(1));
  Tensor count = trace.state("count", {}, Init::constant(0), DType::I64);

  Tensor h = batchNorm(x, scale, bias, mean, variance);
  count.add_(1);
  trace.output("loss", mseLoss(linear(h, w), target));
}

/// Rounds to 4 significant bits after scaling the largest magnitude of `seen`
/// to half of e4m3's, 448, so that there is room to grow: Veltkamp's splitting,
/// by 2^20 for f32's 24 bits.
static Tensor rounded(const Tensor &x, const Tensor &seen) {
  Tensor scale = Tensor(Operand(224.0) / maximum(max(seen), 1e-6));
  Tensor t = minimum(maximum(x * scale, -448.0), 448.0);
  Tensor c = t * 1048577.0;
  return (c - (c - t)) / scale;
}

/// Puts the largest magnitude of `x` in front of a row of the history.
static void note(const Tensor &history, int64_t row, const Tensor &x) {
  Tensor all = history.select(0, row);
  int64_t n = all.size(0);
  Tensor older = all.slice(0, 0, n - 1).clone();
  all.slice(0, 1, n).copy_(older);
  all.select(0, 0).copy_(max(abs(x)));
}

/// Forward and backward write: each scales by what was seen before, and notes
/// what it sees now.
static void amaxHistory(Trace &trace) {
  Tensor x = trace.input("x", {16, 8});
  Tensor w = trace.parameter("w", {4, 8}, Init::uniform(-0.3, 0.3));
  // Rows: x, w, the gradient of y; newest first.
  Tensor history = trace.state("history", {3, 3}, Init::constant(1));
  Tensors y = customVjp(
      "fp8_linear", {x, w}, {history},
      [](const Tensors &in, const Tensors &refs, Saver &saver) -> Tensors {
        Tensor qx = rounded(in[0], refs[0].select(0, 0));
        Tensor qw = rounded(in[1], refs[0].select(0, 1));
        note(refs[0], 0, in[0]);
        note(refs[0], 1, in[1]);
        saver.save(qx);
        saver.save(qw);
        return {linear(qx, qw)};
      },
      [](const Tensors &saved, const Tensors &dy,
         const Tensors &refs) -> Tensors {
        Tensor q = rounded(dy[0], refs[0].select(0, 2));
        note(refs[0], 2, dy[0]);
        return {matmul(q, saved[1]), matmul(q.transpose(0, 1), saved[0])};
      });
  trace.output("y", y[0]);
}

/// The backward writes: the gradient of the weights is added up in f32 where
/// the optimizer wants it, and no gradient in bf16 is made at all.
static void mainGradients(Trace &trace) {
  Tensor x = trace.input("x", {8, 6}, DType::F32, {.requiresGrad = true});
  Tensor w =
      trace.parameter("w", {3, 6}, Init::uniform(-0.4, 0.4), DType::BF16);
  Tensor main = trace.state("main_grad", {3, 6}, Init::constant(0));
  Tensors y = customVjp(
      "linear", {x, w}, {main},
      [](const Tensors &in, const Tensors &, Saver &saver) -> Tensors {
        saver.save(in[0]);
        saver.save(in[1]);
        return {linear(in[0], cast(in[1], DType::F32))};
      },
      [](const Tensors &saved, const Tensors &dy,
         const Tensors &refs) -> Tensors {
        refs[0].add_(matmul(dy[0].transpose(0, 1), saved[0]));
        return {matmul(dy[0], cast(saved[1], DType::F32)), Tensor()};
      });
  trace.output("y", y[0]);
}

int main(int argc, char **argv) {
  struct {
    const char *name;
    void (*record)(Trace &);
  } models[] = {{"running-statistics", runningStatistics},
                {"amax-history", amaxHistory},
                {"main-gradients", mainGradients}};
  for (auto &model : models) {
    if (argc != 3 || argv[2][0] == '-' || std::strcmp(argv[1], model.name) != 0)
      continue;
    Trace trace(model.name);
    model.record(trace);
    Status status = trace.save(argv[2]);
    if (!status)
      std::fprintf(stderr, "mutation-models: %s\n", status.message().c_str());
    return status ? 0 : 1;
  }
  std::fprintf(stderr, "usage: mutation-models running-statistics|amax-history|"
                       "main-gradients OUTPUT.mlir\n");
  return 2;
}
