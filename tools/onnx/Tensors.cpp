//===- Tensors.cpp - between ONNX's tensors and the runtime's -------------===//
#include "tools/onnx/Tensors.h"
#include "compiler/import/onnx/OnnxFile.h"
#include "runtime/io/FileKind.h"
#include "runtime/io/Npy.h"
#include "runtime/io/Safetensors.h"
#include "runtime/io/Tensors.h"

#include <charconv>
#include <cmath>
#include <cstring>

namespace tandem::onnx {

using artifact::DType;

static constexpr std::pair<ElementKind, std::string_view> names[] = {
    {ElementKind::F32, "f32"},       {ElementKind::F64, "f64"},
    {ElementKind::F16, "f16"},       {ElementKind::BF16, "bf16"},
    {ElementKind::Bool, "bool"},     {ElementKind::I8, "i8"},
    {ElementKind::I16, "i16"},       {ElementKind::I32, "i32"},
    {ElementKind::I64, "i64"},       {ElementKind::U8, "u8"},
    {ElementKind::U16, "u16"},       {ElementKind::U32, "u32"},
    {ElementKind::U64, "u64"},       {ElementKind::F8E4M3FN, "f8E4M3FN"},
    {ElementKind::F8E5M2, "f8E5M2"},
};

std::optional<DType> dtypeOf(ElementKind kind) {
  for (auto [known, name] : names)
    if (known == kind)
      return artifact::parseDType(name);
  return std::nullopt;
}

ElementKind kindOf(DType dtype) {
  for (auto [kind, name] : names)
    if (artifact::parseDType(name) == dtype)
      return kind;
  return ElementKind::Undefined;
}

Result<runtime::Tensor> toTensor(const TensorData &data) {
  auto dtype = dtypeOf(data.kind);
  if (!dtype)
    return Status::unsupported("a tensor of " + spelling(data.kind));
  if (!data.isSplat)
    return runtime::Tensor::copyOf(data.bytes.data(), *dtype, data.shape);
  auto tensor = runtime::Tensor::empty(*dtype, data.shape);
  if (!tensor)
    return tensor.status();
  auto *to = tensor->mutableData<char>();
  for (int64_t i = 0, unit = byteSize(data.kind); i < tensor->bytes();
       i += unit)
    std::memcpy(to + i, data.bytes.data(), static_cast<size_t>(unit));
  return tensor;
}

Result<TensorPtr> toData(const runtime::Tensor &tensor) {
  auto dense = tensor.dense();
  if (!dense)
    return dense.status();
  auto to = std::make_shared<TensorData>();
  to->kind = kindOf(tensor.dtype());
  to->shape.assign(tensor.shape().begin(), tensor.shape().end());
  to->bytes.assign(dense->data<char>(), static_cast<size_t>(dense->bytes()));
  return TensorPtr(to);
}

template <typename T> static void append(std::string &bytes, T element) {
  bytes.append(reinterpret_cast<const char *>(&element), sizeof element);
}

/// Appends a number as an element of `kind`; false if it cannot, as where the
/// number is beyond what the kind holds.
static bool append(std::string &bytes, std::string_view word,
                   ElementKind kind) {
  if (word.starts_with('+') && !word.starts_with("+-"))
    word.remove_prefix(1);
  bool isFloat = kind == ElementKind::F32 || kind == ElementKind::F64;
  if (!isFloat && (word == "true" || word == "false"))
    word = word == "true" ? "1" : "0";
  auto take = [&]<typename T>(T number) {
    const char *last = word.data() + word.size();
    auto [end, error] = std::from_chars(word.data(), last, number);
    append(bytes, number);
    return error == std::errc() && end == last &&
           std::isfinite(static_cast<double>(number));
  };
  switch (kind) {
  case ElementKind::F32:
    return take(float());
  case ElementKind::F64:
    return take(double());
  case ElementKind::Bool:
    return take(uint8_t()) && static_cast<uint8_t>(bytes.back()) <= 1;
  case ElementKind::I8:
    return take(int8_t());
  case ElementKind::U8:
    return take(uint8_t());
  case ElementKind::I16:
    return take(int16_t());
  case ElementKind::U16:
    return take(uint16_t());
  case ElementKind::I32:
    return take(int32_t());
  case ElementKind::U32:
    return take(uint32_t());
  case ElementKind::I64:
    return take(int64_t());
  case ElementKind::U64:
    return take(uint64_t());
  default:
    return false;
  }
}

Result<TensorPtr> parseValueText(const std::string &text, ElementKind kind) {
  if (text.ends_with(".pb")) {
    auto value = readValueFile(text, ValueType::Form::Tensor);
    if (!value)
      return value.status();
    return value->tensor;
  }
  auto to = std::make_shared<TensorData>();
  if (text.ends_with(".npy")) {
    auto array = io::readNpy(text);
    if (!array)
      return array.status();
    to->kind = kindOf(array->dtype);
    to->shape = array->shape;
    to->bytes.assign(reinterpret_cast<const char *>(array->bytes.data()),
                     array->bytes.size());
    return TensorPtr(to);
  }
  bool isList = text.starts_with('[') && text.ends_with(']');
  std::string inside = isList ? text.substr(1, text.size() - 2) : text;
  std::vector<std::string> words;
  std::string word;
  for (char c : inside + ",") {
    if (c == ',') {
      words.push_back(word);
      word.clear();
    } else if (c != ' ') {
      word += c;
    }
  }
  if (isList && words.size() == 1 && words[0].empty())
    words.clear();
  to->kind = kind != ElementKind::Undefined ? kind
             : inside.find_first_of(".eE") != std::string::npos
                 ? ElementKind::F32
                 : ElementKind::I64;
  if (isList)
    to->shape = {static_cast<int64_t>(words.size())};
  for (const std::string &one : words)
    if (!append(to->bytes, one, to->kind))
      return Status::usage("expected FILE.npy, FILE.pb, a number or a list of "
                           "numbers that are " +
                           spelling(to->kind) + ", but got '" + text + "'");
  return TensorPtr(to);
}

Status readValues(const std::string &path,
                  const std::vector<std::string> &texts,
                  std::map<std::string, TensorPtr> &to) {
  if (texts.empty())
    return Status::success();
  auto model = readModelFile(path);
  if (!model)
    return model.status();
  for (const std::string &text : texts) {
    size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      return Status::usage("expected --value=INPUT=VALUE, but got '" + text +
                           "'");
    std::string name = text.substr(0, equals);
    ElementKind kind = ElementKind::Undefined;
    for (const NamedType &input : model->graph.inputs)
      if (input.name == name)
        kind = input.type.kind;
    auto value = parseValueText(text.substr(equals + 1), kind);
    if (!value)
      return std::move(value).status().in("--value=" + name);
    to[name] = *value;
  }
  return Status::success();
}

Status setWeights(runtime::Model &model,
                  const std::map<std::string, TensorPtr> &weights) {
  for (const auto &[name, data] : weights) {
    auto tensor = toTensor(*data);
    if (!tensor)
      return std::move(tensor).status().in(name);
    if (Status s = model.set(name, *tensor); !s)
      return s;
  }
  return Status::success();
}

Status writeWeights(const std::string &path,
                    const std::map<std::string, TensorPtr> &weights,
                    const std::string &model) {
  std::map<std::string, runtime::Tensor> tensors;
  std::map<std::string, io::ArrayView> views;
  for (const auto &[name, data] : weights) {
    auto tensor = toTensor(*data);
    if (!tensor)
      return std::move(tensor).status().in(name);
    views[name] = io::viewOf(tensors[name] = std::move(*tensor));
  }
  // The name alone: the same model gives the same bytes from any folder.
  return io::writeSafetensors(
      path, views,
      {{io::initialValuesKey, model.substr(model.rfind('/') + 1)}});
}

} // namespace tandem::onnx
