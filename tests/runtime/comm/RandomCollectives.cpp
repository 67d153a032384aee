//===- RandomCollectives.cpp - programs that are collectives --------------===//
#include "tests/runtime/comm/RandomCollectives.h"

#include "runtime/artifact/ArtifactWriter.h"
#include "runtime/device/HostBackend.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>

using namespace tandem;
using namespace tandem::artifact;
using namespace tandem::comm::testing;
using comm::Communicator;
using comm::MeshCommunicators;

std::vector<MeshAxis> tandem::comm::testing::axesOf(int ranks) {
  int64_t first = ranks % 2 ? ranks : 2;
  return {{"a", first}, {"b", ranks / first}};
}

namespace {

using OnRanks = std::vector<Elements>;

/// The ranks of each group over `axes` of the mesh of so many ranks, by the
/// definition: a digit for each axis.
std::vector<std::vector<int>> groupsOf(const std::vector<std::string> &axes,
                                       int ranks) {
  std::vector<std::vector<int>> groups;
  int columns = int(axesOf(ranks)[1].size);
  auto digit = [&](int rank, const std::string &axis) {
    return axis == "a" ? rank / columns : rank % columns;
  };
  auto has = [&](const char *axis) {
    return std::find(axes.begin(), axes.end(), axis) != axes.end();
  };
  for (int first = 0; first < ranks; ++first) {
    if ((has("a") && digit(first, "a")) || (has("b") && digit(first, "b")))
      continue;
    std::vector<int> group;
    for (int rank = 0; rank < ranks; ++rank)
      if ((has("a") || digit(rank, "a") == digit(first, "a")) &&
          (has("b") || digit(rank, "b") == digit(first, "b")))
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
  for (const std::vector<int> &group :
       groupsOf(collective.axes, int(before.size()))) {
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

class Programs {
public:
  Programs(uint64_t seed, std::vector<MeshAxis> mesh)
      : random(seed), mesh(std::move(mesh)) {}

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
      int64_t group = groupSize(mesh, made.axes);
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
  std::vector<MeshAxis> mesh;
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

} // namespace

Manifest tandem::comm::testing::chainOf(const std::vector<Collective> &chain,
                                        int64_t elements, int ranks) {
  Manifest m;
  m.model = "chain";
  m.producer = "test";
  m.mesh = axesOf(ranks);
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

ArtifactReader tandem::comm::testing::readerOf(const Manifest &manifest) {
  ArtifactWriter writer;
  writer.setManifest(manifest);
  Result<std::string> bytes = writer.bytes();
  EXPECT_TRUE(bytes) << bytes.status().message();
  auto reader = ArtifactReader::fromMemory(std::as_bytes(std::span(*bytes)));
  EXPECT_TRUE(reader) << reader.status().message();
  return *reader;
}

Status tandem::comm::testing::runOn(const ArtifactReader &reader,
                                    MeshCommunicators *communicators,
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

void tandem::comm::testing::expectRandomPrograms(
    const std::shared_ptr<Communicator> &world, int programs) {
  int ranks = world->ranks();
  // Each rank draws the same programs, and the numbers of all ranks.
  Programs random(17, axesOf(ranks));
  for (int i = 0; i < programs; ++i) {
    int64_t elements = 0;
    std::vector<Collective> chain = random.next(elements);
    OnRanks values;
    for (int rank = 0; rank < ranks; ++rank)
      values.push_back(random.draw(elements));
    ArtifactReader reader = readerOf(chainOf(chain, elements, ranks));
    auto groups = MeshCommunicators::make(world, reader.manifest());
    ASSERT_TRUE(groups) << groups.status().message();
    Elements x = values[size_t(world->rank())];
    for (const Collective &one : chain)
      values = expected(one, values);
    const Elements &wanted = values[size_t(world->rank())];
    Elements y(wanted.size());
    Status status = runOn(reader, groups->get(), x, y);
    ASSERT_TRUE(status.ok()) << i << ": " << status.message();
    ASSERT_EQ(y, wanted) << "program " << i << ", rank " << world->rank()
                         << "\n"
                         << textOf(chain);
  }
}
