//===- PeerCommunicator.cpp - collectives out of messages -----------------===//
//
// A reduction sends each rank its piece of everybody's numbers, and each adds
// the pieces in the order of the ranks; an all-reduce gathers the sums then.
// So each rank sends and receives 2 (n - 1) / n of the bytes, as in a ring, in
// two exchanges. Little data is gathered whole and added by everybody: one
// exchange, with the same bits. Large data goes in pieces of a few megabytes,
// so that what is received first needs little memory.
//
//===----------------------------------------------------------------------===//
#include "runtime/comm/PeerCommunicator.h"

#include "runtime/comm/ReduceBlocks.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace tandem::comm {

using artifact::DType;

namespace {

constexpr int64_t littleBytes = 4096; ///< that are gathered whole
constexpr int64_t pieceBytes = int64_t(4) << 20;

class PeerCommunicator : public Communicator {
public:
  PeerCommunicator(std::shared_ptr<Peers> peers, std::vector<int> members,
                   int tag, Milliseconds limit, bool overlaps)
      : peers(std::move(peers)), members(std::move(members)), tag(tag),
        longest(limit), overlaps(overlaps) {
    own = static_cast<int>(std::find(this->members.begin(), this->members.end(),
                                     this->peers->rank()) -
                           this->members.begin());
  }

  int rank() const override { return own; }
  int ranks() const override { return static_cast<int>(members.size()); }
  Milliseconds limit() const override { return longest; }
  bool servesAnyThread() const override {
    return overlaps && peers->servesAnyThread();
  }

  Status allReduce(DType type, Reduce reduce, const void *from, void *to,
                   int64_t elements) override {
    int64_t size = artifact::byteSize(type);
    if (Status status = check(elements, type, reduce); !status)
      return status;
    if (elements * size <= littleBytes)
      return reduceLittle(type, reduce, from, to, elements);
    int64_t step = pieceBytes / size;
    for (int64_t first = 0; first < elements; first += step)
      if (Status status = reducePiece(type, reduce, at(from, first * size),
                                      at(to, first * size),
                                      std::min(step, elements - first));
          !status)
        return std::move(status).in("all_reduce");
    return Status::success();
  }

  Status allReduceParts(DType type, Reduce reduce,
                        std::span<const ReducedPart> parts) override {
    if (parts.size() == 1)
      return allReduce(type, reduce, parts[0].from, parts[0].to,
                       parts[0].elements);
    int64_t size = artifact::byteSize(type), elements = 0;
    for (const ReducedPart &part : parts) {
      if (Status status = check(part.elements, type, reduce); !status)
        return status;
      elements += part.elements;
    }
    packed.resize(std::max(packed.size(), size_t(elements * size)));
    std::byte *place = packed.data();
    for (const ReducedPart &part : parts) {
      std::memcpy(place, part.from, size_t(part.elements * size));
      place += part.elements * size;
    }
    if (Status status =
            allReduce(type, reduce, packed.data(), packed.data(), elements);
        !status)
      return status;
    place = packed.data();
    for (const ReducedPart &part : parts) {
      std::memcpy(part.to, place, size_t(part.elements * size));
      place += part.elements * size;
    }
    return Status::success();
  }

  Status reduceScatter(DType type, Reduce reduce, const void *from, void *to,
                       int64_t elementsOfOut) override {
    int64_t size = artifact::byteSize(type);
    if (Status status = check(elementsOfOut, type, reduce); !status)
      return status;
    int64_t step = std::max<int64_t>(pieceBytes / size / ranks(), 1);
    for (int64_t first = 0; first < elementsOfOut; first += step) {
      int64_t count = std::min(step, elementsOfOut - first);
      auto pieceOf = [&](int i) {
        return Range{(i * elementsOfOut + first) * size, count * size};
      };
      if (Status status = reduceOwn(type, reduce, from, at(to, first * size),
                                    count, pieceOf);
          !status)
        return std::move(status).in("reduce_scatter");
    }
    return Status::success();
  }

  Status allGather(const void *from, void *to, int64_t bytesOfIn) override {
    if (bytesOfIn == 0)
      return Status::success();
    if (at(to, own * bytesOfIn) != from)
      std::memcpy(at(to, own * bytesOfIn), from, size_t(bytesOfIn));
    return gather(to,
                  [&](int i) {
                    return Range{i * bytesOfIn, bytesOfIn};
                  })
        .in("all_gather");
  }

