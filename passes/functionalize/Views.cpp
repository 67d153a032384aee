//===- Views.cpp - what refs show, as values ------------------------------===//
#include "passes/functionalize/Views.h"

#include "ir/BuildOp.h"
#include "ir/Keys.h"
#include "ir/Ops.h"
#include "ir/Tags.h"
#include "ir/Where.h"
#include "ir/reference/Array.h"

#include "llvm/ADT/BitVector.h"

#include <numeric>

using namespace mlir;
using namespace tandem;

std::string StorageState::str() const {
  return role ? nameOfArgument(role, index) : "a ref";
}

StorageState *Views::addStorage(RankedTensorType type, Value value,
                                Location loc) {
  StorageState &storage = storages.emplace_back();
  View &whole = views.emplace_back(loc);
  whole.storage = &storage;
  whole.type = type;
  whole.value = value;
  storage.whole = &whole;
  return &storage;
}

View *Views::intern(View *source, StringAttr op, DictionaryAttr attributes,
                    RankedTensorType type, Location loc) {
  for (View *view : source->views)
    if (view->op == op && view->attributes == attributes && view->type == type)
      return view;
  View &view = views.emplace_back(loc);
  view.storage = source->storage;
  view.source = source;
  view.op = op;
  view.attributes = attributes;
  view.type = type;
  view.isHidden = source->isHidden || attributes.contains(kNoGradAttr) ||
                  op.getValue() == DetachOp::getOperationName();
  source->views.push_back(&view);
  return &view;
}

View *Views::add(View *source, Operation *op) {
  RankedTensorType type = tensorTypeOf(op->getResult(0).getType());
  // The same shape again, say, is the same view.
  if (isa<ReshapeOp>(op) && type == source->type && !op->hasAttr(kNoGradAttr))
    return source;
  // Two views are one, whatever they are tagged with.
  NamedAttrList attributes(op->getAttrDictionary());
  for (NamedAttribute attribute : op->getDiscardableAttrs())
    if (isTag(attribute.getName()))
      attributes.erase(attribute.getName());
  return intern(source, op->getName().getIdentifier(),
                attributes.getDictionary(op->getContext()), type, op->getLoc());
}

View *Views::addTransposed(View *source, int64_t a, int64_t b, Location loc) {
  SmallVector<int64_t> permutation(source->type.getRank());
  std::iota(permutation.begin(), permutation.end(), 0);
  std::swap(permutation[a], permutation[b]);
  auto op = builder.getStringAttr(PermuteOp::getOperationName());
  // One permutation of another is one; none at all is the source itself.
  if (source->source && !source->isHandle && source->op == op &&
      source->attributes.size() == 1) {
    auto before = source->attributes.getAs<DenseI64ArrayAttr>("permutation");
    SmallVector<int64_t> both;
    for (int64_t d : permutation)
      both.push_back(before[d]);
    permutation = both;
    source = source->source;
  }
  if (llvm::is_sorted(permutation))
    return source;
  SmallVector<int64_t> shape;
  for (int64_t d : permutation)
    shape.push_back(source->type.getDimSize(d));
  auto attributes = builder.getDictionaryAttr(builder.getNamedAttr(
      key::kPermutation, builder.getDenseI64ArrayAttr(permutation)));
  return intern(source, op, attributes, source->type.clone(shape), loc);
}

View *Views::add(View *source, ArrayAttr steps, Location loc) {
  for (Attribute attribute : steps) {
    NamedAttrList attributes(cast<DictionaryAttr>(attribute));
    auto name = cast<StringAttr>(attributes.erase("op"));
    SmallVector<Type> types;
    if (auto element = dyn_cast_or_null<TypeAttr>(attributes.erase("type")))
      types.push_back(source->type.clone(element.getValue()));
    // Made of a stand-in, for its type.
    Value any = UndefinedOp::create(builder, loc, source->type);
    auto made = buildOp(builder, loc, name, any, attributes, types);
    View *view = nullptr;
    if (succeeded(made)) {
      if (isa<RefViewOpInterface>(*made))
        view = add(source, *made);
      else
        mlir::emitError(loc)
            << "expected views, but got '" << name.getValue() << "'";
      (*made)->erase();
    }
    any.getDefiningOp()->erase();
    if (!view)
      return nullptr;
    source = view;
  }
  return source;
}

View *Views::rebase(View *view, StorageState *storage) {
  if (!view->source)
    return storage->whole;
  return intern(rebase(view->source, storage), view->op, view->attributes,
                view->type, view->loc);
}

Operation *Views::build(const View *view, Value source) {
  OperationState state(view->loc, view->op.getValue(), source, view->type,
                       view->attributes.getValue());
  Operation *op = builder.create(state);
  // Said of outputs by their roles.
  op->removeAttr(kPartOfAttr);
  return op;
}

