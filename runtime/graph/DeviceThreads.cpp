//===- DeviceThreads.cpp - the threads that run nodes of devices ----------===//
#include "runtime/graph/DeviceThreads.h"
#include "runtime/graph/Task.h"

#include <chrono>
#include <system_error>
#include <thread>
#include <unistd.h>

namespace tandem::graph {

using runtime::Device;

namespace {

struct Worker {
  Device device;
  Mailbox mailbox;
  std::thread thread;
  bool hasEnded = false; ///< guarded by `Workers::mutex`
};

thread_local Worker *ownWorker = nullptr;

/// How long the process waits in its end for a thread that still runs a node.
constexpr auto patience = std::chrono::seconds(2);

/// All workers. Nothing of it has a destructor: other threads may come while
/// the process ends.
struct Workers {
  std::mutex mutex; ///< guards the members below
  std::condition_variable ended;
  std::vector<Worker *> *all = nullptr;
  pid_t process = 0; ///< that made them
  bool isClosed = false;
};
Workers &workers() {
  static auto *made = new Workers;
  return *made;
}

/// Ends the workers. One that does not end in time, or ends the process itself,
/// is left alone.
struct Closer {
  ~Closer() {
    Workers &known = workers();
    std::unique_lock lock(known.mutex);
    known.isClosed = true;
    std::unique_ptr<std::vector<Worker *>> all(
        std::exchange(known.all, nullptr));
    if (!all || known.process != getpid())
      return;
    for (Worker *worker : *all)
      worker->mailbox.close();
    auto until = std::chrono::steady_clock::now() + patience;
    for (Worker *worker : *all) {
      bool hasEnded =
          worker != ownWorker &&
          known.ended.wait_until(lock, until, [&] { return worker->hasEnded; });
      if (!hasEnded) {
        worker->thread.detach();
        continue;
      }
      lock.unlock();
      worker->thread.join();
      delete worker;
      lock.lock();
    }
  }
};

void work(Worker &own) {
  ownWorker = &own;
  own.mailbox.serve(nullptr);
  Workers &known = workers();
  std::lock_guard lock(known.mutex);
  own.hasEnded = true;
  known.ended.notify_all();
}

} // namespace

Mailbox &threadMailbox() {
  static thread_local Mailbox own;
  return ownWorker ? ownWorker->mailbox : own;
}

Device threadDevice() { return ownWorker ? ownWorker->device : Device(); }

Mailbox *deviceMailbox(Device device) {
  Workers &known = workers();
  std::lock_guard lock(known.mutex);
  if (known.isClosed || (known.all && known.process != getpid()))
    return nullptr;
  static Closer closer; // ends before what was made earlier
  if (!known.all) {
    known.all = new std::vector<Worker *>;
    known.process = getpid();
  }
  for (Worker *worker : *known.all)
    if (worker->device == device)
      return &worker->mailbox;
  auto made = std::make_unique<Worker>();
  made->device = device;
  try {
    made->thread = std::thread([worker = made.get()] { work(*worker); });
  } catch (const std::system_error &) {
    return nullptr;
  }
  known.all->push_back(made.get());
  return &made.release()->mailbox;
}

void Mailbox::put(Lane &lane) {
  lane.next = nullptr;
  (last ? last->next : first) = &lane;
  last = &lane;
}

/// The next lane, of `task` if there is one.
Lane *Mailbox::take(const Task *task) {
  Lane *before = nullptr, *taken = first;
  for (Lane *lane = first, *previous = nullptr; task && lane;
       previous = lane, lane = lane->next)
    if (lane->task == task) {
      before = previous;
      taken = lane;
      break;
    }
  if (!taken)
    return nullptr;
  (before ? before->next : first) = taken->next;
  if (last == taken)
    last = before;
  return taken;
}

/// With the mutex held.
void Mailbox::start(Lane &lane) {
  if (lane.isActive)
    return;
  lane.isActive = true;
  lane.task->enter();
  put(lane);
  wake.notify_one();
}

void Mailbox::activate(Lane &lane) {
  std::lock_guard lock(mutex);
  // One that is active already, another lane has posted to: its thread may
  // look at what is ready.
  if (!lane.isActive && !lane.ready.empty())
    start(lane);
}

void Mailbox::post(Lane &lane, int slot) {
  std::lock_guard lock(mutex);
  lane.arrived.push_back(slot);
  start(lane);
}

void Mailbox::finish(Task &task) {
  std::lock_guard lock(mutex);
  task.isDone = true;
  wake.notify_one();
}

void Mailbox::close() {
  std::lock_guard lock(mutex);
  isClosed = true;
  wake.notify_one();
}

void Mailbox::serve(const Task *task) {
  std::unique_lock lock(mutex);
  while (!(task && task->isDone)) {
    Lane *lane = take(task);
    if (!lane) {
      if (!task && isClosed)
        return;
      wake.wait(lock);
      continue;
    }
    lane->taken.swap(lane->arrived);
    lock.unlock();
    lane->task->step(*lane);
    lock.lock();
    if (!lane->arrived.empty() || !lane->ready.empty()) {
      put(*lane); // behind those that wait
      continue;
    }
    // The task may end as soon as its last lane has left.
    lane->isActive = false;
    lock.unlock();
    lane->task->leave();
    lock.lock();
  }
}

} // namespace tandem::graph