  Status allToAll(const void *from, void *to, int64_t bytesPerPeer) override {
    if (bytesPerPeer == 0)
      return Status::success();
    std::memcpy(at(to, own * bytesPerPeer), at(from, own * bytesPerPeer),
                size_t(bytesPerPeer));
    clear();
    for (int i = 0; i < ranks(); ++i) {
      send(i, at(from, i * bytesPerPeer), bytesPerPeer);
      receive(i, at(to, i * bytesPerPeer), bytesPerPeer);
    }
    return exchange().in("all_to_all");
  }

  Status broadcast(void *data, int64_t bytes, int root) override {
    if (Status status = checkRank(root, "broadcast from"); !status)
      return status;
    if (bytes == 0)
      return Status::success();
    // A binomial tree: with ranks counted from the root, i gets the data from i
    // without its highest bit, and sends it to those that it is that of.
    int count = ranks(), place = (own - root + count) % count;
    int bit = 1;
    while (bit <= place)
      bit *= 2;
    if (place > 0) {
      clear();
      receive((place - bit / 2 + root) % count, data, bytes);
      if (Status status = exchange(); !status)
        return std::move(status).in("broadcast");
    }
    clear();
    for (; place + bit < count; bit *= 2)
      send((place + bit + root) % count, data, bytes);
    return exchange().in("broadcast");
  }

  Status send(const void *data, int64_t bytes, int to) override {
    if (Status status = checkOther(to, "send to"); !status)
      return status;
    clear();
    send(to, data, bytes);
    return exchange().in("send");
  }

  Status recv(void *data, int64_t bytes, int from) override {
    if (Status status = checkOther(from, "receive from"); !status)
      return status;
    clear();
    receive(from, data, bytes);
    return exchange().in("recv");
  }

  Status exchange(std::span<const Outgoing> out,
                  std::span<const Incoming> in) override {
    clear();
    for (const Outgoing &message : out) {
      if (Status status = checkOther(message.peer, "send to"); !status)
        return status;
      send(message.peer, message.data, message.bytes);
    }
    for (const Incoming &message : in) {
      if (Status status = checkOther(message.peer, "receive from"); !status)
        return status;
      receive(message.peer, message.data, message.bytes);
    }
    return exchange().in("exchange");
  }

  Status barrier() override {
    marks.assign(members.size(), 1);
    return gather(marks.data(),
                  [](int i) {
                    return Range{i, 1};
                  })
        .in("barrier");
  }

  Result<std::unique_ptr<Communicator>> split(int color, int key) override {
    // What no member has used as a tag is one of no two communicators that
    // share two ranks.
    std::vector<std::array<int, 3>> all(members.size());
    all[size_t(own)] = {color, key, peers->lastTag};
    constexpr int64_t bytes = sizeof(all[0]);
    if (Status status = gather(all.data(),
                               [](int i) {
                                 return Range{i * bytes, bytes};
                               });
        !status)
      return std::move(status).in("split");
    std::vector<int> chosen;
    for (int i = 0; i < ranks(); ++i) {
      peers->lastTag = std::max(peers->lastTag, all[size_t(i)][2]);
      if (all[size_t(i)][0] == color)
        chosen.push_back(i);
    }
    ++peers->lastTag;
    std::sort(chosen.begin(), chosen.end(), [&](int a, int b) {
      return std::pair(all[size_t(a)][1], a) < std::pair(all[size_t(b)][1], b);
    });
    for (int &member : chosen)
      member = members[size_t(member)];
    return std::unique_ptr<Communicator>(std::make_unique<PeerCommunicator>(
        peers, std::move(chosen), peers->lastTag, longest, overlaps));
  }

  void fail(const std::string &reason) override { peers->fail(reason); }

private:
  struct Range {
    int64_t first = 0, bytes = 0;
  };

  static const void *at(const void *data, int64_t offset) {
    return static_cast<const std::byte *>(data) + offset;
  }
  static void *at(void *data, int64_t offset) {
    return static_cast<std::byte *>(data) + offset;
  }

