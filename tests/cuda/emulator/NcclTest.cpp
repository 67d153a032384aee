//===- NcclTest.cpp - the emulated NCCL, and what it finds wrong ----------===//
#include "EmulatorTest.h"
#include "NcclCalls.h"

#include <functional>
#include <thread>

using namespace tandem::cuda;
using namespace tandem::cuda::nccl;
using namespace tandem::test;

namespace {

/// Two ranks, which are threads with a stream each on one device.
class Nccl : public EveryPolicy {
protected:
  void SetUp() override {
    EveryPolicy::SetUp();
    for (int rank = 0; rank < 2; ++rank) {
      own[rank] = stream();
      from[rank] = array();
      to[rank] = array();
    }
  }

  /// Runs `body` for both; ends the communicators unless they have ended.
  void together(const std::function<void(int, ncclComm_t &)> &body) {
    ncclUniqueId id;
    ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
    std::thread threads[2];
    for (int rank = 0; rank < 2; ++rank)
      threads[rank] = std::thread([&, rank] {
        ASSERT_CU(cuCtxSetCurrent(context));
        ncclComm_t comm = nullptr;
        ASSERT_EQ(ncclCommInitRankConfig(&comm, 2, id, rank, nullptr),
                  ncclSuccess);
        body(rank, comm);
        if (comm) {
          EXPECT_CU(cuStreamSynchronize(own[rank]));
          EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
        }
      });
    for (std::thread &thread : threads)
      thread.join();
  }

  ncclResult_t sum(int rank, ncclComm_t comm, size_t count = kElements) {
    return ncclAllReduce(at(from[rank]), at(to[rank]), count, ncclFloat32,
                         ncclSum, comm, own[rank]);
  }

  static void *at(CUdeviceptr data) { return reinterpret_cast<void *>(data); }

  CUstream own[2];
  CUdeviceptr from[2], to[2];
};
TANDEM_EVERY_POLICY(Nccl);

} // namespace

TEST_P(Nccl, Collectives) {
  set(from[0], 1);
  set(from[1], 10);
  together([&](int rank, ncclComm_t &comm) {
    EXPECT_EQ(sum(rank, comm), ncclSuccess);
  });
  EXPECT_EQ(get(to[0]), 11.f);
  EXPECT_EQ(get(to[1]), 11.f);
  together([&](int rank, ncclComm_t &comm) {
    constexpr size_t half = kElements / 2;
    EXPECT_EQ(ncclAllReduce(at(from[rank]), at(to[rank]), kElements,
                            ncclFloat32, ncclMax, comm, own[rank]),
              ncclSuccess);
    // Twice the maximum, and half of it as bytes of both.
    EXPECT_EQ(ncclReduceScatter(at(to[rank]), at(from[rank]), half, ncclFloat32,
                                ncclSum, comm, own[rank]),
              ncclSuccess);
    EXPECT_EQ(ncclAllGather(at(from[rank]), at(to[rank]), half, ncclFloat32,
                            comm, own[rank]),
              ncclSuccess);
  });
  EXPECT_EQ(get(to[0]), 20.f);
  EXPECT_EQ(get(to[1]), 20.f);
  set(from[0], 3);
  set(from[1], 5);
  together([&](int rank, ncclComm_t &comm) {
    EXPECT_EQ(ncclGroupStart(), ncclSuccess);
    EXPECT_EQ(ncclSend(at(from[rank]), kElements, ncclFloat32, 1 - rank, comm,
                       own[rank]),
              ncclSuccess);
    EXPECT_EQ(ncclRecv(at(to[rank]), kElements, ncclFloat32, 1 - rank, comm,
                       own[rank]),
              ncclSuccess);
    EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
  });
  EXPECT_EQ(get(to[0]), 5.f);
  EXPECT_EQ(get(to[1]), 3.f);
  together([&](int rank, ncclComm_t &comm) {
    EXPECT_EQ(ncclBroadcast(at(from[rank]), at(from[rank]), kElements,
                            ncclFloat32, 1, comm, own[rank]),
              ncclSuccess);
  });
  EXPECT_EQ(get(from[0]), 5.f);
  EXPECT_EQ(takeErrors(), std::vector<std::string>());
}

TEST_P(Nccl, AMissingWaitBeforeOne) {
  set(from[1], 1);
  together([&](int rank, ncclComm_t &comm) {
    if (rank == 0) {
      CUstream other = stream();
      EXPECT_CU(launch(from[0], from[1], other));
    }
    EXPECT_EQ(sum(rank, comm), ncclSuccess);
  });
  expectOneError({"kernel 'test_increment'", "library call 'ncclAllReduce",
                  "nothing orders the two"});
}

