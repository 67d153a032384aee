//===- Estimate.cpp - what the programs of an artifact take on a GPU ------===//
#include "tools/simulate/Estimate.h"

#include "runtime/io/Argument.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace tandem::simulate {

using artifact::Buffer;
using artifact::Kernel;
using artifact::Launch;
using artifact::Manifest;
using artifact::Program;
using artifact::Role;
using nlohmann::json;

/// Whether the launch writes a parameter or a state.
static bool updates(const Program &program, const Launch &launch) {
  return std::any_of(
      launch.writes.begin(), launch.writes.end(), [&](int64_t place) {
        const Buffer &buffer =
            program.buffers[size_t(launch.buffers[size_t(place)])];
        if (buffer.place == Buffer::Place::Result)
          return program.results[size_t(buffer.index)].role == Role::Update;
        if (buffer.place != Buffer::Place::Argument)
          return false;
        Role role = program.arguments[size_t(buffer.index)].role;
        return role == Role::Param || role == Role::State;
      });
}

static void add(const KernelTime &time, const Kernel &kernel,
                KindOfLaunches &sum) {
  ++sum.launches;
  sum.flops += double(kernel.flops);
  sum.bytes += double(kernel.bytes);
  sum.least += time.least;
  sum.parts += time.parts;
}

static ProgramEstimate estimate(const Manifest &manifest,
                                const Program &program, const Gpu &gpu,
                                const MeasuredKinds &measured) {
  ProgramEstimate made;
  made.name = program.name;
  made.size = program.size;
  made.all.what = "all";
  std::map<std::string, KindOfLaunches> kinds;
  for (const Launch &launch : program.launches) {
    if (!launch.hasKernel()) {
      ++made.uncounted;
      continue;
    }
    const Kernel &kernel = manifest.kernels[size_t(launch.kernel)];
    KernelTime time = gpu.timeOf(kernel, launch);
    if (auto found = measured.find(time.what); found != measured.end())
      time.parts *= found->second;
    std::string what = time.what + (updates(program, launch) ? ", update" : "");
    KindOfLaunches &kind = kinds[what];
    kind.what = what;
    add(time, kernel, kind);
    add(time, kernel, made.all);
    made.launches.emplace_back(launch.kernel, time.parts.seconds());
  }
  for (auto &[what, kind] : kinds)
    made.kinds.push_back(std::move(kind));
  std::sort(made.kinds.begin(), made.kinds.end(),
            [](const KindOfLaunches &a, const KindOfLaunches &b) {
              double first = a.parts.seconds(), second = b.parts.seconds();
              return first != second ? first > second : a.what < b.what;
            });
  return made;
}

std::vector<ProgramEstimate> estimate(const Manifest &manifest, const Gpu &gpu,
                                      const MeasuredKinds &measured) {
  std::vector<ProgramEstimate> made;
  for (const Program &program : manifest.programs)
    made.push_back(estimate(manifest, program, gpu, measured));
  return made;
}

//===----------------------------------------------------------------------===//
// Measured kernels
//===----------------------------------------------------------------------===//

static Status wrong(const std::string &path, const std::string &what) {
  return Status::usage(io::inQuotes(path) + ": " + what);
}

static Result<json> readObject(const std::string &path) {
  std::ifstream in(path);
  if (!in)
    return Status::failed("cannot read " + io::inQuotes(path));
  std::string text((std::istreambuf_iterator<char>(in)), {});
  json root = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!root.is_object())
    return wrong(path, "expected an object such as {\"device\": \"h100\", "
                       "\"kernels\": [{\"kernel\": \"matmul_0\", "
                       "\"ms\": 0.12}]}");
  for (const auto &[key, value] : root.items())
    if (key != "device" && key != "artifact" && key != "kernels")
      return wrong(path, "unknown field " + io::inQuotes(key) +
                             "; known are 'device', 'artifact' and 'kernels'");
  return root;
}

/// The text of a field, or nothing; fails where it is no text.
static Result<std::string> textOf(const std::string &path, const json &root,
                                  const char *key) {
  auto found = root.find(key);
  if (found == root.end())
    return std::string();
  if (!found->is_string())
    return wrong(path, std::string("expected '") + key + "' to be a text");
  return found->get<std::string>();
}

Result<std::string> measuredArtifact(const std::string &path) {
  auto root = readObject(path);
  if (!root)
    return std::move(root).status();
  auto name = textOf(path, *root, "artifact");
  if (!name || name->empty())
    return name;
  return (std::filesystem::path(path).parent_path() / *name).string();
}

namespace {
/// Of one kernel: milliseconds of a launch, and what launches it.
struct MeasuredKernel {
  const Kernel *kernel;
  const Launch *launch;
  double ms;
};
} // namespace

static Result<MeasuredKernel>
readKernel(const std::string &path, const json &one, const Manifest &manifest) {
  constexpr double least = 1e-6, most = 1e6; // a nanosecond, 17 minutes
  auto name = one.is_object() ? one.find("kernel") : one.end();
  auto ms = one.is_object() ? one.find("ms") : one.end();
  if (!one.is_object() || name == one.end() || !name->is_string() ||
      ms == one.end() || !ms->is_number() || !(ms->get<double>() >= least) ||
      !(ms->get<double>() <= most))
    return wrong(path,
                 "expected each of 'kernels' to have 'kernel', a name, "
                 "and 'ms' of at least 1e-6 and at most 1e6, but got " +
                     one.dump(-1, ' ', true, json::error_handler_t::replace));
  std::string symbol = name->get<std::string>();
  for (const Program &program : manifest.programs)
    for (const Launch &launch : program.launches)
      if (launch.hasKernel() &&
          manifest.kernels[size_t(launch.kernel)].symbol == symbol)
        return MeasuredKernel{&manifest.kernels[size_t(launch.kernel)], &launch,
                              ms->get<double>()};
  return wrong(path, "the artifact has no kernel " + io::inQuotes(symbol));
}

Result<MeasuredKinds> readMeasuredKinds(const std::string &path,
                                        const Manifest &manifest,
                                        const Gpu &gpu) {
  auto root = readObject(path);
  if (!root)
    return std::move(root).status();
  auto device = textOf(path, *root, "device");
  if (!device)
    return std::move(device).status();
  if (!device->empty() && *device != gpu.row().name)
    return wrong(path, "was measured on " + io::inQuotes(*device) +
                           ", but the estimate is for " +
                           io::inQuotes(gpu.row().name));
  auto list = root->find("kernels");
  if (list == root->end() || !list->is_array() || list->empty())
    return wrong(path, "expected a list 'kernels' with at least one kernel");
  std::map<std::string, std::pair<double, double>> sums; // measured, estimated
  for (const json &one : *list) {
    auto kernel = readKernel(path, one, manifest);
    if (!kernel)
      return std::move(kernel).status();
    KernelTime time = gpu.timeOf(*kernel->kernel, *kernel->launch);
    auto &[seconds, estimated] = sums[time.what];
    seconds += kernel->ms / 1e3;
    estimated += time.parts.seconds();
  }
  MeasuredKinds kinds;
  for (const auto &[what, sum] : sums)
    kinds[what] = sum.first / sum.second;
  return kinds;
}

} // namespace tandem::simulate
