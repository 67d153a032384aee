//===- PerfCounters.cpp - what the processor counts while kernels run -----===//
//
// The counters of a thread are one group, which is read at once and counts over
// the same time. Where there are more of them than the processor has, the
// system takes them by turns, and says for how long of the time it counted.
//
//===----------------------------------------------------------------------===//
#include "tools/tandem/PerfCounters.h"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

using namespace tandem::commands;

namespace {
struct Kind {
  std::string_view name;
  uint32_t type;
  uint64_t config;
};
} // namespace

static constexpr Kind kAll[PerfCounters::kKinds] = {
    {"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    {"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
    {"cache_misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
    {"page_faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
    {"nanoseconds", PERF_TYPE_MAX, 0}};
/// By the process's own clock: that of perf_event_open stood still in some runs
/// (Linux 6.18) until a thread had given its processor away.
static constexpr size_t kNanoseconds = PerfCounters::kKinds - 1;

static double processorNanoseconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return double(time.tv_sec) * 1e9 + double(time.tv_nsec);
}

std::string_view PerfCounters::name(size_t kind) { return kAll[kind].name; }

int PerfCounters::open(size_t kind, int thread, int group) const {
  perf_event_attr what{};
  what.size = sizeof what;
  what.type = kAll[kind].type;
  what.config = kAll[kind].config;
  what.exclude_kernel = 1; // which others than root may not count
  what.exclude_hv = 1;
  what.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED |
                     PERF_FORMAT_TOTAL_TIME_RUNNING;
  return int(::syscall(SYS_perf_event_open, &what, thread, /*cpu=*/-1, group,
                       PERF_FLAG_FD_CLOEXEC));
}

static std::vector<int> threadsOfProcess() {
  std::vector<int> threads;
  std::error_code error;
  for (const auto &entry :
       std::filesystem::directory_iterator("/proc/self/task", error)) {
    std::string text = entry.path().filename();
    int thread = 0;
    if (std::from_chars(text.data(), text.data() + text.size(), thread).ec ==
        std::errc())
      threads.push_back(thread);
  }
  return threads;
}

/// As the first of a group, so that one that fails takes no other along.
void PerfCounters::findKinds() {
  for (size_t kind = 0; kind < kNanoseconds; ++kind) {
    int file = open(kind, 0, -1);
    if (file < 0) {
      missing_[kind] = std::strerror(errno);
      continue;
    }
    ::close(file);
    kinds_.push_back(kind);
  }
}

PerfCounters::PerfCounters() {
  findKinds();
  if (kinds_.empty())
    return;
  for (int thread : threadsOfProcess()) {
    Thread made;
    for (size_t kind : kinds_) {
      int file =
          open(kind, thread, made.files.empty() ? -1 : made.files.front());
      int error = errno;
      if (file >= 0) {
        made.files.push_back(file);
        continue;
      }
      for (int opened : made.files)
        ::close(opened);
      made.files.clear();
      if (error == ESRCH)
        break; // the thread has ended
      for (size_t lost : kinds_)
        missing_[lost] = std::strerror(error);
      kinds_.clear();
      return;
    }
    if (!made.files.empty())
      threads_.push_back(std::move(made));
  }
}

PerfCounters::~PerfCounters() {
  for (const Thread &thread : threads_)
    for (int file : thread.files)
      ::close(file);
}

PerfCounters::Counts PerfCounters::read() {
  Counts sums(kKinds);
  for (Thread &thread : threads_) {
    Group now, before = thread.last;
    if (::read(thread.files.front(), &now, sizeof now) <= 0 ||
        now.count != kinds_.size())
      continue;
    thread.last = now;
    // Scaled over this time alone: of a long sum the scale's own changes would
    // be more than what one launch counts.
    uint64_t running = now.running - before.running;
    double scale =
        running ? double(now.enabled - before.enabled) / double(running) : 1;
    for (size_t i = 0; i < kinds_.size(); ++i)
      sums[kinds_[i]] += double(now.values[i] - before.values[i]) * scale;
  }
  double nanoseconds = processorNanoseconds();
  sums[kNanoseconds] = nanoseconds - std::exchange(nanoseconds_, nanoseconds);
  return sums;
}

void PerfCounters::begin() {
  launches_.clear();
  read();
}

void PerfCounters::ended() { launches_.push_back(read()); }
