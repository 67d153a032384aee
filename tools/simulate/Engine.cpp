//===- Engine.cpp - tasks of ranks, played through ------------------------===//
#include "tools/simulate/Engine.h"

#include <algorithm>
#include <map>

namespace tandem::simulate {
namespace {

/// The next task of each stream, and when the stream is free.
struct Stream {
  std::vector<int> tasks; ///< numbers, in order
  size_t next = 0;
  double free = 0;
};

class Player {
public:
  explicit Player(std::vector<RankTasks> &ranks) : ranks(ranks) {
    streams.resize(ranks.size());
    done.resize(ranks.size());
    for (size_t r = 0; r < ranks.size(); ++r) {
      done[r].resize(ranks[r].size());
      for (size_t t = 0; t < ranks[r].size(); ++t) {
        const Task &task = ranks[r][t];
        auto &own = streams[r];
        if (own.size() <= size_t(task.stream))
          own.resize(size_t(task.stream) + 1);
        own[size_t(task.stream)].tasks.push_back(int(t));
        if (task.meeting >= 0)
          meetings[task.meeting].push_back({r, int(t)});
      }
    }
  }

  Status run() {
    // What can start does. An end is known as soon as the start is, so that the
    // order in which starts are found makes no difference.
    for (bool moves = true; moves;) {
      moves = false;
      for (size_t r = 0; r < ranks.size(); ++r)
        for (Stream &stream : streams[r])
          while (stream.next < stream.tasks.size() &&
                 tryStart(r, stream.tasks[stream.next]))
            moves = true;
    }
    for (size_t r = 0; r < ranks.size(); ++r)
      for (const Stream &stream : streams[r])
        if (stream.next < stream.tasks.size())
          return Status::failed(
              "ranks wait for each other for ever: rank " + std::to_string(r) +
              " at '" +
              std::string(ranks[r][size_t(stream.tasks[stream.next])].name) +
              "'");
    return Status::success();
  }

private:
  struct Member {
    size_t rank;
    int task;
  };

  Stream &streamOf(size_t rank, const Task &task) {
    return streams[rank][size_t(task.stream)];
  }
  /// When a task could start by itself; a negative number if that is not known.
  double readyAt(size_t rank, int number) {
    const Task &task = ranks[rank][size_t(number)];
    Stream &stream = streamOf(rank, task);
    if (stream.next >= stream.tasks.size() ||
        stream.tasks[stream.next] != number)
      return -1;
    double at = stream.free;
    for (int other : task.after) {
      if (!done[rank][size_t(other)])
        return -1;
      at = std::max(at, ranks[rank][size_t(other)].end);
    }
    return at;
  }
  void start(size_t rank, int number, double at) {
    Task &task = ranks[rank][size_t(number)];
    Stream &stream = streamOf(rank, task);
    task.start = at;
    stream.free = task.end = at + task.seconds;
    done[rank][size_t(number)] = true;
    ++stream.next;
  }
  bool tryStart(size_t rank, int number) {
    int64_t meeting = ranks[rank][size_t(number)].meeting;
    double at = readyAt(rank, number);
    if (at < 0)
      return false;
    if (meeting < 0) {
      start(rank, number, at);
      return true;
    }
    const std::vector<Member> &members = meetings[meeting];
    for (const Member &member : members) {
      double other = readyAt(member.rank, member.task);
      if (other < 0)
        return false;
      at = std::max(at, other);
    }
    for (const Member &member : members)
      start(member.rank, member.task, at);
    return true;
  }

  std::vector<RankTasks> &ranks;
  std::vector<std::vector<Stream>> streams;
  std::vector<std::vector<bool>> done;
  std::map<int64_t, std::vector<Member>> meetings;
};

using Interval = std::pair<double, double>;

/// Sorted, without overlaps.
std::vector<Interval> unionOf(std::vector<Interval> all) {
  std::sort(all.begin(), all.end());
  std::vector<Interval> made;
  for (const Interval &one : all)
    if (!made.empty() && one.first <= made.back().second)
      made.back().second = std::max(made.back().second, one.second);
    else if (one.first < one.second)
      made.push_back(one);
  return made;
}

double lengthOf(const std::vector<Interval> &intervals) {
  double sum = 0;
  for (const auto &[from, to] : intervals)
    sum += to - from;
  return sum;
}

} // namespace

std::string_view spelling(Spent spent) {
  switch (spent) {
  case Spent::Arithmetic:
    return "arithmetic";
  case Spent::Memory:
    return "memory";
  case Spent::Launch:
    return "launches";
  case Spent::Exchange:
    return "communication";
  }
  return "";
}

Status play(std::vector<RankTasks> &ranks) { return Player(ranks).run(); }

double endOf(const std::vector<RankTasks> &ranks) {
  double end = 0;
  for (const RankTasks &tasks : ranks)
    for (const Task &task : tasks)
      end = std::max(end, task.end);
  return end;
}

RankTimes timesOf(const RankTasks &tasks, double step) {
  RankTimes times;
  times.step = step;
  std::vector<Interval> kernels, exchanges, all;
  for (const Task &task : tasks) {
    Interval when(task.start, task.end);
    all.push_back(when);
    if (task.spent == Spent::Exchange) {
      exchanges.push_back(when);
      continue;
    }
    kernels.push_back(when);
    (task.spent == Spent::Arithmetic ? times.arithmetic
     : task.spent == Spent::Memory   ? times.memory
                                     : times.launches) += task.seconds;
  }
  double busy = lengthOf(unionOf(std::move(kernels)));
  double any = lengthOf(unionOf(std::move(all)));
  times.exchanges = lengthOf(unionOf(std::move(exchanges)));
  times.exposed = any - busy;
  times.bubble = step - any;
  return times;
}

} // namespace tandem::simulate
