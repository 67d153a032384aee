//===- HostCode.cpp - an artifact's code on the host ----------------------===//
//
// The manifest was validated by its reader: no index is checked again.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/HostCode.h"
#include "runtime/artifact/Exchanges.h"
#include "runtime/artifact/PlannedMemory.h"
#include "runtime/comm/MeshCommunicators.h"
#include "runtime/device/RunTimes.h"

#include <chrono>
#include <cstring>

namespace tandem::runtime {

using artifact::Buffer;

namespace {

/// Below this many operations or bytes, which take a few microseconds, waking a
/// thread costs more than it gains.
constexpr int64_t smallCost = 64 * 1024;

/// What a pool's job needs of a launch.
struct Job {
  KernelFunction function;
  void *const *pointers;
  char *scratch;
  int64_t scratchBytes; ///< of one thread

  /// The first word of each thread's scratch is 0 when a launch begins.
  void begin(int threads) const {
    for (int t = 0; scratch && t < threads; ++t)
      std::memset(scratch + scratchBytes * t, 0, sizeof(int64_t));
  }
  static void run(void *context, int64_t begin, int64_t end, int thread) {
    const Job &job = *static_cast<Job *>(context);
    job.function(job.pointers, begin, end,
                 job.scratch ? job.scratch + job.scratchBytes * thread
                             : nullptr);
  }
};

double secondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
      .count();
}

/// A job whose threads note how long they were in it.
struct TimedJob {
  const Job &job;
  double *seconds; ///< of each thread, which alone writes it

  static void run(void *context, int64_t begin, int64_t end, int thread) {
    const TimedJob &timed = *static_cast<TimedJob *>(context);
    auto began = std::chrono::steady_clock::now();
    Job::run(const_cast<Job *>(&timed.job), begin, end, thread);
    timed.seconds[thread] += secondsSince(began);
  }
};

/// Notes when launches end, if anybody wants to know.
class LaunchClock {
public:
  explicit LaunchClock(RunTimes *times) : times(times) {
    if (!times)
      return;
    times->launches.clear();
    if (times->observer)
      times->observer->begin();
    last = std::chrono::steady_clock::now();
  }
  void lap() {
    if (!times)
      return;
    auto now = std::chrono::steady_clock::now();
    times->launches.push_back(
        std::chrono::duration<double>(now - last).count());
    last = now;
    if (!times->observer)
      return;
    times->observer->ended();
    last = std::chrono::steady_clock::now();
  }

private:
  RunTimes *times;
  std::chrono::steady_clock::time_point last;
};

int64_t bytesOf(const artifact::Program &program, const Buffer &buffer) {
  if (buffer.place != Buffer::Place::Argument &&
      buffer.place != Buffer::Place::Result)
    return buffer.bytes;
  const artifact::Slot &slot = buffer.place == Buffer::Place::Argument
                                   ? program.arguments[buffer.index]
                                   : program.results[buffer.index];
  return *artifact::tensorBytes(slot.dtype, slot.shape);
}

} // namespace

Result<std::unique_ptr<DeviceCode>>
HostCode::load(const artifact::ArtifactReader &reader,
               const LoadOptions &options) {
  const artifact::Manifest &manifest = reader.manifest();
  CodeObject code;
  if (!manifest.kernels.empty()) {
    Result<CodeObject> loaded = CodeObject::load(reader.code("object.cpu"));
    if (!loaded)
      return std::move(loaded).status();
    code = *std::move(loaded);
  }
  std::vector<KernelFunction> functions;
  std::string missing;
  for (const artifact::Kernel &kernel : manifest.kernels) {
    functions.push_back(code.find(kernel.symbol.c_str()));
    if (!functions.back())
      missing += (missing.empty() ? "'" : ", '") + kernel.symbol + "'";
  }
  if (!missing.empty())
    return Status::failed("the artifact's code object lacks the kernels " +
                          missing);
  std::unique_ptr<HostCode> made(
      new HostCode(std::move(code), options.threads));
  for (const artifact::Program &program : manifest.programs)
    bind(made->programs.emplace_back(), program, manifest, functions);
  return std::unique_ptr<DeviceCode>(std::move(made));
}

