//===- ManifestValidation.cpp - the contract of the manifest --------------===//
//
// Checks what the executor relies on (docs/ARCHITECTURE.md, section 3): names
// and links, bounds of buffers, and that launches write what may be written and
// leave no result unwritten. Every arithmetic here is on values that were
// checked to be small enough: types and counts before all else.
//
//===----------------------------------------------------------------------===//
#include "runtime/artifact/ManifestFields.h"
#include "runtime/artifact/ManifestRules.h"
#include "runtime/artifact/ProgramKinds.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <unordered_map>

namespace tandem::artifact {

namespace {

using fields::maxSharedBytes;
using fields::maxWork;

/// The roles that may stand in a program's signature.
struct Signature {
  std::vector<Role> arguments, results;
};

Signature signatureOf(const std::string &program) {
  using enum Role;
  if (program == "forward")
    return {{Input, Param, State}, {Output, Saved, Update}};
  if (program == "backward" || program == "grad_backward")
    return {{Cotangent, Saved, Input, Param, State}, {Grad, Update}};
  if (program == "grad_forward")
    return {{Cotangent, Saved, Input, Param, State}, {Grad, Saved, Update}};
  if (takesGradients(program))
    return {{Grad, Param, State}, {Update}};
  if (program == "prepare")
    return {{Param, State}, {Prepared}};
  if (takesPrepared(program))
    return {{Input, Param, State, Prepared}, {Output, Grad, Update}};
  return {{Input, Param, State}, {Output, Grad, Update}};
}

class Validator {
public:
  Validator(const Manifest &manifest, int64_t constantsBytes)
      : manifest(manifest), constantsBytes(constantsBytes) {}

  Status run() {
    checkForm(manifest, problems);
    if (!problems.none())
      return problems.status();
    if (manifest.target.kind.empty())
      problems.add("/target/kind", "expected a kind of target but got none");
    checkSizes(manifest, problems);
    checkMesh(manifest, problems);
    checkPipeline(manifest, problems);
    checkValues();
    checkKernels();
    std::set<std::string> names;
    for (size_t i = 0; i < manifest.programs.size(); ++i) {
      const Program &program = manifest.programs[i];
      at = child("/programs", static_cast<int64_t>(i));
      if (!names.insert(program.name).second)
        problems.add(at + "/name", "'" + program.name + "' is repeated");
      checkProgram(program);
      checkAliases(manifest, program, at, problems);
      checkArena(program, at, problems);
      checkConditions(program, at, problems);
      checkRows(manifest, program, at, problems);
      checkLibraries(manifest, program, at, problems);
      checkCollectives(manifest, program, at, problems);
    }
    checkContexts(manifest, problems);
    checkPrepared(manifest, problems);
    checkMutations();
    return problems.status();
  }

private:
  void checkValues() {
    std::set<std::string> names, outputs;
    for (size_t i = 0; i < manifest.values.size(); ++i) {
      const Value &value = manifest.values[i];
      std::string at = child("/values", static_cast<int64_t>(i));
      if (value.role > Role::Output)
        problems.add(
            at + "/role",
            "expected 'input', 'param', 'state' or 'output' but got '" +
                std::string(spelling(value.role)) + "'");
      auto &space = value.role == Role::Output ? outputs : names;
      if (!space.insert(value.name).second)
        problems.add(at + "/name", "'" + value.name + "' is repeated");
      if (value.role == Role::Output)
        outputByName.emplace(value.name, &value);
      else
        valueByName.emplace(value.name, &value);
      if (value.requiresGrad &&
          ((value.role != Role::Input && value.role != Role::Param) ||
           !isFloat(value.dtype)))
        problems.add(at + "/requires_grad",
                     "expected a floating point input or param");
      if (value.init)
        checkInit(value, at + "/init");
      if (!value.alsoCalled.empty() && value.role != Role::Param)
        problems.add(at + "/also_called", "expected it on a param only");
      for (size_t n = 0; n < value.alsoCalled.size(); ++n)
        if (!names.insert(value.alsoCalled[n]).second)
          problems.add(child(at + "/also_called", static_cast<int64_t>(n)),
                       "'" + value.alsoCalled[n] + "' is repeated");
      if (value.high && (value.role != Role::Input || isFloat(value.dtype) ||
                         *value.high < 1))
        problems.add(at + "/high",
                     "expected at least 1, on an integer input only");
      if (value.low && (!value.high || *value.low >= 0))
        problems.add(at + "/low", "expected a number below 0, beside 'high'");
      if (value.ignored && !value.high)
        problems.add(at + "/ignored", "expected it beside 'high' only");
      checkRanges(value, at + "/ranges", problems);
    }
    if (!manifest.loss.empty()) {
      auto loss = outputByName.find(manifest.loss);
      if (loss == outputByName.end())
        problems.add("/loss",
                     "expected an output but got '" + manifest.loss + "'");
    }
  }

