//===- DeviceChecks.cpp - what kernels for a GPU cannot have --------------===//
#include "compiler/emit/DeviceChecks.h"
#include "ir/Dialect.h"
#include "ir/KernelFunctions.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Operator.h"

using namespace mlir;
using namespace tandem;

/// Bytes of shared memory that a kernel can declare, on every architecture;
/// what is given at the launch can be more.
static constexpr uint64_t kDeclaredShared = 48 * 1024;

/// PTX's identifiers; the backend renames nothing that is visible.
static bool isIdentifier(StringRef name) {
  auto isPart = [](char c) { return llvm::isAlnum(c) || c == '_' || c == '$'; };
  return !name.empty() && !llvm::isDigit(name.front()) &&
         llvm::all_of(name, isPart);
}

/// Sizes that a block of threads can have.
static bool isBlock(ArrayRef<int64_t> sizes) {
  int64_t all = 1;
  for (int64_t size : sizes)
    all *= std::clamp<int64_t>(size, 0, 1025);
  return sizes.size() == 3 && all >= 1 && all <= 1024;
}

/// The ops of the model that a kernel is made of: "'tandem.tanh', ...".
static std::string opsOf(Operation *function) {
  KernelFactsAttr about = KernelFactsAttr::of(function);
  std::string text;
  if (about)
    for (auto op : about.getOps().getAsRange<StringAttr>())
      text += (text.empty() ? "'" : ", '") + op.str() + "'";
  return text;
}

Status tandem::checkKernels(gpu::GPUModuleOp kernels,
                            const std::vector<std::string> &exported,
                            const CudaTarget &target) {
  int problems = 0;
  auto error = [&](Operation *op) {
    ++problems;
    return op->emitError("unsupported on 'cuda': ");
  };
  for (const std::string &name : exported) {
    auto function = kernels.lookupSymbol<LLVM::LLVMFuncOp>(name);
    if (!function || (function.isExternal() && codeKey(function).empty()) ||
        !function->hasAttr(NVVM::NVVMDialect::getKernelFuncAttrName()))
      return Status::failed("expected the kernel '" + name +
                            "' to be a function with 'nvvm.kernel'");
    if (!isIdentifier(name))
      error(function) << "the kernel's name '" << name
                      << "' is no identifier of PTX";
    KernelFactsAttr about = KernelFactsAttr::of(function);
    DenseI64ArrayAttr block = about ? about.getBlock() : DenseI64ArrayAttr();
    if (!block || !isBlock(block.asArrayRef()))
      return Status::failed("expected the kernel '" + name +
                            "' to have a 'block' of three sizes, 1 to 1024 in "
                            "all");
    if (about.getSharedBytes() > target.sharedLimit())
      error(function) << "kernel '" << name << "' takes "
                      << about.getSharedBytes()
                      << " bytes of shared memory, but a block can have "
                      << target.sharedLimit() << " on '" << target.arch << "'";
  }
  kernels.walk([&](LLVM::CallOp call) {
    auto callee = call.getCallee();
    auto function = callee ? kernels.lookupSymbol<LLVM::LLVMFuncOp>(*callee)
                           : LLVM::LLVMFuncOp();
    if (function && (!function.isExternal() || callee->starts_with("llvm.")))
      return;
    auto kernel = call->getParentOfType<LLVM::LLVMFuncOp>();
    std::string ops = opsOf(kernel);
    error(call) << "kernel '" << kernel.getName() << "'"
                << (ops.empty() ? "" : " (" + ops + ")") << " calls '"
                << callee.value_or("a pointer")
                << "', which no library gives: kernels use none";
  });
  return problems ? Status::unsupported("kernels cannot be compiled for 'cuda'")
                  : Status::success();
}

/// Intrinsics that have no instruction, or that end the backend.
static bool hasNoInstruction(const llvm::IntrinsicInst &call) {
  switch (call.getIntrinsicID()) {
  case llvm::Intrinsic::sin:
  case llvm::Intrinsic::cos:
    // Approximate ones have.
    return !call.hasApproxFunc() || !call.getType()->isFloatTy();
  case llvm::Intrinsic::exp2:
    return call.getType()->getScalarType()->isDoubleTy();
  case llvm::Intrinsic::log2:
    return !call.hasApproxFunc() || !call.getType()->isFloatTy();
  case llvm::Intrinsic::tan:
  case llvm::Intrinsic::asin:
  case llvm::Intrinsic::acos:
  case llvm::Intrinsic::atan:
  case llvm::Intrinsic::atan2:
  case llvm::Intrinsic::sinh:
  case llvm::Intrinsic::cosh:
  case llvm::Intrinsic::tanh:
  case llvm::Intrinsic::sincos:
  case llvm::Intrinsic::sincospi:
  case llvm::Intrinsic::modf:
  case llvm::Intrinsic::exp:
  case llvm::Intrinsic::exp10:
  case llvm::Intrinsic::log:
  case llvm::Intrinsic::log10:
  case llvm::Intrinsic::pow:
  case llvm::Intrinsic::powi:
  case llvm::Intrinsic::ldexp:
  case llvm::Intrinsic::frexp:
    return true;
  default:
    return false;
  }
}

static void addGlobals(const llvm::Value *value,
                       llvm::SetVector<const llvm::Value *> &found) {
  if (!isa<llvm::Constant>(value) || !found.insert(value) ||
      isa<llvm::GlobalValue>(value))
    return;
  for (const llvm::Use &operand : cast<llvm::Constant>(value)->operands())
    addGlobals(operand, found);
}

/// Bytes of the shared variables that a kernel uses, itself or in what it
/// calls.
static uint64_t declaredShared(const llvm::Function &kernel) {
  llvm::SetVector<const llvm::Value *> found;
  found.insert(&kernel);
  uint64_t bytes = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    if (auto *function = dyn_cast<llvm::Function>(found[i]))
      for (const llvm::BasicBlock &block : *function)
        for (const llvm::Instruction &op : block)
          for (const llvm::Use &operand : op.operands())
            addGlobals(operand, found);
    auto *variable = dyn_cast<llvm::GlobalVariable>(found[i]);
    if (variable && variable->getAddressSpace() == 3)
      bytes +=
          kernel.getDataLayout().getTypeAllocSize(variable->getValueType());
  }
  return bytes;
}

Status tandem::checkOptimized(const llvm::Module &module) {
  std::string problems;
  auto problem = [&](const std::string &text) {
    problems += (problems.empty() ? "" : "; ") + text;
  };
  for (const llvm::Function &function : module) {
    for (const llvm::BasicBlock &block : function)
      for (const llvm::Instruction &op : block)
        if (auto *call = dyn_cast<llvm::IntrinsicInst>(&op);
            call && hasNoInstruction(*call))
          problem("'" + function.getName().str() + "' uses '" +
                  call->getCalledFunction()->getName().str() +
                  "', for which a GPU has no instruction");
    if (function.getCallingConv() != llvm::CallingConv::PTX_Kernel)
      continue;
    if (uint64_t bytes = declaredShared(function); bytes > kDeclaredShared)
      problem("'" + function.getName().str() + "' declares " +
              std::to_string(bytes) +
              " bytes of shared memory, but a kernel can declare " +
              std::to_string(kDeclaredShared) + " at most");
  }
  if (problems.empty())
    return Status::success();
  return Status::unsupported("kernels cannot be compiled for 'cuda': " +
                             problems);
}
