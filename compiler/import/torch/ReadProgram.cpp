//===- ReadProgram.cpp - from torch.export's JSON to plain data -----------===//
//
// Fields that are not known are passed over: minor versions of the schema add
// some. What is known has to have its form.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/JsonReader.h"
#include "compiler/import/torch/Archive.h"

#include "llvm/ADT/StringRef.h"

#include <cmath>
#include <limits>

using namespace tandem;
using namespace tandem::torch;

/// The major version of the schema that is understood.
static constexpr int64_t kMajor = 8;
/// Graphs in graphs in ...
static constexpr int kMostDepth = 64;

namespace {
class Reader {
public:
  void program(const JsonPlace &root, Program &to);

private:
  void graph(const JsonPlace &place, Graph &to);
  void node(const JsonPlace &place, NodeData &to);
  Argument argument(const JsonPlace &place);
  TensorMeta meta(const JsonPlace &place);
  Size size(const JsonPlace &place);
  Number number(const JsonPlace &place);
  void signature(const JsonPlace &place, Program &to);
  void outputNames(const JsonPlace &module, Program &to);

  int depth = 0;
};
} // namespace

//===----------------------------------------------------------------------===//
// Members
//===----------------------------------------------------------------------===//

/// The member `key` if it is there and not null.
static std::optional<JsonPlace> member(const JsonPlace &place,
                                       const char *key) {
  if (!place.has(key) || place.json.at(key).is_null())
    return std::nullopt;
  return place.at(key);
}

/// A string that may be empty or missing.
static std::string optionalText(const JsonPlace &place, const char *key) {
  auto found = member(place, key);
  if (!found)
    return "";
  if (found->json.is_string())
    return found->json.get<std::string>();
  found->wrong("expected a string, but got " + found->json.dump());
  return "";
}

static bool optionalFlag(const JsonPlace &place, const char *key) {
  auto found = member(place, key);
  if (!found)
    return false;
  if (found->json.is_boolean())
    return found->json.get<bool>();
  found->wrong("expected true or false, but got " + found->json.dump());
  return false;
}

static int64_t integer(const JsonPlace &place) {
  return place.integer().value_or(0);
}

/// The one member of an object that stands for one of several things.
static std::optional<std::pair<std::string, JsonPlace>>
alternative(const JsonPlace &place) {
  if (!place.json.is_object() || place.json.size() != 1) {
    place.wrong("expected an object of one member");
    return std::nullopt;
  }
  std::string key = place.json.begin().key();
  return std::pair{key, place.at(key)};
}

/// A number, or a text that stands for what JSON has not.
static double real(const JsonPlace &place) {
  if (place.json.is_number())
    return place.json.get<double>();
  if (place.json.is_string()) {
    std::string text = place.json.get<std::string>();
    if (text == "Infinity" || text == "inf")
      return std::numeric_limits<double>::infinity();
    if (text == "-Infinity" || text == "-inf")
      return -std::numeric_limits<double>::infinity();
    if (text == "NaN" || text == "nan")
      return std::numeric_limits<double>::quiet_NaN();
  }
  place.wrong("expected a number, but got " + place.json.dump());
  return 0;
}

static std::vector<JsonPlace> elements(const JsonPlace &place) {
  std::vector<JsonPlace> list;
  if (!place.json.is_array()) {
    place.wrong("expected a list, but got " +
                std::string(place.json.type_name()));
    return list;
  }
  for (size_t i = 0; i < place.json.size(); ++i)
    list.emplace_back(place.json[i], place.pointer + "/" + std::to_string(i),
                      place.problems);
  return list;
}

/// The members of an object by their names.
static std::vector<std::pair<std::string, JsonPlace>>
members(const JsonPlace &place) {
  std::vector<std::pair<std::string, JsonPlace>> list;
  if (!place.json.is_object()) {
    place.wrong("expected an object, but got " +
                std::string(place.json.type_name()));
    return list;
  }
  for (auto &[name, value] : place.json.items())
    list.emplace_back(name, place.at(name));
  return list;
}

//===----------------------------------------------------------------------===//
// Sizes and tensors
//===----------------------------------------------------------------------===//

Size Reader::size(const JsonPlace &place) {
  Size made;
  auto one = alternative(place);
  if (!one)
    return made;
  const auto &[key, value] = *one;
  if (key == "as_int") {
    made.number = integer(value);
  } else if (key == "as_bool" && value.json.is_boolean()) {
    made.number = value.json.get<bool>();
  } else if (key == "as_expr") {
    made.expression = value.text("expr_str");
    if (auto hint = member(value, "hint"))
      if (auto number = alternative(*hint); number && number->first == "as_int")
        made.hint = number->second.integer();
  } else {
    made.expression = key; // a float: nothing here is decided by one
  }
  return made;
}

