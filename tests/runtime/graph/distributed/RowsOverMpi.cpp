//===- RowsOverMpi.cpp - rows of distributed autograd, over processes -----===//
//
// runtime-distributed-mpi LIBRARY, under mpirun: each process is a worker, and
// plays row after row, each with a worker and a transport of its own.
//
//===----------------------------------------------------------------------===//
#include "tests/runtime/graph/distributed/Rows.h"

#include <cstdio>
#include <memory>
#include <unistd.h>

using namespace tdm::dist;
using namespace tdm::dist::testing;

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
  if (argc != 2)
    return 2;
  try {
    return run(argv[1]);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
