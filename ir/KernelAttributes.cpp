//===- KernelAttributes.cpp - spelling of what plan says of kernels -------===//
#include "ir/Dialect.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace tandem;

using ErrorAt = llvm::function_ref<InFlightDiagnostic()>;

//===----------------------------------------------------------------------===//
// InPlaceAttr
//===----------------------------------------------------------------------===//

// in-place ::= `<` (result `over` input) (`,` result `over` input)* `>`
Attribute InPlaceAttr::parse(AsmParser &parser, Type) {
  SmallVector<InPlacePair> pairs;
  SMLoc loc = parser.getCurrentLocation();
  auto index = [&](StringRef what, unsigned &to) -> ParseResult {
    SMLoc at = parser.getCurrentLocation();
    int64_t number = 0;
    if (parser.parseInteger(number))
      return failure();
    if (!llvm::isUInt<31>(static_cast<uint64_t>(number)))
      return parser.emitError(at)
             << "expected the number of " << what << ", but got " << number;
    to = static_cast<unsigned>(number);
    return success();
  };
  auto pair = [&]() -> ParseResult {
    auto &[result, input] = pairs.emplace_back();
    return failure(index("a result", result) || parser.parseKeyword("over") ||
                   index("an input", input));
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater, pair))
    return {};
  return parser.getChecked<InPlaceAttr>(loc, parser.getContext(),
                                        ArrayRef<InPlacePair>(pairs));
}

void InPlaceAttr::print(AsmPrinter &printer) const {
  printer << '<';
  llvm::interleaveComma(getPairs(), printer, [&](InPlacePair pair) {
    printer << pair.first << " over " << pair.second;
  });
  printer << '>';
}

LogicalResult InPlaceAttr::verify(ErrorAt error, ArrayRef<InPlacePair> pairs) {
  if (pairs.empty())
    return error() << "expected '#tandem.in_place' to have a pair";
  llvm::SmallDenseSet<unsigned> results, inputs;
  for (auto [result, input] : pairs) {
    if (!results.insert(result).second)
      return error() << "expected result " << result
                     << " to overwrite one input, but it stands twice in "
                        "'#tandem.in_place'";
    if (!inputs.insert(input).second)
      return error() << "expected input " << input
                     << " to be overwritten once, but it stands twice in "
                        "'#tandem.in_place'";
  }
  return success();
}

LogicalResult InPlaceAttr::verifyBounds(ErrorAt error, unsigned results,
                                        unsigned inputs) const {
  for (auto [result, input] : getPairs())
    if (result >= results || input >= inputs)
      return error() << "expected 'in_place' to pair one of " << results
                     << " results with one of " << inputs
                     << " inputs, but got result " << result << " over input "
                     << input;
  return success();
}

//===----------------------------------------------------------------------===//
// LibraryCallAttr
//===----------------------------------------------------------------------===//

LibraryCallAttr LibraryCallAttr::at(int64_t offset) const {
  return get(getContext(), getOp(), getDtype(), getTf32(), getRelu(),
             getOperands(), getSizes(), getLds(), getBatchStrides(),
             getTransposes(), getStrides(), getPadding(), getDilation(),
             getWorkspaceBytes(), offset);
}

LogicalResult LibraryCallAttr::verify(
    ErrorAt error, StringAttr op, Type dtype, BoolAttr tf32, BoolAttr relu,
    DenseI64ArrayAttr operands, DenseI64ArrayAttr sizes, DenseI64ArrayAttr lds,
    DenseI64ArrayAttr batchStrides, DenseI64ArrayAttr transposes,
    DenseI64ArrayAttr strides, DenseI64ArrayAttr padding,
    DenseI64ArrayAttr dilation, int64_t workspaceBytes, int64_t workspace) {
  constexpr StringRef convolutions[] = {"conv2d", "conv2d_input_grad",
                                        "conv2d_filter_grad"};
  bool isMatmul = op.getValue() == "matmul";
  if (!isMatmul && !llvm::is_contained(convolutions, op.getValue()))
    return error() << "expected 'op' of a library's call to be \"matmul\", \""
                   << llvm::join(ArrayRef(convolutions), "\", \"")
                   << "\", but got " << op;
  if (!isElementType(dtype))
    return error() << "expected 'dtype' of a library's call to be a type of "
                      "elements, but got "
                   << dtype;
  struct List {
    StringRef key;
    DenseI64ArrayAttr numbers;
    int64_t ofMatmul, ofConvolution; ///< how many it has
  };
  // A matmul has a bias or not.
  bool hasBias = isMatmul && operands.size() == 4;
  for (const List &list :
       {List{"operands", operands, hasBias ? 4 : 3, 3},
        List{"sizes", sizes, 4, 10}, List{"lds", lds, 3, 0},
        List{"batch_strides", batchStrides, 3, 0},
        List{"transposes", transposes, 2, 0}, List{"strides", strides, 0, 2},
        List{"padding", padding, 0, 2}, List{"dilation", dilation, 0, 2}}) {
    int64_t count = isMatmul ? list.ofMatmul : list.ofConvolution;
    int64_t own = list.numbers ? list.numbers.size() : 0;
    if (own != count)
      return error() << "expected '" << list.key << "' of a call of " << op
                     << " to have " << count << " numbers, but got " << own;
    for (int64_t i = 0; i < own; ++i)
      if (list.numbers[i] < 0)
        return error() << "expected '" << list.key << "' of a call of " << op
                       << " to be at least 0, but got " << list.numbers[i];
  }
  if (workspaceBytes < 0 || workspaceBytes > kMaxElements)
    return error() << "expected 'workspace_bytes' of a library's call from 0 "
                      "to 2^40, but got "
                   << workspaceBytes;
  if (workspace < -1)
    return error() << "expected 'workspace' of a library's call to be at least "
                      "0, but got "
                   << workspace;
  return success();
}