  void checkInit(const Value &value, const std::string &at) {
    const Init &init = *value.init;
    if (value.role != Role::Param && value.role != Role::State)
      problems.add(at, "expected it on a param or state only");
    if (init.kind == Init::Kind::Seed) {
      if (value.dtype != DType::I64)
        problems.add(at,
                     "expected the type 'i64' for the kind 'seed' but got '" +
                         std::string(spelling(value.dtype)) + "'");
      return;
    }
    if (init.kind != Init::Kind::Constant && !isFloat(value.dtype))
      problems.add(at, "expected the kind 'constant' for the type '" +
                           std::string(spelling(value.dtype)) + "'");
    if (init.kind == Init::Kind::Constant && isInteger(value.dtype)) {
      // 2^53 and below are integers that a double holds exactly.
      int64_t digits = 8 * byteSize(value.dtype) - !isUnsigned(value.dtype);
      double high =
          std::ldexp(1.0, static_cast<int>(std::min<int64_t>(digits, 53))) - 1;
      double low = isUnsigned(value.dtype) ? 0 : -high - 1;
      if (value.dtype == DType::Bool)
        low = 0, high = 1;
      if (!(init.a >= low && init.a <= high) || init.a != std::floor(init.a))
        problems.add(at + "/value", "expected a value of the type '" +
                                        std::string(spelling(value.dtype)) +
                                        "' but got " + std::to_string(init.a));
    }
    if (init.kind == Init::Kind::Uniform && !(init.a <= init.b))
      problems.add(at, "expected low to be at most high");
    if (init.kind == Init::Kind::Normal && !(init.b >= 0))
      problems.add(at + "/std", "expected at least 0");
  }

  void checkKernels() {
    std::set<std::string> symbols;
    for (size_t i = 0; i < manifest.kernels.size(); ++i) {
      const Kernel &kernel = manifest.kernels[i];
      std::string at = child("/kernels", static_cast<int64_t>(i));
      if (!symbols.insert(kernel.symbol).second)
        problems.add(at + "/symbol", "'" + kernel.symbol + "' is repeated");
      checkExtents(at + "/block", kernel.block, {1024, 1024, 64}, 1024);
      inRange(at + "/shared_bytes", kernel.sharedBytes, 0,
              isCuda() ? maxSharedBytes : 0);
      checkTensorMaps(kernel, isCuda(), at + "/tensor_maps", problems);
    }
  }

  bool isCuda() const { return manifest.target.kind == "cuda"; }

  /// The sizes of a block or grid: for cuda alone.
  void checkExtents(const std::string &at, const std::vector<int64_t> &sizes,
                    std::array<int64_t, 3> limits, int64_t most) {
    size_t expected = isCuda() ? 3 : 0;
    if (sizes.size() != expected) {
      problems.add(at, "expected " + std::to_string(expected) +
                           " sizes for the target '" + manifest.target.kind +
                           "' but got " + std::to_string(sizes.size()));
      return;
    }
    int64_t all = 1;
    bool inside = true;
    for (size_t i = 0; i < sizes.size(); ++i) {
      inside &=
          inRange(child(at, static_cast<int64_t>(i)), sizes[i], 1, limits[i]);
      all *= inside ? sizes[i] : 1;
    }
    if (inside && isCuda() && all > most)
      problems.add(at, "expected at most " + std::to_string(most) +
                           " in all but got " + std::to_string(all));
  }

