//===- RankBuilder.cpp - the tasks of one rank ----------------------------===//
#include "tools/simulate/RankBuilder.h"
#include "runtime/artifact/Exchanges.h"

#include <algorithm>

namespace tandem::simulate {

using artifact::Buffer;
using artifact::Collective;
using artifact::Kernel;
using artifact::Launch;
using artifact::Manifest;
using artifact::Program;

namespace {

/// Streams of messages between stages: one each way.
constexpr int kSendStream = 1, kReceiveStream = 2, kFirstCollectiveStream = 3;

/// True if the two share memory.
bool meet(const Buffer &a, const Buffer &b) {
  if (a.place != b.place || a.place == Buffer::Place::Constant)
    return false;
  if (a.place == Buffer::Place::Argument || a.place == Buffer::Place::Result)
    return a.index == b.index;
  return a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

bool meet(const std::vector<Buffer> &some, const std::vector<Buffer> &others) {
  for (const Buffer &one : some)
    for (const Buffer &other : others)
      if (meet(one, other))
        return true;
  return false;
}

std::vector<Buffer> buffersAt(const Program &program, const Launch &launch,
                              const std::vector<int64_t> &positions) {
  std::vector<Buffer> buffers;
  for (int64_t position : positions)
    buffers.push_back(
        program.buffers[size_t(launch.buffers[size_t(position)])]);
  return buffers;
}

double bytesOf(const Collective &collective) {
  return double(collective.elements * byteSize(collective.dtype));
}

std::string whatOf(const Collective &collective) {
  std::string text(spelling(collective.op));
  for (const std::string &axis : collective.axes)
    text += (&axis == &collective.axes.front() ? " over " : ", ") + axis;
  return text;
}

} // namespace

int RankBuilder::add(Task task) {
  task.after.insert(task.after.end(), next.begin(), next.end());
  tasks.push_back(std::move(task));
  int number = int(tasks.size()) - 1;
  if (tasks.back().stream == kComputeStream) {
    // Whoever comes later on another stream comes behind the last kernel.
    lastKernel = number;
    next.clear();
  }
  return number;
}

std::vector<int> RankBuilder::inTheWay(const Program &program,
                                       const Launch &launch) {
  if (live.empty())
    return {};
  std::vector<Buffer> reads = buffersAt(program, launch, launch.reads),
                      writes = buffersAt(program, launch, launch.writes);
  std::vector<int> found;
  for (const Live &one : live)
    if (meet(reads, one.written) || meet(writes, one.written) ||
        meet(writes, one.read))
      found.push_back(one.task);
  return found;
}

void RankBuilder::addKernel(const Manifest &manifest, const Program &program,
                            const Launch &launch) {
  Task task;
  KernelCost cost;
  if (launch.hasKernel()) {
    const Kernel &kernel = manifest.kernels[size_t(launch.kernel)];
    cost = device.costOf(kernel);
    task.isProduct = isProduct(kernel);
    task.name = kernel.summary.empty() ? kernel.symbol : kernel.summary;
    if (isProduct(kernel)) {
      flops += double(kernel.flops);
      if (kernel.dtype == artifact::DType::BF16 ||
          kernel.dtype == artifact::DType::F16) {
        narrowFlops += double(kernel.flops);
        narrowType = kernel.dtype;
      }
    }
  } else {
    double bytes = 0;
    for (const Buffer &buffer : buffersAt(program, launch, launch.writes))
      bytes += double(buffer.bytes);
    cost = device.copy(bytes);
    task.name = launch.isCopy() ? "copy" : "rank_slice";
  }
  task.seconds = cost.seconds;
  task.spent = cost.spent;
  task.after = inTheWay(program, launch);
  // Exchanges of a stream end in order: one that was waited for has all before
  // it behind it.
  for (int number : task.after) {
    int stream = tasks[size_t(number)].stream;
    std::erase_if(live, [&](const Live &one) {
      return one.task <= number && tasks[size_t(one.task)].stream == stream;
    });
  }
  add(std::move(task));
}

int RankBuilder::streamOf(const Collective &collective) {
  if (!options.overlaps)
    return kComputeStream;
  if (!options.hasStreamPerCommunicator)
    return kFirstCollectiveStream;
  int count = int(streams.size());
  return streams.try_emplace(collective.axes, kFirstCollectiveStream + count)
      .first->second;
}

void RankBuilder::count(std::string what, const ExchangeCost &cost,
                        const Group &group, double bytes) {
  auto found = std::find_if(
      exchanges.begin(), exchanges.end(), [&](const ExchangeSum &one) {
        return one.what == what && one.algorithm == cost.algorithm;
      });
  if (found == exchanges.end())
    found = exchanges.insert(found, {what, cost.algorithm, group, 0, 0, 0});
  found->count += 1;
  found->bytes += bytes;
  found->seconds += cost.seconds;
}

void RankBuilder::addExchange(const Program &program, size_t first,
                              size_t end) {
  const Collective &collective = *program.launches[first].collective;
  auto [group, isNew] = groups.try_emplace(collective.axes);
  if (isNew)
    group->second = network.groupOf(collective.axes);
  double bytes = 0;
  Live under{0, {}, {}};
  Task task;
  for (size_t i = first; i < end; ++i) {
    const Launch &launch = program.launches[i];
    bytes += bytesOf(*launch.collective);
    for (int other : inTheWay(program, launch))
      task.after.push_back(other);
    for (const Buffer &one : buffersAt(program, launch, launch.reads))
      under.read.push_back(one);
    for (const Buffer &one : buffersAt(program, launch, launch.writes))
      under.written.push_back(one);
  }
  ExchangeCost cost = network.costOf(collective.op, bytes, group->second);
  task.name = spelling(collective.op);
  task.spent = Spent::Exchange;
  task.seconds = cost.seconds;
  task.bytes = bytes;
  task.stream = streamOf(collective);
  if (task.stream != kComputeStream && lastKernel >= 0)
    task.after.push_back(lastKernel);
  under.task = add(std::move(task));
  if (tasks[size_t(under.task)].stream != kComputeStream)
    live.push_back(std::move(under));
  count(whatOf(collective), cost, group->second, bytes);
}

void RankBuilder::call(const Manifest &manifest, const Program &program) {
  std::vector<bool> joins = artifact::joinsTheOneBefore(manifest, program);
  for (size_t i = 0; i < program.launches.size();) {
    const Launch &launch = program.launches[i];
    bool needsOthers = launch.isCollective() &&
                       launch.collective->communicates() &&
                       groupSize(manifest.mesh, launch.collective->axes) > 1;
    if (!needsOthers) {
      addKernel(manifest, program, launch);
      ++i;
      continue;
    }
    size_t end = i + 1;
    while (end < joins.size() && joins[end])
      ++end;
    addExchange(program, i, end);
    i = end;
  }
  // A call ends when its exchanges have.
  for (const Live &one : live)
    next.push_back(one.task);
  live.clear();
}

void RankBuilder::message(bool isSent, double bytes, double seconds,
                          int64_t meeting) {
  Task task;
  task.name = isSent ? "send" : "receive";
  task.spent = Spent::Exchange;
  task.stream = isSent ? kSendStream : kReceiveStream;
  task.seconds = seconds;
  task.bytes = bytes;
  task.meeting = meeting;
  if (lastKernel >= 0)
    task.after.push_back(lastKernel);
  pending.push_back(add(std::move(task)));
  count(isSent ? "send over pipe" : "receive over pipe", {seconds, "message"},
        {2, 1, 1}, bytes);
}

void RankBuilder::endOfMessages() {
  next.insert(next.end(), pending.begin(), pending.end());
  pending.clear();
}

} // namespace tandem::simulate
