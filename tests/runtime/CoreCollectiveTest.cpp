//===- CoreCollectiveTest.cpp - what a manifest must not say of ranks -----===//
//
// Rows as in CoreManifestTest.cpp: a change of a manifest with a mesh and one
// collective of each kind, and what must be reported.
//
//===----------------------------------------------------------------------===//
#include "runtime/artifact/Exchanges.h"
#include "tests/runtime/TestModel.h"

#include <functional>
#include <gtest/gtest.h>

using namespace tandem;
using namespace tandem::artifact;
using namespace tandem::test;

namespace {

Collective over(Collective::Op op, std::vector<std::string> axes,
                int64_t elements) {
  Collective made;
  made.op = op;
  made.axes = std::move(axes);
  made.elements = elements;
  return made;
}

/// Two by three ranks; a program that does all that ranks do with `x`, of 12
/// elements.
Manifest ranked() {
  using enum Collective::Op;
  Manifest m = regression();
  m.mesh = {{"data", 2}, {"tensor", 3}};
  m.values[0].sharding = {{"data"}, {}};
  Program &p = m.programs[0];
  auto buffer = static_cast<int64_t>(p.buffers.size());
  int64_t offset = p.arenaBytes;
  for (int64_t elements : {24, 24, 12, 24, 24, 24, 8}) {
    p.buffers.push_back(Buffer::arena(offset, elements * 4));
    offset += 128;
  }
  p.arenaBytes = offset;
  auto add = [&](Collective collective, int64_t from, int64_t to) {
    p.launches.push_back(
        Launch::over(std::move(collective), {from, buffer + to}));
  };
  add(over(AllReduce, {"data", "tensor"}, 24), 0, 0);
  add(over(AllToAll, {"tensor"}, 24), buffer, 1);
  add(over(ReduceScatter, {"data"}, 24), buffer + 1, 2);
  add(over(AllGather, {"data"}, 12), buffer + 2, 3);
  Collective broadcast = over(BroadcastFrom, {"tensor"}, 24);
  broadcast.root = 2;
  add(broadcast, buffer + 3, 4);
  add(over(AllReduce, {"tensor"}, 24), buffer + 4, 4);
  add(over(RankSlice, {"tensor"}, 24), buffer + 4, 6);
  p.launches.push_back(Launch::over(over(Barrier, {"data"}, 0), {}));
  return m;
}

struct Row {
  const char *name;
  std::function<void(Manifest &)> change;
  const char *message;
};

void PrintTo(const Row &row, std::ostream *out) { *out << row.name; }

Launch &launchOf(Manifest &m, size_t collective) {
  std::vector<Launch> &launches = m.programs[0].launches;
  return launches[launches.size() - 8 + collective];
}

class CollectiveRule : public ::testing::TestWithParam<Row> {};

TEST_P(CollectiveRule, IsChecked) {
  Manifest m = ranked();
  ASSERT_TRUE(validate(m, 128).ok()) << validate(m, 128).message();
  GetParam().change(m);
  Status status = validate(m, 128);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find(GetParam().message), std::string::npos)
      << status.message();
}

