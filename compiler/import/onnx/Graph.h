//===- Graph.h - an ONNX model as plain data ------------------------------===//
//
// What OnnxFile reads out of the protobuf, so that nothing else sees protobuf.
// Nothing here has been checked beyond its own form: names may lead nowhere.
// Elements of tensors that are in another file have been read.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_IMPORT_ONNX_GRAPH_H
#define TANDEM_COMPILER_IMPORT_ONNX_GRAPH_H

#include "compiler/import/TensorData.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace tandem::onnx {

using artifact::printable; ///< for messages
using tandem::byteSize;
using tandem::ElementKind;
using tandem::spelling;
using tandem::TensorData;
using tandem::TensorPtr;

/// The carrier of a narrow type (Narrow.h); Undefined for all others.
ElementKind carrierOf(ElementKind kind);
inline bool isNarrow(ElementKind kind) {
  return carrierOf(kind) != ElementKind::Undefined;
}
/// The bytes of `elements` packed ones of a narrow type.
int64_t packedSize(ElementKind kind, int64_t elements);

/// A declared size: a number, or a name ("batch"), or nothing.
struct Dim {
  int64_t size = -1; ///< -1: not known
  std::string name;
};

/// The declared type of a value.
struct ValueType {
  enum class Form { Tensor, Sequence, Optional, Map, Sparse, Nothing };
  Form form = Form::Nothing;
  ElementKind kind = ElementKind::Undefined; ///< of tensors
  bool hasShape = false;
  std::vector<Dim> shape;
  std::shared_ptr<const ValueType> element; ///< of sequences and optionals
};

struct NamedType {
  std::string name;
  ValueType type;
};

struct Graph;

struct Attribute {
  enum class Form {
    Undefined,
    Float,
    Int,
    String,
    Tensor,
    Graph,
    Floats,
    Ints,
    Strings,
    Tensors,
    Graphs,
    Sparse,
    Type,
  };
  std::string name;
  Form form = Form::Undefined;
  float number = 0;
  int64_t integer = 0;
  std::string text;
  std::vector<float> numbers;
  std::vector<int64_t> integers;
  std::vector<std::string> texts;
  std::vector<TensorPtr> tensors; ///< Tensor: one
  std::vector<std::shared_ptr<const Graph>> graphs;
  /// In a function's body: the attribute of the call that it stands for.
  std::string reference;
};

/// A node as it stands in the file.
struct NodeData {
  std::string name; ///< may be empty
  std::string op;
  std::string domain;                       ///< "" is ai.onnx
  std::string overload;                     ///< of the function it calls
  std::vector<std::string> inputs, outputs; ///< empty: left out
  std::vector<Attribute> attributes;
};

struct Graph {
  std::string name;
  std::vector<NodeData> nodes;
  std::vector<NamedType> inputs, outputs;
  std::vector<NamedType> values; ///< declared types of what is in between
  std::vector<TensorPtr> initializers;
};

/// The versions of operators by domain; "" is ai.onnx.
using Opsets = std::map<std::string, int64_t>;

/// An operator that the model itself defines.
struct FunctionData {
  std::string domain, name, overload;
  std::vector<std::string> inputs, outputs, attributes;
  std::vector<Attribute> defaults;
  std::vector<NodeData> nodes;
  Opsets opsets;
};

struct Model {
  int64_t irVersion = 0;
  std::string producer;
  Opsets opsets;
  Graph graph;
  std::vector<FunctionData> functions;
};

} // namespace tandem::onnx

#endif
