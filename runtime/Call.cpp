//===- Call.cpp - one run of a program ------------------------------------===//
//
// The steps of a call, in order: match names, check, place, launch, write.
//
//===----------------------------------------------------------------------===//
#include "runtime/Call.h"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace tandem::runtime {

using artifact::Buffer;
using artifact::Role;
using artifact::Slot;

namespace {

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

/// Notes when launches end, if anybody wants to know.
class LaunchClock {
public:
  explicit LaunchClock(std::vector<double> *seconds) : seconds(seconds) {
    if (!seconds)
      return;
    seconds->clear();
    last = std::chrono::steady_clock::now();
  }
  void lap() {
    if (!seconds)
      return;
    auto now = std::chrono::steady_clock::now();
    seconds->push_back(std::chrono::duration<double>(now - last).count());
    last = now;
  }

private:
  std::vector<double> *seconds;
  std::chrono::steady_clock::time_point last;
};

} // namespace

Call::~Call() {
  // The program's tables must not hold on to tensors of the caller.
  for (Tensor &view : bound.views)
    view = Tensor();
  for (Tensor &tensor : bound.fresh)
    tensor = Tensor();
  if (bound.changesHandles)
    for (Tensor &handle : bound.newHandles)
      handle = Tensor();
  if (takes && takes->hooks)
    for (Tensor &tensor : bound.unpacked)
      tensor = Tensor();
}

void Call::problem(const std::string &text) {
  problems += (problems.empty() ? "" : "; ") + text;
}

std::string Call::name(const Slot &slot, size_t index) const {
  std::string role = slot.role == Role::Cotangent ? "cotangent of "
                     : slot.role == Role::Grad    ? "grad of "
                                                  : "";
  if (role.empty())
    role = std::string(spelling(slot.role)) + " ";
  return role + "'" + slot.name + "' (index " + std::to_string(index) + ")";
}

std::string Call::argumentName(size_t index) const {
  return name(program.arguments[index], index);
}

/// The caller's, the store's or the forward's tensor of an argument, or null if
/// there is none: undefined, or a saved value.
const Tensor *Call::tensorOf(size_t argument) const {
  if (int v = bound.arguments[argument].variable; v >= 0)
    return &core.variables[v].tensor;
  const Tensor *tensor = bound.given[argument];
  return tensor && tensor->defined() ? tensor : nullptr;
}

Status Call::run(std::span<const Argument> inputs,
                 std::span<const Destination> outputs) {
  std::fill(bound.given.begin(), bound.given.end(), nullptr);
  std::fill(bound.handles.begin(), bound.handles.end(), nullptr);
  std::fill(bound.wanted.begin(), bound.wanted.end(), nullptr);
  std::fill(bound.wantedAliases.begin(), bound.wantedAliases.end(), nullptr);
  bound.absent.clear();
  if (mode.onlyWanted) {
    matchDestinations(outputs);
    findSlice();
    matchArguments(inputs);
  } else {
    matchArguments(inputs);
    matchDestinations(outputs);
  }
  findDefined();
  if (takes)
    checkContext();
  for (size_t a = 0; a < program.arguments.size(); ++a)
    checkArgument(a);
  checkGradMode();
  checkDestinations();
  // What follows looks at strides and addresses of what fits so far.
  if (problems.empty()) {
    checkCapture();
    checkVariables();
    checkGroups();
    findViews();
    findHandles();
    checkOverlaps();
  }
  if (!problems.empty())
    return Status::usage("cannot run '" + program.name + "': " + problems);
  if (isIdle) {
    clearDestinations();
    return Status::success();
  }
  if (bound.prepares)
    if (Status status = core.prepare(*bound.prepares); !status)
      return status;
  return place.isHost() ? perform() : performOnDevice();
}

/// What comes after the checks.
Status Call::perform() {
  if (Status status = core.reserve(bound); !status)
    return status;
  if (Status status = placeResults(); !status)
    return status;
  if (Status status = resizeStorages(); !status)
    return status;
  Status status = placeArguments();
  if (status && !place.isHost())
    status = startStreams();
  if (status)
    status = copyArguments();
  if (!status) {
    freeResized();
    return status;
  }
  // A launch that fails on a device may leave a context that can be used.
  isStarted = place.isHost() || bound.hasDonated || (takes && takes->hooks);
  if (takes && takes->hooks)
    if (Status status = unpackAll(); !status)
      return status;
  resolveBuffers();
  const Action *actions = chooseActions();
  if (place.isHost())
    launch(actions);
  else if (Status status = launchOnDevice(actions); !status)
    return status;
  isStarted = true;
  writeUpdates();
  writeDestinations();
  if (!failure)
    return failure;
  keep();
  writeHandles();
  return gives && gives->hooks ? pack() : Status::success();
}