const Row rows[] = {
    {"AxisTwice",
     [](Manifest &m) {
       m.mesh.push_back({"data", 1});
     },
     "/mesh/2/name: 'data' is repeated"},
    {"AxisWithoutName", [](Manifest &m) { m.mesh[0].name = ""; },
     "/mesh/0/name: expected a printable name"},
    {"AxisOfNoRank", [](Manifest &m) { m.mesh[0].size = 0; },
     "/mesh/0/size: expected 1 to 1048576 but got 0"},
    {"TooManyRanks", [](Manifest &m) { m.mesh[1].size = 1 << 20; },
     "/mesh/1/size: expected at most 1048576 ranks in all"},
    {"ShardingOfOtherRank", [](Manifest &m) { m.values[0].sharding = {{}}; },
     "/values/0/sharding: expected a list of axes for each of 2 dimensions but "
     "got 1"},
    {"ShardingOverNoAxis",
     [](Manifest &m) {
       m.values[0].sharding = {{}, {"pipe"}};
     },
     "/values/0/sharding/1/0: the mesh has no axis 'pipe'"},
    {"ShardingTwiceOverOne",
     [](Manifest &m) {
       m.values[0].sharding = {{"data"}, {"data"}};
     },
     "/values/0/sharding/1/0: 'data' is repeated"},
    {"WholeOfOtherRank", [](Manifest &m) { m.values[0].whole = {8}; },
     "/values/0/whole: expected a size for each of 2 dimensions, and a "
     "sharding, but got 1"},
    {"WholeWithoutSharding",
     [](Manifest &m) { m.values[1].whole = m.values[1].shape; },
     "/values/1/whole: expected a size for each"},
    {"WholeThatRanksDoNotHave",
     [](Manifest &m) {
       m.values[0].whole = {2 * m.values[0].shape[0] + 1, m.values[0].shape[1]};
     },
     "/values/0/whole/0: expected a size of which each of 2 ranks has"},
    {"WholeThatFewerRanksHave",
     [](Manifest &m) {
       m.values[0].whole = {2 * m.values[0].shape[0] - 2, m.values[0].shape[1]};
     },
     "/values/0/whole/0: expected a size of which each of 2 ranks has"},
    {"WholeThatIsHuge",
     [](Manifest &m) {
       m.values[0].whole = {INT64_MAX, m.values[0].shape[1]};
     },
     "/values/0/whole/0: expected a size of which each of 2 ranks has"},
    {"WholeBelowNothing",
     [](Manifest &m) {
       m.values[0].whole = {-1, m.values[0].shape[1]};
     },
     "/values/0/whole/0: expected a size of which each of 2 ranks has"},
    {"WholeOfWhatIsNotCut",
     [](Manifest &m) {
       m.values[0].whole = {2 * m.values[0].shape[0], m.values[0].shape[1] - 1};
     },
     "/values/0/whole/1: expected a size of which each of 1 ranks has"},
    {"NoMesh", [](Manifest &m) { m.mesh.clear(); },
     "/collective/axes/0: the mesh has no axis 'data'"},
    {"NoAxes", [](Manifest &m) { launchOf(m, 0).collective->axes = {}; },
     "/collective/axes: expected an axis of the mesh but got none"},
    {"AxesTwice",
     [](Manifest &m) {
       launchOf(m, 0).collective->axes = {"data", "data"};
     },
     "/collective/axes/1: 'data' is repeated"},
    {"ACopyToo", [](Manifest &m) { launchOf(m, 0).copies = true; },
     "/collective: expected it not on a copy"},
    {"OneBuffer", [](Manifest &m) { launchOf(m, 0).buffers.pop_back(); },
     "expected it to read its first buffer and to write its second"},
    {"WritesTheFirst", [](Manifest &m) { launchOf(m, 0).writes = {0}; },
     "expected it to read its first buffer and to write its second"},
    {"BarrierWithBuffers",
     [](Manifest &m) {
       launchOf(m, 7).buffers = {0};
       launchOf(m, 7).reads = {0};
     },
     "/collective: expected a barrier to have no buffers"},
    {"NoSuchBuffer", [](Manifest &m) { launchOf(m, 0).buffers[1] = 1000; },
     "/buffers/1: expected 0 to"},
    {"TooManyElements",
     [](Manifest &m) { ++launchOf(m, 0).collective->elements; },
     "/collective/buffers/0: expected a buffer of at least 25 elements of the "
     "type "
     "'f32' but got 96 bytes"},
    {"WiderElements",
     [](Manifest &m) { launchOf(m, 0).collective->dtype = DType::F64; },
     "/collective/buffers/1: expected a buffer of at least 24 elements of the "
     "type "
     "'f64' but got 96 bytes"},
    {"NegativeElements",
     [](Manifest &m) { launchOf(m, 0).collective->elements = -24; },
     "/collective/elements: expected 0 to"},
    {"HugeElements",
     [](Manifest &m) {
       m.mesh[0].size = 1 << 10;
       launchOf(m, 3).collective->elements = maxBytes;
     },
     "/collective/elements: expected elements for a group of 1024 ranks"},
    {"OutputTooLarge",
     [](Manifest &m) { launchOf(m, 3).collective->axes = {"tensor"}; },
     "/collective/buffers/1: expected a buffer of at least 36 elements"},
    {"UnevenPieces", [](Manifest &m) { m.mesh[0].size = 5; },
     "/collective/elements: expected elements for a group of 5 ranks but got "
     "24"},
    {"RootBeyond", [](Manifest &m) { launchOf(m, 4).collective->root = 3; },
     "/collective/root: expected a rank of the group's 3"},
    {"RootOfOthers", [](Manifest &m) { launchOf(m, 0).collective->root = 1; },
     "/collective/root: expected a rank of the group's 6, of 'broadcast_from' "
     "alone"},
    {"MaxOfAGather",
     [](Manifest &m) {
       launchOf(m, 3).collective->reduce = Collective::Reduce::Max;
     },
     "/collective/reduce: expected a reduction of numbers"},
    {"SumOfBools",
     [](Manifest &m) {
       launchOf(m, 0).collective->dtype = DType::Bool;
       launchOf(m, 0).collective->elements = 96;
     },
     "/collective/reduce: expected a reduction of numbers"},
    {"GatherIntoItself",
     [](Manifest &m) { launchOf(m, 1).buffers[1] = launchOf(m, 1).buffers[0]; },
     "/collective/buffers: expected two buffers that share nothing"},
    {"WritesAnInput", [](Manifest &m) { launchOf(m, 0).buffers[1] = 0; },
     "expected an update in place of 'x', since a launch writes to it"},
};

