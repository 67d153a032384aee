//===- LoopsParts.cpp - CUDA kernels of one or many loop nests ------------===//
//
// Each part has blocks of its own. Parts that differ in nothing but their
// buffers share code, in which a block chooses its pointers: so fifty updates
// of vectors are as much code as one.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/cuda/Methods.h"
#include "passes/lower/cuda/loops/LoopEmitter.h"
#include "passes/plan/InPlace.h"

#include "mlir/IR/OperationSupport.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cuda;

namespace {
/// Parts that share code, that of the first of them.
struct Form {
  const LoopNest *nest;
  SmallVector<Value> results; ///< of the first part, as the kernel yields them
  unsigned firstResult;
  SmallVector<unsigned> inputs; ///< those that the first part reads
  /// Of each part what stands for these inputs and results, by number.
  struct Part {
    SmallVector<unsigned> inputs;
    unsigned firstResult;
  };
  SmallVector<Part> parts;
};

using Known = DenseMap<Value, Value>;
} // namespace

/// True if `other` is computed as `one` is, but for what they read. `known`
/// gets what stands for each value of the one.
static bool isAlike(Value one, Value other, Known &known) {
  auto [entry, isNew] = known.try_emplace(one, other);
  if (!isNew)
    return entry->second == other;
  if (one.getType() != other.getType())
    return false;
  Operation *x = one.getDefiningOp(), *y = other.getDefiningOp();
  if (!x || !y)
    return !x && !y;
  if (!OperationEquivalence::isEquivalentTo(
          x, y, OperationEquivalence::ignoreValueEquivalence,
          /*markEquivalent=*/nullptr, OperationEquivalence::IgnoreLocations) ||
      cast<OpResult>(one).getResultNumber() !=
          cast<OpResult>(other).getResultNumber())
    return false;
  for (auto [a, b] : llvm::zip_equal(x->getOperands(), y->getOperands()))
    if (!isAlike(a, b, known))
      return false;
  return true;
}

/// Adds the part whose results are `results` if it is of this form.
/// `overwritten` says which inputs the kernel's results lie in.
static bool addPart(Form &form, ArrayRef<Value> results, unsigned firstResult,
                    ArrayRef<int64_t> overwritten, Block &body) {
  if (results.size() != form.results.size())
    return false;
  Known known;
  for (auto [one, other] : llvm::zip_equal(form.results, results))
    if (!isAlike(one, other, known))
      return false;
  auto numberOf = [&](unsigned input) -> std::optional<unsigned> {
    if (Value stands = known.lookup(body.getArgument(input)))
      return cast<BlockArgument>(stands).getArgNumber();
    return std::nullopt;
  };
  for (size_t i = 0; i < results.size(); ++i) {
    int64_t one = overwritten[form.firstResult + i];
    int64_t other = overwritten[firstResult + i];
    if ((one < 0) != (other < 0) ||
        (one >= 0 && numberOf(static_cast<unsigned>(one)) != other))
      return false;
  }
  Form::Part &part = form.parts.emplace_back();
  part.firstResult = firstResult;
  for (unsigned input : form.inputs)
    part.inputs.push_back(*numberOf(input));
  return true;
}

/// A form of the part alone.
static Form formOf(const LoopNest &nest, ArrayRef<Value> results,
                   unsigned firstResult) {
  Form form{&nest, SmallVector<Value>(results), firstResult, {}, {}};
  Known seen;
  for (Value result : results)
    (void)isAlike(result, result, seen);
  for (auto [value, same] : seen)
    if (auto argument = dyn_cast<BlockArgument>(value))
      form.inputs.push_back(argument.getArgNumber());
  llvm::sort(form.inputs);
  form.parts.push_back({form.inputs, firstResult});
  return form;
}

static std::vector<Form> formsOf(const LoopKernel &loops) {
  KernelOp kernel = loops.kernel;
  SmallVector<int64_t> overwritten = inPlaceInputs(kernel);
  Block &body = kernel.getBody().front();
  std::vector<Form> forms;
  unsigned firstResult = 0;
  for (auto [nest, results] : llvm::zip_equal(loops.nests, partsOf(kernel))) {
    if (llvm::none_of(forms, [&](Form &form) {
          return addPart(form, results, firstResult, overwritten, body);
        }))
      forms.push_back(formOf(nest, results, firstResult));
    firstResult += results.size();
  }
  return forms;
}

