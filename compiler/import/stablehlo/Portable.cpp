//===- Portable.cpp - portable artifacts of StableHLO ---------------------===//
//
// The encodings are those of StableHLO's compatibility promise, which never
// change: a code, then what belongs to it. The attributes of an op follow each
// other in the order of their names.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/stablehlo/Portable.h"

#include "mlir/Bytecode/BytecodeImplementation.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/ExtensibleDialect.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace tandem;

bool stablehlo::isBytecode(StringRef text) {
  return text.starts_with("ML\xefR");
}

namespace {

/// The attributes of ops that have some.
struct Attributes {
  StringRef op, names;
};

constexpr StringRef convolution =
    "window_strides padding lhs_dilation rhs_dilation window_reversal "
    "input_batch_dimension input_feature_dimension input_spatial_dimensions "
    "kernel_input_feature_dimension kernel_output_feature_dimension "
    "kernel_spatial_dimensions output_batch_dimension "
    "output_feature_dimension output_spatial_dimensions feature_group_count "
    "batch_group_count precision_config";

constexpr Attributes attributes[] = {
    {"broadcast_in_dim_v1", "broadcast_dimensions"},
    {"broadcast_v1", "broadcast_sizes"},
    {"call_v1", "callee"},
    {"cbrt_v2", "result_accuracy"},
    {"cholesky_v1", "lower"},
    {"compare_v1", "comparison_direction compare_type"},
    {"composite_v1", "name composite_attributes decomposition version"},
    {"composite_v2", "name composite_attributes decomposition version"},
    {"concatenate_v1", "dimension"},
    {"constant_v1", "value"},
    {"convolution_v1", convolution},
    {"cosine_v2", "result_accuracy"},
    {"custom_call_v1",
     "call_target_name has_side_effect backend_config api_version "
     "called_computations operand_layouts result_layouts "
     "output_operand_aliases"},
    {"custom_call_v2",
     "call_target_name has_side_effect backend_config api_version "
     "called_computations operand_layouts result_layouts "
     "output_operand_aliases result_tilings"},
    {"dot_general_v1",
     "lhs_batching_dimensions rhs_batching_dimensions "
     "lhs_contracting_dimensions rhs_contracting_dimensions precision_config"},
    {"dot_general_v2",
     "lhs_batching_dimensions rhs_batching_dimensions "
     "lhs_contracting_dimensions rhs_contracting_dimensions precision_config "
     "lhs_precision_type rhs_precision_type accumulation_type "
     "lhs_component_count rhs_component_count num_primitive_operations "
     "allow_imprecise_accumulation"},
    {"dynamic_slice_v1", "slice_sizes"},
    {"exponential_minus_one_v2", "result_accuracy"},
    {"exponential_v2", "result_accuracy"},
    {"fft_v1", "fft_type fft_length"},
    {"func_v1", "sym_name function_type sym_visibility arg_attrs res_attrs"},
    {"gather_v1", "offset_dims collapsed_slice_dims start_index_map "
                  "index_vector_dim slice_sizes indices_are_sorted"},
    {"gather_v2",
     "offset_dims collapsed_slice_dims operand_batching_dims "
     "start_indices_batching_dims start_index_map index_vector_dim slice_sizes "
     "indices_are_sorted"},
    {"get_tuple_element_v1", "index"},
    {"iota_v1", "iota_dimension"},
    {"log_plus_one_v2", "result_accuracy"},
    {"logistic_v2", "result_accuracy"},
    {"log_v2", "result_accuracy"},
    {"map_v1", "dimensions"},
    {"pad_v1", "edge_padding_low edge_padding_high interior_padding"},
    {"reduce_v1", "dimensions"},
    {"reduce_precision_v1", "exponent_bits mantissa_bits"},
    {"reduce_window_v1", "window_dimensions window_strides base_dilations "
                         "window_dilations padding"},
    {"reverse_v1", "dimensions"},
    {"rng_bit_generator_v1", "rng_algorithm"},
    {"rng_v1", "rng_distribution"},
    {"rsqrt_v2", "result_accuracy"},
    {"scatter_v1",
     "update_window_dims inserted_window_dims scatter_dims_to_operand_dims "
     "index_vector_dim indices_are_sorted unique_indices"},
    {"scatter_v2",
     "update_window_dims inserted_window_dims input_batching_dims "
     "scatter_indices_batching_dims scatter_dims_to_operand_dims "
     "index_vector_dim indices_are_sorted unique_indices"},
    {"select_and_scatter_v1", "window_dimensions window_strides padding"},
    {"sine_v2", "result_accuracy"},
    {"slice_v1", "start_indices limit_indices strides"},
    {"sort_v1", "dimension is_stable"},
    {"sqrt_v2", "result_accuracy"},
    {"tan_v2", "result_accuracy"},
    {"tanh_v2", "result_accuracy"},
    {"transpose_v1", "permutation"},
    {"triangular_solve_v1", "left_side lower unit_diagonal transpose_a"},
};

/// Ops whose attributes text has in a structure of this name.
constexpr struct {
  StringRef op, structure, fields;
} structures[] = {
    {"dot_general", "dot_dimension_numbers",
     "lhs_batching_dimensions rhs_batching_dimensions "
     "lhs_contracting_dimensions rhs_contracting_dimensions"},
    {"convolution", "dimension_numbers",
     "input_batch_dimension input_feature_dimension input_spatial_dimensions "
     "kernel_input_feature_dimension kernel_output_feature_dimension "
     "kernel_spatial_dimensions output_batch_dimension "
     "output_feature_dimension output_spatial_dimensions"},
    {"gather", "dimension_numbers",
     "offset_dims collapsed_slice_dims operand_batching_dims "
     "start_indices_batching_dims start_index_map index_vector_dim"},
    {"scatter", "scatter_dimension_numbers",
     "update_window_dims inserted_window_dims input_batching_dims "
     "scatter_indices_batching_dims scatter_dims_to_operand_dims "
     "index_vector_dim"},
};

/// How products are computed, which is never less exactly than is asked for.
constexpr StringRef precisions =
    "lhs_precision_type rhs_precision_type accumulation_type "
    "lhs_component_count rhs_component_count num_primitive_operations "
    "allow_imprecise_accumulation";

SmallVector<StringRef> wordsOf(StringRef text) {
  SmallVector<StringRef> words;
  text.split(words, ' ', -1, /*KeepEmpty=*/false);
  return words;
}

//===----------------------------------------------------------------------===//
// Types and attributes
//===----------------------------------------------------------------------===//

/// Reads what the dialect encodes.
class Encoding : public BytecodeDialectInterface {
public:
  explicit Encoding(Dialect *dialect) : BytecodeDialectInterface(dialect) {}