INSTANTIATE_TEST_SUITE_P(Rows, CollectiveRule, ::testing::ValuesIn(rows),
                         [](const auto &row) { return row.param.name; });

TEST(CollectiveText, ComesBackAndHasNoKernel) {
  Manifest m = ranked();
  std::string text = *toJson(m);
  EXPECT_NE(text.find(R"("mesh":[{"name":"data","size":2},)"),
            std::string::npos);
  EXPECT_NE(
      text.find(
          R"({"collective":{"op":"broadcast_from","axes":["tensor"],"root":2,"dtype":"f32","elements":24},"buffers":)"),
      std::string::npos)
      << text;
  Result<Manifest> read = fromJson(text);
  ASSERT_TRUE(read) << read.status().message();
  EXPECT_EQ(*read, m);
  size_t at = text.find("all_reduce");
  text.replace(at, 10, "all_reduec");
  EXPECT_NE(fromJson(text).status().message().find(
                "unknown collective 'all_reduec' (did you mean 'all_reduce'?)"),
            std::string::npos);
}

/// Sums of 8, 8, 8, 40 and 8 bytes one behind the other.
Manifest sums() {
  Manifest m = regression();
  m.mesh = {{"data", 2}, {"tensor", 3}};
  Program &p = m.programs[0];
  p.buffers.clear();
  p.launches.clear();
  for (int64_t elements : {2, 2, 2, 10, 2}) {
    auto number = int64_t(p.buffers.size());
    for (int i = 0; i < 2; ++i)
      p.buffers.push_back(Buffer::arena(64 * (number + i), elements * 4));
    p.launches.push_back(
        Launch::over(over(Collective::Op::AllReduce, {"data"}, elements),
                     {number, number + 1}));
  }
  return m;
}

TEST(Exchanges, SmallSumsGoTogether) {
  struct Case {
    const char *name;
    std::function<void(Manifest &)> change;
    std::vector<bool> joins;
  } cases[] = {
      {"one quarter is small",
       [](Manifest &m) { m.bucketBytes = 32; },
       {false, true, true, false, false}},
      {"less than that is not",
       [](Manifest &m) { m.bucketBytes = 31; },
       {false, false, false, false, false}},
      {"all", [](Manifest &) {}, {false, true, true, true, true}},
      {"four times as much at most",
       [](Manifest &m) {
         m.bucketBytes = 160;
         m.programs[0].launches[1].collective->elements = 10;
         for (int i = 0; i < 20; ++i)
           m.programs[0].launches.push_back(m.programs[0].launches[3]);
         for (size_t i = 5; i < 25; ++i)
           m.programs[0].launches[i].buffers = {int64_t(2 * i),
                                                int64_t(2 * i + 1)};
         for (int64_t i = 10; i < 50; ++i)
           m.programs[0].buffers.push_back(Buffer::arena(64 * i, 40));
       },
       // 8 + 40 + 8 + 40 + 8, and 13 of 40 bytes.
       {false, true, true, true, true, true, true, true, true,
        true,  true, true, true, true, true, true, true, true,
        false, true, true, true, true, true, true}},
      {"of one group",
       [](Manifest &m) {
         m.programs[0].launches[1].collective->axes = {"tensor"};
       },
       {false, false, false, true, true}},
      {"of one reduction",
       [](Manifest &m) {
         m.programs[0].launches[4].collective->reduce = Collective::Reduce::Max;
       },
       {false, true, true, true, false}},
      {"not over what one of them wrote",
       [](Manifest &m) { m.programs[0].launches[2].buffers[0] = 1; },
       {false, true, false, true, true}},
      {"not of one rank",
       [](Manifest &m) { m.mesh[0].size = 1; },
       {false, false, false, false, false}},
      {"not what has no elements",
       [](Manifest &m) { m.programs[0].launches[1].collective->elements = 0; },
       {false, false, false, true, true}},
      {"by NCCL, too",
       [](Manifest &m) { m.target.kind = "cuda"; },
       {false, true, true, true, true}},
  };
  for (const Case &one : cases) {
    Manifest m = sums();
    one.change(m);
    EXPECT_EQ(joinsTheOneBefore(m, m.programs[0]), one.joins) << one.name;
  }
}

TEST(CollectiveText, OneMeshForAllTargets) {
  Manifest one = ranked(), other = one;
  other.mesh[0].name = "rows";
  EXPECT_NE(checkSameModel(one, other).message().find("expected one mesh"),
            std::string::npos);
}

} // namespace