Value Views::known(const View *view) const {
  return view->version == view->storage->version ? view->value : Value();
}

Value Views::read(View *view) {
  if (view->storage->isFreed)
    return {};
  if (Value value = known(view))
    return value;
  view->value = build(view, read(view->source))->getResult(0);
  view->version = view->storage->version;
  return view->value;
}

View *Views::withoutBitcasts(View *view) {
  if (!view->source)
    return view;
  View *source = withoutBitcasts(view->source);
  if (view->op.getValue() == BitcastOp::getOperationName())
    return source;
  return intern(source, view->op, view->attributes,
                view->type.clone(source->type.getElementType()), view->loc);
}

static std::vector<double> positionsOf(const View *view);

/// The value of a whole storage, `base`, with the elements of `view` in it;
/// null if two of these are one in storage, or if their type is another.
static Value scatterByPosition(OpBuilder &b, Location loc, const View *view,
                               Value elements, Value base) {
  auto type = cast<RankedTensorType>(base.getType());
  if (type.getElementType() != view->type.getElementType())
    return {};
  SmallVector<int64_t> from(type.getNumElements());
  std::iota(from.begin(), from.end(), 0);
  for (auto [i, position] : llvm::enumerate(positionsOf(view))) {
    auto &source = from[static_cast<size_t>(position)];
    if (source >= type.getNumElements())
      return {};
    source = type.getNumElements() + static_cast<int64_t>(i);
  }
  auto flat = [&](Value value) -> Value {
    int64_t size = cast<RankedTensorType>(value.getType()).getNumElements();
    return ReshapeOp::create(b, loc, value, ArrayRef<int64_t>{size});
  };
  Value both =
      ConcatOp::create(b, loc, ValueRange{flat(base), flat(elements)}, 0);
  auto indexType = RankedTensorType::get(type.getNumElements(), b.getI64Type());
  Value indices = ConstantOp::create(
      b, loc, DenseIntElementsAttr::get(indexType, ArrayRef<int64_t>(from)));
  return ReshapeOp::create(b, loc, TakeOp::create(b, loc, both, indices),
                           type.getShape());
}

Value Views::scatter(View *view, Value value, Location loc, View *&culprit,
                     SmallVectorImpl<std::pair<View *, Value>> &written) {
  written.push_back({view, value});
  // What is not written keeps its bits, also those that another type of
  // elements has no number for: they do not pass through that type.
  if (hasBitcast(view)) {
    view = withoutBitcasts(view);
    value = BitcastOp::create(builder, loc, view->type, value);
    written.push_back({view, value});
  }
  for (; view->source; view = view->source) {
    Value base = read(view->source);
    Operation *op = build(view, base);
    value = cast<RefViewOpInterface>(op).scatterInto(builder, loc, base, value);
    op->erase();
    if (!value) {
      // Its elements overlap, but those that are written need not.
      culprit = view;
      auto [shown, elements] = written.front();
      written.resize(1);
      value = scatterByPosition(builder, loc, shown, elements,
                                read(view->storage->whole));
      if (value)
        written.push_back({view->storage->whole, value});
      return value;
    }
    written.push_back({view->source, value});
  }
  return value;
}

void Views::overwrite(StorageState *storage, Value value) {
  ++storage->version;
  storage->whole->value = value;
  storage->whole->version = storage->version;
}

//===----------------------------------------------------------------------===//
// What views have to do with each other
//===----------------------------------------------------------------------===//

bool tandem::isSourceOf(const View *base, const View *view) {
  for (; view; view = view->source)
    if (view == base)
      return true;
  return false;
}

ArrayAttr tandem::stepsBetween(const View *base, const View *view) {
  SmallVector<Attribute> steps;
  MLIRContext *context = view->type.getContext();
  for (; view != base; view = view->source) {
    // What the op knows of itself, and not what is noted beside it.
    NamedAttrList step;
    StringRef name = view->op.getValue();
    name.consume_front("tandem.");
    step.set(key::kOp, StringAttr::get(context, name));
    for (NamedAttribute attribute : view->attributes)
      if (!attribute.getName().getValue().starts_with("tandem."))
        step.push_back(attribute);
    if (view->type.getElementType() != view->source->type.getElementType())
      step.set(key::kType, TypeAttr::get(view->type.getElementType()));
    steps.push_back(step.getDictionary(context));
  }
  std::reverse(steps.begin(), steps.end());
  return ArrayAttr::get(context, steps);
}

