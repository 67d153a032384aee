//===- Marks.cpp - which messages a backward will use ---------------------===//
#include "runtime/graph/distributed/Worker.h"

namespace tandem::graph::distributed {

Result<Marks> mark(Context &context, uint64_t backward,
                   std::span<const uint64_t> messages) {
  Marks marks;
  std::set<Node *> seen;
  std::vector<const ReceiveNode *> receives;
  std::lock_guard lock(context.mutex);
  const Session *session = context.session.get();
  if (session && session->id != backward)
    return Status::usage("a backward of context " + describeId(context.id) +
                         " runs already");
  auto follow = [&](std::span<const uint64_t> reached) {
    for (uint64_t message : reached) {
      auto node = context.sends.find(message);
      if (node != context.sends.end() && context.marked.insert(message).second)
        findReceives(node->second, seen, receives);
    }
  };
  if (context.markedFor != backward) {
    context.marked.clear();
    context.markedFor = backward;
    if (session)
      follow(session->usedMessages());
  }
  follow(messages);
  for (const ReceiveNode *receive : receives)
    marks.reached.insert(marks.reached.end(),
                         {receive->peer, receive->message});
  marks.peers.assign(context.peers.begin(), context.peers.end());
  for (const auto &[message, node] : context.sends)
    if (!context.marked.contains(message))
      marks.unmarked.insert(marks.unmarked.end(), {message, node->peer});
  return marks;
}

Bytes write(const Marks &marks) {
  return Writer()
      .put(std::span<const uint64_t>(marks.reached))
      .put(std::span<const uint64_t>(marks.peers))
      .put(std::span<const uint64_t>(marks.unmarked))
      .take();
}

Result<Marks> readMarks(const Bytes &bytes) {
  Reader reader(bytes);
  Marks marks;
  marks.reached = reader.numbers();
  marks.peers = reader.numbers();
  marks.unmarked = reader.numbers();
  if (Status status = reader.end("marks"); !status)
    return status;
  return marks;
}

} // namespace tandem::graph::distributed
