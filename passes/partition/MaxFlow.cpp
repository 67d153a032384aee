//===- MaxFlow.cpp - a smallest cut of a network --------------------------===//
#include "passes/partition/MaxFlow.h"

#include <algorithm>

using namespace llvm;
using namespace tandem;

unsigned MaxFlow::addNode() {
  out.emplace_back();
  return out.size() - 1;
}

void MaxFlow::addEdge(unsigned from, unsigned to, int64_t capacity) {
  out[from].push_back(edges.size());
  edges.push_back({to, capacity});
  out[to].push_back(edges.size());
  edges.push_back({from, 0});
}

bool MaxFlow::findLevels() {
  level.assign(out.size(), -1);
  level[kSource] = 0;
  SmallVector<unsigned> queue = {kSource};
  for (unsigned head = 0; head < queue.size(); ++head)
    for (unsigned edge : out[queue[head]])
      if (edges[edge].left > 0 && level[edges[edge].to] < 0) {
        level[edges[edge].to] = level[queue[head]] + 1;
        queue.push_back(edges[edge].to);
      }
  return level[kSink] >= 0;
}

int64_t MaxFlow::pushOnce() {
  SmallVector<unsigned> path;
  unsigned node = kSource;
  while (node != kSink) {
    bool advanced = false;
    for (unsigned &i = next[node]; i < out[node].size(); ++i) {
      const Edge &edge = edges[out[node][i]];
      if (edge.left > 0 && level[edge.to] == level[node] + 1) {
        path.push_back(out[node][i]);
        node = edge.to;
        advanced = true;
        break;
      }
    }
    if (advanced)
      continue;
    if (path.empty())
      return 0;
    // A dead end: back, and past the edge that led here.
    node = edges[path.pop_back_val() ^ 1].to;
    ++next[node];
  }
  int64_t amount = kUnlimited;
  for (unsigned edge : path)
    amount = std::min(amount, edges[edge].left);
  for (unsigned edge : path) {
    edges[edge].left -= amount;
    edges[edge ^ 1].left += amount;
  }
  return amount;
}

int64_t MaxFlow::run() {
  int64_t flow = 0;
  while (findLevels()) {
    next.assign(out.size(), 0);
    while (int64_t amount = pushOnce())
      flow += amount;
  }
  return flow;
}

BitVector MaxFlow::sinkSide() const {
  BitVector reaches(out.size());
  reaches.set(kSink);
  SmallVector<unsigned> queue = {kSink};
  for (unsigned head = 0; head < queue.size(); ++head)
    for (unsigned edge : out[queue[head]])
      if (unsigned from = edges[edge].to;
          edges[edge ^ 1].left > 0 && !reaches.test(from)) {
        reaches.set(from);
        queue.push_back(from);
      }
  return reaches;
}
