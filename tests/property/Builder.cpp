//===- Builder.cpp - adds the ops of steps to a function ------------------===//
#include "tests/property/Builder.h"

#include "ir/Signature.h"

#include <numeric>

using namespace mlir;
using namespace tandem;
using namespace tandem::property;

RankedTensorType ProgramBuilder::tensorType(Value value) {
  if (auto ref = dyn_cast<RefType>(value.getType()))
    return ref.getTensorType();
  return cast<RankedTensorType>(value.getType());
}

ProgramBuilder::ProgramBuilder(func::FuncOp func)
    : func(func), builder(OpBuilder::atBlockEnd(&func.getBody().front())) {
  for (BlockArgument argument : func.getArguments()) {
    auto index = static_cast<int>(argument.getArgNumber());
    RoleAttr role = roleOfArgument(func, index);
    isLeafParam.push_back(role.getKind() == RoleKind::Param &&
                          role.has("requires_grad"));
    isInput.push_back(role.getKind() == RoleKind::Input);
    refs.push_back({argument, index, index, false, false, true});
  }
}

void ProgramBuilder::add(const Step &step) {
  const Choice &choice = step.choice;
  switch (step.action) {
  case Action::Read:
    return read(choice);
  case Action::ViewOfRef:
    return viewOfRef(choice);
  case Action::ViewOfTensor: {
    bool overlaps = false;
    tensors.push_back(view(tensor(choice[0]), choice, overlaps));
    return;
  }
  case Action::Compute:
    return compute(choice);
  case Action::Write:
    return write(choice);
  case Action::NewStorage: {
    Value value = make<MakeRefOp>(tensor(choice[0]));
    refs.push_back({value, -1, -1, false, false, true});
    return;
  }
  case Action::ToggleNoGrad:
    isNoGrad = !isNoGrad;
    return;
  case Action::Transpose:
    return transpose(choice);
  case Action::Set:
    return set(choice);
  case Action::Custom:
    return custom(choice);
  case Action::Output:
    return output(choice);
  }
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

Value ProgramBuilder::splat(ArrayRef<int64_t> shape, double number) {
  return ConstantOp::splat(builder, builder.getUnknownLoc(),
                           RankedTensorType::get(shape, builder.getF64Type()),
                           number);
}

Value ProgramBuilder::tensor(uint32_t choice) {
  if (tensors.empty())
    tensors.push_back(make<ReadOp>(refs[choice % refs.size()].value));
  // The latest first.
  return tensors[tensors.size() - 1 - choice % tensors.size()];
}

Value ProgramBuilder::adapt(Value tensor, ArrayRef<int64_t> shape) {
  RankedTensorType type = tensorType(tensor);
  if (type.getShape() == shape)
    return tensor;
  auto target = type.clone(shape);
  if (type.getNumElements() == target.getNumElements())
    return make<ReshapeOp>(tensor, shape);
  if (type.getRank() > 0) {
    Shape dims(type.getRank());
    std::iota(dims.begin(), dims.end(), 0);
    tensor = make<ReduceSumOp>(tensor, dims);
  }
  return shape.empty() ? tensor
                       : make<BroadcastOp>(tensor, shape, ArrayRef<int64_t>{});
}

Value ProgramBuilder::tensorOf(ArrayRef<int64_t> shape, uint32_t choice) {
  std::vector<Value> fitting;
  for (Value candidate : tensors)
    if (tensorType(candidate).getShape() == shape)
      fitting.push_back(candidate);
  // Now and then one of another shape, although there are some.
  if (fitting.empty() || choice % 8 == 7)
    return adapt(tensor(choice / 8), shape);
  return fitting[choice / 8 % fitting.size()];
}

/// A seed and an offset that follow from a tensor, which may be overwritten
/// before the backward draws again.
Value ProgramBuilder::randomState(uint32_t choice) {
  Value x = tensorOf({2}, choice);
  // No number of a program is this one, give or take its rounding.
  Value bits = make<CompareOp>(ComparePredicate::gt, x, splat({2}, 0.12345678));
  return make<CastOp>(RankedTensorType::get({2}, builder.getI64Type()), bits);
}

void ProgramBuilder::compute(const Choice &choice) {
  Value x = tensor(choice[0]), y;
  ArrayRef<int64_t> shape = tensorType(x).getShape();
  switch (choice[1] % 8) {
  case 0:
    y = make<SinOp>(x);
    break;
  case 1:
    y = make<MulOp>(x, tensorOf(shape, choice[2]));
    break;
  case 2:
    y = make<AddOp>(x, tensorOf(shape, choice[2]));
    break;
  case 3:
    y = make<SubOp>(x, tensorOf(shape, choice[2]));
    break;
  case 4:
    y = make<MulOp>(x, splat(shape, choice[2] % 2 ? -0.5 : 1.5));
    break;
  case 5:
    y = make<NegOp>(x);
    break;
  case 6: {
    Value state = randomState(choice[2]);
    y = make<DropoutOp>(x.getType(), x, state,
                        builder.getI64IntegerAttr(choice[3] % 3),
                        builder.getF64FloatAttr(0.4), builder.getUnitAttr());
    break;
  }
  default:
    if (shape.empty())
      y = make<CosOp>(x);
    else
      y = make<ReduceSumOp>(
          x, Shape{static_cast<int64_t>(choice[2] % shape.size())});
  }
  tensors.push_back(y);
}

//===----------------------------------------------------------------------===//
// Refs
//===----------------------------------------------------------------------===//

void ProgramBuilder::read(const Choice &choice) {
  tensors.push_back(make<ReadOp>(refs[choice[0] % refs.size()].value));
}

void ProgramBuilder::viewOfRef(const Choice &choice) {
  Ref ref = refs[choice[0] % refs.size()];
  ref.value = view(ref.value, choice, ref.overlaps);
  ref.isHidden |=
      isNoGrad || isa_and_nonnull<DetachOp>(ref.value.getDefiningOp());
  ref.isHandle = false;
  refs.push_back(ref);
}

void ProgramBuilder::write(const Choice &choice) {
  const Ref &ref = refs[choice[1] % refs.size()];
  // Most programs are right; some have the mistakes that must be reported.
  bool isMeant = choice[3] % 8 == 7;
  if (ref.overlaps && !isMeant)
    return;
  Value value = tensorOf(tensorType(ref.value).getShape(), choice[0]);
  // A value of its own: writing back what was read is no write.
  if (choice[2] % 4 != 0)
    value = make<SinOp>(value);
  auto op = make<WriteOp>(value, ref.value);
  if (ref.root >= 0 && isLeafParam[ref.root] && !ref.isHidden && !isMeant)
    op->setAttr(kNoGradAttr, builder.getUnitAttr());
}

void ProgramBuilder::transpose(const Choice &choice) {
  std::vector<Ref *> handles;
  for (Ref &ref : refs)
    if (ref.isHandle && tensorType(ref.value).getRank() > 1 &&
        (ref.handle < 0 || isInput[ref.handle] || choice[3] % 8 == 7))
      handles.push_back(&ref);
  if (handles.empty())
    return;
  Ref &ref = *handles[choice[0] % handles.size()];
  int64_t rank = tensorType(ref.value).getRank();
  int64_t a = choice[1] % rank, b = (a + 1 + choice[2] % (rank - 1)) % rank;
  ref.value = make<TransposeHandleOp>(ref.value, a, b);
}

/// Storage moves between arguments, in a no-grad region.
void ProgramBuilder::set(const Choice &choice) {
  std::vector<Ref *> handles;
  std::vector<Ref> shown;
  for (Ref &ref : refs) {
    if (ref.isHandle && ref.handle >= 0 &&
        (isInput[ref.handle] || choice[3] % 8 == 7))
      handles.push_back(&ref);
    if (ref.root >= 0 && !ref.isHidden && !ref.overlaps)
      shown.push_back(ref);
  }
  if (handles.empty() || shown.empty())
    return;
  Ref &handle = *handles[choice[0] % handles.size()];
  const Ref &other = shown[choice[1] % shown.size()];
  if (handle.value == other.value)
    return;
  auto op = make<SetHandleOp>(handle.value, other.value);
  op->setAttr(kNoGradAttr, builder.getUnitAttr());
  handle.value = op;
  handle.root = other.root;
}

void ProgramBuilder::output(const Choice &choice) {
  if (choice[0] % 2 == 0) {
    outputs.push_back(tensor(choice[1] % 5));
    return;
  }
  outputs.push_back(refs[choice[1] % refs.size()].value);
}

void ProgramBuilder::finish() {
  // A handle is returned as it is at the end.
  for (Value &value : outputs)
    for (bool isOld = true; isOld;) {
      isOld = false;
      for (Operation *user : value.getUsers())
        if (isa<TransposeHandleOp, SetHandleOp>(user) &&
            user->getOperand(0) == value) {
          value = user->getResult(0);
          isOld = true;
          break;
        }
    }
  func::ReturnOp::create(builder, builder.getUnknownLoc(), outputs);
  SmallVector<Type> types;
  for (Value value : outputs)
    types.push_back(value.getType());
  func.setFunctionType(builder.getFunctionType(func.getArgumentTypes(), types));
  for (unsigned i = 0; i < outputs.size(); ++i)
    setRoleOfResult(func, i,
                    RoleAttr::get(builder.getContext(), RoleKind::Output,
                                  "o" + std::to_string(i)));
}

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

Value ProgramBuilder::view(Value source, const Choice &choice, bool &overlaps) {
  RankedTensorType type = tensorType(source);
  Shape shape(type.getShape());
  int64_t rank = type.getRank(), elements = type.getNumElements();
  uint32_t c = choice[2], d = choice[3];
  switch (choice[1] % 8) {
  case 0:
    if (rank > 1) {
      Shape permutation(rank);
      std::iota(permutation.begin(), permutation.end(), 0);
      std::rotate(permutation.begin(), permutation.begin() + 1 + c % (rank - 1),
                  permutation.end());
      return make<PermuteOp>(source, permutation);
    }
    [[fallthrough]];
  case 1:
  case 2:
    if (rank > 0) {
      Shape starts(rank, 0), limits = shape, strides(rank, 1);
      int64_t dim = c % rank, size = shape[dim];
      starts[dim] = c / 4 % size;
      limits[dim] = starts[dim] + 1 + d % (size - starts[dim]);
      strides[dim] = 1 + d / 16 % 2;
      return make<SliceOp>(source, starts, limits, strides);
    }
    [[fallthrough]];
  case 3:
  case 4: {
    SmallVector<Shape> shapes = {{elements}, {elements, 1}, {1, elements}};
    for (int64_t a = 2; a < elements; ++a)
      if (elements % a == 0)
        shapes.push_back({a, elements / a});
    return make<ReshapeOp>(source, shapes[c % shapes.size()]);
  }
  case 5:
    return make<DetachOp>(source);
  case 6: {
    // Rarely elements that overlap, of those that are few.
    int64_t offset = c % elements, stride = 1 + c / 16 % 2;
    int64_t size = 1 + d % ((elements - 1 - offset) / stride + 1);
    if (d % 5 == 0 && elements > 2) {
      overlaps = true;
      return make<AsStridedOp>(source, Shape{2, 2}, Shape{1, 1}, 0);
    }
    return make<AsStridedOp>(source, Shape{size}, Shape{size == 1 ? 1 : stride},
                             offset);
  }
  default:
    if (elements > 6)
      return make<ReshapeOp>(source, Shape{elements});
    overlaps = true;
    Shape wide = {2};
    wide.append(shape);
    Shape dims(rank);
    std::iota(dims.begin(), dims.end(), 1);
    return make<BroadcastOp>(source, wide, dims);
  }
}
