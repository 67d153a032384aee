//===- PlanFuzz.cpp - any bytes as a plan, machines or a measurement ------===//
//
// The input is read as the plan of --shard, as the file of --machines, and as
// that of --calibrate. What is taken makes sense: an axis for every dimension,
// rates that are finite and no less than zero, a step that took some time. What
// is refused has a message and changes nothing.
//
//===----------------------------------------------------------------------===//
#include "passes/shard/ParallelSpec.h"
#include "passes/target/Machines.h"
#include "tests/fuzz/Fuzz.h"
#include "tools/simulate/Calibration.h"

#include "mlir/IR/MLIRContext.h"

#include <cmath>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

using namespace tandem;
using namespace tandem::fuzz;

namespace {

void readPlan(std::string_view text) {
  // One context for all rounds: it only grows by distinct attributes.
  static mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<TandemDialect>();
  std::string error;
  mlir::DictionaryAttr plan = parseShardPlan(text, &context, error);
  require(bool(plan) == error.empty());
  if (!plan)
    return requireShown(error);
  for (mlir::NamedAttribute row : plan)
    require(llvm::isa<mlir::ArrayAttr>(row.getValue()));
}

void requireRate(double rate) { require(std::isfinite(rate) && rate >= 0); }

void readMachines(std::string_view text) {
  Machines machines = Machines::builtin();
  size_t devices = machines.devices().size(), links = machines.links().size();
  std::string error;
  if (!machines.add(text, error)) {
    requireShown(error);
    require(machines.devices().size() == devices &&
            machines.links().size() == links);
    return;
  }
  for (const auto &[name, row] : machines.devices()) {
    for (double rate :
         {row.memory, row.capacity, row.host, row.launches, row.f32, row.narrow,
          row.multiprocessors, row.cores, row.clock, row.vectorUnits, row.turn,
          row.achievedProducts, row.achievedAttention, row.achievedMemory})
      requireRate(rate);
    require(row.memory > 0 && row.launches > 0);
  }
  for (const auto &[name, row] : machines.links()) {
    requireRate(row.latency);
    require(std::isfinite(row.rate) && row.rate > 0 && row.ranks >= 0);
  }
}

void readMeasurement(std::string_view text) {
  static const int memory = ::memfd_create("measurement", MFD_CLOEXEC);
  require(memory >= 0 && ::ftruncate(memory, 0) == 0 &&
          ::pwrite(memory, text.data(), text.size(), 0) ==
              ssize_t(text.size()));
  auto measured =
      simulate::readMeasurement("/proc/self/fd/" + std::to_string(memory));
  if (!measured)
    return requireShown(measured.status().message());
  require(std::isfinite(measured->stepSeconds) && measured->stepSeconds > 0);
  require(measured->ranks >= 1);
  for (auto part : {measured->processors, measured->products, measured->others})
    if (part)
      requireRate(*part);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view text(reinterpret_cast<const char *>(data), size);
  readPlan(text);
  readMachines(text);
  readMeasurement(text);
  return 0;
}
