//===- RunKernels.cpp - runs and times variants of a kernel ---------------===//
#include "tools/tandem/RunKernels.h"
#include "runtime/device/CodeObject.h"
#include "runtime/device/CpuFeatures.h"
#include "runtime/tensor/Storage.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <numeric>

using namespace tandem;
using namespace tandem::commands;
using artifact::DType;
using runtime::KernelFunction;

using Clock = std::chrono::steady_clock;

static double since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

Status RunKernels::canRun(const std::string &arch,
                          const std::vector<std::string> &features) const {
  std::vector<std::string> missing = runtime::missingCpuFeatures(features);
  if (missing.empty())
    return Status::success();
  std::string names;
  for (const std::string &name : missing)
    names += (names.empty() ? "" : ", ") + name;
  return Status::noDevice("--tune: this machine cannot run code for '" + arch +
                          "': it lacks " + names);
}

/// Numbers that stay what they are: positive and neither large nor small where
/// they are floats, else 0, which is an index into anything.
static void fill(void *data, DType type, int64_t bytes) {
  std::memset(data, 0, bytes);
  auto repeat = [&]<typename T>(T value) {
    std::fill_n(static_cast<T *>(data), bytes / sizeof(T), value);
  };
  switch (type) {
  case DType::F32:
    for (int64_t i = 0; i < bytes / 4; ++i)
      static_cast<float *>(data)[i] = 0.25F + 0.0625F * (i % 11);
    break;
  case DType::F64:
    repeat(0.5);
    break;
  case DType::F16:
    repeat(uint16_t(0x3800));
    break;
  case DType::BF16:
    repeat(uint16_t(0x3F00));
    break;
  case DType::F8E4M3FN:
    repeat(uint8_t(0x30));
    break;
  case DType::F8E5M2:
    repeat(uint8_t(0x38));
    break;
  default:
    break;
  }
}

namespace {
using Memory = std::vector<std::shared_ptr<runtime::Storage>>;

/// Adds memory for a tensor; says where it is.
Result<void *> take(Memory &memory, int64_t bytes) {
  auto storage = runtime::Storage::allocate(std::max<int64_t>(bytes, 1));
  if (!storage)
    return storage.status();
  memory.push_back(*storage);
  return memory.back()->data();
}

/// The buffers of a launch: of the inputs, then of the results.
using Buffers = std::vector<void *>;

Result<Buffers> buffersOf(const KernelTrials &trials, Memory &memory) {
  Buffers buffers;
  for (const KernelTrials::Tensor &tensor : trials.inputs) {
    auto data = take(memory, tensor.bytes);
    if (!data)
      return data.status();
    fill(*data, tensor.type, tensor.bytes);
    buffers.push_back(*data);
  }
  for (size_t i = 0; i < trials.outputs.size(); ++i) {
    if (trials.overwrites[i] >= 0) {
      buffers.push_back(buffers[trials.overwrites[i]]);
      continue;
    }
    auto data = take(memory, trials.outputs[i].bytes);
    if (!data)
      return data.status();
    fill(*data, trials.outputs[i].type, trials.outputs[i].bytes);
    buffers.push_back(*data);
  }
  return buffers;
}

struct Launch {
  KernelFunction function;
  void *const *buffers;
  char *scratch;
  int64_t scratchBytes; ///< of a thread

  static void run(void *context, int64_t begin, int64_t end, int thread) {
    const auto &launch = *static_cast<Launch *>(context);
    launch.function(launch.buffers, begin, end,
                    launch.scratch + launch.scratchBytes * thread);
  }
};
} // namespace

static int64_t bytesOf(const KernelTrials &trials) {
  int64_t bytes = 1;
  for (const auto &list : {trials.inputs, trials.outputs})
    for (const KernelTrials::Tensor &tensor : list)
      bytes += tensor.bytes;
  return bytes;
}

using Times = std::vector<double>;

static double medianOf(Times &times) {
  std::ranges::nth_element(times, times.begin() + times.size() / 2);
  return times[times.size() / 2];
}