  Type readType(DialectBytecodeReader &reader) const override;
  Attribute readAttribute(DialectBytecodeReader &reader) const override;

private:
  Type readTensor(DialectBytecodeReader &reader, bool hasEncoding) const;
  Attribute readElements(DialectBytecodeReader &reader) const;
  Attribute readFields(DialectBytecodeReader &reader) const;
  Attribute readWord(DialectBytecodeReader &reader,
                     ArrayRef<StringRef> words) const;
};

/// Reads the attributes that the table names.
struct Properties : BytecodeOpInterface::FallbackModel<Properties> {
  static LogicalResult readProperties(DialectBytecodeReader &reader,
                                      OperationState &state);
  void writeProperties(Operation *, DialectBytecodeWriter &) const {}
};

class VhloDialect : public ExtensibleDialect {
public:
  static StringRef getDialectNamespace() { return "vhlo"; }
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(VhloDialect)
  explicit VhloDialect(MLIRContext *context)
      : ExtensibleDialect(getDialectNamespace(), context,
                          TypeID::get<VhloDialect>()) {
    allowUnknownOperations();
    addInterfaces<Encoding>();
    for (const Attributes &one : attributes) {
      registerDynamicOp(DynamicOpDefinition::get(
          one.op, this, [](Operation *) { return success(); },
          [](Operation *) { return success(); }));
      RegisteredOperationName::lookup(("vhlo." + one.op).str(), context)
          ->attachInterface<Properties>();
    }
  }
  Attribute parseAttribute(DialectAsmParser &parser, Type) const override {
    parser.emitError(parser.getCurrentLocation())
        << "unsupported: the dialect 'vhlo' as text; write what "
           "exported.mlir_module() gives";
    return {};
  }
  Type parseType(DialectAsmParser &parser) const override {
    parseAttribute(parser, {});
    return {};
  }
  void printAttribute(Attribute, DialectAsmPrinter &) const override {}
  void printType(Type, DialectAsmPrinter &) const override {}
};

} // namespace

void stablehlo::loadPortableDialect(MLIRContext &context) {
  context.loadDialect<VhloDialect>();
}

