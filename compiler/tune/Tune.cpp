//===- Tune.cpp - schedules by measuring instead of by a model ------------===//
#include "compiler/tune/Tune.h"
#include "compiler/tune/ScheduleCache.h"
#include "compiler/tune/Trials.h"
#include "passes/lower/common/Kernels.h"
#include "passes/lower/cpu/ExplainMethods.h"
#include "passes/lower/cpu/ScheduleSearch.h"
#include "passes/target/Rates.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SHA256.h"
#include "llvm/TargetParser/Host.h"

#include <chrono>

using namespace mlir;
using namespace tandem;
using tandem::lower::ScheduleOverride;

using Clock = std::chrono::steady_clock;

/// What another schedule has to gain, so that chance does not choose.
static constexpr double kGain = 0.97;

/// Of which schedules are tried and how they are timed: what an earlier search
/// has found is not the answer of a later one.
static constexpr StringLiteral kSearch = "search 6";

/// This machine's processor, as LLVM and as the system call it.
static std::string machineName() {
  std::string name = llvm::sys::getHostCPUName().str();
  auto info = llvm::MemoryBuffer::getFileAsStream("/proc/cpuinfo");
  if (!info)
    return name;
  SmallVector<StringRef> lines;
  (*info)->getBuffer().split(lines, '\n');
  for (StringRef line : lines)
    if (auto [field, value] = line.split(':');
        field.trim() == "model name" && !value.trim().empty())
      return name + ", " + value.trim().str();
  return name;
}

namespace {
/// Equal kernels of a module.
struct Group {
  SmallVector<KernelOp> kernels;
  std::optional<lower::cpu::ScheduleSearch> search;
  std::string key; ///< of the cache
  std::string summary;
  double weight = 0; ///< the time of all, roughly
  size_t place = 0;  ///< among the module's, by the first kernel

  KernelOp first() const { return kernels.front(); }
};

class Tuner {
public:
  Tuner(ModuleOp module, const CpuTarget &target, const TuneOptions &options)
      : module(module), target(target), options(options),
        context(module.getContext()), machine(machineName()),
        end(Clock::now() +
            std::chrono::duration_cast<Clock::duration>(
                std::chrono::duration<double>(options.seconds))) {}

  Result<TuneReport> run();

private:
  std::vector<Group> groups();
  Status measure(const Group &group, double seconds, TunedSchedule &found);
  /// Times the schedules and the model's; sets `found` to the fastest.
  Status compare(KernelOp kernel, ArrayRef<ScheduleAttr> variants,
                 double seconds, TunedSchedule &found);
  void apply(const Group &group, const TunedSchedule &found) const;
  double left() const {
    return std::chrono::duration<double>(end - Clock::now()).count();
  }

  ModuleOp module;
  const CpuTarget &target;
  const TuneOptions &options;
  MLIRContext *context;
  std::string machine;
  Clock::time_point end;
};
} // namespace

static std::string hashOf(StringRef text) {
  auto bytes = llvm::SHA256::hash(
      ArrayRef(reinterpret_cast<const uint8_t *>(text.data()), text.size()));
  return llvm::toHex(ArrayRef(bytes).take_front(16), /*LowerCase=*/true);
}

static std::string summaryOf(KernelOp kernel) {
  StringAttr summary =
      lower::describeKernel(kernel, lower::LoweredFacts()).getSummary();
  return summary ? summary.str() : kernel.getName().str();
}

/// What tells equal kernels, whatever their schedules.
static std::string textOf(KernelOp kernel) {
  OwningOpRef<KernelOp> bare(kernel.clone());
  bare->removeScheduleAttr();
  return lower::textOf(*bare);
}

/// The kernels that have a choice, those that take longest first. One of which
/// somebody asked how it is computed has none.
std::vector<Group> Tuner::groups() {
  const Rates rates = Rates::of(module);
  std::string common = TANDEM_VERSION "\n" + kSearch.str() + '\n' + machine +
                       '\n' + std::to_string(options.timer->threads()) + '\n';
  llvm::raw_string_ostream(common) << module->getAttr(kTargetAttr) << '\n';
  std::vector<Group> groups;
  lower::DistinctKernels known;
  for (auto func : module.getOps<func::FuncOp>())
    for (auto kernel : func.getOps<KernelOp>()) {
      auto [number, isNew] = known.insert(kernel);
      if (isNew)
        groups.emplace_back();
      Group &group = groups[number];
      if (isNew) {
        group.search.emplace(kernel);
        group.place = number;
        group.key = hashOf(common + textOf(kernel));
        group.summary = summaryOf(kernel);
      }
      group.kernels.push_back(kernel);
      group.weight += rates.seconds(kernel);
    }
  llvm::erase_if(groups, [&](const Group &group) {
    ScheduleAttr said = KernelOp(group.first()).getScheduleAttr();
    return group.search->rounds() == 0 || (said && said.getAsked());
  });
  llvm::sort(groups, [](const Group &a, const Group &b) {
    return a.weight != b.weight ? a.weight > b.weight : a.place < b.place;
  });
  return groups;
}

