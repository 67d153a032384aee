//===- Scheduler.cpp - when queued operations run -------------------------===//
#include "cuda/emulator/Scheduler.h"

#include <charconv>

using namespace tandem::emulator;

bool Scheduler::setPolicy(std::string_view text) {
  constexpr std::string_view withSeed = "random:";
  if (text == "eager") {
    chosen = Policy::Eager;
    drain();
  } else if (text == "lazy") {
    chosen = Policy::Lazy;
  } else if (text == "others-first") {
    chosen = Policy::OthersFirst;
  } else if (text.substr(0, withSeed.size()) == withSeed) {
    text.remove_prefix(withSeed.size());
    uint64_t seed = 0;
    auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), seed);
    if (error != std::errc() || end != text.data() + text.size())
      return false;
    chosen = Policy::Random;
    randomSeed = seed;
    random.seed(seed);
  } else {
    return false;
  }
  return true;
}

void Scheduler::submit(const OperationPtr &operation) {
  std::erase_if(operation->waitsFor,
                [](const OperationPtr &other) { return other->done; });
  for (const OperationPtr &other : operation->waitsFor)
    other->waiting.push_back(operation.get());
  operation->unmet = static_cast<unsigned>(operation->waitsFor.size());
  pending.emplace(operation->order, operation);
  if (!operation->unmet)
    ready.insert(operation->order);
  if (chosen == Policy::Eager)
    drain();
}

void Scheduler::run(Operation &operation) {
  // The queue's reference is kept until the end.
  auto it = pending.find(operation.order);
  OperationPtr self = std::move(it->second);
  pending.erase(it);
  ready.erase(self->order);
  runner(*self);
  self->done = true;
  self->run = nullptr;
  self->isHeld = nullptr;
  self->waitsFor.clear();
  for (Operation *other : self->waiting)
    if (--other->unmet == 0)
      ready.insert(other->order);
  self->waiting.clear();
}

/// The target and all it waits for, directly or not, oldest first.
bool Scheduler::runWhatItNeeds(Operation &target) {
  std::map<uint64_t, Operation *> needed{{target.order, &target}};
  std::vector<Operation *> open{&target};
  while (!open.empty()) {
    Operation *operation = open.back();
    open.pop_back();
    for (const OperationPtr &other : operation->waitsFor)
      if (!other->done && needed.emplace(other->order, other.get()).second)
        open.push_back(other.get());
  }
  bool isDone = true;
  for (auto &[order, operation] : needed)
    if (operation->unmet || isHeld(*operation))
      isDone = false;
    else
      run(*operation);
  return isDone;
}

/// The first from `begin` to `end` that `suits` and is not held, or null.
template <typename Iterator, typename Suits>
static Operation *firstFree(const std::map<uint64_t, OperationPtr> &pending,
                            Iterator begin, Iterator end, Suits suits) {
  for (; begin != end; ++begin)
    if (Operation *operation = pending.at(*begin).get();
        suits(*operation) && !Scheduler::isHeld(*operation))
      return operation;
  return nullptr;
}

static bool any(const Operation & /*operation*/) { return true; }

/// Of what is ready, the newest that is not on the target's stream; the
/// newest of that stream where there is no other.
bool Scheduler::runOthersFirst(Operation &target) {
  const unsigned stream = target.stream;
  while (!target.done) {
    Operation *next = firstFree(
        pending, ready.rbegin(), ready.rend(),
        [&](const Operation &other) { return other.stream != stream; });
    if (!next)
      next = firstFree(pending, ready.rbegin(), ready.rend(), any);
    if (!next)
      return false;
    run(*next);
  }
  return true;
}

bool Scheduler::runAtRandom(Operation &target) {
  while (!target.done) {
    auto it = std::next(ready.begin(),
                        static_cast<ptrdiff_t>(random() % ready.size()));
    Operation *next = firstFree(pending, it, ready.end(), any);
    if (!next)
      next = firstFree(pending, ready.begin(), it, any);
    if (!next)
      return false;
    run(*next);
  }
  return true;
}

bool Scheduler::need(Operation &target) {
  if (target.done)
    return true;
  switch (chosen) {
  case Policy::Eager:
  case Policy::Lazy:
    return runWhatItNeeds(target);
  case Policy::OthersFirst:
    return runOthersFirst(target);
  case Policy::Random:
    return runAtRandom(target);
  }
  return true;
}

void Scheduler::drain() {
  while (Operation *next = firstFree(pending, ready.begin(), ready.end(), any))
    run(*next);
}
