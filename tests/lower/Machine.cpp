//===- Machine.cpp - plans, lowers, compiles and runs a function ----------===//
#include "tests/lower/Machine.h"
#include "compiler/Compile.h"
#include "compiler/Target.h"
#include "compiler/emit/ObjectCode.h"
#include "ir/Signature.h"
#include "ir/reference/Elements.h"
#include "ir/reference/Evaluator.h"
#include "passes/autodiff/Definedness.h"
#include "passes/pipelines/Pipelines.h"
#include "passes/plan/FormKernels.h"
#include "passes/target/Target.h"
#include "runtime/device/CpuFeatures.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <unistd.h>

using namespace mlir;
using namespace tandem;
using namespace tandem::test;

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

std::vector<char> test::encode(const reference::Array &array, Type element) {
  std::vector<char> data(array.size() * elementBytes(element));
  reference::encode(array, element, data.data());
  return data;
}

//===----------------------------------------------------------------------===//
// Compilation
//===----------------------------------------------------------------------===//

Machine::Machine(const std::string &text, const std::string &targetName,
                 bool fastMath) {
  DialectRegistry registry;
  registerCompiler(registry);
  context =
      std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  context->getDiagEngine().registerHandler([&](Diagnostic &diagnostic) {
    problem += diagnostic.str() + "\n";
    return success();
  });
  original = parseSourceString<ModuleOp>(text, context.get());
  // Tests are of one target; sm_90a has tests of its own.
  auto targets = parseTargets(targetName == "cuda" ? "cuda:sm_90" : targetName);
  if (!original || !targets) {
    problem += "no module or no target\n";
    return;
  }
  const Target &target = targets->front();
  const auto *cudaTarget = std::get_if<CudaTarget>(&target);
  TargetAttr attribute = targetAttr(target, context.get());
  if (fastMath)
    attribute =
        attribute.with(TargetAttr::kFastMath, UnitAttr::get(context.get()));
  original.get()->setAttr(kTargetAttr, attribute);
  plannedModule = original->clone();
  PassManager plan(context.get());
  buildPlanPipeline(plan, PlanOptions());
  if (failed(plan.run(*plannedModule)))
    return;
  loweredModule = plannedModule->clone();
  PassManager lower(context.get());
  if (cudaTarget)
    addLowerToCudaPasses(lower);
  else
    addLowerToCpuPasses(lower);
  if (failed(lower.run(*loweredModule)))
    return;
  if (cudaTarget)
    cuda = std::make_unique<CudaCode>(*loweredModule, *cudaTarget, problem);
  else
    compileCpu(std::get<CpuTarget>(target));
}

void Machine::compileCpu(const CpuTarget &target) {
  auto kernels = loweredModule->lookupSymbol<ModuleOp>("cpu");
  std::vector<std::string> names;
  for (auto func : kernels.getOps<LLVM::LLVMFuncOp>())
    if (func->hasAttr(kKernelAttr))
      names.push_back(func.getName().str());
  if (names.empty())
    return;
  problem += runtime::cpuProblem(target.features);
  auto object = emitSharedObject(kernels, names, target, {.threads = 1});
  if (!object) {
    problem += object.status().message();
    return;
  }
  llvm::SmallString<128> path;
  int descriptor;
  if (llvm::sys::fs::createTemporaryFile("tandem-kernels", "so", descriptor,
                                         path)) {
    problem += "no temporary file\n";
    return;
  }
  file = path.str().str();
  llvm::raw_fd_ostream(descriptor, /*shouldClose=*/true) << *object;
  library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    problem += dlerror();
}

Machine::~Machine() {
  if (library)
    dlclose(library);
  if (!file.empty())
    unlink(file.c_str());
}

func::FuncOp Machine::function(ModuleOp module, const std::string &name) {
  return module.lookupSymbol<func::FuncOp>(name);
}

llvm::SmallVector<KernelOp> Machine::kernels(const std::string &name) {
  return llvm::SmallVector<KernelOp>(
      function(*plannedModule, name).getOps<KernelOp>());
}

//===----------------------------------------------------------------------===//
// Runs
//===----------------------------------------------------------------------===//

Arrays Machine::randomArguments(const std::string &name, unsigned seed,
                                double low, double high) {
  std::mt19937 random(seed);
  Arrays arguments;
  for (Type type : function(*original, name).getArgumentTypes()) {
    auto tensor = cast<RankedTensorType>(type);
    reference::Array array(tensor);
    for (double &x : array.data) {
      double unit = static_cast<double>(random()) / 4294967296.0;
      x = isa<FloatType>(tensor.getElementType()) ? low + unit * (high - low)
          : tensor.getElementType().isInteger(1)  ? std::floor(unit * 2)
                                                  : std::floor(unit * 8);
    }
    // Round to the type.
    auto bytes = encode(array, tensor.getElementType());
    arguments.push_back(reference::decode(bytes.data(), tensor));
  }
  return arguments;
}

Arrays Machine::reference(const std::string &name, const Arrays &arguments) {
  auto results =
      reference::evaluate(function(*original, name), arguments, nullptr);
  return succeeded(results) ? Arrays(std::move(*results)) : Arrays();
}

void Machine::round(const std::string &name, Arrays &results) {
  for (auto [array, type] :
       llvm::zip_equal(results, function(*original, name).getResultTypes())) {
    auto tensor = cast<RankedTensorType>(type);
    array = reference::decode(encode(array, tensor.getElementType()).data(),
                              tensor);
  }
}

