//===- CommApiTest.cpp - the C API's communicators ------------------------===//
#include "runtime/comm.hpp"

#include <gtest/gtest.h>
#include <thread>

namespace {

TEST(CommApi, ThreadsAreRanks) {
  auto ranks = tdm::comm::loopback(3);
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < 3; ++i)
    threads.emplace_back([mine = std::move(ranks[i]), i]() mutable {
      EXPECT_EQ(mine.rank(), i);
      EXPECT_EQ(mine.ranks(), 3u);
      mine.barrier();
      mine.barrier();
    });
  for (std::thread &thread : threads)
    thread.join();
}

TEST(CommApi, LimitAndReasonAreErrors) {
  tdm_comm_options options = TDM_COMM_OPTIONS_INIT;
  options.limit_ms = 50;
  tdm_comm *comms[2] = {};
  ASSERT_EQ(tdm_comm_loopback(2, &options, comms), TDM_OK);
  EXPECT_EQ(tdm_comm_barrier(comms[0]), TDM_FAILED);
  EXPECT_STREQ(tdm_last_error(), "barrier: rank 1 did not come within 50 ms");
  ASSERT_EQ(tdm_comm_fail(comms[0], "enough"), TDM_OK);
  EXPECT_EQ(tdm_comm_barrier(comms[1]), TDM_FAILED);
  EXPECT_STREQ(tdm_last_error(), "barrier: rank 0 failed: enough");
  tdm_comm_free(comms[0]);
  tdm_comm_free(comms[1]);
}

TEST(CommApi, TheReasonMayBeTheLastError) {
  tdm_comm_options options = TDM_COMM_OPTIONS_INIT;
  options.limit_ms = 50;
  tdm_comm *comms[2] = {};
  ASSERT_EQ(tdm_comm_loopback(2, &options, comms), TDM_OK);
  EXPECT_EQ(tdm_comm_barrier(nullptr), TDM_USAGE);
  std::string reason = tdm_last_error();
  ASSERT_EQ(tdm_comm_fail(comms[0], tdm_last_error()), TDM_OK);
  EXPECT_EQ(tdm_comm_barrier(comms[1]), TDM_FAILED);
  EXPECT_EQ(tdm_last_error(), "barrier: rank 0 failed: " + reason);
  tdm_comm_free(comms[0]);
  tdm_comm_free(comms[1]);
}

TEST(CommApi, ArgumentsAreChecked) {
  tdm_comm *comm = nullptr;
  EXPECT_EQ(tdm_comm_loopback(0, nullptr, &comm), TDM_USAGE);
  EXPECT_STREQ(tdm_last_error(), "expected 1 to 1024 ranks but got 0");
  EXPECT_EQ(tdm_comm_loopback(1, nullptr, nullptr), TDM_USAGE);
  tdm_comm_options options = TDM_COMM_OPTIONS_INIT;
  options.limit_ms = -1;
  EXPECT_EQ(tdm_comm_loopback(1, &options, &comm), TDM_USAGE);
  EXPECT_STREQ(tdm_last_error(),
               "expected 'limit_ms' of 0 to 1000000000 but got -1");
  EXPECT_EQ(tdm_comm_open("telegraph", nullptr, nullptr, &comm),
            TDM_UNSUPPORTED);
  EXPECT_EQ(tdm_comm_barrier(nullptr), TDM_USAGE);
  EXPECT_EQ(tdm_comm_ranks(nullptr), 0u);
  EXPECT_EQ(comm, nullptr);
}

} // namespace
