//===- CheckPlan.cpp - the door behind plan -------------------------------===//
#include "passes/plan/FormKernels.h"
#include "passes/plan/HostCopies.h"
#include "passes/plan/Libraries.h"
#include "passes/plan/PlanMemory.h"
#include "passes/plan/Storage.h"

#include "ir/Signature.h"

#include <map>

using namespace mlir;
using namespace tandem;

LogicalResult tandem::checkPlan(func::FuncOp func) {
  bool failed = false;
  auto error = [&](Operation *op) {
    failed = true;
    return op->emitOpError();
  };
  // Only a copy leads to the host's memory, or away from it.
  auto checkHostCopy = [&](KernelOp kernel) {
    Operation *copy = hostCopyOf(kernel);
    for (Value input : kernel.getInputs())
      if (isOnHost(throughFreeViews(input)) !=
          isa_and_nonnull<ToDeviceOp>(copy)) {
        error(kernel) << "expected a copy from the host's memory, and nothing "
                         "else, to read what is there";
        break;
      }
  };
  auto plan = func->getAttrOfType<DictionaryAttr>(kPlanAttr);
  auto arena = plan ? plan.getAs<IntegerAttr>("arena_bytes") : IntegerAttr();
  if (!arena)
    return error(func) << "expected '" << kPlanAttr << "' with 'arena_bytes'";

  auto hostPlan = plan.getAs<IntegerAttr>("host_bytes");
  int64_t hostBytes = hostPlan ? hostPlan.getInt() : 0;

  SmallVector<KernelOp> kernels(func.getOps<KernelOp>());
  // Who reads a value last; returned values live to the end.
  DenseMap<Value, size_t> last;
  for (auto [k, kernel] : llvm::enumerate(kernels))
    for (Value input : kernel.getInputs())
      last[throughFreeViews(input)] = k;
  for (Value value : func.getBody().front().getTerminator()->getOperands())
    last[throughFreeViews(value)] = kernels.size();

  // What is in each argument's storage, and which ones may be overwritten.
  SmallVector<Value> held(func.getArguments().begin(),
                          func.getArguments().end());
  ArgumentStorage storage(func);
  SmallVector<bool> mayWrite;
  for (unsigned i = 0; i < func.getNumArguments(); ++i)
    mayWrite.push_back(storage.isOwn(i));
  llvm::BitVector isUpdated(func.getNumArguments());
  for (unsigned i = 0, n = func.getNumResults(); i < n; ++i)
    if (RoleAttr role = roleOfResult(func, i);
        role && role.getKind() == RoleKind::Update && role.has("in_place"))
      if (auto argument = storage.updatedArgument(role.getName()))
        isUpdated.set(*argument);
  for (unsigned i = 0; i < mayWrite.size(); ++i)
    mayWrite[i] = mayWrite[i] && (isUpdated[i] || storage.isDonated(i));

  struct Buffer {
    int64_t end;
    Value value;
  };
  // By offset; first in the arena, then in the host's memory.
  std::map<int64_t, Buffer> spaces[2];
  std::map<int64_t, Buffer> &live = spaces[0];
  DenseMap<Value, std::pair<bool, int64_t>> offsets;
  std::multimap<size_t, Value> dying;
  auto release = [&](Value value) {
    auto found = offsets.find(value);
    if (found == offsets.end())
      return;
    spaces[found->second.first].erase(found->second.second);
    offsets.erase(found);
  };
  for (auto [k, kernel] : llvm::enumerate(kernels)) {
    ArrayAttr buffers = kernel.getBuffersAttr();
    if (!buffers) {
      error(kernel) << "expected 'buffers'";
      continue;
    }
    while (!dying.empty() && dying.begin()->first < k) {
      release(dying.begin()->second);
      dying.erase(dying.begin());
    }
    auto call = kernel->getAttrOfType<DictionaryAttr>(kLibraryAttr);
    auto workspace =
        call ? call.getAs<IntegerAttr>("workspace") : IntegerAttr();
    auto overlapsWorkspace = [&](int64_t begin, int64_t end) {
      return workspace &&
             begin < workspace.getInt() + libraryWorkspace(kernel) &&
             workspace.getInt() < end;
    };
    if (workspace &&
        (workspace.getInt() < 0 || workspace.getInt() % kBufferAlignment ||
         libraryWorkspace(kernel) < 0 ||
         workspace.getInt() + libraryWorkspace(kernel) > arena.getInt()))
      error(kernel) << "expected an aligned workspace within the arena";
    for (auto &[begin, buffer] : live)
      if (overlapsWorkspace(begin, buffer.end))
        error(kernel) << "has its workspace where a value lives";
    checkHostCopy(kernel);
    SmallVector<Value> overwritten;
    if (auto pairs = kernel->getAttrOfType<ArrayAttr>(kInPlaceAttr))
      for (Attribute pair : pairs) {
        auto numbers = dyn_cast<DenseI64ArrayAttr>(pair);
        if (!numbers || numbers.size() != 2 || numbers[0] < 0 ||
            numbers[0] >= kernel.getNumResults() || numbers[1] < 0 ||
            numbers[1] >= static_cast<int64_t>(kernel.getInputs().size())) {
          error(kernel) << "expected 'in_place' to be pairs of a result and an "
                           "input, but got "
                        << pair;
          continue;
        }
        Value source = throughFreeViews(kernel.getInputs()[numbers[1]]);
        if (last[source] != k)
          error(kernel) << "overwrites input #" << numbers[1]
                        << ", which is read later";
        overwritten.push_back(source);
        release(source);
      }
    for (auto [result, attribute] :
         llvm::zip_equal(kernel.getResults(), buffers)) {
      auto place = cast<BufferAttr>(attribute);
      if (place.getPlace() == BufferPlace::Argument) {
        auto index = static_cast<size_t>(place.getPosition());
        if (index >= held.size() || !mayWrite[index]) {
          error(kernel) << "expected to overwrite only what is updated in "
                           "place or not needed any more, but got "
                        << place;
          continue;
        }
        auto reader = last.find(held[index]);
        if (reader != last.end() && reader->second >= k &&
            !(reader->second == k &&
              llvm::is_contained(overwritten, held[index])))
          error(kernel) << "overwrites " << place << ", which is read later";
        held[index] = result;
      }
      if (place.getPlace() != BufferPlace::Arena)
        continue;
      bool inHost = isOnHost(result);
      int64_t begin = place.getPosition();
      int64_t end = begin + byteSize(cast<RankedTensorType>(result.getType()));
      if (begin % kBufferAlignment ||
          end > (inHost ? hostBytes : arena.getInt()))
        error(kernel) << "expected aligned places within the arena, but got "
                      << place;
      if (!inHost && overlapsWorkspace(begin, end))
        error(kernel) << "has its workspace where its result is";
      std::map<int64_t, Buffer> &space = spaces[inHost];
      auto after = space.lower_bound(begin);
      bool overlaps = after != space.end() && after->first < end;
      if (after != space.begin())
        overlaps |= std::prev(after)->second.end > begin;
      if (overlaps) {
        error(kernel) << "expected values that live at once to have places of "
                         "their own, but "
                      << place << " is taken";
        continue;
      }
      space[begin] = {end, result};
      offsets[result] = {inHost, begin};
      auto reader = last.find(result);
      dying.insert({reader == last.end() ? k : reader->second, result});
    }
  }
  return failure(failed);
}
