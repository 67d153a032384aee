//===- Call.cpp - one run of a program ------------------------------------===//
//
// The steps of a call, in order: match names, check, place, launch, write. No
// step allocates once the program's tables and memory have their sizes;
// messages do, but only a call that fails has any.
//
//===----------------------------------------------------------------------===//
#include "runtime/Call.h"

#include <algorithm>
#include <cstring>

namespace tandem::runtime {

using artifact::Buffer;
using artifact::Role;
using artifact::Slot;

namespace {

bool isAligned(const void *data) {
  return reinterpret_cast<uintptr_t>(data) % storageAlignment == 0;
}

/// True if a kernel can read or write the tensor where it is.
bool isUsable(const Tensor &tensor) {
  return tensor.isDense() && isAligned(tensor.data());
}

bool hasType(const Tensor &tensor, const Slot &slot) {
  return tensor.dtype() == slot.dtype &&
         std::equal(tensor.shape().begin(), tensor.shape().end(),
                    slot.shape.begin(), slot.shape.end());
}

/// Allocates `tensor` with the type of `slot` unless it has it.
Status ensure(Tensor &tensor, const Slot &slot,
              const std::shared_ptr<MemoryAccount> &account) {
  if (tensor.defined())
    return Status::success();
  Result<Tensor> made = Tensor::empty(slot.dtype, slot.shape, account);
  if (!made)
    return std::move(made).status().in("'" + slot.name + "'");
  tensor = std::move(*made);
  return Status::success();
}

/// What a pool's job needs of a launch.
struct Job {
  KernelFunction function;
  void *const *pointers;
  char *scratch;
  int64_t scratchBytes; ///< of one thread

  static void run(void *context, int64_t begin, int64_t end, int thread) {
    const Job &job = *static_cast<Job *>(context);
    job.function(job.pointers, begin, end,
                 job.scratch ? job.scratch + job.scratchBytes * thread
                             : nullptr);
  }
};

} // namespace

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

/// True if the caller, and not the model or a context, gives the argument.
bool Call::isCallers(const Slot &slot) const {
  return slot.role == Role::Cotangent || slot.role == Role::Grad ||
         (slot.role == Role::Input && !takes);
}

Status Call::run(std::span<const Argument> inputs,
                 std::span<const Destination> outputs) {
  std::fill(bound.given.begin(), bound.given.end(), nullptr);
  std::fill(bound.wanted.begin(), bound.wanted.end(), nullptr);
  matchArguments(inputs);
  matchDestinations(outputs);
  if (takes)
    takeContext();
  for (size_t a = 0; a < program.arguments.size(); ++a)
    checkArgument(a);
  checkDestinations();
  if (!problems.empty())
    return Status::usage("cannot run '" + program.name + "': " + problems);
  if (Status status = core.reserve(bound); !status)
    return status;
  if (Status status = placeArguments(); !status)
    return status;
  if (Status status = placeResults(); !status)
    return status;
  launch();
  writeUpdates();
  writeDestinations();
  return Status::success();
}

void Call::matchArguments(std::span<const Argument> inputs) {
  size_t count = program.arguments.size(), guess = 0;
  for (const Argument &input : inputs) {
    // Callers mostly keep the program's order: begin after the last match.
    size_t found = count;
    for (size_t i = 0; i < count && found == count; ++i) {
      size_t a = guess + i < count ? guess + i : guess + i - count;
      const Slot &slot = program.arguments[a];
      if (slot.name == input.name && isCallers(slot))
        found = a;
    }
    if (found == count) {
      problem("unknown argument '" + std::string(input.name) + "'");
      continue;
    }
    if (bound.given[found])
      problem(name(program.arguments[found], found) + " is given twice");
    static const Tensor none;
    bound.given[found] = input.tensor ? input.tensor : &none;
    guess = found + 1;
  }
  for (size_t a = 0; a < count; ++a) {
    const Slot &slot = program.arguments[a];
    if (isCallers(slot) && !bound.given[a])
      problem("missing " + name(slot, a) + ": expected " +
              describe(slot.dtype, slot.shape));
  }
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
    if (found == count) {
      problem("unknown result '" + std::string(output.name) + "'");
      continue;
    }
    if (!output.tensor)
      problem(name(program.results[found], found) +
              ": expected a tensor to write to but got null");
    if (bound.wanted[found])
      problem(name(program.results[found], found) + " is asked for twice");
    bound.wanted[found] = output.tensor;
    guess = found + 1;
  }
}

/// Checks that nobody wrote what the backward is about to read. What it updates
/// itself it reads as it is now: only primal values are of the forward.
void Call::takeContext() {
  for (size_t a = 0; a < program.arguments.size(); ++a) {
    const Slot &slot = program.arguments[a];
    bool isUpdated = bound.arguments[a].isUpdated;
    uint64_t expected, got;
    if (slot.role == Role::Input) {
      const SavedValues::Input &input = takes->inputs[a];
      bound.given[a] =
          input.isCopied && !isUpdated ? &input.copy : &input.given;
      expected = input.version;
      got = input.given.version();
    } else if (int v = bound.arguments[a].variable; v >= 0) {
      expected = takes->versions[v];
      got = core.variables[v].tensor.version();
    } else {
      continue;
    }
    if (expected != got && !isUpdated)
      problem(name(slot, a) +
              ", which it reads, was written after the "
              "forward: expected version " +
              std::to_string(expected) + " but got " + std::to_string(got));
  }
}