  static Status check(int64_t elements, DType type, Reduce reduce) {
    if (elements < 0)
      return Status::usage("expected elements but got " +
                           std::to_string(elements));
    return reduceBlocks(type, reduce, {}, nullptr, 0);
  }
  Status checkRank(int number, const char *what) const {
    if (number >= 0 && number < ranks())
      return Status::success();
    return Status::usage(std::string("cannot ") + what + " rank " +
                         std::to_string(number) + ": there are " +
                         std::to_string(ranks()));
  }
  Status checkOther(int number, const char *what) const {
    if (number == own)
      return Status::usage(std::string("cannot ") + what + " itself: rank " +
                           std::to_string(number));
    return checkRank(number, what);
  }

  void clear() {
    outgoing.clear();
    incoming.clear();
  }
  void send(int to, const void *data, int64_t bytes) {
    if (to != own && bytes > 0)
      outgoing.push_back({members[size_t(to)], data, bytes});
  }
  void receive(int from, void *data, int64_t bytes) {
    if (from != own && bytes > 0)
      incoming.push_back({members[size_t(from)], data, bytes});
  }
  Status exchange() {
    if (outgoing.empty() && incoming.empty())
      return Status::success();
    return peers->exchange(tag, outgoing, incoming, longest);
  }

  /// Fills all ranks' pieces of `data` but the own one, which is there.
  template <typename PieceOf> Status gather(void *data, PieceOf pieceOf) {
    clear();
    Range mine = pieceOf(own);
    for (int i = 0; i < ranks(); ++i) {
      Range range = pieceOf(i);
      send(i, at(data, mine.first), mine.bytes);
      receive(i, at(data, range.first), range.bytes);
    }
    return exchange();
  }

  /// Writes the sum of everybody's piece for this rank to `to`.
  template <typename PieceOf>
  Status reduceOwn(DType type, Reduce reduce, const void *from, void *to,
                   int64_t elements, PieceOf pieceOf) {
    clear();
    Range mine = pieceOf(own);
    received.resize(
        std::max(received.size(), members.size() * size_t(mine.bytes)));
    blocks.clear();
    for (int i = 0; i < ranks(); ++i) {
      Range range = pieceOf(i);
      void *place = received.data() + i * mine.bytes;
      send(i, at(from, range.first), range.bytes);
      receive(i, place, mine.bytes);
      blocks.push_back(i == own ? at(from, mine.first) : place);
    }
    if (Status status = exchange(); !status)
      return status;
    return reduceBlocks(type, reduce, blocks, to, elements);
  }

  Status reducePiece(DType type, Reduce reduce, const void *from, void *to,
                     int64_t elements) {
    int64_t size = artifact::byteSize(type), count = ranks();
    auto pieceOf = [&](int i) {
      int64_t first = elements * i / count;
      return Range{first * size, (elements * (i + 1) / count - first) * size};
    };
    Range mine = pieceOf(own);
    if (Status status = reduceOwn(type, reduce, from, at(to, mine.first),
                                  mine.bytes / size, pieceOf);
        !status)
      return status;
    return gather(to, pieceOf);
  }

  Status reduceLittle(DType type, Reduce reduce, const void *from, void *to,
                      int64_t elements) {
    int64_t bytes = elements * artifact::byteSize(type);
    if (bytes == 0)
      return Status::success();
    received.resize(std::max(received.size(), members.size() * size_t(bytes)));
    std::memcpy(received.data() + own * bytes, from, size_t(bytes));
    if (Status status = gather(received.data(),
                               [&](int i) {
                                 return Range{i * bytes, bytes};
                               });
        !status)
      return std::move(status).in("all_reduce");
    blocks.clear();
    for (int i = 0; i < ranks(); ++i)
      blocks.push_back(received.data() + i * bytes);
    return reduceBlocks(type, reduce, blocks, to, elements);
  }

  std::shared_ptr<Peers> peers;
  std::vector<int> members; ///< their numbers among the peers
  int own = 0, tag = 0;
  Milliseconds longest;
  bool overlaps;
  // Kept, so that a step allocates nothing.
  std::vector<Outgoing> outgoing;
  std::vector<Incoming> incoming;
  std::vector<std::byte> received, packed;
  std::vector<const void *> blocks;
  std::vector<char> marks;
};

} // namespace

std::unique_ptr<Communicator> makePeerCommunicator(std::shared_ptr<Peers> peers,
                                                   Milliseconds limit,
                                                   bool overlaps) {
  std::vector<int> members;
  for (int i = 0; i < peers->ranks(); ++i)
    members.push_back(i);
  return std::make_unique<PeerCommunicator>(
      std::move(peers), std::move(members), 0, limit, overlaps);
}

} // namespace tandem::comm
