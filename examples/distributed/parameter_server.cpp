//===- parameter_server.cpp - weights on one worker, trainers on others ---===//
//
// Worker 0 has the weights of y = slope * x + offset. All others train: each
// takes the weights, computes its loss on its own points, and has the server
// step. Each step is a context of its own, so that trainers do not mix.
//
//     mpirun -n 3 distributed-parameter-server
//     distributed-parameter-server --threads=3
//
//===----------------------------------------------------------------------===//
#include "Workers.h"

#include <cmath>
#include <mutex>

using tdm::Tensor;
using tdm::TensorList;
namespace dist = tdm::dist;

constexpr int steps = 100;
constexpr int64_t points = 16;

/// Serves the weights, and steps under the same lock.
static void serve(dist::Worker worker) {
  Tensor slope = tensor({0}, {}).setRequiresGrad(true);
  Tensor offset = tensor({0}, {}).setRequiresGrad(true);
  std::mutex mutex;
  // A copy goes out: weights may change while others compute.
  worker.serve("weights", [&](const TensorList &, TensorList &outputs) {
    std::lock_guard lock(mutex);
    outputs = {tdm::scale(slope, 1), tdm::scale(offset, 1)};
  });
  // Trainers step at the same time: each takes a part of the way.
  dist::Step descend = dist::sgd(0.2f / float(worker.count() - 1));
  worker.optimize({slope, offset}, [&](uint64_t context, TensorList &params,
                                       const TensorList &gradients) {
    std::lock_guard lock(mutex);
    descend(context, params, gradients);
  });
  worker.meet("start"); // nobody calls before all serve
  worker.leave();
  float a = valuesOf(slope)[0], b = valuesOf(offset)[0];
  std::printf("y = %.3f x %+.3f\n", a, b);
  // So that a NaN is not right.
  if (!(std::abs(a - 3) <= 0.01f && std::abs(b + 1) <= 0.01f))
    throw std::runtime_error("expected y = 3 x - 1");
}

static void train(dist::Worker worker) {
  std::vector<float> xs, ys;
  for (int64_t i = 0; i < points; ++i) {
    float x = 2.0f * float(i) / float(points - 1) - 1 +
              0.01f * float(worker.number());
    xs.push_back(x);
    ys.push_back(-(3 * x - 1));
  }
  Tensor x = tensor(xs, {points}), minusY = tensor(ys, {points});
  worker.meet("start"); // nobody calls before all serve
  for (int step = 0; step < steps; ++step) {
    dist::Context context(worker);
    TensorList weights = worker.call(0, "weights", {}, 2);
    Tensor y = tdm::add(tdm::mul(tdm::expand(weights[0], {points}), x),
                        tdm::expand(weights[1], {points}));
    Tensor error = tdm::add(y, minusY);
    Tensor loss = tdm::scale(tdm::sum(tdm::mul(error, error)), 1.0 / points);
    context.backward({loss});
    context.step();
  }
  worker.leave();
}

int main(int argc, char **argv) {
  return runWorkers(argc, argv, [](dist::Worker worker) {
    if (worker.count() < 2)
      throw std::runtime_error("expected at least 2 workers");
    worker.number() == 0 ? serve(worker) : train(worker);
  });
}
