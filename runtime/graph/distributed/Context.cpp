//===- Context.cpp - what belongs to one distributed forward and backward -===//
#include "runtime/graph/distributed/Context.h"
#include "runtime/graph/distributed/Session.h"

#include <utility>

namespace tandem::graph::distributed {

std::string describeId(uint64_t id) {
  return std::to_string(workerOf(id)) + ":" +
         std::to_string(id & mostOfCounter);
}

std::string SendNode::name() const {
  return "send of message " + describeId(message) + " to worker " +
         std::to_string(peer);
}

std::string ReceiveNode::name() const {
  return "receive of message " + describeId(message) + " from worker " +
         std::to_string(peer);
}

Status ReceiveNode::run(Gradients &inputs, Gradients &, const RunMode &mode) {
  std::shared_ptr<Context> owner = context.lock();
  std::shared_ptr<Session> session;
  if (owner) {
    std::lock_guard lock(owner->mutex);
    if (currentContext() == owner)
      session = owner->session;
  }
  if (!session)
    return Status::usage(
        owner ? "the " + name() + " runs only in the backward of context " +
                    describeId(owner->id)
              : "the context of the " + name() + " was released");
  if (mode.retain ? isUsed.load() : isUsed.exchange(true))
    return Status::usage("the backward of the " + name() +
                         " was already run; the first backward must ask for "
                         "retain_graph if there is a second");
  return session->sendBack(*this, inputs);
}

void findReceives(const std::shared_ptr<Node> &from, std::set<Node *> &seen,
                  std::vector<const ReceiveNode *> &found) {
  std::vector<Node *> work{from.get()};
  while (!work.empty()) {
    Node *node = work.back();
    work.pop_back();
    if (!seen.insert(node).second)
      continue;
    if (const auto *receive = dynamic_cast<const ReceiveNode *>(node))
      found.push_back(receive);
    for (const Edge &edge : node->edges())
      if (edge)
        work.push_back(edge.node.get());
  }
}

void Context::addPeer(uint32_t peer) {
  std::lock_guard lock(mutex);
  peers.insert(peer);
}

std::vector<uint64_t> Context::knownPeers() const {
  std::lock_guard lock(mutex);
  return {peers.begin(), peers.end()};
}

Result<std::shared_ptr<SendNode>>
Context::send(std::span<const Value> values, uint64_t message, uint32_t peer) {
  auto node = std::make_shared<SendNode>(message, peer);
  for (const Value &value : values) {
    if (!value.edge)
      continue;
    if (Result<int> input = node->addInput(value.tensor); !input)
      return std::move(input).status();
    if (Status status = node->addEdge(value.edge); !status)
      return status;
  }
  if (node->edges().empty())
    return std::shared_ptr<SendNode>();
  std::lock_guard lock(mutex);
  sends[message] = node;
  return node;
}

Status Context::receive(std::span<Value> values,
                        const std::vector<bool> &marked, uint64_t message,
                        uint32_t peer) {
  std::shared_ptr<ReceiveNode> node;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!marked[i] || !values[i].defined())
      continue;
    if (!node) {
      node = std::make_shared<ReceiveNode>(message, peer, weak_from_this());
      // The sooner it runs, the sooner others can.
      node->setNumber(mostOfCounter);
    }
    if (Status status = makeEdge(values[i], node); !status)
      return status;
  }
  return Status::success();
}

static thread_local std::shared_ptr<Context> current;

const std::shared_ptr<Context> &currentContext() { return current; }

std::shared_ptr<Context> exchangeContext(std::shared_ptr<Context> context) {
  return std::exchange(current, std::move(context));
}

CurrentContext::CurrentContext(std::shared_ptr<Context> context)
    : before(exchangeContext(std::move(context))) {}

CurrentContext::~CurrentContext() { exchangeContext(std::move(before)); }

} // namespace tandem::graph::distributed
