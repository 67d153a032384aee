//===- CommandListTest.cpp - the order of a program's commands ------------===//
//
// Programs written as lists of launches; what is compared is the list's text,
// or its edges against those that a plain comparison of all pairs gives.
//
//===----------------------------------------------------------------------===//
#include "cuda/CommandList.h"

#include <gtest/gtest.h>
#include <random>

using namespace tandem;
using namespace tandem::cuda;
using artifact::Buffer;
using runtime::Action;

namespace {

/// A program of launches that read and write f32 arguments and arena buffers.
struct Maker {
  artifact::Manifest manifest;

  Maker() { manifest.programs.emplace_back().name = "evaluate"; }
  artifact::Program &program() { return manifest.programs.front(); }

  int64_t argument(int64_t elements) {
    artifact::Slot slot;
    slot.name = "x" + std::to_string(program().arguments.size());
    slot.shape = {elements};
    program().arguments.push_back(slot);
    return buffer(
        Buffer::argument(static_cast<int64_t>(program().arguments.size()) - 1));
  }
  int64_t arena(int64_t offset, int64_t bytes) {
    return buffer(Buffer::arena(offset, bytes));
  }
  int64_t buffer(Buffer made) {
    program().buffers.push_back(made);
    return static_cast<int64_t>(program().buffers.size()) - 1;
  }
  artifact::Launch &launch(std::vector<int64_t> reads,
                           std::vector<int64_t> writes, int64_t stream = 0,
                           int64_t scratch = 0) {
    artifact::Kernel kernel;
    kernel.symbol = "k" + std::to_string(manifest.kernels.size());
    kernel.scratchBytes = scratch;
    manifest.kernels.push_back(kernel);
    artifact::Launch made;
    made.kernel = static_cast<int64_t>(manifest.kernels.size()) - 1;
    made.buffers = reads;
    made.buffers.insert(made.buffers.end(), writes.begin(), writes.end());
    for (size_t i = 0; i < made.buffers.size(); ++i)
      (i < reads.size() ? made.reads : made.writes)
          .push_back(static_cast<int64_t>(i));
    made.stream = stream;
    return program().launches.emplace_back(made);
  }

