//===- PlannedSteps.cpp - the launches of a program, planned or lowered ---===//
#include "passes/plan/PlannedSteps.h"

#include "ir/HostCopy.h"
#include "ir/Keys.h"
#include "passes/plan/Collectives.h"
#include "passes/plan/HostCopies.h"
#include "passes/plan/Libraries.h"
#include "passes/plan/Parts.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace tandem;

/// Reads the places of the results.
static LogicalResult readPlaces(Operation *op, ArrayAttr buffers,
                                PlannedStep &step) {
  if (!buffers && !op->getNumResults())
    return success();
  if (!buffers)
    return op->emitOpError() << "expected 'buffers'";
  // Their number and kind is the op's verifier's business.
  for (auto place : buffers.getAsRange<BufferAttr>())
    step.places.push_back(place);
  return success();
}

static LogicalResult readLibrary(Operation *op, PlannedStep &step) {
  LibraryCallAttr call = libraryOf(op);
  if (!call || !call.getWorkspaceBytes())
    return success();
  if (call.getWorkspace() < 0)
    return op->emitOpError() << "expected a 'workspace' in the arena";
  step.workspaceBytes = call.getWorkspaceBytes();
  step.workspace = call.getWorkspace();
  return success();
}

static LLVM::LLVMFuncOp kernelOf(LaunchOp launch,
                                 SymbolTableCollection &symbols) {
  return symbols.lookupNearestSymbolFrom<LLVM::LLVMFuncOp>(
      launch, launch.getKernelAttr());
}

static KernelFactsAttr factsOf(LaunchOp launch,
                               SymbolTableCollection &symbols) {
  return KernelFactsAttr::of(kernelOf(launch, symbols));
}

/// The pairs of a launch are its kernel's; null if there are none. A kernel's
/// own have been checked by its verifier, these are by no one else.
static FailureOr<InPlaceAttr> inPlaceOf(LaunchOp launch,
                                        SymbolTableCollection &symbols) {
  KernelFactsAttr facts = factsOf(launch, symbols);
  InPlaceAttr pairs = facts ? facts.getInPlace() : InPlaceAttr();
  if (pairs && failed(pairs.verifyBounds([&] { return launch.emitOpError(); },
                                         launch->getNumResults(),
                                         launch->getNumOperands())))
    return failure();
  return pairs;
}

static LogicalResult read(Operation *op, SymbolTableCollection &symbols,
                          PlannedStep &step) {
  step.op = op;
  InPlaceAttr pairs;
  ArrayAttr buffers;
  if (auto kernel = dyn_cast<KernelOp>(op)) {
    pairs = kernel.getInPlaceAttr();
    buffers = kernel.getBuffersAttr();
    step.hasChoices = kernel.getChoicesAttr() != nullptr;
    step.isToHost = isa_and_nonnull<ToHostOp>(hostCopyOf(kernel));
    step.isToDevice = isa_and_nonnull<ToDeviceOp>(hostCopyOf(kernel));
  } else if (auto launch = dyn_cast<LaunchOp>(op)) {
    auto found = inPlaceOf(launch, symbols);
    if (failed(found))
      return failure();
    pairs = *found;
    buffers = launch.getBuffersAttr();
    step.hasChoices = launch.getChoicesAttr() != nullptr;
  } else {
    step.isToHost = isa<ToHostOp>(op);
    step.isToDevice = isa<ToDeviceOp>(op);
    if (auto place = op->getAttrOfType<BufferAttr>(key::kBuffer))
      buffers = ArrayAttr::get(op->getContext(), place);
  }
  bool isRight = succeeded(readPlaces(op, buffers, step));
  if (pairs)
    step.inPlace.assign(pairs.getPairs().begin(), pairs.getPairs().end());
  isRight &= succeeded(readLibrary(op, step));
  return success(isRight);
}

FailureOr<std::vector<PlannedStep>>
tandem::plannedSteps(func::FuncOp func, SymbolTableCollection &symbols) {
  std::vector<PlannedStep> steps;
  bool isRight = true;
  for (Operation &op : func.getBody().front().without_terminator()) {
    if (isa<ConstantOp>(op) || isFreeOrPart(&op))
      continue;
    if (isa<KernelOp, LaunchOp>(op) || standsAlone(&op)) {
      isRight &= succeeded(read(&op, symbols, steps.emplace_back()));
      continue;
    }
    isRight = false;
    op.emitOpError() << "expected a kernel, a launch, a copy, a collective, "
                        "a constant, a free view or a part";
  }
  if (!isRight)
    return failure();
  return steps;
}

static std::string textOf(Attribute attribute) {
  std::string text = "none";
  if (attribute) {
    text.clear();
    llvm::raw_string_ostream(text) << attribute;
  }
  return text;
}

/// What the function itself shows of the memory that it asks for: on a cpu the
/// bytes behind its last parameter, on a device that parameter.
static bool hasScratch(LLVM::LLVMFuncOp function, KernelFactsAttr facts,
                       unsigned buffers) {
  int64_t bytes = facts.getScratchBytes();
  unsigned count = function.getNumArguments();
  if (!facts.getBlocks()) {
    auto shown = count == 4
                     ? function.getArgAttrOfType<IntegerAttr>(
                           3, LLVM::LLVMDialect::getDereferenceableAttrName())
                     : IntegerAttr();
    return count == 4 && bytes == (shown ? shown.getInt() : 0);
  }
  ArrayAttr maps = facts.getTensorMaps();
  return count == buffers + (maps ? maps.size() : 0) + (bytes != 0);
}

int64_t tandem::scratchOf(LaunchOp launch, SymbolTableCollection &symbols) {
  KernelFactsAttr facts = factsOf(launch, symbols);
  return facts ? facts.getScratchBytes() : 0;
}

LogicalResult tandem::checkLaunch(LaunchOp launch,
                                  SymbolTableCollection &symbols) {
  LLVM::LLVMFuncOp function = kernelOf(launch, symbols);
  KernelFactsAttr facts = factsOf(launch, symbols);
  if (!facts)
    return launch.emitOpError()
           << "expected " << launch.getKernelAttr()
           << " to be a function with '" << kKernelAttr << "'";
  bool isRight = true;
  auto error = [&] {
    isRight = false;
    InFlightDiagnostic diagnostic = launch.emitOpError();
    diagnostic.attachNote(function.getLoc()) << "the kernel's function";
    return diagnostic;
  };
  Type type = FunctionType::get(launch.getContext(), launch->getOperandTypes(),
                                launch->getResultTypes());
  auto expectEqual = [&](StringRef ofLaunch, Attribute mine, StringRef name,
                         Attribute own) {
    if (mine != own)
      error() << "expected " << ofLaunch << " to be the '" << name
              << "' of its kernel, " << textOf(own) << ", but got "
              << textOf(mine);
  };
  Builder b(launch.getContext());
  expectEqual("its type", TypeAttr::get(type), "type",
              TypeAttr::get(facts.getType()));
  expectEqual("'work'", launch.getWorkAttr(), "items",
              b.getI64IntegerAttr(facts.getItems()));
  expectEqual("'grid'", launch.getGridAttr(), "blocks", facts.getBlocks());
  if (!hasScratch(function, facts,
                  launch->getNumOperands() + launch->getNumResults()))
    error() << "expected 'scratch_bytes' to be what the code of its kernel "
               "uses, but got "
            << facts.getScratchBytes();
  return success(isRight);
}
