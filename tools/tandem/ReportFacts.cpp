//===- ReportFacts.cpp - all that is known of a compilation, as JSON ------===//
//
// Times are predictions by the compiler's own tables (passes/target), of a
// typical machine of the target's kind: the same on every machine.
//
//===----------------------------------------------------------------------===//
#include "tools/tandem/ReportFacts.h"

#include "compiler/Target.h"
#include "passes/target/CudaModel.h"
#include "passes/target/Rates.h"
#include "runtime/artifact/PlannedMemory.h"
#include "tools/simulate/Machine.h"

#include <map>
#include <set>

using namespace tandem;
using namespace tandem::commands;
using Json = nlohmann::ordered_json;
namespace am = tandem::artifact;

const DeviceRow &commands::typicalDevice(const am::Target &target) {
  if (target.kind == "cpu")
    return Machines::builtin().devices().find("cpu")->second;
  CudaName arch(target.arch);
  return CudaModel::of(arch.sm ? arch.sm : 90).device();
}

namespace {
/// A machine of the kind that a manifest's code is made for.
struct TypicalMachine {
  explicit TypicalMachine(const am::Target &target)
      : isCpu(target.kind == "cpu"), bits(widestVectors(target.features)),
        row(typicalDevice(target)),
        device(row, bits, /*ranks=*/1, /*threads=*/0, {}) {}

  Json json() const {
    Rates rates = Rates::of(row, bits);
    return {{"name", row.name},
            {"source", row.source},
            {"bytes", rates.bytes * row.achievedMemory},
            {"products", rates.products * row.achievedProducts},
            {"narrow", rates.narrow * row.achievedProducts},
            {"elements", rates.elements},
            {"launches", rates.launches}};
  }

  bool isCpu;
  int bits;
  const DeviceRow &row;
  simulate::Device device;
};

/// What the launches of a program cost together.
struct ProgramCost {
  int64_t kernels = 0, copies = 0, collectives = 0;
  int64_t flops = 0, bytes = 0;
  double seconds = 0, arithmetic = 0, memory = 0, launch = 0;

  void add(const am::Kernel &kernel, const simulate::KernelCost &cost) {
    ++kernels;
    flops += kernel.flops;
    bytes += kernel.bytes;
    seconds += cost.seconds;
    switch (cost.spent) {
    case simulate::Spent::Arithmetic:
      arithmetic += cost.seconds;
      break;
    case simulate::Spent::Memory:
      memory += cost.seconds;
      break;
    default:
      launch += cost.seconds;
    }
  }
};
} // namespace

static const char *boundOf(const simulate::KernelCost &cost) {
  switch (cost.spent) {
  case simulate::Spent::Arithmetic:
    return "arithmetic";
  case simulate::Spent::Memory:
    return "memory";
  default:
    return "launch";
  }
}

static const char *boundOf(const ProgramCost &cost) {
  if (cost.launch > cost.arithmetic && cost.launch > cost.memory)
    return "launch";
  return cost.arithmetic > cost.memory ? "arithmetic" : "memory";
}

static Json kernelsOf(const am::Manifest &manifest,
                      const TypicalMachine &machine) {
  Json list = Json::array();
  for (const am::Kernel &kernel : manifest.kernels) {
    simulate::KernelCost cost = machine.device.costOf(kernel);
    list.push_back({{"seconds", cost.seconds}, {"bound", boundOf(cost)}});
  }
  return list;
}

static ProgramCost costOf(const am::Program &program,
                          const am::Manifest &manifest,
                          const TypicalMachine &machine) {
  ProgramCost sum;
  for (const am::Launch &launch : program.launches)
    if (launch.hasKernel()) {
      const am::Kernel &kernel = manifest.kernels[launch.kernel];
      sum.add(kernel, machine.device.costOf(kernel));
    } else if (launch.isCopy()) {
      ++sum.copies;
    } else {
      ++sum.collectives;
    }
  return sum;
}

std::optional<double> commands::predictedStep(const am::Manifest &manifest) {
  TypicalMachine machine(manifest.target);
  auto programs = am::programsOfStep(manifest);
  if (programs.empty())
    return std::nullopt;
  double seconds = 0;
  for (const am::Program *program : programs)
    seconds += costOf(*program, manifest, machine).seconds;
  return seconds;
}

static Json programsOf(const am::Manifest &manifest,
                       const TypicalMachine &machine) {
  Json list = Json::array();
  for (const am::Program &program : manifest.programs) {
    const ProgramCost sum = costOf(program, manifest, machine);
    list.push_back({{"name", program.name},
                    {"size", program.size},
                    {"kernels", sum.kernels},
                    {"copies", sum.copies},
                    {"collectives", sum.collectives},
                    {"flops", sum.flops},
                    {"bytes", sum.bytes},
                    {"seconds", sum.seconds},
                    {"arithmetic", sum.arithmetic},
                    {"memory", sum.memory},
                    {"launch", sum.launch},
                    {"bound", boundOf(sum)}});
  }
  return list;
}

/// The numbers in all values of the role.
static int64_t elementsOf(const am::Manifest &manifest, am::Role role,
                          bool onlyTrained) {
  int64_t sum = 0;
  for (const am::Value &value : manifest.values)
    if (value.role == role && (value.requiresGrad || !onlyTrained)) {
      int64_t count = 1;
      for (int64_t size : value.shape)
        count *= size;
      sum += count;
    }
  return sum;
}

/// What `get` says of each size; of one size of the whole artifact.
template <typename Get>
static Json ofSizes(const am::Manifest &manifest, Get get) {
  Json list = Json::array();
  size_t count = std::max<size_t>(manifest.sizes.size(), 1);
  for (size_t i = 0; i < count; ++i)
    list.push_back(get(am::ofSize(manifest, i)));
  return list;
}

/// The formulas of the gradients of ops that programs have, where the op's
/// record has one; others are in C++.
static Json gradientsOf(const Json &planned) {
  static const std::map<std::string_view, std::string_view> formulas = {
#include "tools/tandem/Gradients.inc"
  };
  std::set<std::string> ops;
  for (const Json &size : planned)
    for (const Json &target : size)
      for (const Json &program : target["programs"])
        if (program.contains("ops"))
          for (const Json &op : program["ops"])
            ops.insert(op["op"].get<std::string>());
  Json found = Json::object();
  for (const std::string &op : ops)
    if (auto formula = formulas.find(op); formula != formulas.end())
      found[op] = formula->second;
  return found;
}

Result<Json> commands::reportFacts(const am::ArtifactReader &reader,
                                   const Json &planned) {
  auto facts = artifactFacts(reader);
  if (!facts)
    return facts;
  Json summaries = Json::array();
  for (const am::Manifest &manifest : reader.manifests()) {
    TypicalMachine machine(manifest.target);
    summaries.push_back(
        {{"parameters", elementsOf(manifest, am::Role::Param, false)},
         {"trained", elementsOf(manifest, am::Role::Param, true)},
         {"peaks", ofSizes(manifest,
                           [](const am::Manifest &one) {
                             return one.stepMemory
                                        ? Json(one.stepMemory->peak())
                                        : Json();
                           })},
         {"thread_bytes", ofSizes(manifest, am::scratchOfStep)},
         {"machine", machine.json()},
         {"programs", programsOf(manifest, machine)},
         {"kernels", kernelsOf(manifest, machine)}});
  }
  (*facts)["summaries"] = std::move(summaries);
  if (!planned.empty()) {
    (*facts)["planned"] = planned;
    (*facts)["gradients"] = gradientsOf(planned);
  }
  return facts;
}
