//===- PlanMemory.cpp - where every value of a program lives --------------===//
#include "passes/plan/PlanMemory.h"
#include "ir/EmptyTensors.h"
#include "ir/Signature.h"
#include "passes/Passes.h"
#include "passes/plan/FormKernels.h"
#include "passes/plan/HostCopies.h"
#include "passes/plan/KernelBytes.h"
#include "passes/plan/Libraries.h"
#include "passes/plan/Pack.h"
#include "passes/plan/Storage.h"

#include "llvm/Support/MathExtras.h"

#include <numeric>

namespace tandem {
#define GEN_PASS_DEF_PLANMEMORY
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

namespace {
/// One value, or several that overwrite each other: in the arena, or in the
/// storage of a donated argument.
struct Life {
  int64_t bytes, first, last;
  int64_t offset = -1, argument = -1;
  bool isWorkspace = false; ///< of a library's call
  bool isCopied = false;    ///< whole, instead of a kernel that may not run
  bool isOnHost = false;
  bool isCut = false; ///< read in many parts, which only the arena has
};

/// From so many readers of a part of a value on, that their code is shared
/// (NarrowInputs.cpp) is worth the value's bytes.
constexpr int64_t kManyParts = 8;

/// A saved value that may be overwritten, and when there is something in it.
struct Donated {
  int64_t argument, bytes;
  SmallVector<std::pair<int64_t, int64_t>, 2> taken;
};

class Planner {
public:
  Planner(func::FuncOp func, ArrayRef<KernelOp> kernels, InPlacePairs &pairs)
      : func(func), b(func.getContext()), pairs(pairs), kernels(kernels),
        storage(func) {}
  /// Finds a place for everything; changes nothing.
  void plan();
  /// What the program needs of its own.
  int64_t bytes() const { return arena + staged; }
  /// The bytes of the arena in use while each kernel runs.
  std::vector<int64_t> bytesInUse() const;
  void write();

private:
  void findLifetimes();
  void findDonated();
  void placeResults();
  void placeInArena();
  void markCopied();
  void assignOffsets();
  bool placeInDonated(Life &life);
  std::vector<PackedBlock> blocks(bool isAligned) const;
  bool overwrites(unsigned kernel, unsigned result, Value source);
  BufferAttr buffer(BufferPlace place, int64_t position) {
    return BufferAttr::get(func.getContext(), place, position);
  }

