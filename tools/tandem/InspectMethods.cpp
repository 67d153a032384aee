//===- InspectMethods.cpp - how kernels can be computed -------------------===//
//
// The model is compiled to `plan`, where kernels are formed, and the tables
// from which `lower` chooses (passes/lower/*/Methods.cpp) are asked.
//
//===----------------------------------------------------------------------===//
#include "tools/tandem/InspectMethods.h"
#include "passes/lower/common/Kernels.h"
#include "passes/lower/cpu/ExplainMethods.h"
#include "passes/lower/cuda/ExplainMethods.h"
#include "passes/target/Target.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"

#include <nlohmann/json.hpp>

#include <cstdio>

using namespace tandem;
using namespace tandem::commands;
using nlohmann::ordered_json;

namespace {
/// Equal kernels of a module.
struct Kernels {
  std::string summary, target;
  std::vector<std::string> programs; ///< each once
  int count = 0;
  lower::ExplainedKernel explained;
};
} // namespace

static std::string summaryOf(KernelOp kernel) {
  mlir::StringAttr summary =
      lower::describeKernel(kernel, lower::LoweredFacts()).getSummary();
  return summary ? summary.str() : kernel.getName().str();
}

namespace {
/// The kernels of a module that several methods can compute, equal ones once.
class Considered {
public:
  explicit Considered(mlir::ModuleOp module) : isCuda(isForCuda(module)) {}

  /// What is said of a kernel; null if one method alone can compute it. The
  /// first of equal ones has `isNew`.
  const lower::ExplainedKernel *of(KernelOp kernel, size_t &place,
                                   bool &isNew) {
    auto [number, isDistinct] = known.insert(kernel);
    isNew = false;
    if (isDistinct) {
      places.emplace_back();
      auto explained = isCuda ? lower::cuda::explainMethods(kernel)
                              : lower::cpu::explainMethods(kernel);
      if (!explained || explained->methods.size() < 2)
        return nullptr;
      places[number] = list.size();
      list.push_back(std::move(*explained));
      isNew = true;
    }
    if (!places[number])
      return nullptr;
    place = *places[number];
    return &list[place];
  }

  const bool isCuda;

private:
  lower::DistinctKernels known;
  /// Of each distinct kernel in `list`.
  std::vector<std::optional<size_t>> places;
  std::vector<lower::ExplainedKernel> list;
};
} // namespace

/// Adds the kernels of a module at `plan`, in their order.
static void addKernels(mlir::ModuleOp module, std::vector<Kernels> &list) {
  Considered considered(module);
  size_t first = list.size(), place = 0;
  bool isNew = false;
  for (auto func : module.getOps<mlir::func::FuncOp>())
    for (auto kernel : func.getOps<KernelOp>()) {
      const lower::ExplainedKernel *explained =
          considered.of(kernel, place, isNew);
      if (!explained)
        continue;
      if (isNew)
        list.push_back({summaryOf(kernel),
                        considered.isCuda ? "cuda" : "cpu",
                        {},
                        0,
                        *explained});
      Kernels &kernels = list[first + place];
      ++kernels.count;
      std::string program = func.getName().str();
      if (kernels.programs.empty() || kernels.programs.back() != program)
        kernels.programs.push_back(program);
    }
}

static ordered_json toJson(const lower::ExplainedMethod &method) {
  ordered_json one = {{"name", method.name},
                      {"summary", method.summary},
                      {"chosen", method.isChosen},
                      {"possible", method.isPossible}};
  if (method.seconds)
    one["seconds"] = *method.seconds;
  if (method.isPossible) {
    one["scratch_bytes"] = method.scratchBytes;
    one["schedule"] = method.schedule;
  }
  if (!method.against.empty())
    one["against"] = method.against;
  return one;
}

static ordered_json toJson(const lower::ExplainedKernel &kernel) {
  ordered_json methods = ordered_json::array();
  for (const lower::ExplainedMethod &method : kernel.methods)
    methods.push_back(toJson(method));
  return methods;
}

static void printJson(const std::vector<Kernels> &list) {
  ordered_json all = {{"kind", "methods"}, {"kernels", ordered_json::array()}};
  for (const Kernels &kernels : list) {
    ordered_json one = {
        {"summary", kernels.summary},   {"target", kernels.target},
        {"of", kernels.explained.of},   {"count", kernels.count},
        {"programs", kernels.programs}, {"methods", toJson(kernels.explained)}};
    if (!kernels.explained.problem.empty())
      one["problem"] = kernels.explained.problem;
    all["kernels"].push_back(one);
  }
  std::printf("%s\n",
              all.dump(1, ' ', false, nlohmann::json::error_handler_t::replace)
                  .c_str());
}

void commands::addMethods(ordered_json &planned, const Modules &modules) {
  for (auto [target, module] : llvm::zip_equal(planned, modules)) {
    Considered considered(*module);
    ordered_json list = ordered_json::array();
    size_t place = 0;
    bool isNew = false;
    for (ordered_json &program : target["programs"]) {
      auto func = module.get().lookupSymbol<mlir::func::FuncOp>(
          program["name"].get<std::string>());
      auto launch = program["launches"].begin();
      for (auto kernel : func.getOps<KernelOp>()) {
        const lower::ExplainedKernel *explained =
            considered.of(kernel, place, isNew);
        if (isNew)
          list.push_back(
              {{"of", explained->of}, {"methods", toJson(*explained)}});
        if (explained)
          (*launch)["methods"] = place;
        ++launch;
      }
    }
    target["methods"] = std::move(list);
  }
}

static std::string textOf(std::optional<double> number, const char *format) {
  if (!number)
    return "-";
  char text[32];
  std::snprintf(text, sizeof text, format, *number);
  return text;
}

static void printText(const Kernels &kernels) {
  std::string programs;
  for (const std::string &program : kernels.programs)
    programs += (programs.empty() ? "" : ", ") + program;
  std::printf("%s\n  %s; %d in %s\n", kernels.summary.c_str(),
              kernels.explained.of.c_str(), kernels.count, programs.c_str());
  if (!kernels.explained.problem.empty())
    std::printf("  error: %s\n", kernels.explained.problem.c_str());
  std::printf("  %-12s %12s %12s\n", "method", "predicted us", "scratch KiB");
  for (const lower::ExplainedMethod &method : kernels.explained.methods) {
    std::optional<double> micros, scratch;
    if (method.seconds)
      micros = *method.seconds * 1e6;
    if (method.isPossible)
      scratch = static_cast<double>(method.scratchBytes) / 1024;
    std::string verdict = method.isChosen     ? "chosen"
                          : method.isPossible ? "not chosen: " + method.against
                                              : "impossible: " + method.against;
    std::printf("  %-12s %12s %12s  %s\n", method.name.c_str(),
                textOf(micros, "%.1f").c_str(), textOf(scratch, "%.1f").c_str(),
                verdict.c_str());
    if (!method.schedule.empty())
      std::printf("  %-12s   %s\n", "", method.schedule.c_str());
  }
}

Status commands::printMethods(const std::string &path, CompileOptions options,
                              bool asJson) {
  options.stopAfter = "plan";
  Session session(options);
  Modules modules = session.phases(path);
  if (modules.empty())
    return session.status();
  std::vector<Kernels> list;
  for (auto &module : modules)
    addKernels(*module, list);
  if (asJson) {
    printJson(list);
    return Status::success();
  }
  for (const Kernels &kernels : list) {
    if (&kernels != &list.front())
      std::printf("\n");
    printText(kernels);
  }
  if (list.empty())
    std::printf("no kernel has several methods\n");
  return Status::success();
}
