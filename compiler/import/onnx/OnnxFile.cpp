//===- OnnxFile.cpp - ONNX files as plain data ----------------------------===//
#include "compiler/import/onnx/OnnxFile.h"
#include "compiler/import/onnx/PackElements.h"
#include "runtime/artifact/DeviceFiles.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"

#include <bit>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include "onnx/onnx_pb.h"
#pragma GCC diagnostic pop

using namespace tandem;
using namespace tandem::onnx;
namespace pb = ::onnx;

static_assert(std::endian::native == std::endian::little);

namespace {

/// The most elements that a tensor can have: as the dialect's kMaxElements.
constexpr int64_t maxElements = int64_t(1) << 40;

class Reader {
public:
  explicit Reader(std::string folder) : folder(std::move(folder)) {}

  Model model(const pb::ModelProto &proto);
  TensorPtr tensor(const pb::TensorProto &proto, const std::string &where);
  Status status() const {
    return problems.empty() ? Status::success() : Status::failed(problems);
  }

private:
  void wrong(const std::string &where, const std::string &what) {
    problems += (problems.empty() ? "" : "\n") + printable(where) + ": " +
                printable(what);
  }
  /// Names stand in manifests and messages.
  void checkName(const std::string &name, const std::string &where) {
    if (printable(name) != name && !llvm::json::isUTF8(name))
      wrong(where, "expected names in UTF-8, but got '" + name + "'");
    else if (artifact::hasControls(name))
      wrong(where, "expected names without control characters, but got '" +
                       name + "'");
  }
  ValueType type(const pb::TypeProto &proto);
  NamedType named(const pb::ValueInfoProto &proto);
  Attribute attribute(const pb::AttributeProto &proto,
                      const std::string &where);
  NodeData node(const pb::NodeProto &proto, const std::string &where);
  void graph(const pb::GraphProto &proto, const std::string &where, Graph &to);
  FunctionData function(const pb::FunctionProto &proto);
  Opsets
  opsets(const google::protobuf::RepeatedPtrField<pb::OperatorSetIdProto> &list,
         const std::string &where);
  /// Reads the bytes that `proto` says are in another file.
  bool external(const pb::TensorProto &proto, size_t size, TensorData &to,
                const std::string &where);

  std::string folder;
  std::string problems;
};

/// "ai.onnx" is the default domain's long name.
std::string domainOf(const std::string &domain) {
  return domain == "ai.onnx" ? "" : domain;
}

} // namespace