  func::FuncOp func;
  Builder b;
  InPlacePairs &pairs;
  ArrayRef<KernelOp> kernels; ///< as they will run
  ArgumentStorage storage;
  /// Sources (arguments, constants, kernel results; never views): the kernels
  /// that read them, rising.
  DenseMap<Value, SmallVector<int64_t>> readers;
  DenseMap<Value, int64_t> partReaders; ///< kernels that read a part alone
  DenseMap<Value, BufferAttr> places;
  DenseMap<Value, unsigned> lifeOf;
  std::vector<Life> lives;
  std::vector<Donated> donated;
  DenseMap<Operation *, SmallVector<InPlacePair>> inPlace;
  SmallVector<unsigned> updatedInPlace; ///< results
  /// Bytes of the arena, of the host's memory, and of updates beside what they
  /// are of.
  int64_t arena = 0, host = 0, staged = 0;
  DenseMap<Operation *, unsigned> workspaces; ///< their lives
};
} // namespace

void Planner::findLifetimes() {
  for (size_t k = 0; k < kernels.size(); ++k) {
    auto index = static_cast<int64_t>(k);
    KernelOp kernel = kernels[k];
    for (auto [input, argument] :
         llvm::zip_equal(kernel.getInputs(), kernel.getBody().getArguments())) {
      Value source = throughFreeViews(input);
      SmallVector<int64_t> &list = readers[source];
      if (list.empty() || list.back() != index)
        list.push_back(index);
      if (source.getDefiningOp() && bytesRead(argument) < bytesOf(input))
        ++partReaders[source];
    }
  }
}

/// Saved values that may be overwritten live from before the first kernel.
void Planner::findDonated() {
  for (BlockArgument argument : func.getArguments()) {
    if (!storage.isDonated(argument.getArgNumber()))
      continue;
    auto &list = readers[argument];
    int64_t last = list.empty() ? -1 : list.back();
    lifeOf[argument] = lives.size();
    lives.push_back({byteSize(typeOf(argument)), -1, last, -1,
                     static_cast<int64_t>(argument.getArgNumber())});
  }
}

/// The kernel's result overwrites the storage of `source`, if it can: the
/// kernel reads it once (or not at all), nobody reads it later, and no other
/// argument shows it.
bool Planner::overwrites(unsigned kernel, unsigned result, Value source) {
  if (auto argument = dyn_cast<BlockArgument>(source);
      argument && !storage.isOwn(argument.getArgNumber()))
    return false;
  auto &list = readers[source];
  if (!list.empty() && list.back() > kernel)
    return false;
  KernelOp op = kernels[kernel];
  std::optional<unsigned> which;
  for (auto [i, input] : llvm::enumerate(op.getInputs())) {
    if (throughFreeViews(input) != source)
      continue;
    if (which)
      return false;
    which = i;
  }
  if (!which)
    return true;
  if (!llvm::is_contained(pairs.of(op), InPlacePair(result, *which)))
    return false;
  inPlace[op].push_back({result, *which});
  return true;
}

void Planner::placeResults() {
  DenseMap<Operation *, unsigned> number;
  for (auto [i, kernel] : llvm::enumerate(kernels))
    number[kernel] = i;
  Operation *terminator = func.getBody().front().getTerminator();
  DenseSet<unsigned> taken;
  for (auto [i, returned] : llvm::enumerate(terminator->getOperands())) {
    if (isEmptyTensor(returned.getType()))
      continue;
    auto source = cast<OpResult>(throughFreeViews(returned));
    BufferAttr place = buffer(BufferPlace::Result, i);
    RoleAttr role = roleOfResult(func, i);
    if (role && role.getKind() == RoleKind::Saved && role.has(RoleAttr::kAlias))
      continue; // the output that it lies in has the place
    if (role && role.getKind() == RoleKind::Update) {
      auto argument = storage.updatedArgument(role.getName());
      if (argument && !taken.contains(*argument) &&
          func.getArgument(*argument).getType() == returned.getType() &&
          overwrites(number[source.getOwner()], source.getResultNumber(),
                     func.getArgument(*argument))) {
        taken.insert(*argument);
        place = buffer(BufferPlace::Argument, *argument);
        updatedInPlace.push_back(i);
      } else {
        staged += byteSize(typeOf(returned));
      }
    }
    places[source] = place;
  }
}

/// What a launch copies instead of running its kernel has the size of a buffer.
void Planner::markCopied() {
  auto mark = [&](Value value) {
    if (auto life = lifeOf.find(throughFreeViews(value)); life != lifeOf.end())
      lives[life->second].isCopied = true;
  };
  for (KernelOp kernel : kernels)
    if (kernel.getChoicesAttr()) {
      llvm::for_each(kernel.getInputs(), mark);
      llvm::for_each(kernel.getResults(), mark);
    }
}

void Planner::placeInArena() {
  for (size_t k = 0; k < kernels.size(); ++k) {
    KernelOp kernel = kernels[k];
    if (int64_t bytes = libraryWorkspace(kernel)) {
      workspaces[kernel] = lives.size();
      auto number = static_cast<int64_t>(k);
      lives.push_back({bytes, number, number, -1, -1, true});
    }
    DenseSet<unsigned> taken;
    for (auto [r, result] : llvm::enumerate(kernel.getResults())) {
      if (places.contains(result))
        continue;
      auto &list = readers[result];
      int64_t last = list.empty() ? static_cast<int64_t>(k) : list.back();
      int64_t bytes = byteSize(typeOf(result));
      // In the place of an input that dies here?
      bool found = false;
      for (Value input : kernel.getInputs()) {
        Value source = throughFreeViews(input);
        auto life = lifeOf.find(source);
        if (life == lifeOf.end() ||
            lives[life->second].last != static_cast<int64_t>(k) ||
            lives[life->second].bytes != bytes ||
            taken.contains(life->second) || !overwrites(k, r, source))
          continue;
        taken.insert(life->second);
        lives[life->second].last = last;
        unsigned shared = life->second;
        lifeOf[result] = shared;
        found = true;
        break;
      }
      if (found)
        continue;
      lifeOf[result] = lives.size();
      lives.push_back({bytes, static_cast<int64_t>(k), last});
      lives.back().isOnHost = isOnHost(result);
      lives.back().isCut = partReaders.lookup(result) >= kManyParts;
    }
  }
}

static int64_t aligned(int64_t bytes) {
  return llvm::alignTo(bytes, kBufferAlignment);
}

/// Puts a life into the storage of a saved value in which nothing lives
/// meanwhile, the smallest that is large enough, if there is one.
bool Planner::placeInDonated(Life &life) {
  Donated *best = nullptr;
  for (Donated &saved : donated)
    if ((life.isCopied ? saved.bytes == life.bytes
                       : saved.bytes >= life.bytes) &&
        (!best || saved.bytes < best->bytes) &&
        llvm::none_of(saved.taken, [&](auto &taken) {
          return taken.first <= life.last && life.first <= taken.second;
        }))
      best = &saved;
  if (!best)
    return false;
  best->taken.push_back({life.first, life.last});
  life.argument = best->argument;
  return true;
}

/// Each life in a saved value that is not needed any more, the largest first,
/// or in the arena.
void Planner::assignOffsets() {
  std::vector<unsigned> order;
  for (auto [i, life] : llvm::enumerate(lives))
    if (life.argument < 0)
      order.push_back(i);
    else
      donated.push_back({life.argument, life.bytes, {{life.first, life.last}}});
  llvm::sort(order, [&](unsigned x, unsigned y) {
    return std::make_tuple(-lives[x].bytes, lives[x].first, x) <
           std::make_tuple(-lives[y].bytes, lives[y].first, y);
  });
  // The arena, and the host's memory.
  std::vector<unsigned> packed[2];
  std::vector<PackedBlock> blocks[2];
  for (unsigned i : order) {
    Life &life = lives[i];
    if (!life.isWorkspace && !life.isOnHost && !life.isCut &&
        placeInDonated(life))
      continue;
    packed[life.isOnHost].push_back(i);
    blocks[life.isOnHost].push_back(
        {aligned(life.bytes), life.first, life.last});
  }
  arena = packBlocks(blocks[0]);
  host = packBlocks(blocks[1]);
  for (int space : {0, 1})
    for (auto [i, block] : llvm::zip_equal(packed[space], blocks[space]))
      lives[i].offset = block.offset;
}

/// What is in the arena.
std::vector<PackedBlock> Planner::blocks(bool isAligned) const {
  std::vector<PackedBlock> blocks;
  for (const Life &life : lives)
    if (life.argument < 0 && !life.isOnHost)
      blocks.push_back({isAligned ? aligned(life.bytes) : life.bytes,
                        life.first, life.last});
  return blocks;
}

std::vector<int64_t> Planner::bytesInUse() const {
  std::vector<int64_t> bytes(kernels.size() + 1, 0);
  for (const PackedBlock &block : blocks(/*isAligned=*/true)) {
    bytes[block.first] += block.bytes;
    bytes[block.last + 1] -= block.bytes;
  }
  std::partial_sum(bytes.begin(), bytes.end(), bytes.begin());
  return bytes;
}

void Planner::plan() {
  findLifetimes();
  findDonated();
  placeResults();
  placeInArena();
  markCopied();
  assignOffsets();
}

void Planner::write() {
  SmallVector<RoleAttr> roles;
  for (unsigned i = 0, n = func.getNumResults(); i < n; ++i)
    roles.push_back(roleOfResult(func, i));
  for (unsigned i : updatedInPlace)
    roles[i] = roles[i].withUnit(RoleAttr::kInPlace);
  setRolesOfResults(func, roles);
  for (KernelOp kernel : kernels) {
    SmallVector<Attribute> buffers;
    for (Value result : kernel.getResults()) {
      if (auto place = places.find(result); place != places.end()) {
        buffers.push_back(place->second);
        continue;
      }
      const Life &life = lives[lifeOf[result]];
      buffers.push_back(life.argument < 0
                            ? buffer(BufferPlace::Arena, life.offset)
                            : buffer(BufferPlace::Argument, life.argument));
    }
    kernel.setBuffersAttr(b.getArrayAttr(buffers));
    if (auto workspace = workspaces.find(kernel); workspace != workspaces.end())
      placeLibraryWorkspace(kernel, lives[workspace->second].offset);
    if (auto pairs = inPlace.find(kernel); pairs != inPlace.end()) {
      kernel.setInPlaceAttr(InPlaceAttr::get(b.getContext(), pairs->second));
      // A library reads its operands at any time.
      kernel.removeLibraryAttr();
    }
  }
  func->setAttr(kPlanAttr,
                PlanAttr::get(b.getContext(), arena, mostInUse(blocks(true)),
                              mostInUse(blocks(false)), host));
}

int64_t tandem::plannedBytes(func::FuncOp func, ArrayRef<KernelOp> kernels,
                             InPlacePairs &pairs) {
  Planner planner(func, kernels, pairs);
  planner.plan();
  return planner.bytes();
}

std::vector<int64_t> tandem::plannedBytesInUse(func::FuncOp func,
                                               ArrayRef<KernelOp> kernels,
                                               InPlacePairs &pairs) {
  Planner planner(func, kernels, pairs);
  planner.plan();
  return planner.bytesInUse();
}

namespace {
struct PlanMemory : tandem::impl::PlanMemoryBase<PlanMemory> {
  void runOnOperation() final {
    func::FuncOp func = getOperation();
    SmallVector<KernelOp> kernels(func.getOps<KernelOp>());
    Planner planner(func, kernels, getAnalysis<InPlacePairs>());
    planner.plan();
    planner.write();
    markAnalysesPreserved<InPlacePairs>();
  }
};
} // namespace
