//===- RankRowsOverMpi.cpp - rows of group X over processes ---------------===//
//
// rank-rows-mpi LIBRARY, under mpirun: each process is a rank and runs each
// row.
//
//===----------------------------------------------------------------------===//
#include "tests/shard/RankRows.h"

#include "runtime/comm/PluginPeers.h"

#include <gtest/gtest.h>

#include <cstdio>

using namespace tandem;
using namespace tandem::test;

int main(int argc, char **argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (argc != 2)
    return 2;
  comm::Milliseconds limit = std::chrono::minutes(2);
  auto peers = comm::openPeers(argv[1], nullptr, limit);
  if (!peers) {
    std::fprintf(stderr, "%s\n", peers.status().message().c_str());
    return 1;
  }
  Connection connection(*peers, limit);
  for (const RankRow &row : rankRows()) {
    row.run(connection);
    Status status = connection.world->barrier();
    bool failed =
        !status.ok() ||
        ::testing::UnitTest::GetInstance()->ad_hoc_test_result().Failed();
    if (connection.rank() == 0 || failed)
      std::printf("%s on rank %d of %d: %s\n", row.name, connection.rank(),
                  connection.ranks(), failed ? "failed" : "ok");
    std::fflush(stdout);
    if (failed) {
      connection.world->fail(std::string(row.name) + " failed");
      return 1;
    }
  }
  return 0;
}
