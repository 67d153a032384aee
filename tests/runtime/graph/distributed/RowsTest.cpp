//===- RowsTest.cpp - rows of distributed autograd, over threads ----------===//
//
// Each row with 2 to 4 workers, on a network that keeps what it is given and on
// one that loses, doubles and reorders messages.
//
//===----------------------------------------------------------------------===//
#include "tests/runtime/graph/distributed/Rows.h"

#include <gtest/gtest.h>

#include <deque>
#include <thread>

namespace tdm::dist::testing {
namespace {

struct Case {
  Row row;
  uint32_t workers;
  bool isLossy;
};

void PrintTo(const Case &now, std::ostream *to) { *to << now.row.name; }

class Distributed : public ::testing::TestWithParam<Case> {};

TEST_P(Distributed, Row) {
  const Case &now = GetParam();
  tdm_dist_loopback_options network = TDM_DIST_LOOPBACK_OPTIONS_INIT;
  network.seed = 11;
  network.loss = network.repeat = now.isLossy ? 0.15 : 0;
  network.reorder = now.isLossy ? 0.3 : 0;
  tdm_dist_options options = TDM_DIST_OPTIONS_INIT;
  options.silence_ms = 20'000;
  options.limit_ms = 60'000;
  std::deque<Member> members(now.workers);
  std::vector<tdm_dist_transport> transports = loopback(now.workers, &network);
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < now.workers; ++i)
    threads.emplace_back([&, i] {
      members[i].worker = Worker(transports[i], &options);
      play(now.row, members[i]);
      members[i].worker = Worker();
    });
  for (std::thread &thread : threads)
    thread.join();
  for (const Member &member : members)
    for (const std::string &failure : member.failures)
      ADD_FAILURE() << failure;
}

std::vector<Case> cases() {
  std::vector<Case> made;
  for (const Row &row : rows())
    for (uint32_t workers : {2, 3, 4})
      for (bool isLossy : {false, true})
        made.push_back({row, workers, isLossy});
  return made;
}

INSTANTIATE_TEST_SUITE_P(, Distributed, ::testing::ValuesIn(cases()),
                         [](const auto &info) {
                           return std::string(info.param.row.name) + "_" +
                                  std::to_string(info.param.workers) +
                                  (info.param.isLossy ? "_Lossy" : "");
                         });

} // namespace
} // namespace tdm::dist::testing