TensorMeta Reader::meta(const JsonPlace &place) {
  TensorMeta made;
  if (!place.json.is_object()) {
    place.wrong("expected an object");
    return made;
  }
  if (auto dtype = member(place, "dtype"))
    made.dtype = integer(*dtype);
  for (auto [key, list] :
       {std::pair{"sizes", &made.sizes}, std::pair{"strides", &made.strides}})
    if (auto sizes = member(place, key))
      for (const JsonPlace &one : elements(*sizes))
        list->push_back(size(one));
  if (auto offset = member(place, "storage_offset"))
    made.offset = size(*offset);
  made.requiresGrad = optionalFlag(place, "requires_grad");
  if (auto layout = member(place, "layout"))
    made.isDense = integer(*layout) == 7 || integer(*layout) == 0;
  return made;
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

/// Of a list that mixes numbers and names of numbers.
Number Reader::number(const JsonPlace &place) {
  Number made;
  if (place.json.is_number_integer()) {
    made.integer = integer(place);
    made.number = static_cast<double>(made.integer);
    return made;
  }
  if (place.json.is_boolean()) {
    made.integer = place.json.get<bool>();
    made.number = static_cast<double>(made.integer);
    return made;
  }
  if (place.json.is_number() || place.json.is_string()) {
    made.number = real(place);
    return made;
  }
  auto one = alternative(place);
  if (!one)
    return made;
  if (one->first == "as_name" && one->second.json.is_string())
    made.name = one->second.json.get<std::string>();
  else
    made = number(one->second);
  return made;
}

Argument Reader::argument(const JsonPlace &place) {
  using Form = Argument::Form;
  Argument made;
  auto one = alternative(place);
  if (!one)
    return made;
  const auto &[key, value] = *one;
  llvm::StringRef form = key;
  if (form == "as_none")
    return made;
  if (form == "as_tensor") {
    made.form = Form::Tensor;
    made.names.push_back(value.text("name"));
  } else if (form == "as_tensors") {
    made.form = Form::Tensors;
    for (const JsonPlace &tensor : elements(value))
      made.names.push_back(tensor.text("name"));
  } else if (form == "as_optional_tensor" || form == "as_optional_tensors") {
    auto add = [&](const JsonPlace &tensor) {
      auto inner = alternative(tensor);
      made.names.push_back(inner && inner->first == "as_tensor"
                               ? inner->second.text("name")
                               : "");
    };
    made.form = form == "as_optional_tensor" ? Form::Tensor : Form::Tensors;
    if (made.form == Form::Tensor)
      add(value);
    else
      for (const JsonPlace &tensor : elements(value))
        add(tensor);
    if (made.form == Form::Tensor && made.names[0].empty())
      made = Argument();
  } else if (form == "as_int" || form == "as_sym_int") {
    made.form = Form::Int;
    made.numbers.push_back(number(value));
  } else if (form == "as_ints" || form == "as_sym_ints") {
    made.form = Form::Ints;
    for (const JsonPlace &element : elements(value))
      made.numbers.push_back(number(element));
  } else if (form == "as_float" || form == "as_sym_float") {
    made.form = Form::Float;
    made.numbers.push_back(number(value));
  } else if (form == "as_floats" || form == "as_sym_floats") {
    made.form = Form::Floats;
    for (const JsonPlace &element : elements(value))
      made.numbers.push_back(number(element));
  } else if (form == "as_bool" || form == "as_sym_bool") {
    made.form = Form::Bool;
    made.numbers.push_back(number(value));
  } else if (form == "as_bools" || form == "as_sym_bools") {
    made.form = Form::Bools;
    for (const JsonPlace &element : elements(value))
      made.numbers.push_back(number(element));
  } else if (form == "as_string" && value.json.is_string()) {
    made.form = Form::Text;
    made.texts.push_back(value.json.get<std::string>());
  } else if (form == "as_strings") {
    made.form = Form::Texts;
    for (const JsonPlace &element : elements(value))
      made.texts.push_back(
          element.json.is_string() ? element.json.get<std::string>() : "");
  } else if (form == "as_scalar_type" || form == "as_memory_format") {
    made.form = form == "as_scalar_type" ? Form::DType : Form::MemoryFormat;
    made.numbers.push_back(number(value));
  } else if (form == "as_graph") {
    made.form = Form::Graph;
    auto inner = std::make_shared<Graph>();
    made.names.push_back(optionalText(value, "name"));
    if (auto body = member(value, "graph"))
      graph(*body, *inner);
    else
      value.wrong("expected a field 'graph'");
    made.graph = std::move(inner);
  } else {
    made.form = Form::Other;
    made.texts.push_back(key);
  }
  return made;
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

void Reader::node(const JsonPlace &place, NodeData &to) {
  to.target = place.text("target");
  to.name = optionalText(place, "name");
  for (const JsonPlace &input : place.list("inputs")) {
    if (!input.has("arg")) {
      input.wrong("expected a field 'arg'");
      continue;
    }
    // What a higher-order op is given has no names.
    to.inputs.push_back(
        {optionalText(input, "name"), argument(input.at("arg"))});
  }
  for (const JsonPlace &output : place.list("outputs"))
    to.outputs.push_back(argument(output));
  if (auto metadata = member(place, "metadata")) {
    to.stackTrace = optionalText(*metadata, "stack_trace");
    to.modules = optionalText(*metadata, "nn_module_stack");
  }
}

void Reader::graph(const JsonPlace &place, Graph &to) {
  if (++depth > kMostDepth)
    return place.wrong("graphs stand in graphs more than " +
                       std::to_string(kMostDepth) + " deep");
  for (const JsonPlace &input : place.list("inputs"))
    to.inputs.push_back(argument(input));
  for (const JsonPlace &output : place.list("outputs"))
    to.outputs.push_back(argument(output));
  for (const JsonPlace &one : place.list("nodes"))
    node(one, to.nodes.emplace_back());
  if (auto tensors = member(place, "tensor_values"))
    for (const auto &[name, value] : members(*tensors))
      to.tensors[name] = meta(value);
  for (const char *key :
       {"sym_int_values", "sym_bool_values", "sym_float_values"})
    if (auto numbers = member(place, key))
      for (const auto &[name, value] : members(*numbers))
        to.integers[name] = size(value);
  --depth;
}

//===----------------------------------------------------------------------===//
// The signature
//===----------------------------------------------------------------------===//

void Reader::signature(const JsonPlace &place, Program &to) {
  for (const JsonPlace &input : place.list("input_specs")) {
    auto one = alternative(input);
    if (!one)
      continue;
    const auto &[what, value] = *one;
    InputSpec spec;
    spec.what = what;
    auto tensorOf = [&] {
      spec.argument.form = Argument::Form::Tensor;
      if (auto arg = member(value, "arg"))
        spec.argument.names.push_back(arg->text("name"));
      else
        value.wrong("expected a field 'arg'");
    };
    if (what == "user_input") {
      spec.kind = InputSpec::Kind::User;
      if (auto arg = member(value, "arg"))
        spec.argument = argument(*arg);
    } else if (what == "parameter") {
      spec.kind = InputSpec::Kind::Parameter;
      spec.target = value.text("parameter_name");
      tensorOf();
    } else if (what == "buffer") {
      spec.kind = InputSpec::Kind::Buffer;
      spec.target = value.text("buffer_name");
      spec.isPersistent =
          !value.has("persistent") || optionalFlag(value, "persistent");
      tensorOf();
    } else if (what == "tensor_constant") {
      spec.kind = InputSpec::Kind::Constant;
      spec.target = value.text("tensor_constant_name");
      tensorOf();
    } else if (what == "constant_input") {
      spec.kind = InputSpec::Kind::Known;
    }
    to.inputs.push_back(std::move(spec));
  }
  for (const JsonPlace &output : place.list("output_specs")) {
    auto one = alternative(output);
    if (!one)
      continue;
    const auto &[what, value] = *one;
    OutputSpec spec;
    spec.what = what;
    if (what == "user_output") {
      spec.kind = OutputSpec::Kind::User;
      if (auto arg = member(value, "arg"))
        spec.argument = argument(*arg);
    } else if (auto arg = member(value, "arg")) {
      spec.argument.form = Argument::Form::Tensor;
      spec.argument.names.push_back(arg->text("name"));
    }
    if (what == "loss_output")
      spec.kind = OutputSpec::Kind::Loss;
    for (auto [name, key, kind] :
         {std::tuple{"buffer_mutation", "buffer_name",
                     OutputSpec::Kind::BufferMutation},
          std::tuple{"parameter_mutation", "parameter_name",
                     OutputSpec::Kind::ParameterMutation},
          std::tuple{"user_input_mutation", "user_input_name",
                     OutputSpec::Kind::InputMutation}})
      if (what == name) {
        spec.kind = kind;
        spec.target = value.text(key);
      }
    to.outputs.push_back(std::move(spec));
  }
}

/// Adds the names of the leaves of a tree of outputs: keys of what has some,
/// and positions. `context` of a dictionary is a list of its keys in JSON.
static void addNames(const Json &tree, const std::string &prefix,
                     std::vector<std::string> &to, int depth) {
  if (!tree.is_object() || depth > kMostDepth)
    return;
  auto type = tree.find("type");
  auto children = tree.find("children_spec");
  if (type == tree.end() || type->is_null() || children == tree.end() ||
      !children->is_array()) {
    to.push_back(prefix.empty() ? "output" : prefix);
    return;
  }
  Json keys;
  if (auto context = tree.find("context");
      context != tree.end() && context->is_string())
    keys = Json::parse(context->get<std::string>(), nullptr, false);
  // Of a defaultdict: [factory, keys].
  if (keys.is_array() && keys.size() == 2 && keys[1].is_array())
    keys = Json(keys[1]);
  bool hasKeys = keys.is_array() && keys.size() == children->size();
  for (size_t i = 0; i < children->size(); ++i) {
    std::string key = hasKeys && keys[i].is_string()
                          ? keys[i].get<std::string>()
                          : std::to_string(i);
    bool isRoot = prefix.empty();
    addNames((*children)[i],
             isRoot ? (hasKeys && keys[i].is_string() ? key : "output" + key)
                    : prefix + "." + key,
             to, depth + 1);
  }
}

void Reader::outputNames(const JsonPlace &module, Program &to) {
  for (const JsonPlace &entry : module.list("module_call_graph")) {
    if (!entry.json.is_object() || optionalText(entry, "fqn") != "")
      continue;
    auto signature = member(entry, "signature");
    if (!signature)
      continue;
    Json tree = Json::parse(optionalText(*signature, "out_spec"), nullptr,
                            /*allow_exceptions=*/false);
    if (tree.is_array() && tree.size() == 2)
      addNames(tree[1], "", to.outputNames, 0);
    return;
  }
}

void Reader::program(const JsonPlace &root, Program &to) {
  if (!root.json.is_object())
    return root.wrong("expected an object");
  auto version = member(root, "schema_version");
  auto major = version ? member(*version, "major") : std::nullopt;
  if (!major)
    return root.wrong("expected a field 'schema_version' with 'major'");
  if (integer(*major) != kMajor)
    return major->wrong("unsupported: expected version " +
                        std::to_string(kMajor) +
                        " of the schema of torch.export (PyTorch 2.6 and "
                        "later), but got " +
                        major->json.dump());
  if (auto ranges = member(root, "range_constraints"))
    for (const auto &[name, place] : members(*ranges)) {
      Range &range = to.ranges[name];
      if (auto low = member(place, "min_val"))
        range.low = low->integer();
      if (auto high = member(place, "max_val"))
        range.high = high->integer();
    }
  auto module = member(root, "graph_module");
  auto body = module ? member(*module, "graph") : std::nullopt;
  auto roles = module ? member(*module, "signature") : std::nullopt;
  if (!body || !roles)
    return root.wrong(
        "expected a field 'graph_module' with 'graph' and 'signature'");
  graph(*body, to.graph);
  signature(*roles, to);
  outputNames(*module, to);
}

/// JSON with the numbers that it has not, and that PyTorch before 2.8 writes
/// into it all the same, between quotes.
static std::string quoted(std::string_view json) {
  std::string text;
  size_t begin = 0;
  for (size_t i = 0; i < json.size(); ++i) {
    if (json[i] == '"') {
      while (++i < json.size() && json[i] != '"')
        i += json[i] == '\\';
      continue;
    }
    for (std::string_view word : {"-Infinity", "Infinity", "NaN"})
      if (json.substr(i, word.size()) == word) {
        text.append(json, begin, i - begin).append("\"").append(word) += '"';
        begin = i += word.size();
        --i;
        break;
      }
  }
  return text.append(json, std::min(begin, json.size()));
}

Result<Program> torch::readProgram(std::string_view json,
                                   const std::string &path) {
  auto document = parseJson(quoted(json));
  if (!document)
    return std::move(document).status().in(path);
  Problems problems;
  Program program;
  Reader().program(JsonPlace(*document, "", problems), program);
  if (problems.empty())
    return program;
  std::string message;
  bool areUnsupported = true;
  for (const std::string &problem : problems) {
    message += (message.empty() ? "" : "\n") + path + ": " + problem;
    areUnsupported &= llvm::StringRef(problem).contains(": unsupported: ");
  }
  return areUnsupported ? Status::unsupported(message)
                        : Status::failed(message);
}
