//===- Texts.cpp - texts that ranks give each other -----------------------===//
#include "runtime/comm/Texts.h"

namespace tandem::comm {

Result<std::vector<std::string>> textsOfAll(Communicator *world,
                                            const std::string &text) {
  std::vector<std::string> texts = {text};
  if (!world)
    return texts;
  auto ranks = size_t(world->ranks());
  auto own = int64_t(text.size());
  std::vector<int64_t> sizes(ranks);
  if (Status status = world->allGather(&own, sizes.data(), sizeof own); !status)
    return status;
  texts.resize(ranks);
  for (size_t rank = 0; rank < ranks; ++rank) {
    std::string &one = texts[rank];
    one = int(rank) == world->rank() ? text
                                     : std::string(size_t(sizes[rank]), '\0');
    if (Status status = world->broadcast(one.data(), sizes[rank], int(rank));
        !status)
      return status;
  }
  return texts;
}

Result<std::string> textOfFirst(Communicator *world, const std::string &text) {
  if (!world)
    return text;
  auto size = int64_t(text.size());
  if (Status status = world->broadcast(&size, sizeof size, 0); !status)
    return status;
  std::string one = text;
  one.resize(size_t(size));
  if (Status status = world->broadcast(one.data(), size, 0); !status)
    return status;
  return one;
}

} // namespace tandem::comm
