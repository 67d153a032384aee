//===- Workers.h - how the examples start their workers -------------------===//
#ifndef TANDEM_EXAMPLES_DISTRIBUTED_WORKERS_H
#define TANDEM_EXAMPLES_DISTRIBUTED_WORKERS_H

#if __has_include("runtime/dist.hpp") // in Tandem's own tree
#include "runtime/dist.hpp"
#else
#include <tandem/dist.hpp>
#endif

#include <cstdio>
#include <cstring>
#include <functional>
#include <thread>

/// Runs `work` as each worker: a process of an MPI job, or, with --threads=N as
/// the only argument, one of N threads. Returns the exit code: 2 for arguments
/// that are wrong.
inline int runWorkers(int argc, char **argv,
                      const std::function<void(tdm::dist::Worker)> &work) {
  auto run = [&](const tdm_dist_transport &transport) {
    try {
      work(tdm::dist::Worker(transport));
      return true;
    } catch (const std::exception &error) {
      std::fprintf(stderr, "worker %u: %s\n", transport.worker, error.what());
      return false;
    }
  };
  if (argc > 1) {
    constexpr long most = 1000;
    long count = 0;
    int read = 0;
    bool isThreads = argc == 2 && std::sscanf(argv[1], "--threads=%4ld%n",
                                              &count, &read) == 1;
    if (!isThreads || argv[1][read] || count < 1 || count > most) {
      std::fprintf(stderr,
                   "expected no arguments, or --threads=N with N from 1 to "
                   "%ld\n",
                   most);
      return 2;
    }
    std::vector<std::thread> threads;
    std::vector<int> isRight(static_cast<size_t>(count));
    for (const tdm_dist_transport &transport :
         tdm::dist::loopback(static_cast<uint32_t>(count)))
      threads.emplace_back(
          [&, transport] { isRight[transport.worker] = run(transport); });
    for (std::thread &thread : threads)
      thread.join();
    for (int one : isRight)
      if (!one)
        return 1;
    return 0;
  }
  try {
    return run(tdm::dist::open("mpi")) ? 0 : 1;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

inline tdm::Tensor tensor(const std::vector<float> &values,
                          const std::vector<int64_t> &shape) {
  tdm::Tensor made = tdm::Tensor::zeros(TDM_F32, shape);
  tdm::check(tdm_tensor_write(made.get(), values.data(),
                              values.size() * sizeof(float)));
  return made;
}

inline std::vector<float> valuesOf(const tdm::Tensor &tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.elements()));
  tdm::check(tdm_tensor_read(tensor.get(), values.data(),
                             values.size() * sizeof(float)));
  return values;
}

#endif
