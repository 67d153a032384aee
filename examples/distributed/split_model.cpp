//===- split_model.cpp - a model on two workers ---------------------------===//
//
// Worker 1 has an embedding table, worker 0 the layer above it. Tokens go to
// the table, rows come back, and the backward follows: worker 0 never has the
// table.
//
//     mpirun -n 2 distributed-split-model
//     distributed-split-model --threads=2
//
//===----------------------------------------------------------------------===//
#include "Workers.h"

#include <cmath>

using tdm::Tensor;
using tdm::TensorList;
namespace dist = tdm::dist;

constexpr int64_t words = 10, width = 4, batch = 5;

/// Rows of a table by their numbers; the gradient goes to the rows.
static Tensor lookUp(const Tensor &table, const Tensor &tokens) {
  tdm::Function function;
  function.name = "look up";
  function.forward = [](tdm::Node &node, const TensorList &inputs,
                        TensorList &outputs) {
    std::vector<float> rows = valuesOf(inputs[0]), out;
    for (float token : valuesOf(inputs[1]))
      for (int64_t i = 0; i < width; ++i)
        out.push_back(rows[size_t(int64_t(token) * width + i)]);
    node.save(inputs[1]);
    outputs[0] = tensor(out, {inputs[1].elements(), width});
  };
  function.backward = [](tdm::Node &node, const TensorList &gradients,
                         TensorList &results) {
    std::vector<float> table(size_t(words * width));
    std::vector<float> rows = valuesOf(gradients[0]);
    size_t row = 0;
    for (float token : valuesOf(node.saved(0)))
      for (int64_t i = 0; i < width; ++i)
        table[size_t(int64_t(token) * width + i)] += rows[row++];
    results[0] = tensor(table, {words, width});
  };
  return tdm::call(function, {table, tokens})[0];
}

/// What the model shall give for a token.
static float wanted(int64_t token, int64_t i) {
  return float(token + 1) / float(i + 1);
}

static void serveTable(dist::Worker worker) {
  std::vector<float> values(size_t(words * width), 0.5f);
  Tensor table = tensor(values, {words, width}).setRequiresGrad(true);
  worker.serve("look up", [&](const TensorList &inputs, TensorList &outputs) {
    outputs[0] = lookUp(table, inputs[0]);
  });
  worker.optimize({table}, dist::sgd(0.2f));
  worker.meet("start"); // nobody calls before all serve
  worker.leave();
}

static void train(dist::Worker worker) {
  Tensor scale = tensor(std::vector<float>(size_t(width), 1), {width})
                     .setRequiresGrad(true);
  worker.optimize({scale}, dist::sgd(0.02f));
  worker.meet("start"); // nobody calls before all serve
  float last = 0;
  for (int64_t step = 0; step < 200; ++step) {
    std::vector<float> tokens, minus;
    for (int64_t i = 0; i < batch; ++i) {
      int64_t token = (step * batch + i) % words;
      tokens.push_back(float(token));
      for (int64_t j = 0; j < width; ++j)
        minus.push_back(-wanted(token, j));
    }
    dist::Context context(worker);
    Tensor rows = worker.call(1, "look up", {tensor(tokens, {batch})})[0];
    Tensor made = tdm::mul(rows, tdm::expand(scale, {batch, width}));
    Tensor error = tdm::add(made, tensor(minus, {batch, width}));
    Tensor loss =
        tdm::scale(tdm::sum(tdm::mul(error, error)), 1.0 / double(batch));
    context.backward({loss});
    context.step();
    last = valuesOf(loss)[0];
  }
  worker.leave();
  std::printf("loss %.2g\n", double(last));
  if (!(last < 1e-3f))
    throw std::runtime_error("expected a loss below 0.001");
}

int main(int argc, char **argv) {
  return runWorkers(argc, argv, [](dist::Worker worker) {
    if (worker.count() != 2)
      throw std::runtime_error("expected 2 workers");
    worker.number() == 0 ? train(worker) : serveTable(worker);
  });
}