void Call::checkArgument(size_t index) {
  const Slot &slot = program.arguments[index];
  if (int v = bound.arguments[index].variable; v >= 0) {
    if (!core.variables[v].isSet)
      problem(name(slot, index) + " has no value: it has no initial one and "
                                  "was not set");
    return;
  }
  const Tensor *tensor = bound.given[index];
  if (!tensor)
    return;
  std::string expected;
  if (!tensor->defined())
    expected = "but got an undefined tensor";
  else if (!hasType(*tensor, slot))
    expected = "but got " + describe(tensor->dtype(), tensor->shape());
  if (!expected.empty())
    problem(name(slot, index) + ": expected " +
            describe(slot.dtype, slot.shape) + " " + expected);
  if (!tensor->device().isHost())
    problem(name(slot, index) + ": expected device 'cpu' but got '" +
            toString(tensor->device()) + "'");
  if (!expected.empty() || !tensor->device().isHost())
    return;
  AddressRange range = addressRange(*tensor);
  auto isUpdated = [&](int v) {
    return std::any_of(
        bound.results.begin(), bound.results.end(),
        [&](const BoundResult &result) { return result.variable == v; });
  };
  if (int v = core.findOverlapping(range, isUpdated); v >= 0)
    problem(name(slot, index) + " shares memory with '" +
            core.variables[v].value->name + "', which the program updates");
  if (bound.arguments[index].isUpdated)
    checkUpdated(index);
}

/// An argument of the caller that the program overwrites.
void Call::checkUpdated(size_t index) {
  const Slot &slot = program.arguments[index];
  const Tensor &tensor = *bound.given[index];
  if (overlapsItself(tensor))
    problem(name(slot, index) +
            ": expected elements that share no memory, "
            "since the program updates it, but got "
            "strides " +
            toString(tensor.strides()));
  AddressRange range = addressRange(tensor);
  if (int v = core.findOverlapping(range, [](int) { return true; }); v >= 0)
    problem(name(slot, index) +
            ", which the program updates, shares memory "
            "with '" +
            core.variables[v].value->name + "'");
  for (size_t a = 0; a < program.arguments.size(); ++a)
    if (const Tensor *other = bound.given[a];
        other && a != index && addressRange(*other).meets(range))
      problem(name(slot, index) +
              ", which the program updates, shares memory "
              "with " +
              name(program.arguments[a], a));
}

void Call::checkDestinations() {
  bound.ranges.clear();
  for (size_t r = 0; r < program.results.size(); ++r) {
    const Tensor *tensor = bound.wanted[r];
    if (!tensor)
      continue;
    if (!tensor->defined()) {
      // One tensor cannot receive two results: that shows as its own address.
      auto self = reinterpret_cast<uintptr_t>(tensor);
      bound.ranges.emplace_back(AddressRange{self, self + sizeof(Tensor)},
                                static_cast<int>(r));
      continue;
    }
    const Slot &slot = program.results[r];
    if (!hasType(*tensor, slot))
      problem(name(slot, r) + ": expected " + describe(slot.dtype, slot.shape) +
              " but got " + describe(tensor->dtype(), tensor->shape()));
    else if (!tensor->device().isHost())
      problem(name(slot, r) + ": expected device 'cpu' but got '" +
              toString(tensor->device()) + "'");
    else if (overlapsItself(*tensor))
      problem(name(slot, r) +
              ": expected elements that share no memory but "
              "got strides " +
              toString(tensor->strides()));
    AddressRange range = addressRange(*tensor);
    if (int v = core.findOverlapping(range, [](int) { return true; }); v >= 0)
      problem(name(slot, r) + " shares memory with '" +
              core.variables[v].value->name + "'");
    for (size_t a = 0; a < program.arguments.size(); ++a)
      if (bound.arguments[a].isUpdated && bound.given[a] &&
          addressRange(*bound.given[a]).meets(range))
        problem(name(slot, r) + " shares memory with " +
                name(program.arguments[a], a) + ", which the program updates");
    if (range.low != range.high)
      bound.ranges.emplace_back(range, static_cast<int>(r));
  }
  std::sort(
      bound.ranges.begin(), bound.ranges.end(),
      [](const auto &a, const auto &b) { return a.first.low < b.first.low; });
  for (size_t i = 1; i < bound.ranges.size(); ++i) {
    auto [before, first] = bound.ranges[i - 1];
    auto [after, second] = bound.ranges[i];
    if (before.meets(after))
      problem(name(program.results[first], first) + " shares memory with " +
              name(program.results[second], second));
  }
}