LogicalResult Properties::readProperties(DialectBytecodeReader &reader,
                                         OperationState &state) {
  StringRef name = state.name.stripDialect();
  for (const Attributes &one : attributes) {
    if (one.op != name)
      continue;
    SmallVector<StringRef> names = wordsOf(one.names);
    llvm::sort(names);
    for (StringRef attribute : names) {
      Attribute value;
      if (failed(reader.readAttribute(value)))
        return failure();
      state.addAttribute(attribute, value);
    }
    return success();
  }
  return reader.emitError() << "unsupported: the op '" << state.name << "'";
}

Type Encoding::readTensor(DialectBytecodeReader &reader,
                          bool hasEncoding) const {
  Attribute encoding;
  SmallVector<int64_t> shape;
  Type element;
  if ((hasEncoding && failed(reader.readAttribute(encoding))) ||
      failed(reader.readSignedVarInts(shape)) ||
      failed(reader.readType(element)))
    return {};
  for (int64_t size : shape)
    if (size < 0 && !ShapedType::isDynamic(size))
      return reader.emitError() << "expected sizes of at least 0", Type();
  if (!RankedTensorType::isValidElementType(element))
    return reader.emitError() << "unsupported: tensors of " << element, Type();
  return RankedTensorType::get(shape, element);
}

Type Encoding::readType(DialectBytecodeReader &reader) const {
  uint64_t code;
  if (failed(reader.readVarInt(code)))
    return {};
  MLIRContext *context = getContext();
  Builder b(context);
  auto integer = [&](unsigned bits, bool isUnsigned) {
    return IntegerType::get(context, bits,
                            isUnsigned ? IntegerType::Unsigned
                                       : IntegerType::Signless);
  };
  switch (code) {
  case 0:
    return b.getI1Type();
  case 1: {
    Type element;
    if (failed(reader.readType(element)) || !isa<FloatType>(element))
      return {};
    return ComplexType::get(element);
  }
  case 2:
    return b.getBF16Type();
  case 3:
    return b.getF16Type();
  case 4:
    return b.getF32Type();
  case 5:
    return b.getF64Type();
  case 6:
    return Float8E4M3FNType::get(context);
  case 7:
    return Float8E5M2Type::get(context);
  case 8: {
    SmallVector<Type> inputs, outputs;
    if (failed(reader.readTypes(inputs)) || failed(reader.readTypes(outputs)))
      return {};
    return FunctionType::get(context, inputs, outputs);
  }
  case 9:
    return b.getIndexType();
  case 10:
    return integer(4, false);
  case 11:
    return integer(8, false);
  case 12:
    return integer(16, false);
  case 13:
    return integer(32, false);
  case 14:
    return integer(64, false);
  case 15:
    return integer(4, true);
  case 16:
    return integer(8, true);
  case 17:
    return integer(16, true);
  case 18:
    return integer(32, true);
  case 19:
    return integer(64, true);
  case 20:
    return readTensor(reader, /*hasEncoding=*/false);
  case 21:
    return readTensor(reader, /*hasEncoding=*/true);
  case 22: // A token.
  case 33: // None.
    return b.getNoneType();
  case 23: {
    SmallVector<Type> elements;
    if (failed(reader.readTypes(elements)))
      return {};
    return TupleType::get(context, elements);
  }
  default:
    return reader.emitError()
               << "unsupported: type number " << code << " of vhlo",
           Type();
  }
}

Attribute Encoding::readWord(DialectBytecodeReader &reader,
                             ArrayRef<StringRef> words) const {
  uint64_t number;
  if (failed(reader.readVarInt(number)))
    return {};
  if (number >= words.size())
    return reader.emitError() << "expected an enumerator below " << words.size()
                              << ", but got " << number,
           Attribute();
  return StringAttr::get(getContext(), words[number]);
}