/// Of lists of equal length the one with this number, which is at least
/// `first`.
static SmallVector<Value> choose(ThreadCode &code,
                                 ArrayRef<SmallVector<Value>> lists,
                                 int64_t first, Value number) {
  if (lists.size() == 1)
    return lists[0];
  auto half = static_cast<int64_t>(lists.size() / 2);
  auto branch = scf::IfOp::create(
      code.b, code.loc, ValueRange(lists[0]).getTypes(),
      code.less(number, code.index(first + half)), /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(code.b);
  code.b.setInsertionPointToStart(&branch.getThenRegion().front());
  scf::YieldOp::create(code.b, code.loc,
                       choose(code, lists.take_front(half), first, number));
  code.b.setInsertionPointToStart(&branch.getElseRegion().front());
  scf::YieldOp::create(
      code.b, code.loc,
      choose(code, lists.drop_front(half), first + half, number));
  return branch.getResults();
}

/// The kernel's body with the buffers of the part in the places of the first
/// one's.
static lower::KernelBody bodyOf(const LoopKernel &loops, const Form &form,
                                Value part) {
  lower::KernelBody body = loops.body;
  // What all parts have in common needs no choice, and what lies in one place
  // one alone.
  SmallVector<SmallVector<Value>> columns;
  SmallVector<std::pair<Value *, size_t>> places;
  auto add = [&](Value &place, auto bufferOf) {
    SmallVector<Value> column =
        llvm::map_to_vector(form.parts, [&](const Form::Part &one) -> Value {
          return bufferOf(one);
        });
    if (llvm::all_equal(column))
      return;
    auto *found = llvm::find(columns, column);
    places.push_back({&place, found - columns.begin()});
    if (found == columns.end())
      columns.push_back(std::move(column));
  };
  for (auto [i, input] : llvm::enumerate(form.inputs))
    add(body.inputs[input], [&, i = i](const Form::Part &one) {
      return loops.body.inputs[one.inputs[i]];
    });
  for (size_t i = 0; i < form.results.size(); ++i)
    add(body.outputs[form.firstResult + i], [&](const Form::Part &one) {
      return loops.body.outputs[one.firstResult + i];
    });
  SmallVector<SmallVector<Value>> lists(form.parts.size());
  for (const SmallVector<Value> &column : columns)
    for (auto [list, buffer] : llvm::zip_equal(lists, column))
      list.push_back(buffer);
  if (!columns.empty()) {
    SmallVector<Value> chosen = choose(loops.code, lists, 0, part);
    for (auto [place, number] : places)
      *place = chosen[number];
  }
  return body;
}

static int64_t blocksOf(LoopEmitter &emitter, const LoopNest &nest) {
  return nest.reductions.empty() ? emitter.pointwiseBlocks()
                                 : emitter.columnBlocks();
}

/// The code of a form, of which each part has `blocks` blocks.
static void emitForm(const LoopKernel &loops, const Form &form, Value block,
                     int64_t blocks) {
  ThreadCode &code = loops.code;
  lower::KernelBody body = loops.body;
  if (form.parts.size() > 1) {
    auto [part, rest] = code.split(block, blocks);
    body = bodyOf(loops, form, part);
    block = rest;
  }
  LoopEmitter emitter(loops.kernel, *form.nest, form.firstResult, code, body);
  emitter.use(shareNumbers(loops.kernel, form.results, code, body));
  if (form.nest->reductions.empty())
    emitter.emitPointwise(block);
  else
    emitter.emitColumns(block);
}

/// The code of the forms from `low` to `high`, which have the blocks from
/// firsts[low] to firsts[high].
static void emitForms(const LoopKernel &loops, ArrayRef<Form> forms,
                      ArrayRef<int64_t> firsts, size_t low, size_t high) {
  ThreadCode &code = loops.code;
  if (high - low == 1)
    return code.alternative([&] {
      emitForm(loops, forms[low], code.add(code.block(), -firsts[low]),
               (firsts[high] - firsts[low]) /
                   static_cast<int64_t>(forms[low].parts.size()));
    });
  size_t middle = (low + high) / 2;
  code.when(
      code.less(code.block(), code.index(firsts[middle])),
      [&] { emitForms(loops, forms, firsts, low, middle); },
      [&] { emitForms(loops, forms, firsts, middle, high); });
}

LaunchShape lower::cuda::emitParts(const LoopKernel &loops) {
  LaunchShape shape;
  shape.block[0] = kPartThreads;
  if (loops.nests.size() == 1) {
    const LoopNest &nest = loops.nests.front();
    if (nest.reductions.empty())
      loops.first.emitPointwise(loops.code.block());
    else
      loops.first.emitColumns(loops.code.block());
    shape.grid[0] = blocksOf(loops.first, nest);
    return shape;
  }
  std::vector<Form> forms = formsOf(loops);
  SmallVector<int64_t> firsts{0};
  for (const Form &form : forms) {
    LoopEmitter emitter(loops.kernel, *form.nest, form.firstResult, loops.code,
                        loops.body);
    firsts.push_back(firsts.back() + static_cast<int64_t>(form.parts.size()) *
                                         blocksOf(emitter, *form.nest));
  }
  emitForms(loops, forms, firsts, 0, forms.size());
  shape.grid[0] = firsts.back();
  return shape;
}
