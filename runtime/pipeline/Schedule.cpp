//===- Schedule.cpp - who computes which stage of which batch when --------===//
#include "runtime/pipeline/Schedule.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace tandem::pipeline {
namespace {

/// A backward takes about twice the time of a forward.
constexpr int64_t forwardTime = 1, backwardTime = 2;

struct Timed {
  Work work;
  int64_t start = 0, end = 0;
};

/// The order of the work of each rank, found by running it.
class Order {
public:
  Order(int64_t stages, int64_t ranks, int64_t batches)
      : stages(stages), ranks(ranks), batches(batches), free(size_t(ranks)),
        state(size_t(stages)) {
    for (State &one : state)
      one.forward.resize(size_t(batches)), one.backward.resize(size_t(batches));
  }

  /// By their starts.
  std::vector<Timed> run() {
    for (int64_t left = 2 * stages * batches; left > 0; --left)
      next();
    return std::move(made);
  }

private:
  /// Of a stage: how many batches have been forward and back, and when each of
  /// them was.
  struct State {
    int64_t forwards = 0, backwards = 0;
    std::vector<int64_t> forward, backward;
  };
  struct Choice {
    Work work;
    int64_t start = 0;
  };

  /// When the next forward or backward of a stage can start; none if that is
  /// not known yet.
  std::optional<Choice> forwardOf(int64_t s) const {
    const State &own = state[size_t(s)];
    int64_t batch = own.forwards, start = 0;
    if (batch == batches || batch - own.backwards >= stages - s)
      return std::nullopt;
    if (s > 0) {
      const State &before = state[size_t(s - 1)];
      if (before.forwards <= batch)
        return std::nullopt;
      start = before.forward[size_t(batch)];
    }
    return Choice{{s, batch, false}, start};
  }
  std::optional<Choice> backwardOf(int64_t s) const {
    const State &own = state[size_t(s)];
    int64_t batch = own.backwards;
    if (batch >= own.forwards)
      return std::nullopt;
    int64_t start = own.forward[size_t(batch)];
    if (s + 1 < stages) {
      const State &after = state[size_t(s + 1)];
      if (after.backwards <= batch)
        return std::nullopt;
      start = std::max(start, after.backward[size_t(batch)]);
    }
    return Choice{{s, batch, true}, start};
  }

  /// Starts what can start first; of what can at the same time, backwards, and
  /// then what has come furthest.
  void next() {
    std::optional<Choice> best;
    auto rank = [](const Choice &choice) {
      return std::tuple(choice.start, !choice.work.isBackward,
                        -choice.work.stage);
    };
    for (int64_t s = 0; s < stages; ++s)
      for (auto choice : {forwardOf(s), backwardOf(s)}) {
        if (!choice)
          continue;
        choice->start = std::max(choice->start, free[size_t(s % ranks)]);
        if (!best || rank(*choice) < rank(*best))
          best = choice;
      }
    const Work &work = best->work;
    State &own = state[size_t(work.stage)];
    int64_t end = best->start + (work.isBackward ? backwardTime : forwardTime);
    if (work.isBackward)
      own.backward[size_t(own.backwards++)] = end;
    else
      own.forward[size_t(own.forwards++)] = end;
    free[size_t(work.stage % ranks)] = end;
    made.push_back({work, best->start, end});
  }

  int64_t stages, ranks, batches;
  std::vector<Timed> made;
  std::vector<int64_t> free;
  std::vector<State> state;
};

/// Puts exchanges between the work of ranks.
class Planner {
public:
  Planner(int64_t stages, int64_t ranks, std::vector<Timed> order)
      : stages(stages), ranks(ranks), order(std::move(order)) {}

  Result<std::vector<std::vector<Step>>> run() {
    receiveLate();
    if (!comesToEnd())
      receiveInTime();
    if (!comesToEnd())
      return Status::failed("the stages of a pipeline would wait for each "
                            "other: " +
                            std::to_string(stages) + " on " +
                            std::to_string(ranks) + " ranks");
    return std::move(steps);
  }

private:
  using Pair = std::pair<int64_t, int64_t>; ///< from one rank to another

  int64_t rankOf(int64_t stage) const { return stage % ranks; }
  /// The work that `work` is needed for.
  std::optional<Work> after(const Work &work) const {
    Work next = work;
    next.stage += work.isBackward ? -1 : 1;
    if (next.stage < 0 || next.stage >= stages)
      return std::nullopt;
    return next;
  }
  std::optional<Work> before(const Work &work) const {
    Work previous = work;
    previous.stage += work.isBackward ? 1 : -1;
    if (previous.stage < 0 || previous.stage >= stages)
      return std::nullopt;
    return previous;
  }
  /// The other rank that gets what `work` makes.
  std::optional<int64_t> receiverOf(const Work &work) const {
    auto next = after(work);
    if (!next || rankOf(next->stage) == rankOf(work.stage))
      return std::nullopt;
    return rankOf(next->stage);
  }

  /// A rank receives in front of the work that needs it, and in the same
  /// exchange sends what it has made: nobody waits without need.
  void receiveLate() {
    std::vector<std::vector<Work>> all(static_cast<size_t>(ranks));
    std::map<Pair, std::vector<Work>> sent;
    for (const auto &[work, start, end] : order) {
      all[size_t(rankOf(work.stage))].push_back(work);
      if (auto to = receiverOf(work))
        sent[{rankOf(work.stage), *to}].push_back(work);
    }
    for (const auto &own : all)
      steps.push_back(stepsOf(own, sent));
  }

