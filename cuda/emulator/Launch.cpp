//===- Launch.cpp - kernels as commands -----------------------------------===//
#include "cuda/emulator/Execution.h"
#include "cuda/emulator/Limits.h"
#include "cuda/emulator/Machine.h"
#include "cuda/emulator/Modules.h"

#include <cstring>

using namespace tandem;
using namespace tandem::emulator;
using namespace tandem::cuda::driver;

namespace {
/// Parameters, with the values that they had at the call, aligned as tensor
/// maps want it.
struct Arguments {
  struct alignas(64) Piece {
    std::byte bytes[64];
  };
  std::vector<std::vector<Piece>> values;

  Arguments(const std::vector<size_t> &bytes, void **parameters) {
    for (size_t i = 0; i < bytes.size(); ++i) {
      values.emplace_back((bytes[i] + sizeof(Piece) - 1) / sizeof(Piece));
      std::memcpy(values.back().data(), parameters[i], bytes[i]);
    }
  }
  std::vector<void *> pointers() {
    std::vector<void *> result;
    for (auto &value : values)
      result.push_back(value.data());
    return result;
  }
};

/// What a twin sees of its launch.
struct TwinLaunch : TandemEmulatorLaunch {
  Execution *execution;

  static int use(const TandemEmulatorLaunch *launch, const void *data,
                 size_t bytes, int isWrite) {
    Execution &execution = *static_cast<const TwinLaunch *>(launch)->execution;
    const auto at = reinterpret_cast<uintptr_t>(data);
    return isWrite ? execution.write(at, bytes) : execution.read(at, bytes);
  }
};

void runTwin(const Twin &twin, const LaunchShape &shape, void **parameters,
             Execution &execution) {
  TwinLaunch launch;
  launch.grid[0] = shape.grid.x;
  launch.grid[1] = shape.grid.y;
  launch.grid[2] = shape.grid.z;
  launch.block[0] = shape.block.x;
  launch.block[1] = shape.block.y;
  launch.block[2] = shape.block.z;
  launch.access = TwinLaunch::use;
  launch.execution = &execution;
  twin.kernel(parameters, &launch);
}

Order threadOrder(Policy policy) {
  switch (policy) {
  case Policy::Eager:
  case Policy::Lazy:
    return Order::Ascending;
  case Policy::OthersFirst:
    return Order::Descending;
  case Policy::Random:
    return Order::Random;
  }
  return Order::Ascending;
}

void runImage(const Function &function, const LaunchShape &shape,
              void **parameters, Execution &execution) {
  const Scheduler &scheduler = execution.machine.scheduler;
  LaunchRequest request;
  request.kernel = function.kernel;
  request.grid = shape.grid;
  request.block = shape.block;
  request.dynamicShared = shape.dynamicShared;
  request.params = parameters;
  request.order = threadOrder(scheduler.policy());
  request.seed = scheduler.seed() + execution.operation.order;
  request.consistency = execution.machine.consistency;
  if (Status status = launch(request, &execution); !status)
    execution.error("failed: " + status.message());
}

bool fits(const Function &function, const LaunchShape &shape) {
  const auto &[grid, block, dynamicShared] = shape;
  return block.x && block.y && block.z && grid.x && grid.y && grid.z &&
         block.x <= kBlockX && block.y <= kBlockY && block.z <= kBlockZ &&
         uint64_t(block.x) * block.y * block.z <= kThreadsPerBlock &&
         grid.x <= kGridX && grid.y <= kGridY && grid.z <= kGridZ &&
         dynamicShared <= function.dynamicLimit;
}
} // namespace

CUresult tandem::emulator::makeLaunch(Machine &machine,
                                      const Function &function,
                                      const LaunchShape &shape,
                                      void **parameters, Command &command) {
  if (!fits(function, shape))
    return CUDA_ERROR_INVALID_VALUE;
  if (!function.parameterBytes.empty() && !parameters)
    return CUDA_ERROR_INVALID_VALUE;
  if (machine.failures.strikes(Failures::Refuse))
    return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  auto arguments =
      std::make_shared<Arguments>(function.parameterBytes, parameters);
  command.kind = Command::Kind::Kernel;
  command.what = "kernel '" + function.name + "'";
  // Two microseconds, and a nanosecond for each thousand threads.
  command.duration = 2000 + uint64_t(shape.grid.x) * shape.grid.y *
                                shape.grid.z * shape.block.x * shape.block.y *
                                shape.block.z / 1000;
  // A copy of the function: its module may be unloaded before it runs.
  command.run = [function, shape, arguments](Execution &execution) {
    std::vector<void *> pointers = arguments->pointers();
    if (function.kernel)
      runImage(function, shape, pointers.data(), execution);
    else
      runTwin(function.twin, shape, pointers.data(), execution);
  };
  return CUDA_SUCCESS;
}

Command tandem::emulator::hostCommand(CUhostFn function, void *data) {
  Command command;
  command.kind = Command::Kind::Host;
  command.what = "host function";
  command.duration = 1000;
  command.run = [function, data](Execution &execution) {
    if (execution.machine.isClosing)
      return;
    bool &inHostFunction = Machine::thread().inHostFunction;
    inHostFunction = true;
    function(data);
    inHostFunction = false;
  };
  return command;
}