/// Opens the file at `location` in `folder`. What a model says leads to no file
/// outside of the folder: not by "..", by a path from the root, or by a
/// symbolic link anywhere on the way.
static Result<int> openInside(const std::string &folder,
                              const std::string &location) {
  auto refused = [&] {
    return Status::failed("expected external data in the model's folder, but "
                          "got '" +
                          location + "'");
  };
  if (folder.empty() || location.empty() || location.front() == '/' ||
      location.find('\0') != std::string::npos)
    return refused();
  int at = ::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  llvm::SmallVector<llvm::StringRef> parts;
  llvm::StringRef(location).split(parts, '/', /*MaxSplit=*/-1,
                                  /*KeepEmpty=*/false);
  for (size_t i = 0; at >= 0 && i < parts.size(); ++i) {
    bool isLast = i + 1 == parts.size();
    // Not blocking: a pipe must not make the program wait for a writer.
    int next = parts[i] == ".." ? -1
                                : ::openat(at, parts[i].str().c_str(),
                                           O_CLOEXEC | O_NOFOLLOW |
                                               (isLast ? O_RDONLY | O_NONBLOCK
                                                       : O_PATH | O_DIRECTORY));
    // A link is ELOOP as a file, and ENOTDIR as a folder.
    bool leaves = parts[i] == ".." || (next < 0 && errno == ELOOP);
    struct stat facts {};
    if (next < 0 && !leaves &&
        ::fstatat(at, parts[i].str().c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0)
      leaves = S_ISLNK(facts.st_mode);
    ::close(at);
    at = next;
    if (leaves)
      return refused();
  }
  if (at < 0)
    return Status::failed("cannot read external data from '" + folder + "/" +
                          location + "'");
  return at;
}

bool Reader::external(const pb::TensorProto &proto, size_t size, TensorData &to,
                      const std::string &where) {
  std::string location;
  uint64_t offset = 0, length = size;
  for (const auto &entry : proto.external_data()) {
    bool isNumber = entry.key() == "offset" || entry.key() == "length";
    if (entry.key() == "location")
      location = entry.value();
    else if (isNumber &&
             llvm::StringRef(entry.value())
                 .getAsInteger(10, entry.key() == "offset" ? offset : length))
      return wrong(where, "expected '" + entry.key() +
                              "' of external data to be a number, but got '" +
                              entry.value() + "'"),
             false;
  }
  if (length != size)
    return wrong(where, "expected " + std::to_string(size) +
                            " bytes of external data, but got " +
                            std::to_string(length)),
           false;
  Result<int> file = openInside(folder, location);
  if (!file)
    return wrong(where, file.status().message()), false;
  std::string path = folder + "/" + location;
  struct stat facts {};
  bool isRead = ::fstat(*file, &facts) == 0 && S_ISREG(facts.st_mode);
  auto all = isRead ? static_cast<uint64_t>(facts.st_size) : 0;
  if (isRead && (offset > all || size > all - offset)) {
    ::close(*file);
    return wrong(where, "expected " + std::to_string(size) + " bytes at " +
                            std::to_string(offset) + " of '" + path +
                            "', but it has " + std::to_string(all)),
           false;
  }
  if (isRead)
    to.bytes.resize(size);
  for (size_t done = 0; isRead && done < size;) {
    ssize_t more = ::pread(*file, to.bytes.data() + done, size - done,
                           static_cast<off_t>(offset + done));
    isRead = more > 0 || (more < 0 && errno == EINTR);
    done += more > 0 ? static_cast<size_t>(more) : 0;
  }
  ::close(*file);
  if (!isRead)
    return wrong(where, "cannot read external data from '" + path + "'"), false;
  return true;
}

TensorPtr Reader::tensor(const pb::TensorProto &proto,
                         const std::string &where) {
  auto to = std::make_shared<TensorData>();
  to->name = proto.name();
  to->kind = static_cast<ElementKind>(proto.data_type());
  int64_t count = 1;
  for (int64_t size : proto.dims()) {
    if (size < 0)
      return wrong(where, "expected sizes of at least 0, but got " +
                              std::to_string(size)),
             nullptr;
    if (size && count > maxElements / size)
      return wrong(where, "the tensor is too large"), nullptr;
    count *= size;
    to->shape.push_back(size);
  }
  if (proto.has_segment())
    return wrong(where, "unsupported: a tensor in segments"), nullptr;
  if (to->kind == ElementKind::String) {
    to->strings.assign(proto.string_data().begin(), proto.string_data().end());
    if (static_cast<int64_t>(to->strings.size()) != count)
      return wrong(where, "expected " + std::to_string(count) +
                              " strings, but got " +
                              std::to_string(to->strings.size())),
             nullptr;
    return to;
  }
  int64_t unit = byteSize(to->kind);
  bool isExternal = proto.data_location() == pb::TensorProto::EXTERNAL;
  if (unit == 0 && !isNarrow(to->kind)) {
    // What is not known is told to whoever uses it.
    to->bytes = proto.raw_data();
    return to;
  }
  int64_t size = unit ? count * unit : packedSize(to->kind, count);
  if (isExternal)
    return external(proto, size, *to, where) ? to : nullptr;
  if (proto.has_raw_data()) {
    to->bytes = proto.raw_data();
  } else {
    std::optional<std::string> beyond;
    switch (to->kind) {
    case ElementKind::F32:
    case ElementKind::Complex64:
      beyond = pack<float>(proto.float_data(), to->bytes);
      break;
    case ElementKind::F64:
    case ElementKind::Complex128:
      beyond = pack<double>(proto.double_data(), to->bytes);
      break;
    case ElementKind::I64:
      beyond = pack<int64_t>(proto.int64_data(), to->bytes);
      break;
    case ElementKind::U64:
      beyond = pack<uint64_t>(proto.uint64_data(), to->bytes);
      break;
    case ElementKind::U32:
      beyond = pack<uint32_t>(proto.uint64_data(), to->bytes);
      break;
    case ElementKind::I32:
      beyond = pack<int32_t>(proto.int32_data(), to->bytes);
      break;
    default:
      beyond = packNarrow(to->kind, unit, proto.int32_data(), to->bytes);
    }
    if (beyond)
      return wrong(where, "expected elements of " + spelling(to->kind) +
                              ", but got " + *beyond),
             nullptr;
  }
  if (to->bytes.size() != static_cast<size_t>(size))
    return wrong(where, "expected " + std::to_string(count) + " elements (" +
                            std::to_string(size) + " bytes), but got " +
                            std::to_string(to->bytes.size()) + " bytes"),
           nullptr;
  if (to->kind == ElementKind::Bool)
    for (char &byte : to->bytes)
      byte = byte != 0;
  return to;
}

ValueType Reader::type(const pb::TypeProto &proto) {
  ValueType to;
  auto element = [&](const pb::TypeProto &inner) {
    to.element = std::make_shared<ValueType>(type(inner));
  };
  if (proto.has_tensor_type()) {
    const auto &tensor = proto.tensor_type();
    to.form = ValueType::Form::Tensor;
    to.kind = static_cast<ElementKind>(tensor.elem_type());
    to.hasShape = tensor.has_shape();
    for (const auto &dim : tensor.shape().dim()) {
      Dim size;
      if (dim.has_dim_value())
        size.size = dim.dim_value();
      size.name = dim.dim_param();
      to.shape.push_back(size);
    }
  } else if (proto.has_sequence_type()) {
    to.form = ValueType::Form::Sequence;
    element(proto.sequence_type().elem_type());
  } else if (proto.has_optional_type()) {
    to.form = ValueType::Form::Optional;
    element(proto.optional_type().elem_type());
  } else if (proto.has_map_type()) {
    to.form = ValueType::Form::Map;
  } else if (proto.has_sparse_tensor_type()) {
    to.form = ValueType::Form::Sparse;
  }
  return to;
}

NamedType Reader::named(const pb::ValueInfoProto &proto) {
  return {proto.name(), type(proto.type())};
}

Attribute Reader::attribute(const pb::AttributeProto &proto,
                            const std::string &where) {
  std::string here = where + ", attribute '" + proto.name() + "'";
  Attribute to;
  to.name = proto.name();
  to.reference = proto.ref_attr_name();
  auto addGraph = [&](const pb::GraphProto &inner) {
    auto made = std::make_shared<Graph>();
    graph(inner, here, *made);
    to.graphs.push_back(made);
  };
  // Files before version 0.0.2 of the format have no type.
  auto form = proto.type();
  if (form == pb::AttributeProto::UNDEFINED && to.reference.empty())
    form = proto.has_f()          ? pb::AttributeProto::FLOAT
           : proto.has_i()        ? pb::AttributeProto::INT
           : proto.has_s()        ? pb::AttributeProto::STRING
           : proto.has_t()        ? pb::AttributeProto::TENSOR
           : proto.has_g()        ? pb::AttributeProto::GRAPH
           : proto.floats_size()  ? pb::AttributeProto::FLOATS
           : proto.strings_size() ? pb::AttributeProto::STRINGS
                                  : pb::AttributeProto::INTS;
  using Form = Attribute::Form;
  switch (form) {
  case pb::AttributeProto::FLOAT:
    to.form = Form::Float;
    to.number = proto.f();
    break;
  case pb::AttributeProto::INT:
    to.form = Form::Int;
    to.integer = proto.i();
    break;
  case pb::AttributeProto::STRING:
    to.form = Form::String;
    to.text = proto.s();
    break;
  case pb::AttributeProto::TENSOR:
    to.form = Form::Tensor;
    to.tensors.push_back(tensor(proto.t(), here));
    break;
  case pb::AttributeProto::GRAPH:
    to.form = Form::Graph;
    addGraph(proto.g());
    break;
  case pb::AttributeProto::FLOATS:
    to.form = Form::Floats;
    to.numbers.assign(proto.floats().begin(), proto.floats().end());
    break;
  case pb::AttributeProto::INTS:
    to.form = Form::Ints;
    to.integers.assign(proto.ints().begin(), proto.ints().end());
    break;
  case pb::AttributeProto::STRINGS:
    to.form = Form::Strings;
    to.texts.assign(proto.strings().begin(), proto.strings().end());
    break;
  case pb::AttributeProto::TENSORS:
    to.form = Form::Tensors;
    for (const auto &one : proto.tensors())
      to.tensors.push_back(tensor(one, here));
    break;
  case pb::AttributeProto::GRAPHS:
    to.form = Form::Graphs;
    for (const auto &one : proto.graphs())
      addGraph(one);
    break;
  case pb::AttributeProto::SPARSE_TENSOR:
  case pb::AttributeProto::SPARSE_TENSORS:
    to.form = Form::Sparse;
    break;
  case pb::AttributeProto::TYPE_PROTO:
  case pb::AttributeProto::TYPE_PROTOS:
    to.form = Form::Type;
    break;
  default:
    break;
  }
  return to;
}

/// What newer files have that the schema of Debian's libonnx has not: fields of
/// bytes, by their number.
static std::vector<std::string_view>
newerFields(const google::protobuf::Message &proto, int number) {
  std::vector<std::string_view> found;
  const auto &fields = proto.GetReflection()->GetUnknownFields(proto);
  for (int i = 0; i < fields.field_count(); ++i)
    if (const auto &field = fields.field(i);
        field.number() == number &&
        field.type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED)
      found.push_back(field.length_delimited());
  return found;
}

/// Which of the functions of one name is meant (field `number`); "" by default.
static std::string overloadOf(const google::protobuf::Message &proto,
                              int number) {
  auto found = newerFields(proto, number);
  return found.empty() ? std::string() : std::string(found.back());
}

NodeData Reader::node(const pb::NodeProto &proto, const std::string &where) {
  NodeData to;
  to.name = proto.name();
  to.op = proto.op_type();
  to.domain = domainOf(proto.domain());
  to.overload = overloadOf(proto, 8);
  to.inputs.assign(proto.input().begin(), proto.input().end());
  to.outputs.assign(proto.output().begin(), proto.output().end());
  std::string label =
      to.name.empty() && !to.outputs.empty() ? to.outputs.front() : to.name;
  std::string here = where + "node '" + label + "' (" + to.op + ")";
  for (const auto *names : {&to.inputs, &to.outputs})
    for (const std::string &name : *names)
      checkName(name, here);
  checkName(to.name, here);
  checkName(to.op, here);
  checkName(to.domain, here);
  std::set<std::string> names;
  for (const auto &one : proto.attribute()) {
    if (!names.insert(one.name()).second)
      wrong(here, "expected one attribute '" + one.name() + "', but got two");
    to.attributes.push_back(attribute(one, here));
  }
  return to;
}

void Reader::graph(const pb::GraphProto &proto, const std::string &where,
                   Graph &to) {
  std::string inside = where.empty() ? "" : where + ", ";
  to.name = proto.name(); // the importer makes a model's name of it
  if (!llvm::json::isUTF8(to.name))
    wrong(inside + "the graph",
          "expected names in UTF-8, but got '" + to.name + "'");
  for (const auto &one : proto.node())
    to.nodes.push_back(node(one, inside));
  for (auto [from, list] : {std::pair(&proto.input(), &to.inputs),
                            std::pair(&proto.output(), &to.outputs),
                            std::pair(&proto.value_info(), &to.values)})
    for (const auto &one : *from) {
      checkName(one.name(), inside + "the graph");
      list->push_back(named(one));
    }
  for (const auto &one : proto.initializer()) {
    checkName(one.name(), inside + "the graph");
    to.initializers.push_back(
        tensor(one, inside + "initializer '" + one.name() + "'"));
  }
  for (const auto &one : proto.sparse_initializer())
    wrong(inside + "initializer '" + one.values().name() + "'",
          "unsupported: a sparse tensor");
}

Opsets Reader::opsets(
    const google::protobuf::RepeatedPtrField<pb::OperatorSetIdProto> &list,
    const std::string &where) {
  Opsets to;
  for (const auto &one : list)
    if (!to.emplace(domainOf(one.domain()), one.version()).second)
      wrong(where, "expected one version of the domain '" + one.domain() +
                       "', but got two");
  return to;
}

FunctionData Reader::function(const pb::FunctionProto &proto) {
  std::string where = "function '" + proto.name() + "'";
  FunctionData to;
  to.domain = domainOf(proto.domain());
  to.name = proto.name();
  to.overload = overloadOf(proto, 13);
  to.inputs.assign(proto.input().begin(), proto.input().end());
  to.outputs.assign(proto.output().begin(), proto.output().end());
  for (std::string_view bytes : newerFields(proto, 11)) {
    pb::AttributeProto one;
    if (!one.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
      wrong(where, "expected attributes with their defaults");
    else
      to.defaults.push_back(attribute(one, where));
  }
  to.attributes.assign(proto.attribute().begin(), proto.attribute().end());
  for (const auto &one : proto.node())
    to.nodes.push_back(node(one, where + ", "));
  to.opsets = opsets(proto.opset_import(), where);
  return to;
}

Model Reader::model(const pb::ModelProto &proto) {
  Model to;
  to.irVersion = proto.ir_version();
  to.producer = proto.producer_name() +
                (proto.producer_version().empty() ? "" : " ") +
                proto.producer_version();
  to.opsets = opsets(proto.opset_import(), "the model");
  // Before version 3 of the format there was one operator set.
  if (to.opsets.empty() && to.irVersion < 3)
    to.opsets[""] = 1;
  if (!proto.has_graph())
    wrong("the model", "expected a graph, but got none");
  graph(proto.graph(), "", to.graph);
  for (const auto &one : proto.functions())
    to.functions.push_back(function(one));
  return to;
}

/// Protobuf's own limit is this one; messages in one another are what its
/// parser and the reader call themselves for.
static constexpr int maxNesting = 100;
/// It counts bytes with an int; larger models have external data.
static constexpr size_t largestMessage = INT32_MAX;

template <typename Proto>
static bool parse(std::string_view bytes, Proto &proto) {
  return bytes.size() <= largestMessage &&
         proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

static Result<std::string> readBytes(const std::string &path) {
  if (Status status = artifact::expectNoDevice(path); !status)
    return status;
  struct stat facts {};
  if (::stat(path.c_str(), &facts) == 0 && S_ISREG(facts.st_mode) &&
      static_cast<uint64_t>(facts.st_size) > largestMessage)
    return Status::failed("expected a file of ONNX of less than 2 GiB, but '" +
                          path + "' has " + std::to_string(facts.st_size) +
                          " bytes; larger models have external data");
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(file)), {});
  if (!file)
    return Status::failed(
        "cannot read '" + path + "'" +
        (errno ? std::string(": ") + std::strerror(errno) : std::string()));
  return bytes;
}

Result<Model> tandem::onnx::parseModel(std::string_view bytes,
                                       const std::string &folder) {
  pb::ModelProto proto;
  if (!parse(bytes, proto))
    return Status::failed("expected an ONNX model with messages at most " +
                          std::to_string(maxNesting) +
                          " deep in one another, but the file is truncated or "
                          "none");
  Reader reader(folder);
  Model model = reader.model(proto);
  if (Status s = reader.status(); !s)
    return s;
  return model;
}

Result<Model> tandem::onnx::readModelFile(const std::string &path) {
  auto bytes = readBytes(path);
  if (!bytes)
    return bytes.status();
  llvm::StringRef folder = llvm::sys::path::parent_path(path);
  auto model = parseModel(*bytes, folder.empty() ? "." : folder.str());
  if (!model)
    return std::move(model).status().in("'" + path + "'");
  return model;
}

Result<FileValue> tandem::onnx::parseValue(std::string_view bytes,
                                           ValueType::Form form) {
  auto bad = [](const char *what) {
    return Status::failed(std::string("expected ") + what +
                          ", but the file is truncated or none");
  };
  Reader reader("");
  FileValue value;
  if (form == ValueType::Form::Tensor) {
    pb::TensorProto proto;
    if (!parse(bytes, proto))
      return bad("a tensor");
    value.tensor = reader.tensor(proto, "the tensor");
  } else {
    return bad("a tensor");
  }
  if (Status s = reader.status(); !s)
    return s;
  return value;
}

Result<FileValue> tandem::onnx::readValueFile(const std::string &path,
                                              ValueType::Form form) {
  auto bytes = readBytes(path);
  if (!bytes)
    return bytes.status();
  auto value = parseValue(*bytes, form);
  if (!value)
    return std::move(value).status().in("'" + path + "'");
  return value;
}