Attribute Encoding::readElements(DialectBytecodeReader &reader) const {
  Type type;
  ArrayRef<char> blob;
  if (failed(reader.readType(type)) || failed(reader.readBlob(blob)))
    return {};
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape() ||
      !tensor.getElementType().isIntOrFloat())
    return reader.emitError() << "unsupported: elements of " << type,
           Attribute();
  int64_t count = tensor.getNumElements();
  SmallVector<char> bytes(blob);
  // Truth is packed into bits, the first one lowest; all of it true is one byte
  // of ones.
  if (tensor.getElementType().isInteger(1)) {
    int64_t packed = (count + 7) / 8, size = static_cast<int64_t>(blob.size());
    if (size == 1 && blob[0] == static_cast<char>(~0)) {
      bytes.assign(1, 1);
    } else if (size == packed && size != count) {
      bytes.clear();
      for (int64_t i = 0; i < count; ++i)
        bytes.push_back((blob[i / 8] >> (i % 8)) & 1);
    }
    if (bytes.size() != 1 && static_cast<int64_t>(bytes.size()) != count)
      return reader.emitError() << "expected " << count << " elements",
             Attribute();
    SmallVector<bool> values;
    for (char byte : bytes)
      values.push_back(byte != 0);
    return DenseElementsAttr::get(tensor, values);
  }
  bool isSplat = false;
  if (!DenseElementsAttr::isValidRawBuffer(tensor, bytes, isSplat))
    return reader.emitError() << "expected " << count << " elements",
           Attribute();
  return DenseElementsAttr::getFromRawBuffer(tensor, bytes);
}

Attribute Encoding::readFields(DialectBytecodeReader &reader) const {
  SmallVector<NamedAttribute> fields;
  uint64_t count;
  if (failed(reader.readVarInt(count)))
    return {};
  NamedAttrList list;
  for (uint64_t i = 0; i < count; ++i) {
    Attribute name, value;
    if (failed(reader.readAttribute(name)) ||
        failed(reader.readAttribute(value)))
      return {};
    auto text = dyn_cast<StringAttr>(name);
    if (!text || text.getValue().empty() || list.get(text.getValue()))
      return reader.emitError() << "expected names, each once", Attribute();
    list.append(text, value);
  }
  return list.getDictionary(getContext());
}