void Call::matchArguments(std::span<const Argument> inputs) {
  size_t count = program.arguments.size(), guess = 0;
  for (const Argument &input : inputs) {
    // Callers mostly keep the program's order: begin after the last match.
    size_t found = count;
    for (size_t i = 0; i < count && found == count; ++i) {
      size_t a = guess + i < count ? guess + i : guess + i - count;
      if (program.arguments[a].name == input.name &&
          bound.arguments[a].isCallers)
        found = a;
    }
    if (found == count) {
      if (!matchUndefined(input))
        problem("unknown argument '" + std::string(input.name) + "'");
      continue;
    }
    if (bound.given[found])
      problem(argumentName(found) + " is given twice");
    static const Tensor none;
    bound.given[found] = input.tensor ? input.tensor : &none;
    bound.handles[found] = input.handle;
    guess = found + 1;
  }
  for (size_t a = 0; a < count; ++a) {
    const Slot &slot = program.arguments[a];
    if (bound.arguments[a].isCallers && !bound.given[a] &&
        slot.role != Role::Cotangent &&
        !(mode.onlyWanted && !bound.slice.needs[a]))
      problem("missing " + name(slot, a) + ": expected " +
              describe(slot.dtype, slot.shape));
  }
}

/// A cotangent that the program has no argument for may be given as undefined;
/// so may the gradient of a parameter that no output depends on.
bool Call::matchUndefined(const Argument &input) {
  bool isUndefined = !input.tensor || !input.tensor->defined();
  if (program.name == "update") {
    const artifact::Value *value = core.manifest().findValue(input.name);
    return isUndefined && value && value->requiresGrad;
  }
  if (!takes || bound.source->source || !core.manifest().findOutput(input.name))
    return false;
  if (!isUndefined)
    problem("output '" + std::string(input.name) +
            "' is not differentiable: expected no cotangent of it but got " +
            describe(input.tensor->dtype(), input.tensor->shape()));
  return true;
}

void Call::matchDestinations(std::span<const Destination> outputs) {
  size_t count = program.results.size(), guess = 0;
  for (const Destination &output : outputs) {
    size_t found = count;
    for (size_t i = 0; i < count && found == count; ++i) {
      size_t r = guess + i < count ? guess + i : guess + i - count;
      const Slot &slot = program.results[r];
      if (slot.name == output.name &&
          (slot.role == Role::Output || slot.role == Role::Grad))
        found = r;
    }
    // Aliases come after the results.
    Tensor **place = found < count ? &bound.wanted[found] : nullptr;
    for (size_t i = 0; i < program.aliases.size() && !place; ++i)
      if (program.aliases[i].name == output.name) {
        place = &bound.wantedAliases[i];
        found = count + i;
      }
    if (!place) {
      if (!matchAbsent(output))
        problem("unknown result '" + std::string(output.name) + "'");
      continue;
    }
    auto called = [&] {
      return entryName(static_cast<int>(program.arguments.size() + found));
    };
    if (!output.tensor)
      problem(called() + ": expected a tensor to write to but got null");
    if (*place)
      problem(called() + " is asked for twice");
    *place = output.tensor;
    if (found < count)
      guess = found + 1;
  }
}

/// A gradient that a backward never gives, of a value that requires grad, is
/// always undefined.
bool Call::matchAbsent(const Destination &output) {
  const artifact::Value *value = core.manifest().findValue(output.name);
  if (!takes || !value || !value->requiresGrad)
    return false;
  if (output.tensor)
    bound.absent.emplace_back(output.tensor, output.name);
  else
    problem("grad of '" + value->name +
            "': expected a tensor to write to but got null");
  return true;
}

void Call::findDefined() {
  bool hasAny = false, hasCotangents = false;
  for (size_t a = 0; a < program.arguments.size(); ++a) {
    const BoundArgument &argument = bound.arguments[a];
    Role role = program.arguments[a].role;
    bool isOptional =
        argument.isCallers &&
        (role == Role::Cotangent || (role == Role::Grad && bound.given[a]));
    bound.isDefined[a] = !isOptional || tensorOf(a);
    if (!isOptional)
      continue;
    hasCotangents = true;
    hasAny |= bound.isDefined[a] != 0;
    allDefined &= bound.isDefined[a] != 0;
  }
  isIdle = (takes || program.name == "update") && hasCotangents && !hasAny;
}