  bool inRange(const std::string &pointer, int64_t value, int64_t low,
               int64_t high) {
    if (value >= low && value <= high)
      return true;
    if (high < low)
      problems.add(pointer, "expected nothing to point to but got " +
                                std::to_string(value));
    else
      problems.add(pointer, "expected " + std::to_string(low) + " to " +
                                std::to_string(high) + " but got " +
                                std::to_string(value));
    return false;
  }

  void checkProgram(const Program &program) {
    Signature allowed = signatureOf(program.name);
    checkSlots(program, program.arguments, allowed.arguments, at + "/arguments",
               true);
    checkSlots(program, program.results, allowed.results, at + "/results",
               false);
    checkHostMemory(program, manifest.target.kind == "cpu", at, problems);
    checkInPlace(program);
    for (size_t i = 0; i < program.buffers.size(); ++i)
      checkBuffer(program, program.buffers[i],
                  child(at + "/buffers", static_cast<int64_t>(i)));
    std::vector<bool> argumentWritten(program.arguments.size());
    std::vector<bool> resultWritten(program.results.size());
    for (size_t i = 0; i < program.launches.size(); ++i)
      checkLaunch(program, program.launches[i],
                  child(at + "/launches", static_cast<int64_t>(i)),
                  argumentWritten, resultWritten);
    for (size_t i = 0; i < program.results.size(); ++i) {
      const Slot &result = program.results[i];
      std::optional<int64_t> bytes = tensorBytes(result.dtype, result.shape);
      bool written =
          result.alias ? true // it lies in the output's buffer
          : result.inPlace
              ? inPlace.count(result.name) &&
                    argumentWritten[inPlace.find(result.name)->second]
              : resultWritten[i];
      if (!written && bytes && *bytes > 0)
        problems.add(child(at + "/results", static_cast<int64_t>(i)),
                     "expected a launch that writes '" + result.name +
                         "' but got none");
    }
  }

  void checkSlots(const Program &program, const std::vector<Slot> &slots,
                  const std::vector<Role> &allowed, const std::string &list,
                  bool isArgument) {
    std::set<std::tuple<Role, std::string, bool>> seen;
    for (size_t i = 0; i < slots.size(); ++i) {
      const Slot &slot = slots[i];
      std::string at = child(list, static_cast<int64_t>(i));
      if (std::find(allowed.begin(), allowed.end(), slot.role) == allowed.end())
        problems.add(at + "/role", "'" + std::string(spelling(slot.role)) +
                                       "' cannot stand here");
      if (!seen.insert({slot.role, slot.name, slot.asFound}).second)
        problems.add(at + "/name", "'" + slot.name + "' is repeated");
      if (slot.inPlace && (isArgument || slot.role != Role::Update))
        problems.add(at + "/in_place", "expected it on an update only");
      if (slot.role != Role::Saved && slot.role != Role::Prepared)
        checkLink(program, slot, at);
      // The runtime has an input's or cotangent's storage only where it is an
      // argument.
      auto found = valueByName.find(slot.name);
      if (slot.role == Role::Update &&
          (found == valueByName.end() || found->second->role == Role::Input) &&
          !updatedArgument(program, slot.name))
        problems.add(at, "expected '" + slot.name +
                             "' among the arguments, since it is updated");
    }
  }