void Machine::launch(LaunchOp op, const llvm::SmallVector<char *> &buffers,
                     int64_t longest) {
  if (cuda) {
    using emulator::Order;
    Order order = longest == 0   ? Order::Ascending
                  : longest == 1 ? Order::Descending
                                 : Order::Random;
    cuda->launch(op, buffers, memory, order, problem);
    return;
  }
  using Kernel = void (*)(void *const *, int64_t, int64_t, void *);
  StringRef name = op.getKernel().getLeafReference();
  auto kernel = reinterpret_cast<Kernel>(dlsym(library, name.str().c_str()));
  auto func = loweredModule->lookupSymbol<ModuleOp>("cpu")
                  .lookupSymbol<LLVM::LLVMFuncOp>(name);
  int64_t scratchBytes = KernelFactsAttr::of(func).getScratchBytes();
  int64_t work = op.getWork();
  if (longest <= 0)
    longest = std::max<int64_t>(work, 1);
  llvm::SmallVector<std::pair<int64_t, int64_t>> ranges;
  for (int64_t begin = 0; begin < work; begin += longest)
    ranges.push_back({begin, std::min(begin + longest, work)});
  std::shuffle(ranges.begin(), ranges.end(), order);
  for (auto [begin, end] : ranges) {
    char *scratch = nullptr;
    size_t size = (scratchBytes + 63) / 64 * 64;
    if (size) {
      scratch = static_cast<char *>(std::aligned_alloc(64, size));
      std::memset(scratch, 0xff, size);
    }
    kernel(reinterpret_cast<void *const *>(buffers.data()), begin, end,
           scratch);
    std::free(scratch);
  }
}

Arrays Machine::run(const std::string &name, const Arrays &arguments,
                    int64_t longest, const std::vector<std::string> *defined) {
  launched = 0;
  llvm::SmallVector<StringRef> given;
  if (defined)
    given.assign(defined->begin(), defined->end());
  auto holds = [&](ArrayAttr condition) {
    return !condition || !defined || evaluateDefined(condition, given);
  };
  func::FuncOp func = function(*loweredModule, name);
  std::vector<std::unique_ptr<char, decltype(&std::free)>> owned;
  memory.clear();
  // Everything starts as NaN, so that what is not written shows.
  auto allocate = [&](int64_t bytes) {
    size_t size = (bytes + 64) / 64 * 64;
    auto *data = static_cast<char *>(std::aligned_alloc(64, size));
    std::memset(data, 0xff, size);
    owned.emplace_back(data, &std::free);
    memory[data] = bytes;
    return data;
  };
  char *arena = allocate(planOf(func).getArenaBytes());
  llvm::SmallVector<char *> results, inputs;
  for (Type type : func.getResultTypes())
    results.push_back(allocate(byteSize(cast<RankedTensorType>(type))));
  DenseMap<Value, char *> buffers;
  for (auto [argument, array] :
       llvm::zip_equal(func.getArguments(), arguments)) {
    auto type = cast<RankedTensorType>(argument.getType());
    std::vector<char> bytes = encode(array, type.getElementType());
    char *data = allocate(bytes.size());
    RoleAttr role = roleOfArgument(func, argument.getArgNumber());
    if (role.getKind() != RoleKind::Cotangent || !defined ||
        llvm::is_contained(given, role.getName().getValue()))
      llvm::copy(bytes, data);
    buffers[argument] = data;
    inputs.push_back(data);
  }
  for (Operation &op : func.getBody().front()) {
    if (auto constant = dyn_cast<ConstantOp>(op)) {
      reference::Array array[1] = {reference::Array(constant.getType())};
      constant.evaluate({}, array);
      std::vector<char> bytes =
          encode(array[0], constant.getType().getElementType());
      char *data = allocate(bytes.size());
      llvm::copy(bytes, data);
      buffers[constant] = data;
    }
    auto launchOp = dyn_cast<LaunchOp>(op);
    if (!launchOp)
      continue;
    llvm::SmallVector<char *> list;
    for (Value input : launchOp.getInputs())
      list.push_back(buffers.lookup(throughFreeViews(input)));
    for (auto [result, attribute] :
         llvm::zip_equal(launchOp.getResults(), launchOp.getBuffers())) {
      auto place = cast<BufferAttr>(attribute);
      char *data = place.getPlace() == BufferPlace::Arena
                       ? arena + place.getPosition()
                   : place.getPlace() == BufferPlace::Result
                       ? results[place.getPosition()]
                       : inputs[place.getPosition()];
      buffers[result] = data;
      list.push_back(data);
    }
    if (!holds(launchOp.getNeedsAttr()))
      continue;
    ++launched;
    std::optional<int64_t> copied;
    if (ArrayAttr choices = launchOp.getChoicesAttr())
      for (auto choice : choices.getAsRange<DictionaryAttr>())
        if (holds(choice.getAs<ArrayAttr>("when"))) {
          if (auto copy = choice.getAs<IntegerAttr>("copy"))
            copied = copy.getInt();
          break;
        }
    if (!copied) {
      launch(launchOp, list, longest);
      continue;
    }
    int64_t bytes =
        byteSize(cast<RankedTensorType>(launchOp.getResult(0).getType()));
    if (*copied < 0)
      std::memset(list.back(), 0, bytes);
    else
      std::memmove(list.back(), list[*copied], bytes);
  }
  Arrays out;
  for (Value value : func.getBody().front().getTerminator()->getOperands())
    out.push_back(reference::decode(buffers.lookup(throughFreeViews(value)),
                                    cast<RankedTensorType>(value.getType())));
  return out;
}