Attribute Encoding::readAttribute(DialectBytecodeReader &reader) const {
  uint64_t code, number;
  if (failed(reader.readVarInt(code)))
    return {};
  Builder b(getContext());
  switch (code) {
  case 1: {
    SmallVector<Attribute> elements;
    if (failed(reader.readAttributes(elements)))
      return {};
    return b.getArrayAttr(elements);
  }
  case 2:
    if (failed(reader.readVarInt(number)) || number > 1)
      return {};
    return b.getBoolAttr(number != 0);
  case 3:
    return readWord(reader, {"EQ", "NE", "GE", "GT", "LE", "LT"});
  case 4:
    return readWord(reader,
                    {"NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"});
  case 5:
    return readWord(reader, {"UNSPECIFIED", "ORIGINAL", "STATUS_RETURNING",
                             "STATUS_RETURNING_UNIFIED", "TYPED_FFI"});
  case 6:
    return readFields(reader);
  case 7:
    return readWord(reader, {"FFT", "IFFT", "RFFT", "IRFFT"});
  case 8: {
    Type type;
    if (failed(reader.readType(type)) || !isa<FloatType>(type))
      return {};
    auto value = reader.readAPFloatWithKnownSemantics(
        cast<FloatType>(type).getFloatSemantics());
    return failed(value) ? Attribute() : b.getFloatAttr(type, *value);
  }
  case 9: {
    Type type;
    if (failed(reader.readType(type)) || !isa<IntegerType, IndexType>(type))
      return {};
    unsigned bits = isa<IndexType>(type) ? 64 : type.getIntOrFloatBitWidth();
    auto value = reader.readAPIntWithKnownWidth(bits);
    return failed(value) ? Attribute() : b.getIntegerAttr(type, *value);
  }
  case 11:
    return readWord(reader, {"DEFAULT", "HIGH", "HIGHEST"});
  case 12:
    return readWord(reader, {"DEFAULT", "THREE_FRY", "PHILOX"});
  case 13:
    return readWord(reader, {"", "UNIFORM", "NORMAL"});
  case 14: {
    StringRef text;
    if (failed(reader.readString(text)))
      return {};
    return b.getStringAttr(text);
  }
  case 15:
    return readElements(reader);
  case 16:
    return readWord(
        reader, {"TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"});
  case 17: {
    Type type;
    if (failed(reader.readType(type)))
      return {};
    return TypeAttr::get(type);
  }
  case 19:
    return readWord(reader, {"DEFAULT", "HIGHEST", "TOLERANCE"});
  case 20: {
    Attribute mode;
    int64_t ulps;
    const llvm::fltSemantics &wide = APFloat::IEEEdouble();
    if (failed(reader.readAPFloatWithKnownSemantics(wide)) ||
        failed(reader.readAPFloatWithKnownSemantics(wide)) ||
        failed(reader.readSignedVarInt(ulps)) ||
        failed(reader.readAttribute(mode)))
      return {};
    return b.getUnitAttr();
  }
  default:
    return reader.emitError()
               << "unsupported: attribute number " << code << " of vhlo",
           Attribute();
  }
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

/// "add" of "vhlo.add_v1".
static StringRef bareName(Operation *op) {
  StringRef name = op->getName().stripDialect();
  size_t end = name.rfind("_v");
  return end == StringRef::npos ? name : name.take_front(end);
}

static LogicalResult convertFunction(Operation *op) {
  auto name = op->getAttrOfType<StringAttr>("sym_name");
  auto type = op->getAttrOfType<TypeAttr>("function_type");
  auto visibility = op->getAttrOfType<StringAttr>("sym_visibility");
  auto function =
      type ? dyn_cast<FunctionType>(type.getValue()) : FunctionType();
  if (!name || name.getValue().empty() || !function ||
      op->getNumRegions() != 1 || op->getNumOperands() || op->getNumResults() ||
      !isa_and_nonnull<ModuleOp>(op->getParentOp()))
    return op->emitError() << "expected a function with a name and a type";
  OpBuilder b(op);
  auto made = func::FuncOp::create(b, op->getLoc(), name, function);
  if (visibility && (visibility == "private" || visibility == "public"))
    made.setSymVisibilityAttr(visibility);
  auto set = [&](StringRef attribute, size_t count, auto setOne) {
    auto list = op->getAttrOfType<ArrayAttr>(attribute);
    for (size_t i = 0; list && i < std::min(count, list.size()); ++i)
      if (auto fields = dyn_cast<DictionaryAttr>(list[i]))
        setOne(i, fields);
  };
  set("arg_attrs", function.getNumInputs(),
      [&](size_t i, DictionaryAttr fields) { made.setArgAttrs(i, fields); });
  set("res_attrs", function.getNumResults(),
      [&](size_t i, DictionaryAttr fields) { made.setResultAttrs(i, fields); });
  made.getBody().takeBody(op->getRegion(0));
  op->erase();
  return success();
}

/// The attributes as text has them.
static void convertAttributes(Operation *op, StringRef name,
                              NamedAttrList &list) {
  for (NamedAttribute attribute : op->getAttrs())
    list.append(attribute.getName(), attribute.getValue());
  for (StringRef word : wordsOf(precisions))
    list.erase(word);
  for (const auto &one : structures) {
    if (one.op != name)
      continue;
    NamedAttrList fields;
    for (StringRef field : wordsOf(one.fields))
      if (Attribute value = list.erase(field))
        fields.append(field, value);
    list.set(one.structure, fields.getDictionary(op->getContext()));
  }
}

static LogicalResult convertOp(Operation *op) {
  StringRef name = bareName(op);
  OpBuilder b(op);
  bool isCall = name == "call";
  bool ends = name == "return" && isa<func::FuncOp>(op->getParentOp());
  std::string made = isCall ? "func.call"
                     : ends ? "func.return"
                            : ("stablehlo." + name).str();
  OperationState state(op->getLoc(), made);
  state.addOperands(op->getOperands());
  state.addTypes(op->getResultTypes());
  NamedAttrList list;
  convertAttributes(op, name, list);
  if (isCall) {
    auto callee = dyn_cast_or_null<StringAttr>(list.get("callee"));
    if (!callee)
      return op->emitError() << "expected the name of a function";
    list.set("callee", FlatSymbolRefAttr::get(callee));
  }
  state.addAttributes(list);
  for (size_t i = 0; i < op->getNumRegions(); ++i)
    state.addRegion()->takeBody(op->getRegion(i));
  Operation *fresh = b.create(state);
  op->replaceAllUsesWith(fresh->getResults());
  op->erase();
  return success();
}

LogicalResult stablehlo::convertPortable(ModuleOp module) {
  SmallVector<Operation *> functions, ops;
  module.walk([&](Operation *op) {
    if (op->getName().getDialectNamespace() == "vhlo")
      (bareName(op) == "func" ? functions : ops).push_back(op);
  });
  for (Operation *op : functions)
    if (failed(convertFunction(op)))
      return failure();
  for (Operation *op : ops)
    if (failed(convertOp(op)))
      return failure();
  return success();
}
