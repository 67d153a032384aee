//===- KernelChunk.h - an NVVM module that becomes host code
//--------------------===//
//
// The steps from an NVVM module to a chunk of an emulation image, in the order
// in which they run (Emulation.cpp), and what they share. After an error a step
// goes on, so that everything that is wrong is said at once.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_EMIT_EMULATION_KERNELCHUNK_H
#define TANDEM_COMPILER_EMIT_EMULATION_KERNELCHUNK_H

#include "runtime/artifact/Emulation.h"
#include "runtime/artifact/Status.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

#include <string>
#include <vector>

namespace tandem::emulation {

/// What the emulator's functions are to the code that calls them
/// (EmulatedFunctions.def).
enum class FunctionKind { Pure, Thread, Warp, Block, Partial };

/// A kernel while it is made.
struct KernelRecord {
  llvm::Function *function = nullptr;
  llvm::Argument *thread = nullptr;
  std::string name;
  std::vector<uint32_t> parameterBytes;
  uint32_t flags = 0;
  uint64_t sharedBytes = 0, localBytes = 0;
  /// Arrays through which matrices go to the emulator and back.
  llvm::AllocaInst *operands = nullptr, *results = nullptr;
};

class KernelChunk {
public:
  explicit KernelChunk(llvm::Module &module) : module(module) {}

  /// Gives every kernel the emulator's signature, void (thread, parameters),
  /// and inlines what it calls. Nothing but kernels is left.
  void makeKernels();
  /// Places shared variables; finds the constants that kernels may read.
  void placeVariables();
  /// Puts a check before every access to memory.
  void checkAccesses();
  /// Replaces intrinsics and inline assembly.
  void replaceCalls();
  /// Replaces what the host's code generator cannot do or would trap at.
  void legalize();
  /// Adds the tables. The chunk is the external variable `symbol`.
  void addTables(const std::string &symbol);

  Status status() const;

private:
  using Builder = llvm::IRBuilder<>;

  /// Marks accesses to memory that the steps add: they are not checked.
  static constexpr const char *kOwn = "tandem.own";
  template <typename Access> Access *own(Access *access) {
    access->setMetadata(kOwn, llvm::MDNode::get(module.getContext(), {}));
    return access;
  }

  // Shared by the steps.
  KernelRecord &kernelOf(llvm::Instruction &instruction);
  void error(const llvm::Instruction &where, const std::string &what);
  std::string placeOf(const llvm::Instruction &instruction) const;
  /// The number of the place, which the emulator names in messages.
  uint32_t siteOf(const llvm::Instruction &instruction,
                  const std::string &what);
  /// Loads a field of EmulatedThread.
  llvm::Value *threadField(Builder &b, uint64_t offset, llvm::Type *type);
  /// Calls the emulator's function `name`, which must be in the list.
  llvm::CallInst *callFunction(Builder &b, const std::string &name,
                               llvm::Type *result,
                               llvm::ArrayRef<llvm::Value *> arguments);
  /// A variable in the entry block of the function.
  llvm::AllocaInst *variable(llvm::Instruction &user, llvm::Type *type);

  // Accesses.
  void checkAccess(llvm::Instruction &access, llvm::Value *pointer,
                   llvm::Type *type, llvm::Align alignment, uint32_t flags);
  void checkRange(llvm::Instruction &access, llvm::Value *pointer,
                  llvm::Value *bytes, uint32_t flags);
  void checkAccessesOf(llvm::Instruction &instruction);

  // Calls.
  void replaceCall(llvm::CallInst &call);
  bool replaceRegister(llvm::CallInst &call, llvm::StringRef name);
  bool replaceInline(llvm::CallInst &call, llvm::StringRef name);
  bool replaceByFunction(llvm::CallInst &call, const std::string &name);
  void replaceAssembly(llvm::CallInst &call);
  bool replaceWgmma(llvm::CallInst &call, llvm::StringRef text);
  bool replaceOrder(llvm::CallInst &call, llvm::StringRef text);
  bool replaceTensorCopy(llvm::CallInst &call, llvm::StringRef name);
  void setSite(Builder &b, llvm::CallInst &call, llvm::StringRef name);
  llvm::Value *toEmulator(Builder &b, llvm::Value *value);
  llvm::Value *fromEmulator(Builder &b, llvm::Value *value, llvm::Type *type);
  void replace(llvm::CallInst &call, llvm::Value *value);

  // Matrices.
  llvm::AllocaInst *array(KernelRecord &kernel, llvm::AllocaInst *&place);
  void replaceMatrixCalls(KernelRecord &kernel);
  bool knowsAll(llvm::ArrayRef<llvm::CallInst *> calls);
  void replaceMatrixGroup(llvm::ArrayRef<llvm::CallInst *> calls);
  bool replaceStoreMatrix(llvm::CallInst &call, llvm::StringRef name);

  // Legalization.
  llvm::Value *toFloat(Builder &b, llvm::Value *value);
  llvm::Value *toBFloat(Builder &b, llvm::Value *value);
  bool legalizeBFloat(llvm::Instruction &instruction);
  void guardDivision(llvm::BinaryOperator &division);
  void replaceFence(llvm::FenceInst &fence);

  llvm::Module &module;
  std::vector<KernelRecord> kernels;
  llvm::DenseMap<llvm::Function *, size_t> kernelIndex;
  std::vector<std::string> sites;
  llvm::MapVector<std::string, uint32_t, llvm::StringMap<unsigned>> functions;
  llvm::GlobalVariable *functionTable = nullptr;
  std::vector<llvm::GlobalVariable *> constants;
  std::vector<std::string> errors;
};

/// Looks up the emulator's function `name`; false where there is none.
bool findFunction(llvm::StringRef name, FunctionKind &kind);

} // namespace tandem::emulation

#endif