  /// Messages and work have one order for all, that of their times, in which
  /// each can be done when those in front of it are.
  void receiveInTime() {
    struct Event {
      int64_t time;
      bool isWork;
      size_t number; ///< no two are equal
      const Work *work;
    };
    std::vector<Event> events;
    for (const auto &[work, start, end] : order) {
      events.push_back({start, true, events.size(), &work});
      if (receiverOf(work))
        events.push_back({end, false, events.size(), &work});
    }
    std::sort(events.begin(), events.end(), [](auto &a, auto &b) {
      return std::tuple(a.time, a.isWork, a.number) <
             std::tuple(b.time, b.isWork, b.number);
    });
    steps.assign(size_t(ranks), {});
    for (const Event &event : events) {
      auto &own = steps[size_t(rankOf(event.work->stage))];
      if (event.isWork) {
        own.push_back({*event.work, {}, {}});
        continue;
      }
      auto &other = steps[size_t(*receiverOf(*event.work))];
      // With what comes the other way, if nothing is between the two.
      if (!own.empty() && !other.empty() && own.back().received &&
          !own.back().sent && !other.back().received &&
          own.back().received == other.back().sent) {
        own.back().sent = other.back().received = *event.work;
        continue;
      }
      own.push_back({{}, *event.work, {}});
      other.push_back({{}, {}, *event.work});
    }
  }

  std::vector<Step> stepsOf(const std::vector<Work> &all,
                            const std::map<Pair, std::vector<Work>> &sent) {
    std::vector<Step> made;
    std::map<int64_t, size_t> received; // of each rank, how many
    std::optional<Work> toSend;
    for (const Work &work : all) {
      std::optional<Work> needed = before(work);
      if (needed && rankOf(needed->stage) == rankOf(work.stage))
        needed.reset();
      // What was sent before it comes before it.
      if (needed) {
        int64_t from = rankOf(needed->stage), own = rankOf(work.stage);
        const auto &queue = sent.at({from, own});
        size_t &next = received[from];
        auto end = size_t(std::find(queue.begin(), queue.end(), *needed) -
                          queue.begin());
        for (; next <= end; ++next) {
          made.push_back({{}, toSend, queue[next]});
          toSend.reset();
        }
      }
      if (toSend)
        made.push_back({{}, toSend, {}});
      made.push_back({work, {}, {}});
      toSend = receiverOf(work) ? std::optional(work) : std::nullopt;
    }
    if (toSend)
      made.push_back({{}, toSend, {}});
    return made;
  }

  /// True if all ranks come to their ends where each message waits for both.
  bool comesToEnd() const {
    struct Place {
      size_t step = 0;
      bool hasSent = false, hasReceived = false;
    };
    std::vector<Place> places(steps.size());
    auto current = [&](size_t rank) -> const Step * {
      size_t at = places[rank].step;
      return at < steps[rank].size() ? &steps[rank][at] : nullptr;
    };
    for (bool moves = true; moves;) {
      moves = false;
      for (size_t rank = 0; rank < steps.size(); ++rank) {
        const Step *step = current(rank);
        if (!step)
          continue;
        if (step->sent && !places[rank].hasSent) {
          auto to = size_t(*receiverOf(*step->sent));
          const Step *other = current(to);
          if (other && other->received == step->sent && !places[to].hasReceived)
            places[rank].hasSent = places[to].hasReceived = true;
        }
        if ((!step->sent || places[rank].hasSent) &&
            (!step->received || places[rank].hasReceived)) {
          places[rank] = {places[rank].step + 1, false, false};
          moves = true;
        }
      }
    }
    for (size_t rank = 0; rank < steps.size(); ++rank)
      if (current(rank))
        return false;
    return true;
  }

  int64_t stages, ranks;
  std::vector<Timed> order;
  std::vector<std::vector<Step>> steps;
};

} // namespace

Result<std::vector<std::vector<Step>>> scheduleOf(int64_t stages, int64_t ranks,
                                                  int64_t batches) {
  return Planner(stages, ranks, Order(stages, ranks, batches).run()).run();
}

namespace {

/// When the last rank is done, where each message waits for both and takes no
/// time itself.
int64_t endOf(const std::vector<std::vector<Step>> &steps) {
  // A work's message is met by its sender's and its receiver's step.
  using Key = std::tuple<int64_t, int64_t, bool>;
  auto keyOf = [](const Work &work) {
    return Key(work.stage, work.batch, work.isBackward);
  };
  std::map<Key, int64_t> sends, receives; // when each side has come to it
  std::vector<size_t> at(steps.size());
  std::vector<int64_t> now(steps.size());
  for (bool moves = true; moves;) {
    moves = false;
    for (size_t rank = 0; rank < steps.size(); ++rank)
      while (at[rank] < steps[rank].size()) {
        const Step &step = steps[rank][at[rank]];
        int64_t end = now[rank];
        if (step.work)
          end += step.work->isBackward ? backwardTime : forwardTime;
        bool isMet = true;
        auto meet = [&](const std::optional<Work> &work, auto &own,
                        const auto &other) {
          if (!work)
            return;
          own.emplace(keyOf(*work), now[rank]);
          auto found = other.find(keyOf(*work));
          isMet &= found != other.end();
          if (found != other.end())
            end = std::max(end, found->second);
        };
        meet(step.sent, sends, receives);
        meet(step.received, receives, sends);
        if (!isMet)
          break;
        now[rank] = end;
        ++at[rank];
        moves = true;
      }
  }
  return *std::max_element(now.begin(), now.end());
}

} // namespace

double bubbleOf(int64_t stages, int64_t ranks, int64_t batches) {
  auto steps = scheduleOf(stages, ranks, batches);
  if (!steps)
    return 1; // there is an order for all stages and batches
  int64_t busy = stages * batches * (forwardTime + backwardTime);
  int64_t all = ranks * endOf(*steps);
  return double(all - busy) / double(all);
}

} // namespace tandem::pipeline
