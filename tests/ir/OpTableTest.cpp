//===- OpTableTest.cpp - no op is without what every op must have ---------===//
#include "tests/tandem-table/OpTable.h"

#include "ir/Dialect.h"

#include <gtest/gtest.h>

using namespace tandem;

TEST(OpTable, NothingIsMissing) {
  mlir::MLIRContext context;
  std::vector<OpSupport> table = opTable(context);
  ASSERT_FALSE(table.empty());
  for (const OpSupport &op : table)
    for (const std::string &what : op.missing())
      ADD_FAILURE() << op.name << " lacks " << what;
}

// The test above can fail: an op that says nothing lacks everything.
TEST(OpTable, SeesWhatIsMissing) {
  OpSupport nothing;
  EXPECT_EQ(nothing.missing().size(), 4u);
  OpSupport unchecked{"tandem.x", "pointwise", "rule", "generic",
                      "loops",    "loops",     0};
  EXPECT_EQ(unchecked.missing(),
            std::vector<std::string>{"a row in tests/gradients"});
}