void HostCode::bind(ProgramCode &to, const artifact::Program &program,
                    const artifact::Manifest &manifest,
                    const std::vector<KernelFunction> &functions) {
  to.scratchBytes = artifact::scratchOfThread(manifest, program);
  for (const artifact::Launch &launch : program.launches) {
    Launch &made = to.launches.emplace_back();
    made.firstPointer = to.buffers.size();
    made.pointers = launch.buffers.size();
    to.buffers.insert(to.buffers.end(), launch.buffers.begin(),
                      launch.buffers.end());
    if (launch.writes.size() == 1) {
      made.written = static_cast<int>(launch.writes[0]);
      made.writtenBytes =
          bytesOf(program, program.buffers[launch.buffers[made.written]]);
    }
    if (launch.isCollective()) {
      made.collective = static_cast<int>(to.collectives.size());
      to.collectives.emplace_back(*launch.collective, manifest.mesh);
      to.isOfSeveral |= to.collectives.back().isOfSeveral();
    }
    if (!launch.hasKernel())
      continue;
    const artifact::Kernel &kernel = manifest.kernels[launch.kernel];
    made.function = functions[launch.kernel];
    made.work = launch.work;
    made.grain = launch.grain;
    made.isSmall = (kernel.flops > 0 || kernel.bytes > 0) &&
                   kernel.flops < smallCost && kernel.bytes < smallCost;
  }
  to.pointers.resize(to.buffers.size());
  if (!to.isOfSeveral)
    return;
  std::vector<bool> joins = artifact::joinsTheOneBefore(manifest, program);
  for (size_t i = 0; i < to.launches.size(); ++i)
    to.launches[i].isJoined = joins[i];
  for (const artifact::Launch &launch : program.launches) {
    size_t first = to.touched.size();
    for (int64_t buffer : launch.buffers)
      to.touched.push_back(
          {nullptr, bytesOf(program, program.buffers[buffer])});
    for (int64_t position : launch.writes)
      to.touched[first + size_t(position)].isWritten = true;
  }
}

Status HostCode::reserve(size_t program,
                         const std::shared_ptr<MemoryAccount> &account) {
  int64_t bytes = programs[program].scratchBytes * pool.threads();
  if (bytes == 0 || (scratch && scratch->bytes() >= bytes))
    return Status::success();
  scratch.reset();
  Result<std::shared_ptr<Storage>> larger = Storage::allocate(bytes, account);
  if (!larger)
    return std::move(larger).status();
  scratch = *std::move(larger);
  return Status::success();
}

Status HostCode::clear(Storage &storage) {
  constexpr int64_t grain = 1 << 20;
  pool.run(
      storage.room(), grain,
      [](void *data, int64_t begin, int64_t end, int) {
        std::memset(static_cast<char *>(data) + begin, 0, size_t(end - begin));
      },
      storage.data());
  return Status::success();
}

void HostCode::runKernelOf(const Launch &launch, const ProgramCode &program,
                           double *seconds) {
  Job job{launch.function, program.pointers.data() + launch.firstPointer,
          nullptr, program.scratchBytes};
  if (program.scratchBytes && scratch)
    job.scratch = static_cast<char *>(scratch->data());
  TimedJob timed{job, seconds};
  ThreadPool::Body body = seconds ? TimedJob::run : Job::run;
  void *context = seconds ? static_cast<void *>(&timed) : &job;
  if (launch.isSmall && launch.work > 0) {
    job.begin(1);
    body(context, 0, launch.work, 0);
  } else {
    job.begin(pool.threads());
    pool.run(launch.work, launch.grain, body, context);
  }
}

bool HostCode::needsOthers(const Launch &launch, const ProgramCode &program) {
  return launch.collective >= 0 &&
         program.collectives[size_t(launch.collective)].needsOthers();
}

BoundCollective HostCode::collectiveOf(const Launch &launch,
                                       const ProgramCode &program) {
  const HostCollective &what = program.collectives[size_t(launch.collective)];
  void *const *pointers = program.pointers.data() + launch.firstPointer;
  if (launch.written < 0) // a barrier
    return {&what};
  return {&what, pointers[0], pointers[1]};
}

/// True if some launch runs before one that needs them.
bool HostCode::canRunBeside(size_t begin, size_t end,
                            const ProgramCode &program, const ProgramRun &run) {
  const std::vector<Launch> &launches = program.launches;
  auto isOther = [&](size_t i) {
    return run.actions[i] != skipLaunch && !needsOthers(launches[i], program);
  };
  size_t next = end;
  while (next < launches.size() && !isOther(next))
    ++next;
  if (next == launches.size())
    return false;
  const Touched *touched = program.touched.data() + launches[next].firstPointer;
  for (size_t i = begin; i < end; ++i)
    for (size_t p = 0; p < launches[next].pointers; ++p)
      if (isInTheWay(collectiveOf(launches[i], program), touched[p]))
        return false;
  return true;
}