/// What the wanted outputs need: found anew where others were wanted before.
void Call::findSlice() {
  bool isSame = bound.slice.launches.size() == program.launches.size() &&
                bound.slice.needs.size() == program.arguments.size() &&
                bound.slicedResults.size() == bound.wanted.size() &&
                bound.slicedAliases.size() == bound.wantedAliases.size();
  auto differs = [&](const std::vector<char> &before,
                     const std::vector<Tensor *> &wanted) {
    for (size_t i = 0; i < wanted.size(); ++i)
      if (before[i] != char(wanted[i] != nullptr))
        return true;
    return false;
  };
  if (isSame && !differs(bound.slicedResults, bound.wanted) &&
      !differs(bound.slicedAliases, bound.wantedAliases))
    return;
  auto isWanted = [](const Tensor *tensor) { return char(tensor != nullptr); };
  bound.slicedResults.resize(bound.wanted.size());
  bound.slicedAliases.resize(bound.wantedAliases.size());
  std::transform(bound.wanted.begin(), bound.wanted.end(),
                 bound.slicedResults.begin(), isWanted);
  std::transform(bound.wantedAliases.begin(), bound.wantedAliases.end(),
                 bound.slicedAliases.begin(), isWanted);
  bound.slice =
      artifact::sliceOf(program, bound.slicedResults, bound.slicedAliases);
}

bool Call::holds(const BoundCondition &condition) const {
  return std::all_of(
      condition.begin(), condition.end(), [&](const std::vector<int> &group) {
        return std::any_of(group.begin(), group.end(),
                           [&](int a) { return bound.isDefined[a] != 0; });
      });
}

Action Call::actionOf(size_t launch) const {
  const BoundCase &one = bound.cases[launch];
  if (!holds(one.needs))
    return skipLaunch;
  for (const auto &[when, action] : one.choices)
    if (holds(when))
      return action;
  return runKernel;
}

void Call::resolveBuffers() {
  auto *arena = static_cast<char *>(core.arenaData());
  auto *host = static_cast<char *>(const_cast<void *>(core.hostData()));
  // Validated: no launch writes to a constant.
  auto *constants = const_cast<std::byte *>(core.constantsData());
  for (size_t b = 0; b < program.buffers.size(); ++b) {
    const Buffer &buffer = program.buffers[b];
    switch (buffer.place) {
    case Buffer::Place::Argument:
      bound.bufferData[b] = bound.argumentData[buffer.index];
      break;
    case Buffer::Place::Result:
      bound.bufferData[b] = bound.resultData[buffer.index];
      break;
    case Buffer::Place::Arena:
      bound.bufferData[b] = arena ? arena + buffer.offset : nullptr;
      break;
    case Buffer::Place::Constant:
      bound.bufferData[b] = constants ? constants + buffer.offset : nullptr;
      break;
    case Buffer::Place::Host:
      bound.bufferData[b] = host ? host + buffer.offset : nullptr;
      break;
    }
  }
}

/// Returns what each launch does in this call.
const Action *Call::chooseActions() {
  if (mode.onlyWanted) {
    for (size_t i = 0; i < bound.launches.size(); ++i)
      bound.actions[i] =
          bound.slice.launches[i] ? bound.allDefined[i] : skipLaunch;
    return bound.actions.data();
  }
  // A second derivative has zeros for what is undefined: see placeArgument.
  if (allDefined || gives || bound.cases.empty())
    return bound.allDefined.data();
  for (size_t i = 0; i < bound.launches.size(); ++i)
    bound.actions[i] = actionOf(i);
  return bound.actions.data();
}

void Call::launch(const Action *actions) {
  for (size_t i = 0; i < bound.pointers.size(); ++i)
    bound.pointers[i] = bound.bufferData[bound.pointerBuffer[i]];
  Job job{nullptr, nullptr, static_cast<char *>(core.scratchData()),
          bound.scratchBytes};
  if (!bound.scratchBytes)
    job.scratch = nullptr;
  LaunchClock clock(mode.seconds);
  for (size_t i = 0; i < bound.launches.size(); ++i, clock.lap()) {
    const BoundLaunch &launch = bound.launches[i];
    job.function = launch.function;
    job.pointers = bound.pointers.data() + launch.firstPointer;
    if (actions[i] != runKernel) {
      if (actions[i] == skipLaunch)
        continue;
      const BoundCase &one = bound.cases[i];
      if (one.writtenBytes == 0)
        continue;
      void *to = job.pointers[one.written];
      if (actions[i] == writeZeros)
        std::memset(to, 0, one.writtenBytes);
      else if (to != job.pointers[actions[i]])
        std::memmove(to, job.pointers[actions[i]], one.writtenBytes);
    } else if (launch.isSmall && launch.work > 0) {
      job.begin(1);
      Job::run(&job, 0, launch.work, 0);
    } else {
      job.begin(core.pool->threads());
      core.pool->run(launch.work, launch.grain, Job::run, &job);
    }
  }
}

} // namespace tandem::runtime
