//===- bench-graph.cpp - what a node of a run-time graph costs ------------===//
//
// Backwards over nodes without work: a chain of 10,000, a fan of 1,000 whose
// gradients are summed, and four threads with a graph each that share one leaf.
// Prints the processor time per node and the allocations of a backward. With an
// ARTIFACT whose forward takes x and y and gives loss with a gradient of w (the
// test runtime-write-artifact writes one): a backward through its node, beside
// Model::backward itself. torch-engine.cpp beside this file does the others
// with PyTorch's engine.
//
//===----------------------------------------------------------------------===//
#include "runtime/graph/CallNode.h"
#include "runtime/graph/Engine.h"
#include "runtime/graph/Leaf.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <new>
#include <thread>

using namespace tandem;
using namespace tandem::graph;

static std::atomic<int64_t> allocations{0};

void *operator new(size_t size) {
  ++allocations;
  if (void *memory = std::malloc(size ? size : 1))
    return memory;
  throw std::bad_alloc();
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, size_t) noexcept { std::free(memory); }

namespace {

class Pass : public Node {
public:
  std::string name() const override { return "pass"; }
  Status run(Gradients &inputs, Gradients &outputs, const RunMode &) override {
    for (Value &output : outputs)
      output = inputs[0];
    return Status::success();
  }
};

void must(const Status &status) {
  if (status)
    return;
  std::fprintf(stderr, "bench-graph: %s\n", status.message().c_str());
  std::exit(status.exitCode());
}

template <typename T> T must(Result<T> result) {
  must(result.status());
  return std::move(*result);
}

Edge pass(const Tensor &like, const std::vector<Edge> &edges) {
  auto node = std::make_shared<Pass>();
  for (const Edge &edge : edges)
    must(node->addEdge(edge));
  return {node, must(node->addInput(like))};
}

Edge chain(const Tensor &like, Edge at, int nodes) {
  for (int i = 0; i < nodes; ++i)
    at = pass(like, {at});
  return at;
}

/// The processor time of this thread, in seconds.
double now() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

/// The least time of some calls, and what the last one allocated.
double best(const std::function<void()> &call, int64_t &made, int calls = 50) {
  double least = 1e9;
  for (int i = 0; i < calls; ++i) {
    int64_t before = allocations;
    double begin = now();
    call();
    least = std::min(least, now() - begin);
    made = allocations - before;
  }
  return least;
}

void report(const char *name, const Edge &top, int nodes, const Tensor &one) {
  int64_t made = 0;
  Root root{top, one};
  double seconds = best([&] { must(backward({&root, 1})); }, made);
  std::printf("%-28s %8.1f ns a node, %lld allocations\n", name,
              1e9 * seconds / nodes, static_cast<long long>(made));
}

void threads(const Edge &leaf, const Tensor &one) {
  std::atomic<int64_t> nanoseconds{0};
  std::vector<std::thread> all;
  for (int t = 0; t < 4; ++t)
    all.emplace_back([&] {
      int64_t made = 0;
      Root root{chain(one, leaf, 10000), one};
      double seconds = best([&] { must(backward({&root, 1})); }, made);
      nanoseconds += static_cast<int64_t>(1e9 * seconds / 4);
    });
  for (std::thread &thread : all)
    thread.join();
  std::printf("%-28s %8.1f ns a node\n", "4 threads, one leaf",
              double(nanoseconds) / 10000);
}

/// So many calls of a few microseconds have a quiet one among them.
constexpr int shortCalls = 5000;

void program(const char *path) {
  runtime::Model model = must(runtime::Model::load(path, {1, 0}));
  int64_t xShape[] = {8, 3}, yShape[] = {8};
  Tensor x = must(Tensor::zeros(artifact::DType::F32, xShape));
  Tensor y = must(Tensor::zeros(artifact::DType::F32, yShape));
  Tensor one = must(Tensor::empty(artifact::DType::F32, {})), loss, g;
  must(one.fill(1));
  std::vector<runtime::Argument> in = {{"x", &x}, {"y", &y}};
  std::vector<runtime::Destination> out = {{"loss", &loss}},
                                    grads = {{"w", &g}};
  std::vector<runtime::Argument> ct = {{"loss", &one}};
  runtime::Context context = must(model.forward(in, out));
  int64_t made = 0;
  // A new gradient each time, as a node's.
  auto once = [&] {
    g = Tensor();
    must(model.backward(context, ct, grads, {true, false}));
  };
  double plain = best(once, made, shortCalls);
  int64_t plainly = made;
  std::vector<NamedValue> inputs = {{"x", x}, {"y", y}};
  std::vector<NamedValue> params = {
      {"w", must(Leaf::make("w", must(model.get("w"))))}};
  std::vector<std::string> names = {"loss"};
  Value result = must(graph::call(model, inputs, params, names))[0];
  Root root{result.edge, one};
  double node = best(
      [&] {
        must(backward({&root, 1}, {true, false}));
      },
      made, shortCalls);
  std::printf("%-28s %8.1f ns above Model::backward's %.1f, %lld allocations "
              "where that has %lld\n",
              "a program", 1e9 * (node - plain), 1e9 * plain,
              static_cast<long long>(made), static_cast<long long>(plainly));
}

} // namespace

int main(int argc, char **argv) {
  if (argc > 2)
    return std::fprintf(stderr, "usage: bench-graph [ARTIFACT]\n"), 2;
  Tensor one = must(Tensor::empty(artifact::DType::F32, {}));
  must(one.fill(1));
  Edge leaf = must(Leaf::make("w", one)).edge;
  report("a chain of 10,000", chain(one, leaf, 10000), 10000, one);
  std::vector<Edge> fan;
  for (int i = 0; i < 1000; ++i)
    fan.push_back(pass(one, {leaf}));
  report("a fan of 1,000", pass(one, fan), 1001, one);
  threads(leaf, one);
  if (argc == 2)
    program(argv[1]);
}