Status HostCode::runExchange(size_t begin, size_t end,
                             const ProgramCode &program,
                             const ProgramRun &run) {
  exchange.clear();
  for (size_t i = begin; i < end; ++i)
    exchange.push_back(collectiveOf(program.launches[i], program));
  const BoundCollective &first = exchange.front();
  TimeTogether time(first.what->needsOthers() ? run.times : nullptr);
  if (first.what->needsOthers()) {
    bool isBarrier = program.launches[begin].written < 0;
    if (!isBarrier && run.communicators->world().servesAnyThread() &&
        (beside.isBusy() || canRunBeside(begin, end, program, run)) &&
        beside.start(program.collectives.size())) {
      for (const BoundCollective &one : exchange)
        beside.add(one);
      beside.submit(*run.communicators);
      return Status::success();
    }
    if (Status status = beside.finish(); !status)
      return status;
  }
  return exchange.size() > 1
             ? JoinedCollectives::run(*run.communicators, exchange, parts)
             : first.what->run(run.communicators, first.from, first.to);
}

Status HostCode::waitFor(const Launch &launch, const ProgramCode &program,
                         const ProgramRun &run) {
  TimeTogether time(run.times);
  for (size_t p = 0; beside.isBusy() && p < launch.pointers; ++p)
    if (Status status =
            beside.waitFor(program.touched[launch.firstPointer + p]);
        !status)
      return status;
  return Status::success();
}

Status HostCode::run(const ProgramRun &run) {
  ProgramCode &program = programs[run.program];
  // Before anything is written.
  if (program.isOfSeveral && !run.communicators)
    return Status::usage("the program runs on several ranks together, but the "
                         "model has no communicator");
  for (size_t i = 0; i < program.pointers.size(); ++i)
    program.pointers[i] = run.buffers[program.buffers[i]];
  for (size_t i = 0; i < program.touched.size(); ++i)
    program.touched[i].data = program.pointers[i];
  if (run.times)
    run.times->together = 0;
  Status status = runLaunches(program, run);
  if (program.isOfSeveral) {
    TimeTogether time(run.times);
    Status ended = beside.finish();
    if (status.ok())
      status = std::move(ended);
  }
  return status;
}

Status HostCode::runLaunches(const ProgramCode &program,
                             const ProgramRun &run) {
  bool timesThreads = run.times && run.times->wantsThreads;
  if (timesThreads) {
    run.times->threads = pool.threads();
    run.times->inKernels.assign(
        program.launches.size() * size_t(pool.threads()), 0);
  }
  LaunchClock clock(run.times);
  for (size_t i = 0; i < program.launches.size(); ++i, clock.lap()) {
    const Launch &launch = program.launches[i];
    Action action = run.actions[i];
    if (action == skipLaunch)
      continue;
    bool isCollective = action == runKernel && launch.collective >= 0;
    // The others come in their order. One process asks nothing.
    if (beside.isBusy() && (!isCollective || !needsOthers(launch, program)))
      if (Status status = waitFor(launch, program, run); !status)
        return status;
    if (isCollective) {
      size_t end = i + 1;
      while (end < program.launches.size() && program.launches[end].isJoined &&
             run.actions[end] == runKernel)
        ++end;
      if (Status status = runExchange(i, end, program, run); !status)
        return status;
      for (; i + 1 < end; ++i)
        clock.lap();
      continue;
    }
    if (action == runKernel) {
      runKernelOf(launch, program,
                  timesThreads
                      ? run.times->inKernels.data() + i * size_t(pool.threads())
                      : nullptr);
      continue;
    }
    if (launch.writtenBytes == 0)
      continue;
    void *const *pointers = program.pointers.data() + launch.firstPointer;
    void *to = pointers[launch.written];
    auto bytes = static_cast<size_t>(launch.writtenBytes);
    if (action == writeZeros)
      std::memset(to, 0, bytes);
    else if (to != pointers[action])
      std::memmove(to, pointers[action], bytes);
  }
  return Status::success();
}

} // namespace tandem::runtime
