//===- RowsOverMpi.cpp - communicators over processes ---------------------===//
//
// runtime-comm-mpi LIBRARY [late|fail], under mpirun: each process is a rank
// and runs each row. `late`: the last one never comes; `fail`: it says why.
//
//===----------------------------------------------------------------------===//
#include "runtime/comm/PeerCommunicator.h"
#include "runtime/comm/PluginPeers.h"
#include "tests/runtime/comm/Rows.h"

#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

using namespace tandem;
using namespace tandem::comm;
using namespace tandem::comm::testing;

/// The first ranks get the same message and do not hang. The last one knows
/// that they have left the barrier, where its failure would reach them, too. It
/// waits for them to end: then mpirun ends it.
static int expectFailure(Communicator &world, const std::string &kind) {
  int last = world.ranks() - 1;
  expectOk(world.barrier());
  char left = 0;
  if (world.rank() == last) {
    for (int rank = 0; rank < last; ++rank)
      expectOk(world.recv(&left, 1, rank));
    if (kind == "fail")
      world.fail("no space is left");
    std::this_thread::sleep_for(std::chrono::seconds(40));
    std::_Exit(1);
  }
  expectOk(world.send(&left, 1, last));
  float x = 1;
  Status status = world.allReduce(artifact::DType::F32, Reduce::Sum, &x, &x, 1);
  EXPECT_EQ(status.message(),
            "all_reduce: rank " + std::to_string(last) +
                (kind == "fail" ? " failed: no space is left"
                                : " did not come within 5000 ms"));
  EXPECT_EQ(world.barrier().ok(), false);
  bool failed =
      ::testing::UnitTest::GetInstance()->ad_hoc_test_result().Failed();
  std::printf("rank %d: %s\n", world.rank(), failed ? "failed" : "ok");
  std::fflush(stdout);
  // The first that ends has mpirun end all: the others write, too.
  std::this_thread::sleep_for(std::chrono::seconds(2));
  std::_Exit(failed);
}

int main(int argc, char **argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (argc < 2)
    return 2;
  auto limit = Milliseconds(argc > 2 ? 5000 : 60'000);
  auto peers = openPeers(argv[1], nullptr, limit);
  if (!peers) {
    std::fprintf(stderr, "%s\n", peers.status().message().c_str());
    return 1;
  }
  auto world = makePeerCommunicator(*std::move(peers), limit);
  if (argc > 2)
    return expectFailure(*world, argv[2]);
  for (const Row &row : rows()) {
    row.run(*world);
    expectOk(world->barrier());
    if (world->rank() == 0)
      std::printf("%s\n", row.name);
  }
  return ::testing::UnitTest::GetInstance()->ad_hoc_test_result().Failed();
}