Status Tuner::compare(KernelOp kernel, ArrayRef<ScheduleAttr> variants,
                      double seconds, TunedSchedule &found) {
  auto begin = Clock::now();
  std::vector<ScheduleAttr> schedules{ScheduleAttr()}; // the model's
  llvm::append_range(schedules, variants);
  auto compiled =
      compileTrials(kernel, schedules, target, options.compileThreads);
  if (!compiled)
    return compiled.status();
  bool isTimed = found.modelSeconds > 0;
  if (compiled->schedules.size() == 1 && isTimed)
    return Status::success();
  std::chrono::duration<double> spent = Clock::now() - begin;
  auto times = options.timer->time(compiled->trials,
                                   std::max(seconds - spent.count(), 0.0));
  if (!times)
    return times.status();
  found.modelSeconds = found.seconds = times->front();
  found.schedule = {};
  for (auto [time, schedule] : llvm::zip_equal(*times, compiled->schedules))
    if (time < found.seconds && time < kGain * found.modelSeconds) {
      found.seconds = time;
      found.schedule = schedule;
    }
  return Status::success();
}

/// The different schedules that come of the wishes, as the table cuts the
/// kernel, without the model's; and the first wish of each.
static std::pair<SmallVector<ScheduleAttr>,
                 DenseMap<Attribute, ScheduleOverride>>
schedulesOf(KernelOp kernel, ArrayRef<ScheduleOverride> wishes) {
  SmallVector<ScheduleAttr> schedules;
  DenseMap<Attribute, ScheduleOverride> wishOf;
  DenseSet<Attribute> known;
  if (ScheduleAttr model = lower::cpu::scheduleFor(kernel, {}))
    known.insert(model.withoutChoosers());
  for (const ScheduleOverride &wish : wishes) {
    ScheduleAttr schedule = lower::cpu::scheduleFor(kernel, wish);
    if (!schedule || !known.insert(schedule.withoutChoosers()).second)
      continue;
    schedules.push_back(schedule);
    wishOf.insert({schedule, wish});
  }
  return {schedules, wishOf};
}

Status Tuner::measure(const Group &group, double seconds,
                      TunedSchedule &found) {
  KernelOp kernel = group.first();
  found = {group.summary,  machine, options.timer->threads(),
           ScheduleAttr(), 0,       0};
  ScheduleOverride best;
  size_t rounds = group.search->rounds();
  bool triesMethods = !group.search->methods().empty();
  double share = seconds / static_cast<double>(rounds - !triesMethods);
  for (size_t round = !triesMethods; round < rounds; ++round) {
    if (found.modelSeconds > 0 && left() <= 0)
      break;
    auto wishes = group.search->variants(round, best);
    if (wishes.empty())
      break;
    wishes.insert(wishes.begin(), best);
    auto [schedules, wishOf] = schedulesOf(kernel, wishes);
    if (Status s = compare(kernel, schedules, share, found); !s)
      return s;
    best = found.schedule ? wishOf.lookup(found.schedule) : ScheduleOverride();
  }
  return Status::success();
}

void Tuner::apply(const Group &group, const TunedSchedule &found) const {
  if (!found.schedule)
    return;
  for (KernelOp kernel : group.kernels)
    kernel.setScheduleAttr(found.schedule);
}

static void reportChoice(KernelOp kernel, const TunedSchedule &found) {
  auto micros = [](double seconds) {
    return llvm::formatv("{0:F1} us", seconds * 1e6).str();
  };
  InFlightDiagnostic remark = kernel.emitRemark();
  if (!found.schedule)
    remark << "no schedule is faster than the model's, whose launch takes "
           << micros(found.modelSeconds);
  else
    remark << "a launch takes " << micros(found.seconds) << " with "
           << found.schedule << ", " << micros(found.modelSeconds)
           << " with the model's schedule";
}

Result<TuneReport> Tuner::run() {
  ScheduleCache cache;
  if (!options.cachePath.empty()) {
    auto read = ScheduleCache::read(options.cachePath, context);
    if (!read)
      return read.status();
    cache = std::move(*read);
  }
  TuneReport report;
  std::vector<Group> unknown;
  double weight = 0;
  for (Group &group : groups()) {
    ++report.kernels;
    if (const TunedSchedule *known = cache.find(group.key)) {
      ++report.cached;
      apply(group, *known);
      continue;
    }
    weight += group.weight;
    unknown.push_back(std::move(group));
  }
  for (const Group &group : unknown) {
    double seconds = left();
    if (seconds <= 0)
      break;
    TunedSchedule found;
    if (Status s = measure(group, seconds * group.weight / weight, found); !s)
      return std::move(s).in("--tune: " + group.summary);
    weight -= group.weight;
    apply(group, found);
    ++report.measured;
    report.changed += found.schedule != nullptr;
    report.modelSeconds += found.modelSeconds;
    report.seconds += found.seconds;
    report.last = group.summary;
    if (options.remarks)
      reportChoice(group.first(), found);
    cache.set(group.key, std::move(found));
    // At once: who stops a long search keeps what it has found.
    if (!options.cachePath.empty())
      if (Status s = cache.write(options.cachePath, context); !s)
        return s;
    if (options.progress)
      options.progress(report);
  }
  return report;
}

Result<TuneReport> tandem::tuneKernels(ModuleOp module, const CpuTarget &target,
                                       const TuneOptions &options) {
  return Tuner(module, target, options).run();
}
