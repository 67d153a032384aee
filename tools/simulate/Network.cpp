//===- Network.cpp - what collectives of a mesh cost ----------------------===//
#include "tools/simulate/Network.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace tandem::simulate {

using artifact::Collective;

Network::Network(std::vector<artifact::MeshAxis> mesh, const LinkRow &inside,
                 const LinkRow *between, int64_t ofMachine, bool isDirect)
    : mesh_(std::move(mesh)), inside(inside),
      between(between ? *between : inside), ofMachine(ofMachine),
      isDirect(isDirect) {}

int64_t Network::ranks() const {
  int64_t count = 1;
  for (const artifact::MeshAxis &axis : mesh_)
    count *= axis.size;
  return count;
}

int64_t Network::ranksOfMachine() const { return std::min(ranks(), ofMachine); }

int64_t Network::strideOf(std::string_view name) const {
  int64_t stride = 1;
  for (size_t i = mesh_.size(); i-- > 0;) {
    if (mesh_[i].name == name)
      return stride;
    stride *= mesh_[i].size;
  }
  return 0;
}

Group Network::groupOf(const std::vector<std::string> &axes) const {
  std::vector<int64_t> members = {0};
  for (const artifact::MeshAxis &axis : mesh_) {
    if (std::find(axes.begin(), axes.end(), axis.name) == axes.end())
      continue;
    int64_t stride = strideOf(axis.name);
    std::vector<int64_t> more;
    for (int64_t i = 0; i < axis.size; ++i)
      for (int64_t member : members)
        more.push_back(member + i * stride);
    members = std::move(more);
  }
  std::set<int64_t> machines;
  Group group;
  group.ranks = int64_t(members.size());
  for (int64_t member : members)
    machines.insert(machineOf(member));
  group.machines = int64_t(machines.size());
  group.ofMachine = (group.ranks + group.machines - 1) / group.machines;
  return group;
}

/// Of one rank, where all of its machine send.
static double rateOf(const LinkRow &link, int64_t ofMachine) {
  double rate = link.rate * link.achieved;
  return link.isShared ? rate / double(ofMachine) : rate;
}

double Network::rateInside() const { return rateOf(inside, ranksOfMachine()); }
double Network::rateBetween() const {
  return rateOf(between, ranksOfMachine());
}

static int64_t log2Up(int64_t count) {
  int64_t bits = 0;
  while ((int64_t(1) << bits) < count)
    ++bits;
  return bits;
}

ExchangeCost Network::costOf(Collective::Op op, double bytesOfInput,
                             const Group &group) const {
  double g = double(group.ranks), m = double(group.ofMachine),
         n = double(group.machines);
  if (group.ranks <= 1)
    return {0, "none"};
  double f = op == Collective::Op::AllReduce ? 2 : 1;
  // The whole value; of an all_gather a rank has a piece of it.
  double bytes = bytesOfInput * (op == Collective::Op::AllGather ? g : 1);
  double in = rateInside(), out = rateBetween(), alphaIn = inside.latency,
         alphaOut = between.latency;
  double slowest = group.machines > 1 ? std::min(in, m * out) : in;

  ExchangeCost best{0, ""};
  auto offer = [&](double seconds, std::string_view algorithm) {
    seconds *= slowness;
    if (best.algorithm.empty() || seconds < best.seconds)
      best = {seconds, algorithm};
  };
  if (isDirect) {
    // Little is gathered whole; much goes in pieces (PeerCommunicator.cpp).
    constexpr double little = 4096, piece = 4 << 20;
    double alpha = group.machines > 1 ? alphaOut : alphaIn;
    double rate = group.machines > 1 ? std::min(in, out) : in;
    if (op == Collective::Op::Barrier || (f == 2 && bytes <= little))
      offer(alpha + (g - 1) * bytes / rate, "direct");
    else if (op == Collective::Op::BroadcastFrom)
      offer(double(log2Up(group.ranks)) * (alpha + bytes / rate), "tree");
    else
      offer(f * (alpha * std::max(1.0, std::ceil(bytes / piece)) +
                 (g - 1) / g * bytes / rate),
            "direct");
    return best;
  }
  double stepsOut = group.machines > 1 ? f * n : 0;
  offer(f * (g - 1) / g * bytes / slowest +
            std::max(0.0, f * (g - 1) - stepsOut) * alphaIn +
            stepsOut * alphaOut,
        "ring");
  if (group.machines > 1 && group.ofMachine > 1)
    offer(f * ((m - 1) / m * bytes / in + (m - 1) * alphaIn +
               (n - 1) / n * bytes / m / out + (n - 1) * alphaOut),
          "hierarchical");
  if (op == Collective::Op::AllReduce || op == Collective::Op::BroadcastFrom ||
      op == Collective::Op::Barrier)
    offer(f * (bytes / slowest + (m - 1) * alphaIn +
               double(log2Up(group.machines)) * alphaOut),
          "tree");
  return best;
}

double Network::message(double bytes, int64_t from, int64_t to) const {
  bool isInside = machineOf(from) == machineOf(to);
  return slowness * (isInside ? inside.latency + bytes / rateInside()
                              : between.latency + bytes / rateBetween());
}

} // namespace tandem::simulate