TEST_P(Nccl, AMissingWaitBehindOne) {
  set(from[0], 1);
  set(from[1], 1);
  together([&](int rank, ncclComm_t &comm) {
    EXPECT_EQ(sum(rank, comm), ncclSuccess);
    if (rank == 0) {
      CUstream other = stream();
      EXPECT_CU(launch(array(), to[0], other));
    }
  });
  expectOneError({"kernel 'test_increment'", "library call 'ncclAllReduce'",
                  "nothing orders the two"});
}

TEST_P(Nccl, RanksThatDisagree) {
  set(from[0], 1);
  set(from[1], 1);
  together([&](int rank, ncclComm_t &comm) {
    EXPECT_EQ(sum(rank, comm, rank ? kElements : kElements / 2), ncclSuccess);
    EXPECT_CU(cuStreamSynchronize(own[rank]));
    ncclResult_t error = ncclSuccess;
    EXPECT_EQ(ncclCommGetAsyncError(comm, &error), ncclSuccess);
    EXPECT_EQ(error, ncclInvalidUsage);
  });
  std::vector<std::string> errors = takeErrors();
  ASSERT_EQ(errors.size(), 2u);
  EXPECT_NE(errors[0].find("all-reduce of 512 elements"), std::string::npos)
      << errors[0];
}

/// Collectives of a group are queued at its end, all of them.
TEST_P(Nccl, CollectivesOfAGroup) {
  CUdeviceptr more[2] = {array(), array()}, sums[2] = {array(), array()};
  for (int rank = 0; rank < 2; ++rank) {
    set(from[rank], float(1 + rank));
    set(more[rank], float(10 + rank));
  }
  together([&](int rank, ncclComm_t &comm) {
    EXPECT_EQ(ncclGroupStart(), ncclSuccess);
    EXPECT_EQ(sum(rank, comm), ncclSuccess);
    EXPECT_EQ(ncclAllReduce(at(more[rank]), at(sums[rank]), kElements,
                            ncclFloat32, ncclSum, comm, own[rank]),
              ncclSuccess);
    EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
  });
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(get(to[rank]), 3.f);
    EXPECT_EQ(get(sums[rank]), 21.f);
  }
  EXPECT_EQ(takeErrors(), std::vector<std::string>());
}

/// A GPU runs them at once.
TEST_P(Nccl, OneOfAGroupReadsWhatAnotherWrites) {
  set(from[0], 1);
  set(from[1], 1);
  together([&](int rank, ncclComm_t &comm) {
    EXPECT_EQ(ncclGroupStart(), ncclSuccess);
    EXPECT_EQ(sum(rank, comm), ncclSuccess);
    EXPECT_EQ(ncclAllReduce(at(to[rank]), at(from[rank]), kElements,
                            ncclFloat32, ncclSum, comm, own[rank]),
              ncclSuccess);
    EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
  });
  std::vector<std::string> errors = takeErrors();
  ASSERT_EQ(errors.size(), 2u); // of each rank
  EXPECT_NE(errors[0].find("in a group with one that it shares bytes"),
            std::string::npos)
      << errors[0];
}

TEST_P(Nccl, RanksWithOtherGroups) {
  set(from[0], 1);
  set(from[1], 1);
  together([&](int rank, ncclComm_t &comm) {
    if (rank == 0) {
      EXPECT_EQ(ncclGroupStart(), ncclSuccess);
      EXPECT_EQ(sum(rank, comm, /*count=*/0), ncclSuccess);
    }
    EXPECT_EQ(sum(rank, comm), ncclSuccess);
    if (rank == 0)
      EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
    EXPECT_CU(cuStreamSynchronize(own[rank]));
  });
  std::vector<std::string> errors = takeErrors();
  ASSERT_EQ(errors.size(), 2u);
  EXPECT_NE(errors[0].find("one of 2 in a group"), std::string::npos)
      << errors[0];
}

TEST_P(Nccl, AnAbortEndsWhatWaits) {
  set(from[0], 1);
  set(from[1], 1);
  together([&](int rank, ncclComm_t &comm) {
    // The other one never comes.
    EXPECT_EQ(rank == 0 ? sum(rank, comm) : ncclCommAbort(comm), ncclSuccess);
    ncclResult_t error = ncclSuccess;
    while (rank == 0 && error == ncclSuccess)
      EXPECT_EQ(ncclCommGetAsyncError(comm, &error), ncclSuccess);
    if (rank == 0) {
      EXPECT_EQ(error, ncclRemoteError);
      EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
      EXPECT_CU(cuStreamSynchronize(own[rank]));
      EXPECT_EQ(sum(rank, comm), ncclInvalidArgument);
    }
    comm = nullptr;
  });
  expectOneError({"ncclAllReduce", "has ended"});
}
