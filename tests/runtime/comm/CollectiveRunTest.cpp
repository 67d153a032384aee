//===- CollectiveRunTest.cpp - programs that are collectives --------------===//
//
// Artifacts without kernels, whose launches are collectives over the groups of
// a mesh, run by the host's executor on 4 threads. What each rank should have
// is computed here from what all of them had, by the definition of each op.
//
//===----------------------------------------------------------------------===//
#include "runtime/artifact/ArtifactWriter.h"
#include "runtime/comm/MeshCommunicators.h"
#include "runtime/device/HostBackend.h"
#include "tests/runtime/comm/Ranks.h"

#include <atomic>
#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace tandem;
using namespace tandem::artifact;
using comm::Communicator;
using comm::MeshCommunicators;

namespace {

constexpr int ranks = 4;
using Elements = std::vector<double>;
using OnRanks = std::vector<Elements>;

/// The ranks of each group over `axes` of the mesh a = 2, b = 2, by the
/// definition: a digit for each axis.
std::vector<std::vector<int>> groupsOf(const std::vector<std::string> &axes) {
  std::vector<std::vector<int>> groups;
  auto digit = [](int rank, const std::string &axis) {
    return axis == "a" ? rank / 2 : rank % 2;
  };
  auto has = [&](const char *axis) {
    return std::find(axes.begin(), axes.end(), axis) != axes.end();
  };
  for (int first = 0; first < ranks; ++first) {
    if ((has("a") && first / 2) || (has("b") && first % 2))
      continue;
    std::vector<int> group;
    for (int rank = 0; rank < ranks; ++rank)
      if ((has("a") || rank / 2 == first / 2) &&
          (has("b") || rank % 2 == first % 2))
        group.push_back(rank);
    std::sort(group.begin(), group.end(), [&](int x, int y) {
      for (const std::string &axis : axes)
        if (digit(x, axis) != digit(y, axis))
          return digit(x, axis) < digit(y, axis);
      return false;
    });
    groups.push_back(group);
  }
  return groups;
}

Elements pieceOf(const Elements &whole, size_t number, size_t count) {
  size_t size = whole.size() / count;
  auto begin = whole.begin() + static_cast<ptrdiff_t>(number * size);
  return {begin, begin + static_cast<ptrdiff_t>(size)};
}

Elements reduced(const std::vector<Elements> &all, Collective::Reduce how) {
  Elements made = all[0];
  for (size_t r = 1; r < all.size(); ++r)
    for (size_t i = 0; i < made.size(); ++i)
      made[i] = how == Collective::Reduce::Sum   ? made[i] + all[r][i]
                : how == Collective::Reduce::Max ? std::max(made[i], all[r][i])
                                                 : std::min(made[i], all[r][i]);
  return made;
}

/// What the ranks have after the collective.
OnRanks expected(const Collective &collective, const OnRanks &before) {
  using enum Collective::Op;
  OnRanks after = before;
  for (const std::vector<int> &group : groupsOf(collective.axes)) {
    std::vector<Elements> all;
    for (int rank : group)
      all.push_back(before[rank]);
    for (size_t r = 0; r < group.size(); ++r) {
      Elements &own = after[group[r]];
      switch (collective.op) {
      case AllReduce:
        own = reduced(all, collective.reduce);
        break;
      case ReduceScatter:
        own = pieceOf(reduced(all, collective.reduce), r, group.size());
        break;
      case AllGather:
      case AllToAll:
        own.clear();
        for (const Elements &other : all) {
          Elements piece = collective.op == AllGather
                               ? other
                               : pieceOf(other, r, group.size());
          own.insert(own.end(), piece.begin(), piece.end());
        }
        break;
      case BroadcastFrom:
        own = all[collective.root];
        break;
      case RankSlice:
        own = pieceOf(all[r], r, group.size());
        break;
      case Barrier:
        break;
      }
    }
  }
  return after;
}

/// A program of one chain of collectives from the input "x" to the output "y".
Manifest chainOf(const std::vector<Collective> &chain, int64_t elements) {
  Manifest m;
  m.model = "chain";
  m.producer = "test";
  m.mesh = {{"a", 2}, {"b", 2}};
  Program p;
  p.name = "evaluate";
  auto add = [&](Role role, const char *name, int64_t size,
                 std::vector<Slot> &slots) {
    Value value;
    value.role = role;
    value.name = name;
    value.dtype = DType::F64;
    value.shape = {size};
    m.values.push_back(value);
    Slot slot;
    slot.role = role;
    slot.name = name;
    slot.dtype = DType::F64;
    slot.shape = {size};
    slots.push_back(slot);
  };
  add(Role::Input, "x", elements, p.arguments);
  p.buffers.push_back(Buffer::argument(0));
  size_t last = chain.size() - 1;
  while (chain[last].op == Collective::Op::Barrier)
    --last;
  for (size_t i = 0; i < chain.size(); ++i) {
    if (chain[i].op == Collective::Op::Barrier) {
      p.launches.push_back(Launch::over(chain[i], {}));
      continue;
    }
    auto from = static_cast<int64_t>(p.buffers.size()) - 1;
    elements = *chain[i].elementsOfOutput(groupSize(m.mesh, chain[i].axes));
    if (i == last) {
      add(Role::Output, "y", elements, p.results);
      p.buffers.push_back(Buffer::result(0));
    } else {
      p.buffers.push_back(Buffer::arena(p.arenaBytes, elements * 8));
      p.arenaBytes += (elements * 8 + 63) / 64 * 64;
    }
    p.launches.push_back(Launch::over(chain[i], {from, from + 1}));
  }
  p.peakBytes = p.arenaBytes;
  m.programs = {p};
  return m;
}

ArtifactReader readerOf(const Manifest &manifest) {
  ArtifactWriter writer;
  writer.setManifest(manifest);
  Result<std::string> bytes = writer.bytes();
  EXPECT_TRUE(bytes) << bytes.status().message();
  auto reader = ArtifactReader::fromMemory(std::as_bytes(std::span(*bytes)));
  EXPECT_TRUE(reader) << reader.status().message();
  return *reader;
}

/// Runs the only program of an artifact on one rank.
Status runOn(const ArtifactReader &reader, MeshCommunicators *communicators,
             Elements &x, Elements &y) {
  auto code = runtime::hostBackend().load(reader, {});
  if (!code)
    return std::move(code).status();
  const Program &p = reader.manifest().programs[0];
  std::vector<double> arena(static_cast<size_t>(p.arenaBytes / 8));
  std::vector<void *> buffers;
  for (const Buffer &buffer : p.buffers)
    buffers.push_back(buffer.place == Buffer::Place::Argument ? x.data()
                      : buffer.place == Buffer::Place::Result
                          ? y.data()
                          : arena.data() + buffer.offset / 8);
  std::vector<runtime::Action> actions(p.launches.size(), runtime::runKernel);
  runtime::ProgramRun run;
  run.buffers = buffers;
  run.actions = actions;
  run.communicators = communicators;
  return (*code)->run(run);
}

class Programs {
public:
  explicit Programs(uint64_t seed) : random(seed) {}