  /// A slot other than a saved one speaks of a value; its type is the value's,
  /// but a gradient may have another floating point type.
  void checkLink(const Program &program, const Slot &slot,
                 const std::string &at) {
    std::optional<TensorType> type = linkedType(program, slot);
    if (!type) {
      bool ofOutput = slot.role == Role::Output || slot.role == Role::Cotangent;
      const char *what = ofOutput                    ? "output"
                         : slot.role == Role::Input  ? "input"
                         : slot.role == Role::Param  ? "param"
                         : slot.role == Role::State  ? "state"
                         : slot.role == Role::Update ? "input, param or state"
                                                     : "input or param";
      problems.add(at + "/name",
                   "there is no " + std::string(what) + " '" + slot.name + "'");
      return;
    }
    bool anyFloat = slot.role == Role::Grad && isFloat(slot.dtype);
    bool isShape = type->shape == slot.shape ||
                   (slot.role == Role::Grad && isPieceOf(manifest, slot));
    if ((type->dtype != slot.dtype && !anyFloat) || !isShape)
      problems.add(at, "expected '" + slot.name + "' to have the type " +
                           typeText(type->dtype, type->shape) + " but got " +
                           typeText(slot.dtype, slot.shape));
    if ((slot.role == Role::Grad || slot.role == Role::Cotangent) &&
        !isFloat(type->dtype))
      problems.add(at, "expected a floating point type but got '" +
                           std::string(spelling(type->dtype)) + "'");
  }

  /// The type of what the slot's name speaks of; nothing if there is no such.
  std::optional<TensorType> linkedType(const Program &program,
                                       const Slot &slot) const {
    auto typeOf = [](const auto &names,
                     std::string_view name) -> std::optional<TensorType> {
      auto found = names.find(std::string(name));
      if (found == names.end())
        return std::nullopt;
      return TensorType{found->second->dtype, found->second->shape};
    };
    std::string_view name = slot.name;
    auto after = [&](std::string_view prefix) {
      return name.starts_with(prefix)
                 ? std::optional(name.substr(prefix.size()))
                 : std::nullopt;
    };
    if (slot.role == Role::Output)
      return typeOf(outputByName, name);
    if (slot.role == Role::Cotangent) {
      if (auto of = after(updateOf))
        return typeOf(valueByName, *of);
      if (auto of = after(gradOf); of && program.name == "grad_backward")
        if (const Program *first = manifest.findProgram("grad_forward"))
          for (const Slot &result : first->results)
            if (result.role == Role::Grad && result.name == *of)
              return TensorType{result.dtype, result.shape};
      return typeOf(outputByName, name);
    }
    if (slot.role == Role::Update || slot.role == Role::Grad)
      if (auto of = after(cotangentOf)) {
        const Program *in = slot.role == Role::Update
                                ? &program
                                : manifest.findProgram("grad_forward");
        if (slot.role == Role::Grad && program.name != "grad_backward")
          in = nullptr;
        for (size_t i = 0; in && i < in->arguments.size(); ++i)
          if (const Slot &argument = in->arguments[i];
              argument.role == Role::Cotangent && argument.name == *of)
            return TensorType{argument.dtype, argument.shape};
      }
    auto found = valueByName.find(slot.name);
    if (slot.role == Role::Update && found == valueByName.end())
      for (const Slot &argument : program.arguments)
        if (argument.role == Role::Prepared && argument.name == name)
          return TensorType{argument.dtype, argument.shape};
    if (found == valueByName.end())
      return std::nullopt;
    Role role = found->second->role;
    bool fits = slot.role <= Role::State  ? role == slot.role
                : slot.role == Role::Grad ? role != Role::State
                                          : true;
    return fits ? typeOf(valueByName, name) : std::nullopt;
  }

  /// Finds the argument that each in-place update writes to.
  void checkInPlace(const Program &program) {
    inPlace.clear();
    for (size_t r = 0; r < program.results.size(); ++r) {
      const Slot &result = program.results[r];
      if (!result.inPlace)
        continue;
      if (std::optional<size_t> a = updatedArgument(program, result.name))
        inPlace.emplace(result.name, *a);
      else
        problems.add(child(at + "/results", static_cast<int64_t>(r)),
                     "expected '" + result.name +
                         "' among the arguments, since it is updated in place");
    }
  }