  /// Addresses: the arena at 1 MiB, argument k at (k + 2) MiB.
  std::vector<void *> addresses() {
    std::vector<void *> all;
    for (const Buffer &buffer : program().buffers) {
      int64_t mib = int64_t(1) << 20;
      all.push_back(reinterpret_cast<void *>(
          buffer.place == Buffer::Place::Arena ? mib + buffer.offset
                                               : (buffer.index + 2) * mib));
    }
    return all;
  }
  CommandList list(std::vector<void *> at = {},
                   std::vector<Action> actions = {},
                   Concurrency concurrency = {}) {
    if (at.empty())
      at = addresses();
    if (actions.empty())
      actions.assign(program().launches.size(), runtime::runKernel);
    return CommandList(manifest, program(), actions, rangesOf(program(), at),
                       StreamTags(manifest), concurrency);
  }
};

using Numbers = std::vector<int>;

TEST(CommandList, OrdersByBytes) {
  Maker m;
  int64_t x = m.argument(64), low = m.arena(0, 256), high = m.arena(256, 256),
          both = m.arena(128, 256);
  m.launch({x}, {low});    // 0
  m.launch({x}, {high});   // 1: other bytes
  m.launch({both}, {x});   // 2: half of each
  m.launch({low}, {high}); // 3: overwrites what 2 reads
  EXPECT_EQ(m.list().dump(),
            "0: 'k0' on 0 reads argument 0 writes arena [0, 256)\n"
            "1: 'k1' on 0 reads argument 0 writes arena [256, 512)\n"
            "2: 'k2' on 0 reads arena [128, 384) writes argument 0 after 0, 1\n"
            "3: 'k3' on 0 reads arena [0, 256) writes arena [256, 512) after "
            "2\n");
}

/// Collectives stand on the stream behind those of the copies, in their order,
/// and wait for what writes their bytes alone; a kernel that needs none of them
/// waits for none.
TEST(CommandList, CollectivesHaveAStream) {
  Maker m;
  m.manifest.mesh = {{"data", 2}, {"one", 1}};
  auto collective = [&](artifact::Collective::Op op, const char *axis,
                        std::vector<int64_t> buffers) {
    artifact::Collective what;
    what.op = op;
    what.axes = {axis};
    what.dtype = artifact::DType::F32;
    what.elements = 64;
    m.program().launches.push_back(
        artifact::Launch::over(what, std::move(buffers)));
  };
  using enum artifact::Collective::Op;
  int64_t x = m.argument(64), a = m.arena(0, 256), b = m.arena(256, 256),
          c = m.arena(512, 256), d = m.arena(768, 256);
  m.launch({x}, {a});
  collective(AllReduce, "data", {a, b});
  m.launch({x}, {c});
  collective(AllReduce, "data", {c, d});
  collective(Barrier, "data", {});
  collective(RankSlice, "data", {b, a});
  collective(AllReduce, "one", {d, c});
  CommandList list = m.list();
  EXPECT_TRUE(list.needsRanks());
  EXPECT_EQ(list.dump(),
            "0: 'k0' on 0 reads argument 0 writes arena [0, 256)\n"
            "1: all_reduce on 3 reads arena [0, 256) writes arena [256, 512) "
            "after 0 waits for 0\n"
            "2: 'k1' on 0 reads argument 0 writes arena [512, 768)\n"
            "3: all_reduce on 3 reads arena [512, 768) writes arena [768, "
            "1024) after 2 waits for 2\n"
            "4: barrier on 3\n"
            "5: rank_slice on 0 reads arena [256, 512) writes arena [0, 256) "
            "after 1 waits for 1\n"
            "6: copy on 0 reads arena [768, 1024) writes arena [512, 768) "
            "after 3 waits for 3\n"
            "end: waits for 4\n");
}

/// Small sums that follow each other are one command, which waits for what
/// makes any of them, and which what needs any of them waits for.
TEST(CommandList, SmallSumsAreOneExchange) {
  Maker m;
  m.manifest.mesh = {{"data", 2}};
  auto sum = [&](int64_t from, int64_t to) {
    artifact::Collective what;
    what.op = artifact::Collective::Op::AllReduce;
    what.axes = {"data"};
    what.dtype = artifact::DType::F32;
    what.elements = 64;
    m.program().launches.push_back(artifact::Launch::over(what, {from, to}));
  };
  int64_t x = m.argument(64), a = m.arena(0, 256), b = m.arena(256, 256),
          c = m.arena(512, 256), d = m.arena(768, 256), e = m.arena(1024, 256);
  m.launch({x}, {a});
  m.launch({x}, {b});
  sum(a, c);
  sum(b, d);
  sum(d, e); // reads what the one before writes
  m.launch({d}, {a});
  EXPECT_EQ(m.list().dump(),
            "0: 'k0' on 0 reads argument 0 writes arena [0, 256)\n"
            "1: 'k1' on 0 reads argument 0 writes arena [256, 512)\n"
            "2: all_reduce (2 in one exchange) on 3 reads arena [0, 256), "
            "arena [256, 512) writes arena [512, 768), arena [768, 1024) "
            "after 0, 1 waits for 1\n"
            "3: all_reduce on 3 reads arena [768, 1024) writes arena [1024, "
            "1280) after 2\n"
            "4: 'k2' on 0 reads arena [768, 1024) writes arena [0, 256) after "
            "2 waits for 2\n"
            "end: waits for 3\n");
}

TEST(CommandList, ArgumentsThatShareMemoryAreOrdered) {
  Maker m;
  int64_t x = m.argument(64), y = m.argument(64), z = m.arena(0, 256);
  m.launch({x}, {z});
  m.launch({}, {y});
  EXPECT_TRUE(m.list().commands()[1].after.empty());
  std::vector<void *> at = m.addresses();
  at[y] = static_cast<char *>(at[x]) + 64;
  EXPECT_EQ(m.list(at).commands()[1].after, Numbers{0});
  at[y] = static_cast<char *>(at[x]) + 256; // the next byte
  EXPECT_TRUE(m.list(at).commands()[1].after.empty());
}

TEST(CommandList, PlacesDependOnOverlapsAlone) {
  Maker m;
  int64_t x = m.argument(64), y = m.argument(64);
  std::vector<void *> at = m.addresses();
  auto apart = rangesOf(m.program(), at);
  at[x] = reinterpret_cast<void *>(int64_t(77) << 20); // now after y
  EXPECT_EQ(rangesOf(m.program(), at), apart);
  at[y] = at[x];
  auto same = rangesOf(m.program(), at);
  EXPECT_NE(same, apart);
  EXPECT_EQ(same[x], same[y]);
  at[y] = static_cast<char *>(at[x]) + 4;
  EXPECT_NE(rangesOf(m.program(), at), same);
  at[y] = nullptr;
  EXPECT_EQ(rangesOf(m.program(), at)[y].space, -1);
}

TEST(CommandList, ActionsChangeWhatIsReadAndWritten) {
  Maker m;
  int64_t a = m.argument(16), b = m.argument(16), c = m.argument(16);
  m.launch({}, {a});
  m.launch({a, b}, {c});
  m.launch({c}, {b});
  using namespace runtime;
  EXPECT_EQ(m.list({}, {runKernel, 1, runKernel}).dump(),
            "0: 'k0' on 0 writes argument 0\n"
            "1: copy on 0 reads argument 1 writes argument 2\n"
            "2: 'k2' on 0 reads argument 2 writes argument 1 after 1\n");
  EXPECT_EQ(m.list({}, {runKernel, writeZeros, skipLaunch}).dump(),
            "0: 'k0' on 0 writes argument 0\n"
            "1: zero on 0 writes argument 2\n");
  // A copy onto itself does nothing.
  std::vector<void *> at = m.addresses();
  at[c] = at[b];
  EXPECT_EQ(m.list(at, {skipLaunch, 1, skipLaunch}).dump(), "");
}

TEST(CommandList, OneStreamHasNoWaits) {
  Maker m;
  int64_t a = m.arena(0, 64), b = m.arena(64, 64);
  m.launch({}, {a}, 3);
  m.launch({a}, {b}, 3);
  m.program().launches[0].stream = m.program().launches[1].stream = 0;
  CommandList list = m.list();
  EXPECT_EQ(list.streams(), Numbers{0});
  for (const Command &command : list.commands()) {
    EXPECT_FALSE(command.waitsForEntry || command.isAwaited);
    EXPECT_TRUE(command.waits.empty());
  }
  EXPECT_TRUE(list.exits().empty());
}

// S13: several streams wait for the caller's at entry, and it for them.
TEST(CommandList, S13_StreamsWaitAtEntryAndExit) {
  Maker m;
  int64_t a = m.arena(0, 64), b = m.arena(64, 64), c = m.arena(128, 64);
  m.launch({}, {a}, 0);
  m.launch({}, {b}, 5);
  m.launch({}, {c}, 9);
  EXPECT_EQ(m.list().dump(),
            "0: 'k0' on 0 writes arena [0, 64)\n"
            "1: 'k1' on 1 writes arena [64, 128) waits for the entry\n"
            "2: 'k2' on 2 writes arena [128, 192) waits for the entry\n"
            "end: waits for 1, 2\n");
}

TEST(CommandList, WaitsOnlyForWhatIsNotKnown) {
  Maker m;
  int64_t a = m.arena(0, 64), b = m.arena(64, 64), c = m.arena(128, 64),
          d = m.arena(192, 64);
  m.launch({}, {a}, 0);     // 0
  m.launch({a}, {b}, 1);    // 1 waits for 0, so for the entry too
  m.launch({a, b}, {c}, 2); // 2 waits for 1, which knows of 0
  m.launch({a, b}, {d}, 1); // 3 knows all
  m.launch({c, d}, {a}, 0); // 4 waits for 2 and 3
  EXPECT_EQ(m.list().dump(),
            "0: 'k0' on 0 writes arena [0, 64)\n"
            "1: 'k1' on 1 reads arena [0, 64) writes arena [64, 128) after 0 "
            "waits for 0\n"
            "2: 'k2' on 2 reads arena [0, 64), arena [64, 128) writes arena "
            "[128, 192) after 1 waits for 1\n"
            "3: 'k3' on 1 reads arena [0, 64), arena [64, 128) writes arena "
            "[192, 256) after 1\n"
            "4: 'k4' on 0 reads arena [128, 192), arena [192, 256) writes "
            "arena [0, 64) after 2, 3 waits for 2, 3\n");
}

TEST(CommandList, ScratchMemoryIsUsedInTurn) {
  Maker m;
  int64_t a = m.arena(0, 64), b = m.arena(64, 64), c = m.arena(128, 64);
  m.launch({}, {a}, 0, 16);
  m.launch({}, {b}, 0, 16);
  m.launch({}, {c}, 1, 16); // its stream has its own
  CommandList list = m.list();
  EXPECT_EQ(list.commands()[1].after, Numbers{0});
  EXPECT_TRUE(list.commands()[2].after.empty());
}

TEST(CommandList, WorthwhileBranchesGetStreams) {
  Maker m;
  int64_t a = m.arena(0, 64), b = m.arena(64, 64), c = m.arena(128, 64);
  m.launch({}, {a});
  m.launch({}, {b});
  m.launch({a, b}, {c});
  for (artifact::Kernel &kernel : m.manifest.kernels)
    kernel.bytes = 1000;
  Concurrency concurrency{8, 1e6, 1e6, 0.5e-3, 2};
  EXPECT_EQ(m.list({}, {}, concurrency).dump(),
            "0: 'k0' on 0 writes arena [0, 64)\n"
            "1: 'k1' on 1 writes arena [64, 128) waits for the entry\n"
            "2: 'k2' on 0 reads arena [0, 64), arena [64, 128) writes arena "
            "[128, 192) after 0, 1 waits for 1\n");
  // Kernels that are too short, or that fill the device, stay.
  concurrency.worthwhile = 2e-3;
  EXPECT_EQ(m.list({}, {}, concurrency).streams(), Numbers{0});
  concurrency = {1, 1e6, 1e6, 0.5e-3, 2};
  EXPECT_EQ(m.list({}, {}, concurrency).streams(), Numbers{0});
}

TEST(CommandList, NothingIsOrderedByWhatHasNoBytes) {
  Maker m;
  int64_t empty = m.argument(0), a = m.argument(4);
  m.launch({}, {empty});
  m.launch({empty}, {a});
  m.launch({a}, {a}).work = 0; // no blocks
  CommandList list = m.list();
  ASSERT_EQ(list.commands().size(), 2u);
  EXPECT_TRUE(list.commands()[1].after.empty());
}

/// Random programs: every two commands of which one writes bytes that the other
/// uses are ordered, by edges and by streams with their waits; and no edge
/// follows from others.
TEST(CommandList, RandomProgramsAreOrderedAndReduced) {
  std::mt19937 random(7);
  auto upTo = [&](int n) { return static_cast<int64_t>(random() % (n + 1)); };
  for (int round = 0; round < 200; ++round) {
    Maker m;
    for (int i = 0; i < 6; ++i)
      m.arena(64 * upTo(6), 64 * (1 + upTo(3)));
    for (int i = 0; i < 3; ++i)
      m.argument(16 + 16 * upTo(2));
    int count = 3 + static_cast<int>(upTo(20));
    for (int i = 0; i < count; ++i)
      m.launch({upTo(8), upTo(8)}, {upTo(8)}, upTo(3), upTo(3) ? 0 : 8);
    std::vector<void *> at = m.addresses();
    if (upTo(1))
      at[7] = static_cast<char *>(at[6]) + 64;
    CommandList list = m.list(at);
    auto places = rangesOf(m.program(), at);
    const auto &commands = list.commands();
    size_t n = commands.size();

    auto closure = [&](auto &&edgesOf) {
      std::vector<std::vector<char>> reach(n, std::vector<char>(n, 0));
      for (size_t c = 0; c < n; ++c)
        for (int d : edgesOf(c)) {
          reach[c][d] = 1;
          for (size_t e = 0; e < n; ++e)
            reach[c][e] |= reach[d][e];
        }
      return reach;
    };
    auto byEdges = closure([&](size_t c) { return commands[c].after; });
    auto byStreams = closure([&](size_t c) {
      Numbers edges = commands[c].waits;
      for (size_t d = c; d-- > 0;)
        if (commands[d].stream == commands[c].stream) {
          edges.push_back(static_cast<int>(d));
          break;
        }
      return edges;
    });
    for (size_t c = 0; c < n; ++c) {
      for (size_t d = 0; d < c; ++d) {
        auto touch = [&](const Numbers &a, const Numbers &b) {
          for (int x : a)
            for (int y : b)
              if (places[x].overlaps(places[y]))
                return true;
          return false;
        };
        bool conflict = touch(commands[c].writes, commands[d].writes) ||
                        touch(commands[c].reads, commands[d].writes) ||
                        touch(commands[c].writes, commands[d].reads) ||
                        (commands[c].usesScratch && commands[d].usesScratch &&
                         commands[c].stream == commands[d].stream);
        if (conflict) {
          EXPECT_TRUE(byEdges[c][d]) << list.dump();
          EXPECT_TRUE(byStreams[c][d]) << c << " " << d << "\n" << list.dump();
        }
      }
      for (int d : commands[c].after)
        for (int e : commands[c].after)
          EXPECT_FALSE(byEdges[e][d]) << list.dump();
      for (int d : commands[c].waits)
        EXPECT_TRUE(commands[d].isAwaited);
    }
    // Every stream begins after the entry and is joined at the end.
    std::vector<char> joined(n, 0);
    for (int e : list.exits()) {
      joined[e] = 1;
      for (size_t d = 0; d < n; ++d)
        joined[d] |= byStreams[e][d];
    }
    for (size_t c = 0; c < n; ++c)
      if (commands[c].stream == 0) {
        joined[c] = 1;
        for (size_t d = 0; d < n; ++d)
          joined[d] |= byStreams[c][d];
      }
    for (size_t c = 0; c < n; ++c)
      EXPECT_TRUE(joined[c]) << c << "\n" << list.dump();
  }
}

} // namespace