LogicalResult LibraryCallAttr::verifyBounds(ErrorAt error,
                                            unsigned values) const {
  for (int64_t operand : getOperands().asArrayRef())
    if (operand >= values)
      return error() << "expected 'operands' of its library's call to be below "
                     << values << ", the number of its inputs and results, "
                     << "but got " << operand;
  return success();
}

//===----------------------------------------------------------------------===//
// PlanAttr
//===----------------------------------------------------------------------===//

LogicalResult PlanAttr::verify(ErrorAt error, int64_t arena, int64_t peak,
                               int64_t lowerBound, int64_t host) {
  if (lowerBound < 0 || peak < lowerBound || arena < peak)
    return error() << "expected a plan with 0 <= 'lower_bound_bytes' <= "
                      "'peak_bytes' <= 'arena_bytes', but got "
                   << lowerBound << ", " << peak << " and " << arena;
  if (host < 0)
    return error() << "expected 'host_bytes' of a plan to be at least 0, but "
                      "got "
                   << host;
  return success();
}

//===----------------------------------------------------------------------===//
// TensorMapAttr
//===----------------------------------------------------------------------===//

LogicalResult TensorMapAttr::verify(ErrorAt error, int64_t buffer,
                                    int64_t offset, StringAttr,
                                    DenseI64ArrayAttr sizes,
                                    DenseI64ArrayAttr strides,
                                    DenseI64ArrayAttr box, int64_t swizzle) {
  if (buffer < 0 || offset < 0 || swizzle < 0)
    return error() << "expected 'buffer', 'offset' and 'swizzle' of a tensor "
                      "map to be at least 0, but got "
                   << buffer << ", " << offset << " and " << swizzle;
  if (sizes.empty() || box.size() != sizes.size() ||
      strides.size() + 1 != sizes.size())
    return error() << "expected a tensor map with as many 'box' as 'sizes', "
                      "and one of 'strides' less, but got "
                   << sizes.size() << " sizes, " << box.size() << " of a box, "
                   << strides.size() << " strides";
  return success();
}

//===----------------------------------------------------------------------===//
// KernelFactsAttr
//===----------------------------------------------------------------------===//

LogicalResult KernelFactsAttr::verify(ErrorAt error, StringAttr, ArrayAttr ops,
                                      int64_t flops, int64_t bytes, StringAttr,
                                      Type, Type type, int64_t items,
                                      int64_t scratchBytes, InPlaceAttr inPlace,
                                      ScheduleAttr, DenseI64ArrayAttr,
                                      DenseI64ArrayAttr, int64_t sharedBytes,
                                      ArrayAttr tensorMaps) {
  if (!llvm::all_of(ops, llvm::IsaPred<StringAttr>))
    return error() << "expected 'ops' of a kernel to be names, but got " << ops;
  struct Number {
    StringRef key;
    int64_t value;
  };
  for (Number number :
       {Number{"flops", flops}, Number{"bytes", bytes}, Number{"items", items},
        Number{"scratch_bytes", scratchBytes},
        Number{"shared_bytes", sharedBytes}})
    if (number.value < 0)
      return error() << "expected '" << number.key
                     << "' of a kernel to be at least 0, but got "
                     << number.value;
  auto function = dyn_cast<FunctionType>(type);
  if (!function || !llvm::all_of(function.getInputs(), isTensorType) ||
      !llvm::all_of(function.getResults(), isTensorType))
    return error() << "expected 'type' of a kernel to be a function of "
                      "tensors, but got "
                   << type;
  if (inPlace && failed(inPlace.verifyBounds(error, function.getNumResults(),
                                             function.getNumInputs())))
    return failure();
  if (tensorMaps && !llvm::all_of(tensorMaps, llvm::IsaPred<TensorMapAttr>))
    return error() << "expected 'tensor_maps' of a kernel to be "
                      "'#tandem.tensor_map', but got "
                   << tensorMaps;
  return success();
}

KernelFactsAttr KernelFactsAttr::of(Operation *function) {
  return function ? function->getAttrOfType<KernelFactsAttr>(kKernelAttr)
                  : KernelFactsAttr();
}