/// Lets the trials that `which` names take turns for `seconds`:
/// `launch` says how long one took. Returns the medians of these; the round
/// before the first warms up.
static Times mediansOf(const std::vector<size_t> &which, double seconds,
                       const std::function<double(size_t, int)> &launch) {
  constexpr int leastRounds = 3, mostRounds = 200;
  std::vector<Times> times(which.size());
  auto begin = Clock::now();
  for (int round = -1;
       round < leastRounds || (round < mostRounds && since(begin) < seconds);
       ++round)
    for (size_t i = 0; i < which.size(); ++i) {
      double time = launch(which[i], round + 1);
      if (round >= 0)
        times[i].push_back(time);
    }
  Times medians;
  for (Times &list : times)
    medians.push_back(medianOf(list));
  return medians;
}

/// The medians of `count` trials, timed for `seconds` or a little. Of many, the
/// best and the first one are timed again, for most of the time: the least of
/// many medians is one that chance has helped. Others are not said to be faster
/// than these.
static Times timeByTurns(size_t count, double seconds,
                         const std::function<double(size_t, int)> &launch) {
  constexpr size_t finalists = 4;
  constexpr double firstPart = 0.4;
  // Little beside the seconds that it takes to compile the variants.
  constexpr double leastFirst = 0.1, least = 0.2;
  std::vector<size_t> all(count);
  std::iota(all.begin(), all.end(), 0);
  if (count <= finalists)
    return mediansOf(all, std::max(seconds, least), launch);
  auto begin = Clock::now();
  Times medians =
      mediansOf(all, std::max(firstPart * seconds, leastFirst), launch);
  std::ranges::sort(all.begin() + 1, all.end(), {},
                    [&](size_t i) { return std::pair(medians[i], i); });
  all.resize(finalists);
  Times again = mediansOf(all, std::max(seconds - since(begin), least), launch);
  double slowest = std::ranges::max(again);
  for (double &median : medians)
    median = std::max(median, slowest);
  for (size_t i = 0; i < finalists; ++i)
    medians[all[i]] = again[i];
  return medians;
}

Result<std::vector<double>> RunKernels::time(const KernelTrials &trials,
                                             double seconds) {
  auto code =
      runtime::CodeObject::load(std::as_bytes(std::span(trials.object)));
  if (!code)
    return code.status();
  // Copies of the tensors that do not stay in the second-level caches.
  constexpr int64_t enough = 32 << 20, mostCopies = 8;
  int64_t copies = std::clamp<int64_t>(enough / bytesOf(trials), 1, mostCopies);
  Memory memory;
  std::vector<Buffers> sets;
  for (int64_t i = 0; i < copies; ++i) {
    auto buffers = buffersOf(trials, memory);
    if (!buffers)
      return buffers.status();
    sets.push_back(std::move(*buffers));
  }
  int64_t scratchBytes = 64;
  for (const KernelTrial &trial : trials.trials)
    scratchBytes = std::max(scratchBytes, trial.scratchBytes);
  scratchBytes = (scratchBytes + 63) / 64 * 64;
  auto scratch = take(memory, scratchBytes * threads());
  if (!scratch)
    return scratch.status();

  std::vector<Launch> launches;
  for (const KernelTrial &trial : trials.trials) {
    KernelFunction function = code->find(trial.symbol.c_str());
    if (!function)
      return Status::failed("expected the kernel '" + trial.symbol +
                            "' in the code of its variants");
    launches.push_back(
        {function, nullptr, static_cast<char *>(*scratch), scratchBytes});
  }

  size_t nextSet = 0;
  return timeByTurns(launches.size(), seconds, [&](size_t i, int turn) {
    Launch &launch = launches[i];
    const KernelTrial &trial = trials.trials[i];
    // Not those of the launch before, which has them in its caches, and others
    // in each turn.
    if (i == 0)
      nextSet += turn;
    launch.buffers = sets[nextSet++ % copies].data();
    // As the runtime does: the first word of scratch is 0.
    for (int t = 0; t < threads(); ++t)
      std::memset(launch.scratch + scratchBytes * t, 0, sizeof(int64_t));
    auto start = Clock::now();
    pool.run(trial.work, trial.grain, Launch::run, &launch);
    return since(start);
  });
}
