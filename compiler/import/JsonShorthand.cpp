//===- JsonShorthand.cpp - attributes that say less than they mean --------===//
#include "compiler/import/JsonShorthand.h"
#include "ir/Dialect.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace tandem;

using Sizes = std::vector<int64_t>;

static bool hasAttribute(RegisteredOperationName op, StringRef name) {
  return llvm::any_of(op.getAttributeNames(),
                      [&](StringAttr one) { return one == name; });
}

/// The shape in which -1 is what `elements` leave.
static std::optional<Sizes> reshaped(const JsonPlace &place, Sizes shape,
                                     int64_t elements) {
  auto open = llvm::find(shape, -1);
  if (open == shape.end())
    return std::nullopt;
  *open = 1;
  // What is left of the elements; no product that could overflow.
  int64_t left = elements;
  bool isFine = true;
  for (int64_t size : shape) {
    isFine &= size > 0 && left % size == 0;
    left = isFine ? left / size : left;
  }
  if (!isFine || elements == 0) {
    place.wrong("expected one -1, and sizes whose product divides " +
                std::to_string(elements) + ", but got " + place.json.dump());
    return std::nullopt;
  }
  *open = left;
  return shape;
}

static int64_t elementsOf(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (auto ref = dyn_cast<RefType>(type))
    tensor = ref.getTensorType();
  return tensor ? tensor.getNumElements() : 0;
}

std::optional<Sizes> tandem::writtenOut(const JsonPlace &place,
                                        RegisteredOperationName op,
                                        StringRef name, ValueRange operands) {
  const Json &json = place.json;
  Sizes sizes;
  bool isOne = json.is_number_integer();
  if (isOne)
    sizes = {json.get<int64_t>()};
  else if (json.is_array() && llvm::all_of(json, [](const Json &element) {
             return element.is_number_integer();
           }))
    sizes = json.get<Sizes>();
  if (op.stripDialect() == "reshape" && name == "shape" && !isOne &&
      operands.size() == 1)
    return reshaped(place, sizes, elementsOf(operands[0].getType()));
  bool isPair = name == "kernel" || name == "strides" || name == "dilation";
  if (!hasAttribute(op, "padding"))
    return std::nullopt;
  // Said here, where there is a place; what follows is checked as if it fitted.
  if (json.is_number_float() && (isPair || name == "padding")) {
    place.wrong("expected an integer or a list of integers, but got " +
                json.dump());
    double number = json.get<double>();
    sizes = {number >= 1 && number < 1e6 ? static_cast<int64_t>(number) : 1};
    isOne = true;
  }
  if (sizes.empty())
    return std::nullopt;
  if (name == "padding" && sizes.size() <= 2)
    return Sizes{sizes[0], sizes[0], sizes.back(), sizes.back()};
  return isPair && isOne ? std::optional(Sizes{sizes[0], sizes[0]})
                         : std::nullopt;
}

void tandem::expectTraining(const JsonPlace &node, RegisteredOperationName op) {
  if (!hasAttribute(op, "training"))
    return;
  if (node.has("attributes") && node.at("attributes").json.is_object() &&
      node.at("attributes").has("training"))
    return;
  node.wrong(
      "expected the attribute 'training': true where the op does in a "
      "training step what it does in training (and in 'evaluate' what it "
      "does in inference), false where it never does");
}