  void checkBuffer(const Program &program, const Buffer &buffer,
                   const std::string &at) {
    using enum Buffer::Place;
    if (buffer.place == Argument) {
      inRange(at + "/index", buffer.index, 0,
              static_cast<int64_t>(program.arguments.size()) - 1);
      return;
    }
    if (buffer.place == Buffer::Place::Result) {
      if (!inRange(at + "/index", buffer.index, 0,
                   static_cast<int64_t>(program.results.size()) - 1))
        return;
      const Slot &result = program.results[buffer.index];
      if (result.inPlace)
        problems.add(at + "/index",
                     "expected the buffer of '" + result.name +
                         "' to be its argument's, since it is in place");
      if (result.alias)
        problems.add(at + "/index", "expected the buffer of '" + result.name +
                                        "' to be that of '" +
                                        result.alias->output + "'");
      return;
    }
    int64_t end = buffer.place == Arena  ? program.arenaBytes
                  : buffer.place == Host ? program.hostBytes
                                         : constantsBytes;
    // Each is at least 0 and at most 2^48: the sum does not overflow.
    if (inRange(at + "/offset", buffer.offset, 0, end) &&
        inRange(at + "/bytes", buffer.bytes, 0, end) &&
        buffer.offset + buffer.bytes > end)
      problems.add(at, "expected it to end at most at " + std::to_string(end) +
                           " but got " +
                           std::to_string(buffer.offset + buffer.bytes));
    if (buffer.offset % bufferAlignment != 0)
      problems.add(at + "/offset",
                   "expected a multiple of " + std::to_string(bufferAlignment) +
                       " but got " + std::to_string(buffer.offset));
  }

  void checkLaunch(const Program &program, const Launch &launch,
                   const std::string &at, std::vector<bool> &argumentWritten,
                   std::vector<bool> &resultWritten) {
    if (launch.hasKernel()) {
      inRange(at + "/kernel", launch.kernel, 0,
              static_cast<int64_t>(manifest.kernels.size()) - 1);
      checkExtents(at + "/grid", launch.grid,
                   {int64_t(0x7fffffff), 65535, 65535}, maxWork);
    }
    if (isCuda() && launch.grid.size() == 3) {
      // No product of three 64-bit sizes that are out of range.
      __int128 blocks = 1;
      for (int64_t size : launch.grid)
        blocks *= std::clamp<int64_t>(size, 0, int64_t(1) << 32);
      if (blocks != launch.work)
        problems.add(at + "/work", "expected as many as the grid has blocks, "
                                   "but got " +
                                       std::to_string(launch.work));
    }
    bool inBounds = true;
    for (size_t i = 0; i < launch.buffers.size(); ++i)
      inBounds &= inRange(child(at + "/buffers", static_cast<int64_t>(i)),
                          launch.buffers[i], 0,
                          static_cast<int64_t>(program.buffers.size()) - 1);
    if (inBounds && launch.hasKernel() && launch.kernel >= 0 &&
        launch.kernel < static_cast<int64_t>(manifest.kernels.size()))
      checkMaps(program, launch, at + "/buffers");
    std::vector<bool> used(launch.buffers.size());
    auto positions = [&](const std::vector<int64_t> &list, const char *name) {
      std::vector<bool> seen(launch.buffers.size());
      for (size_t i = 0; i < list.size(); ++i) {
        std::string item = child(at + name, static_cast<int64_t>(i));
        if (!inRange(item, list[i], 0,
                     static_cast<int64_t>(launch.buffers.size()) - 1))
          continue;
        if (seen[list[i]])
          problems.add(item,
                       "position " + std::to_string(list[i]) + " is repeated");
        seen[list[i]] = used[list[i]] = true;
      }
      return seen;
    };
    positions(launch.reads, "/reads");
    std::vector<bool> written = positions(launch.writes, "/writes");
    for (size_t i = 0; i < used.size(); ++i) {
      std::string item = child(at + "/buffers", static_cast<int64_t>(i));
      if (!used[i])
        problems.add(item, "expected it among the reads or the writes");
      if (written[i] && inBounds)
        checkWrite(program, program.buffers[launch.buffers[i]], item,
                   argumentWritten, resultWritten);
    }
  }