/// The strides with which `to` shows the row-major elements of `from`; nothing
/// if there are none. Dimensions of `from` that are one run of memory are taken
/// together, last first, and each run is divided among dimensions of `to`.
static std::optional<SmallVector<int64_t>>
reshapeStrides(ArrayRef<int64_t> from, ArrayRef<int64_t> strides,
               ArrayRef<int64_t> to) {
  SmallVector<int64_t> result(to.size(), 0);
  size_t next = to.size();
  int64_t run = 1, base = 0;
  for (size_t d = from.size(); d-- > 0;) {
    if (from[d] == 1)
      continue;
    if (run == 1)
      base = strides[d];
    run *= from[d];
    size_t before = d;
    while (before > 0 && from[before - 1] == 1)
      --before;
    if (before > 0 && strides[before - 1] == run * base)
      continue;
    int64_t given = 1;
    while (next > 0 && given < run) {
      result[--next] = given * base;
      given *= to[next];
    }
    if (given != run)
      return std::nullopt;
    run = 1;
  }
  return result;
}

std::optional<SmallVector<int64_t>> tandem::stridesBetween(const View *base,
                                                           const View *view) {
  SmallVector<int64_t> result;
  // Where nothing is, any strides are right.
  if (view == base || llvm::is_contained(view->type.getShape(), 0)) {
    int64_t step = 1;
    for (int64_t size : llvm::reverse(view->type.getShape())) {
      result.push_back(step);
      step *= size;
    }
    std::reverse(result.begin(), result.end());
    return result;
  }
  auto strides = stridesBetween(base, view->source);
  if (!strides)
    return std::nullopt;
  ArrayRef<int64_t> from = view->source->type.getShape();
  auto list = [&](StringRef name) {
    return view->attributes.getAs<DenseI64ArrayAttr>(name).asArrayRef();
  };
  StringRef op = view->op.getValue();
  if (op == ReshapeOp::getOperationName())
    return reshapeStrides(from, *strides, view->type.getShape());
  if (op == AsStridedOp::getOperationName()) {
    auto flat =
        reshapeStrides(from, *strides, view->source->type.getNumElements());
    if (!flat)
      return std::nullopt;
    for (int64_t stride : list("strides"))
      result.push_back(stride * flat->front());
    return result;
  }
  if (op == PermuteOp::getOperationName()) {
    for (int64_t d : list("permutation"))
      result.push_back((*strides)[d]);
    return result;
  }
  if (op == BroadcastOp::getOperationName()) {
    result.assign(view->type.getRank(), 0);
    for (auto [i, d] : llvm::enumerate(list("dims")))
      result[d] = from[i] == view->type.getDimSize(d) ? (*strides)[i] : 0;
    return result;
  }
  if (op == SliceOp::getOperationName())
    for (auto [stride, step] : llvm::zip_equal(*strides, list("strides")))
      stride *= step;
  return strides;
}

StringAttr tandem::partOf(const View *view) {
  for (; view->source; view = view->source)
    if (auto whole = view->attributes.getAs<StringAttr>(kPartOfAttr))
      return whole;
  return {};
}

bool tandem::hasBitcast(const View *view) {
  for (; view->source; view = view->source)
    if (view->op.getValue() == BitcastOp::getOperationName())
      return true;
  return false;
}

/// The positions in the storage of the view's elements, in order.
static std::vector<double> positionsOf(const View *view) {
  reference::Array positions(view->type.getShape());
  if (!view->source) {
    std::iota(positions.data.begin(), positions.data.end(), 0.0);
    return positions.data;
  }
  reference::Array from(view->source->type.getShape());
  from.data = positionsOf(view->source);
  if (view->op.getValue() == BitcastOp::getOperationName())
    return from.data;
  // The view's own reference, applied to positions.
  OpBuilder builder(view->type.getContext());
  OwningOpRef<Operation *> any(
      UndefinedOp::create(builder, view->loc, view->source->type));
  OperationState state(view->loc, view->op.getValue(), (*any)->getResult(0),
                       view->type, view->attributes.getValue());
  OwningOpRef<Operation *> op(builder.create(state));
  const reference::Array *in = &from;
  cast<ReferenceOpInterface>(*op).evaluate(in, positions);
  return positions.data;
}

/// With more elements, looking at each of them takes too long.
static constexpr int64_t kMostElements = 1 << 22;

bool tandem::mayOverlapItself(const View *view) {
  int64_t elements = view->storage->whole->type.getNumElements();
  if (elements > kMostElements)
    return true;
  llvm::BitVector seen(elements);
  for (double position : positionsOf(view)) {
    if (seen.test(static_cast<unsigned>(position)))
      return true;
    seen.set(static_cast<unsigned>(position));
  }
  return false;
}

bool tandem::mayOverlap(const View *a, const View *b) {
  if (a->storage != b->storage)
    return false;
  int64_t elements = a->storage->whole->type.getNumElements();
  if (elements > kMostElements)
    return true;
  llvm::BitVector seen(elements);
  for (double position : positionsOf(a))
    seen.set(static_cast<unsigned>(position));
  return llvm::any_of(positionsOf(b), [&](double position) {
    return seen.test(static_cast<unsigned>(position));
  });
}
