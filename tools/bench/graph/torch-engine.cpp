//===- torch-engine.cpp - bench-graph's graphs with libtorch's engine -----===//
//
// The processor time per node of the same chain, fan and threads, through
// PyTorch's C++ interface. Not a target of the build: nothing here needs
// PyTorch. With P the folder of an installed `torch`:
//
//   clang++ -O2 -std=c++20 tools/bench/graph/torch-engine.cpp -o torch-engine
//     -I$P/include -I$P/include/torch/csrc/api/include -L$P/lib
//     -ltorch -ltorch_cpu -lc10 -Wl,-rpath,$P/lib
//
//===----------------------------------------------------------------------===//
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>
#include <torch/torch.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <ctime>
#include <thread>
#include <vector>

using torch::autograd::Edge;
using torch::autograd::edge_list;
using torch::autograd::variable_list;

namespace {

struct Pass : torch::autograd::Node {
  variable_list apply(variable_list &&inputs) override {
    return variable_list(num_outputs(), inputs[0]);
  }
};

Edge pass(const at::Tensor &like, edge_list edges) {
  auto node = c10::make_intrusive<Pass>();
  node->set_next_edges(std::move(edges));
  node->add_input_metadata(like);
  return Edge(node, 0);
}

Edge chain(const at::Tensor &like, Edge at) {
  for (int i = 0; i < 10000; ++i)
    at = pass(like, {at});
  return at;
}

/// The processor time of this thread, in seconds.
double now() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

/// The least time of 50 backwards, in nanoseconds.
double best(const Edge &root, const at::Tensor &one) {
  double least = 1e9;
  for (int i = 0; i < 50; ++i) {
    double begin = now();
    torch::autograd::Engine::get_default_engine().execute(
        {root}, {one}, /*keep_graph=*/true, /*create_graph=*/false,
        /*accumulate_grad=*/true);
    least = std::min(least, now() - begin);
  }
  return 1e9 * least;
}

} // namespace

int main() {
  at::set_num_threads(1);
  at::Tensor one = at::ones({}), leaf = at::ones({}).requires_grad_();
  Edge end(torch::autograd::impl::grad_accumulator(leaf), 0);
  std::printf("%-28s %8.1f ns a node\n", "a chain of 10,000",
              best(chain(one, end), one) / 10000);
  edge_list fan;
  for (int i = 0; i < 1000; ++i)
    fan.push_back(pass(one, {end}));
  std::printf("%-28s %8.1f ns a node\n", "a fan of 1,000",
              best(pass(one, fan), one) / 1001);
  std::atomic<int64_t> nanoseconds{0};
  std::vector<std::thread> all;
  for (int t = 0; t < 4; ++t)
    all.emplace_back(
        [&] { nanoseconds += int64_t(best(chain(one, end), one) / 4); });
  for (std::thread &thread : all)
    thread.join();
  std::printf("%-28s %8.1f ns a node\n", "4 threads, one leaf",
              double(nanoseconds) / 10000);
}