  void checkMaps(const Program &program, const Launch &launch,
                 const std::string &at) {
    const Kernel &kernel = manifest.kernels[launch.kernel];
    if (kernel.tensorMaps.empty())
      return;
    // A buffer that is none itself is reported where it stands.
    auto slotBytes = [](const std::vector<Slot> &slots, int64_t index) {
      if (index < 0 || index >= static_cast<int64_t>(slots.size()))
        return int64_t(0);
      return tensorBytes(slots[index].dtype, slots[index].shape).value_or(0);
    };
    std::vector<int64_t> bytes;
    for (int64_t number : launch.buffers) {
      const Buffer &buffer = program.buffers[number];
      bytes.push_back(buffer.place == Buffer::Place::Argument
                          ? slotBytes(program.arguments, buffer.index)
                      : buffer.place == Buffer::Place::Result
                          ? slotBytes(program.results, buffer.index)
                          : buffer.bytes);
    }
    checkMappedBuffers(kernel, bytes, at, problems);
  }

  void checkWrite(const Program &program, const Buffer &buffer,
                  const std::string &at, std::vector<bool> &argumentWritten,
                  std::vector<bool> &resultWritten) {
    using enum Buffer::Place;
    auto index = static_cast<size_t>(buffer.index);
    if (buffer.place == Constant)
      problems.add(at, "a constant cannot be written");
    if (buffer.place == Buffer::Place::Result && buffer.index >= 0 &&
        index < program.results.size())
      resultWritten[index] = true;
    if (buffer.place != Argument || buffer.index < 0 ||
        index >= program.arguments.size())
      return;
    const Slot &argument = program.arguments[index];
    // Before a call that keeps the context, the runtime copies what is donated;
    // but an output's storage is the caller's.
    bool isDonated = argument.role == Role::Saved && !argument.onHost &&
                     !sharesOutput(argument);
    bool isUpdated =
        std::any_of(inPlace.begin(), inPlace.end(),
                    [&](const auto &entry) { return entry.second == index; });
    if (!isDonated && !isUpdated)
      problems.add(at, "expected an update in place of '" + argument.name +
                           "', since a launch writes to it");
    argumentWritten[index] = true;
  }

  /// True if the saved value lies in an output's storage.
  bool sharesOutput(const Slot &saved) const {
    for (const Program &program : manifest.programs)
      for (const Slot &result : program.results)
        if (result.role == Role::Saved && result.name == saved.name &&
            result.alias)
          return true;
    return false;
  }

  void checkMutations() {
    std::set<int64_t> seen;
    for (size_t i = 0; i < manifest.mutatedInBackward.size(); ++i) {
      int64_t index = manifest.mutatedInBackward[i];
      std::string at = child("/mutated_in_backward", static_cast<int64_t>(i));
      if (!inRange(at, index, 0,
                   static_cast<int64_t>(manifest.values.size()) - 1))
        continue;
      if (!manifest.values[index].requiresGrad)
        problems.add(at, "expected a value that requires grad but got '" +
                             manifest.values[index].name + "'");
      if (!seen.insert(index).second)
        problems.add(at, std::to_string(index) + " is repeated");
    }
  }

  const Manifest &manifest;
  int64_t constantsBytes;
  ManifestProblems problems;
  std::string at; ///< the program at hand
  std::unordered_map<std::string, const Value *> valueByName, outputByName;
  /// Of the program at hand: the argument of each in-place update.
  std::unordered_map<std::string, size_t> inPlace;
};

} // namespace

Status validate(const Manifest &manifest, int64_t constantsBytes) {
  if (manifest.sizes.empty())
    return Validator(manifest, constantsBytes).run();
  ManifestProblems problems;
  checkForm(manifest, problems);
  if (problems.none())
    checkSizes(manifest, problems);
  if (!problems.none())
    return problems.status();
  for (size_t i = 0; i < manifest.sizes.size(); ++i)
    if (Status status = Validator(ofSize(manifest, i), constantsBytes).run();
        !status)
      return std::move(status).in("size '" + manifest.sizes[i].name + "'");
  return Status::success();
}

} // namespace tandem::artifact