  /// A chain of at most 12 collectives over both axes and each of them, of
  /// values of at most 512 elements.
  std::vector<Collective> next(int64_t &elements) {
    using enum Collective::Op;
    elements = int64_t(1) << below(6);
    int64_t now = elements;
    std::vector<Collective> chain;
    for (size_t count = 1 + below(12); chain.size() < count;) {
      Collective made;
      made.op = static_cast<Collective::Op>(below(7));
      const std::vector<std::string> axes[] = {
          {"a"}, {"b"}, {"a", "b"}, {"b", "a"}};
      made.axes = axes[below(4)];
      made.dtype = DType::F64;
      int64_t group = made.axes.size() == 2 ? 4 : 2;
      if (made.op == AllReduce || made.op == ReduceScatter)
        made.reduce = static_cast<Collective::Reduce>(below(3));
      if (made.op == BroadcastFrom)
        made.root = static_cast<int64_t>(below(group));
      made.elements = made.op == Barrier ? 0 : now;
      auto out = made.elementsOfOutput(group);
      if (!out || *out > 512 || (made.op == Barrier && chain.empty()))
        continue;
      if (made.op != Barrier)
        now = *out;
      chain.push_back(made);
    }
    return chain;
  }
  Elements draw(int64_t count) {
    Elements made;
    for (; count; --count)
      made.push_back(static_cast<double>(below(9)) - 4);
    return made;
  }

private:
  uint64_t below(uint64_t limit) { return random() % limit; }
  std::mt19937_64 random;
};

std::string textOf(const std::vector<Collective> &chain) {
  std::string text;
  for (const Collective &one : chain) {
    text += std::string(spelling(one.op)) + " " +
            std::string(spelling(one.reduce)) + " over";
    for (const std::string &axis : one.axes)
      text += " " + axis;
    text += "\n";
  }
  return text;
}

TEST(CollectiveRun, X20_RandomProgramsOverSeveralCommunicators) {
  constexpr int programs = 1000;
  // Each rank draws the same programs, and the numbers of all ranks.
  comm::testing::withRanks(
      ranks,
      [](Communicator &borrowed) {
        std::shared_ptr<Communicator> world(&borrowed, [](Communicator *) {});
        Programs random(17);
        for (int i = 0; i < programs; ++i) {
          int64_t elements = 0;
          std::vector<Collective> chain = random.next(elements);
          OnRanks values;
          for (int rank = 0; rank < ranks; ++rank)
            values.push_back(random.draw(elements));
          ArtifactReader reader = readerOf(chainOf(chain, elements));
          auto groups = MeshCommunicators::make(world, reader.manifest());
          ASSERT_TRUE(groups) << groups.status().message();
          Elements x = values[world->rank()];
          for (const Collective &one : chain)
            values = expected(one, values);
          const Elements &wanted = values[world->rank()];
          Elements y(wanted.size());
          Status status = runOn(reader, groups->get(), x, y);
          ASSERT_TRUE(status.ok()) << i << ": " << status.message();
          ASSERT_EQ(y, wanted)
              << "program " << i << ", rank " << world->rank() << "\n"
              << textOf(chain);
        }
      },
      std::chrono::seconds(20));
}

Collective sumOver(std::vector<std::string> axes, int64_t elements) {
  Collective made;
  made.axes = std::move(axes);
  made.dtype = DType::F64;
  made.elements = elements;
  made.where = "'tandem.all_reduce' at m.mlir:3:5";
  return made;
}

TEST(CollectiveRun, WithoutACommunicatorNothingRuns) {
  ArtifactReader reader = readerOf(chainOf({sumOver({"a"}, 2)}, 2));
  Elements x = {1, 2}, y = {-1, -1};
  Status status = runOn(reader, nullptr, x, y);
  EXPECT_EQ(status.code(), Code::Usage);
  EXPECT_EQ(status.message(),
            "the program runs on several ranks together, but the model has no "
            "communicator");
  EXPECT_EQ(y, (Elements{-1, -1}));
}

TEST(CollectiveRun, AGroupOfOneNeedsNone) {
  Manifest m = chainOf({sumOver({"a"}, 2)}, 2);
  m.mesh[0].size = 1;
  Elements x = {1, 2}, y(2);
  Status status = runOn(readerOf(m), nullptr, x, y);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(y, x);
}

TEST(CollectiveRun, ARankThatIsGoneIsSaidWithThePlaceInTheModel) {
  comm::testing::withRanks(
      ranks,
      [](Communicator &borrowed) {
        std::shared_ptr<Communicator> world(&borrowed, [](Communicator *) {});
        ArtifactReader reader = readerOf(chainOf({sumOver({"a", "b"}, 2)}, 2));
        auto groups = MeshCommunicators::make(world, reader.manifest());
        ASSERT_TRUE(groups) << groups.status().message();
        if (world->rank() == 2)
          return;
        Elements x = {1, 2}, y(2);
        Status status = runOn(reader, groups->get(), x, y);
        EXPECT_FALSE(status.ok());
        EXPECT_EQ(status.message().find("'tandem.all_reduce' at m.mlir:3:5: "),
                  0u)
            << status.message();
        EXPECT_NE(status.message().find("2"), std::string::npos);
      },
      std::chrono::seconds(5));
}

/// A sum from "x" to "y", and behind it what a rank does by itself meanwhile.
Manifest sumBesideSlice() {
  Manifest m = chainOf({sumOver({"a", "b"}, 4)}, 4);
  Program &p = m.programs[0];
  Collective slice = sumOver({"a"}, 4);
  slice.op = Collective::Op::RankSlice;
  p.buffers.push_back(Buffer::arena(0, 16));
  p.arenaBytes = p.peakBytes = 64;
  p.launches.push_back(Launch::over(slice, {0, 2}));
  return m;
}

/// Comes late to each exchange.
class LatePeers : public comm::Peers {
public:
  explicit LatePeers(std::shared_ptr<comm::Peers> peers)
      : peers(std::move(peers)) {}
  int rank() const override { return peers->rank(); }
  int ranks() const override { return peers->ranks(); }
  Status exchange(int tag, std::span<const comm::Outgoing> outgoing,
                  std::span<const comm::Incoming> incoming,
                  comm::Milliseconds limit) override {
    if (std::this_thread::get_id() != opener)
      isBeside = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return peers->exchange(tag, outgoing, incoming, limit);
  }
  void fail(const std::string &reason) override { peers->fail(reason); }
  std::atomic<bool> isBeside{false};

private:
  std::shared_ptr<comm::Peers> peers;
  std::thread::id opener = std::this_thread::get_id();
};

/// Runs the program on all ranks but those from `present` on.
void runBeside(int present, bool overlaps,
               const std::function<void(const Status &, const Elements &,
                                        bool isBeside)> &check) {
  ArtifactReader reader = readerOf(sumBesideSlice());
  auto peers = comm::makeThreadPeers(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      auto late = std::make_shared<LatePeers>(std::move(peers[size_t(rank)]));
      std::shared_ptr<Communicator> world =
          comm::makePeerCommunicator(late, std::chrono::seconds(5), overlaps);
      auto groups = MeshCommunicators::make(world, reader.manifest());
      ASSERT_TRUE(groups) << groups.status().message();
      if (rank >= present)
        return;
      Elements x(4, rank + 1), y(4, -1);
      Status status = runOn(reader, groups->get(), x, y);
      check(status, y, late->isBeside);
    });
  for (std::thread &thread : threads)
    thread.join();
}

TEST(CollectiveRun, X14_TheEndOfACallWaits) {
  for (bool overlaps : {false, true})
    runBeside(ranks, overlaps,
              [&](const Status &status, const Elements &y, bool isBeside) {
                EXPECT_TRUE(status.ok()) << status.message();
                EXPECT_EQ(y, Elements(4, 1 + 2 + 3 + 4));
                EXPECT_EQ(isBeside, overlaps);
              });
}

TEST(CollectiveRun, X14_AnErrorBesideIsThatOfTheCall) {
  runBeside(ranks - 1, true, [](const Status &status, const Elements &, bool) {
    EXPECT_EQ(status.code(), Code::Failed);
    EXPECT_EQ(status.message().find("'tandem.all_reduce' at m.mlir:3:5: "), 0u)
        << status.message();
  });
}

} // namespace
