//===- Rows.h - what holds of any communicator ----------------------------===//
//
// Functions that all ranks of a communicator run, whatever connects them; the
// expectations are gtest's.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TESTS_RUNTIME_COMM_ROWS_H
#define TANDEM_TESTS_RUNTIME_COMM_ROWS_H

#include "runtime/comm/Communicator.h"

#include <gtest/gtest.h>
#include <span>

namespace tandem::comm::testing {

struct Row {
  const char *name;
  void (*run)(Communicator &world);
};

std::span<const Row> rows();

/// Expects success.
inline void expectOk(const Status &status) {
  EXPECT_TRUE(status.ok()) << status.message();
}

} // namespace tandem::comm::testing

#endif
