//===- Team.h - workers that are threads of a test ------------------------===//
#ifndef TANDEM_TESTS_RUNTIME_GRAPH_DISTRIBUTED_TEAM_H
#define TANDEM_TESTS_RUNTIME_GRAPH_DISTRIBUTED_TEAM_H

#include "runtime/graph/Ops.h"
#include "runtime/graph/distributed/Loopback.h"
#include "runtime/graph/distributed/Worker.h"
#include "tests/runtime/graph/TestNodes.h"

#include <gtest/gtest.h>

#include <thread>

namespace tandem::graph::distributed::testing {

using graph::testing::FunctionNode;
using graph::testing::passOn;
using graph::testing::Tensors;

inline Tensor number(float value) {
  return *Tensor::copyOf(&value, artifact::DType::F32, {});
}
inline Value leaf(float value) {
  Value made = *Leaf::make("leaf", number(value));
  (void)made.tensor.setRequiresGrad(true);
  return made;
}
/// As the C API shows it.
inline Value shown(Value value) {
  if (value.edge)
    (void)value.tensor.setRequiresGrad(true);
  return value;
}

/// Workers over a loopback.
class Team {
public:
  explicit Team(uint32_t count, const LoopbackOptions &network = {},
                WorkerOptions options = {Milliseconds(20'000),
                                         Milliseconds(30'000)}) {
    for (std::unique_ptr<Transport> &transport : makeLoopback(count, network))
      workers.push_back(
          std::make_unique<Worker>(std::move(transport), options));
  }
  Worker &operator[](size_t i) { return *workers[i]; }
  size_t size() const { return workers.size(); }

  /// Waits until no worker has a context or a backward.
  ::testing::AssertionResult isIdle() {
    for (int i = 0; i < 2000; ++i) {
      bool isBusy = false;
      for (auto &worker : workers)
        if (worker) {
          WorkerCounts counts = worker->counts();
          isBusy |= counts.contexts > 0 || counts.backwards > 0;
        }
      if (!isBusy)
        return ::testing::AssertionSuccess();
      std::this_thread::sleep_for(Milliseconds(5));
    }
    return ::testing::AssertionFailure() << "contexts or backwards are left";
  }

  std::vector<std::unique_ptr<Worker>> workers;
};

/// Serves "times": the input times a leaf of the worker.
inline Value serveTimes(Worker &worker, float value,
                        const std::string &name = "times") {
  Value w = leaf(value);
  (void)worker.serve(
      name, [w](std::vector<Value> &inputs, std::vector<Value> &outputs) {
        Result<Value> product = ops::mul(inputs[0], w);
        if (!product)
          return std::move(product).status();
        outputs = {*product};
        return Status::success();
      });
  return w;
}

inline float at(const Result<Value> &gradient) {
  return gradient && gradient->defined()
             ? static_cast<float>(gradient->tensor.at(0))
             : -1e9f;
}

} // namespace tandem::graph::distributed::testing

#endif