Status Call::placeArguments() {
  for (size_t a = 0; a < program.arguments.size(); ++a) {
    const Slot &slot = program.arguments[a];
    const BoundArgument &argument = bound.arguments[a];
    void *&data = bound.argumentData[a];
    if (argument.variable >= 0) {
      const Tensor &tensor = core.variables[argument.variable].tensor;
      data = const_cast<void *>(tensor.data());
      continue;
    }
    if (slot.role == Role::Saved) {
      data = const_cast<void *>(takes->results[argument.partner].data());
      continue;
    }
    const Tensor &given = *bound.given[a];
    bool isKept = gives && argument.partner >= 0;
    SavedValues::Input *kept =
        isKept ? &gives->inputs[argument.partner] : nullptr;
    data = const_cast<void *>(given.data());
    bool isCopied = !isUsable(given);
    if (isCopied) {
      Tensor &copy = kept ? kept->copy : bound.staged[a];
      if (Status status = ensure(copy, slot, core.account); !status)
        return status;
      if (Status status = copy.copyFrom(given); !status)
        return status;
      data = const_cast<void *>(copy.data());
    }
    if (kept) {
      kept->given = given;
      kept->version = given.version();
      kept->isCopied = isCopied;
    }
  }
  if (gives)
    for (size_t v = 0; v < core.variables.size(); ++v)
      gives->versions[v] = core.variables[v].tensor.version();
  return Status::success();
}

/// True if a result can be computed in the caller's tensor: where that lies
/// over an argument, the launches may still read what they would overwrite.
bool Call::isDirect(const Tensor &wanted) const {
  if (!isUsable(wanted))
    return false;
  AddressRange range = addressRange(wanted);
  return std::none_of(bound.given.begin(), bound.given.end(),
                      [&](const Tensor *given) {
                        return given && addressRange(*given).meets(range);
                      });
}

Status Call::placeResults() {
  for (size_t r = 0; r < program.results.size(); ++r) {
    const Slot &slot = program.results[r];
    void *&data = bound.resultData[r];
    data = nullptr;
    if (slot.inPlace)
      continue;
    if (slot.role == Role::Saved && gives) {
      data = const_cast<void *>(gives->results[r].data());
      continue;
    }
    Tensor *wanted = bound.wanted[r];
    if (wanted && wanted->defined() && isDirect(*wanted)) {
      data = const_cast<void *>(wanted->data());
      continue;
    }
    bool isFresh = wanted && !wanted->defined();
    Tensor &tensor = isFresh ? bound.fresh[r] : bound.internal[r];
    if (Status status = ensure(tensor, slot, core.account); !status)
      return status;
    data = const_cast<void *>(tensor.data());
  }
  return Status::success();
}

void Call::launch() {
  auto *arena = static_cast<char *>(core.arenaData());
  auto constants = core.reader.section("constants");
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
      // Validated: no launch writes to a constant.
      bound.bufferData[b] =
          const_cast<std::byte *>(constants.data()) + buffer.offset;
      break;
    }
  }
  for (size_t i = 0; i < bound.pointers.size(); ++i)
    bound.pointers[i] = bound.bufferData[bound.pointerBuffer[i]];
  Job job{nullptr, nullptr, static_cast<char *>(core.scratchData()),
          bound.scratchBytes};
  if (!bound.scratchBytes)
    job.scratch = nullptr;
  for (const BoundLaunch &launch : bound.launches) {
    job.function = launch.function;
    job.pointers = bound.pointers.data() + launch.firstPointer;
    if (launch.isSmall && launch.work > 0)
      Job::run(&job, 0, launch.work, 0);
    else
      core.pool->run(launch.work, launch.grain, Job::run, &job);
  }
}

void Call::writeUpdates() {
  for (size_t r = 0; r < program.results.size(); ++r) {
    const Slot &slot = program.results[r];
    if (slot.role != Role::Update)
      continue;
    const BoundResult &result = bound.results[r];
    if (result.variable >= 0) {
      Tensor &target = core.variables[result.variable].tensor;
      void *data = target.mutableData();
      if (!slot.inPlace)
        std::memcpy(data, bound.resultData[r], target.bytes());
      core.variables[result.variable].isSet = true;
      continue;
    }
    // An input: the caller's tensor, or the copy that stood for it.
    Tensor target = *bound.given[result.argument];
    bool isCopied = bound.argumentData[result.argument] != target.data();
    if (slot.inPlace && !isCopied) {
      target.markWritten();
      continue;
    }
    const Tensor &source =
        slot.inPlace ? bound.staged[result.argument] : bound.internal[r];
    // Types and devices were checked: the copy cannot fail.
    (void)target.copyFrom(source).ok();
  }
}

void Call::writeDestinations() {
  for (size_t r = 0; r < program.results.size(); ++r) {
    Tensor *wanted = bound.wanted[r];
    if (!wanted)
      continue;
    if (!wanted->defined())
      *wanted = std::move(bound.fresh[r]);
    else if (wanted->data() == bound.resultData[r])
      wanted->markWritten();
    else
      (void)wanted->copyFrom(bound.internal[r]).ok();
    bound.fresh[r] = Tensor();
  }
}

} // namespace tandem::runtime
