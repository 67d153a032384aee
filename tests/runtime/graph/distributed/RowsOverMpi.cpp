//===- RowsOverMpi.cpp - rows of distributed autograd, over processes -----===//
//
// runtime-distributed-mpi LIBRARY, under mpirun: each process is a worker, and
// plays row after row, each with a worker and a transport of its own. With
// --silence, the row of a process that stops.
//
//===----------------------------------------------------------------------===//
#include "tests/runtime/graph/distributed/Rows.h"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>
#include <thread>
#include <unistd.h>

using namespace tdm::dist;
using namespace tdm::dist::testing;
using tdm::Tensor;

/// D16: the last process stops in the middle of the backward. The first gets an
/// error in time, wakes it, and both go on.
static int runSilence(const char *library) {
  tdm_dist_options options = TDM_DIST_OPTIONS_INIT;
  options.silence_ms = 1000;
  options.limit_ms = 60'000;
  Member me;
  me.worker = Worker(open(library), &options);
  Tensor w = me.leaf("w", 3);
  me.worker.serve("process", [](const tdm::TensorList &, tdm::TensorList &out) {
    out[0] = testing::number(static_cast<float>(getpid()));
  });
  me.worker.serve("stops",
                  [&](const tdm::TensorList &in, tdm::TensorList &out) {
                    out[0] = tdm::mul(in[0], w);
                    tdm::addHook(out[0], [](Tensor &) { std::raise(SIGSTOP); });
                  });
  me.worker.serve("times",
                  [&](const tdm::TensorList &in, tdm::TensorList &out) {
                    out[0] = tdm::mul(in[0], w);
                  });
  me.worker.meet("set up");
  if (me.number() == 0) {
    auto process = static_cast<pid_t>(
        testing::valueOf(me.worker.call(me.last(), "process", {})[0]));
    Tensor x = me.leaf("x", 2);
    {
      Context context(me.worker);
      Tensor y = me.worker.call(me.last(), "stops", {x})[0];
      auto began = std::chrono::steady_clock::now();
      me.expectError([&] { context.backward({y}); },
                     "worker " + std::to_string(me.last()) +
                         " gave no sign of life for 1000 ms",
                     "D16");
      me.expect(std::chrono::steady_clock::now() - began <
                    std::chrono::seconds(20),
                "D16: in time");
      me.expect(!context.gradient(x).defined(), "D16: nothing is collected");
    }
    kill(process, SIGCONT);
    for (int i = 0; i < 1000; ++i) {
      try {
        me.worker.call(me.last(), "process", {});
        break;
      } catch (const tdm::Error &) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
    }
    Context context(me.worker);
    context.backward({me.worker.call(me.last(), "times", {x})[0]});
    me.expectEqual(context.gradient(x), 3, "D16: it is back");
  }
  me.worker.meet("done");
  me.worker.leave();
  for (const std::string &failure : me.failures)
    std::fprintf(stderr, "%s\n", failure.c_str());
  return !me.failures.empty();
}

static int run(const char *library) {
  tdm_dist_options options = TDM_DIST_OPTIONS_INIT;
  options.silence_ms = 20'000;
  options.limit_ms = 60'000;
  // The first one starts MPI, and ends it last.
  Worker keeper(open(library), &options);
  int failures = 0;
  for (const Row &row : rows()) {
    auto me = std::make_unique<Member>();
    me->worker = Worker(open(library), &options);
    play(row, *me);
    me->worker = Worker();
    for (const std::string &failure : me->failures)
      std::fprintf(stderr, "%s: %s\n", row.name, failure.c_str());
    failures += static_cast<int>(me->failures.size());
    if (keeper.number() == 0)
      std::printf("%s: %s\n", row.name, me->failures.empty() ? "ok" : "failed");
  }
  keeper.leave();
  return failures > 0;
}

int main(int argc, char **argv) {
  if (argc < 2)
    return 2;
  try {
    return argc == 2 ? run(argv[1]) : runSilence(argv[1]);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
