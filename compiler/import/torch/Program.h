//===- Program.h - an exported PyTorch program as plain data --------------===//
//
// What Archive reads out of the JSON of torch.export (its schema is PyTorch's
// torch/_export/serde/schema.py). Nothing here has been checked beyond its own
// form: names may lead nowhere.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_IMPORT_TORCH_PROGRAM_H
#define TANDEM_COMPILER_IMPORT_TORCH_PROGRAM_H

#include "compiler/import/TensorData.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace tandem::torch {

/// A size, or another number that sizes decide: itself, or an expression of
/// symbols and what it was when the program was exported.
struct Size {
  std::optional<int64_t> number;
  std::string expression;
  std::optional<int64_t> hint;
};

struct TensorMeta {
  int64_t dtype = 0; ///< a number of PyTorch's ScalarType
  std::vector<Size> sizes, strides;
  Size offset;
  bool requiresGrad = false;
  bool isDense = true;
};

/// A number by its name, or itself.
struct Number {
  std::string name;
  double number = 0;
  int64_t integer = 0;
};

struct Graph;

struct Argument {
  enum class Form {
    None,
    Tensor,  ///< names: one
    Tensors, ///< names; "" is an absent one
    Int,     ///< numbers: one, an integer or the name of one
    Ints,
    Float, ///< numbers: one
    Floats,
    Bool,
    Bools,
    Text, ///< texts: one
    Texts,
    DType,        ///< integer
    MemoryFormat, ///< integer
    Graph,
    Other, ///< texts: what the schema calls it
  };
  Form form = Form::None;
  std::vector<std::string> names, texts;
  std::vector<Number> numbers;
  std::shared_ptr<const Graph> graph;
};

struct NamedArgument {
  std::string name;
  Argument argument;
};

struct NodeData {
  std::string target; ///< "torch.ops.aten.add.Tensor"
  std::string name;   ///< may be empty
  std::vector<NamedArgument> inputs;
  std::vector<Argument> outputs;
  std::string stackTrace, modules; ///< as the archive has them; may be empty
};

struct Graph {
  std::vector<Argument> inputs, outputs;
  std::vector<NodeData> nodes;
  std::map<std::string, TensorMeta> tensors;
  std::map<std::string, Size> integers; ///< and bools, and floats
};

struct InputSpec {
  enum class Kind { User, Parameter, Buffer, Constant, Known, Other };
  Kind kind = Kind::Other;
  Argument argument;
  std::string target; ///< the parameter's or buffer's name
  bool isPersistent = true;
  std::string what; ///< what the schema calls it
};

struct OutputSpec {
  enum class Kind {
    User,
    Loss,
    BufferMutation,
    ParameterMutation,
    InputMutation,
    Other
  };
  Kind kind = Kind::Other;
  Argument argument;
  std::string target;
  std::string what;
};

struct Range {
  std::optional<int64_t> low, high;
};

struct Program {
  Graph graph;
  std::vector<InputSpec> inputs;
  std::vector<OutputSpec> outputs;
  std::vector<std::string> outputNames; ///< of user outputs, made of their tree
  std::map<std::string, Range> ranges;  ///< of symbols
  /// What parameters, buffers and constants begin as, by their names; and which
  /// parameters require grad.
  std::map<std::string, TensorPtr> values;
  std::map<std::string, bool> requiresGrad;
  /// Names of the files that these are in: what shows one storage is in one.
  std::map<std::string, std::string> storage;
  /// Names of what is in the archive but cannot be read, and why.
  std::map<std::string, std::string> unread;
};

} // namespace tandem::torch

#endif
