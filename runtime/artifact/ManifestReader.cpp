//===- ManifestReader.cpp - the manifest from its JSON text ---------------===//
//
// Reads what Manifest.cpp writes: every field's presence and type is checked,
// unknown and repeated fields are refused (the format's version says what there
// is), and all problems are reported with their JSON pointers. What the fields
// mean together is checked by ManifestValidation.cpp.
//
//===----------------------------------------------------------------------===//
#include "runtime/artifact/JsonText.h"
#include "runtime/artifact/Manifest.h"
#include "runtime/artifact/ManifestProblems.h"

#include <set>
#include <unordered_map>

namespace tandem::artifact {

using Json = nlohmann::ordered_json;

namespace {

/// The bytes of a text; its lists lie in one another at most 9 deep, and no
/// object has more than 20 members, which are looked for one after the other.
constexpr size_t mostText = size_t(1) << 28;
constexpr JsonLimits limits{32, 64};

/// The members of one JSON object; whoever reads a member names it, and
/// `finish` reports those that nobody named.
class Fields {
public:
  Fields(const Json &json, std::string pointer, ManifestProblems &problems)
      : pointer(std::move(pointer)), problems(problems) {
    if (json.is_object())
      object = &json;
    else
      problems.add(this->pointer, std::string("expected an object but got ") +
                                      json.type_name());
  }

  const std::string &at() const { return pointer; }

  const Json *find(const char *key, bool required = true) {
    known.insert(key);
    if (!object)
      return nullptr;
    auto found = object->find(key);
    if (found != object->end())
      return &*found;
    if (required)
      problems.add(pointer, "expected the field '" + std::string(key) +
                                "' but got none");
    return nullptr;
  }

  void text(const char *key, std::string &out, bool required = true) {
    if (const Json *json = find(key, required)) {
      if (json->is_string())
        out = json->get<std::string>();
      else
        wrong(child(pointer, key), "a string", *json);
    }
  }

  void integer(const char *key, int64_t &out) {
    if (const Json *json = find(key))
      integer(*json, child(pointer, key), out);
  }

  void number(const char *key, double &out) {
    if (const Json *json = find(key)) {
      if (json->is_number())
        out = json->get<double>();
      else
        wrong(child(pointer, key), "a number", *json);
    }
  }

  void flag(const char *key, bool &out) {
    if (const Json *json = find(key, false)) {
      if (json->is_boolean())
        out = json->get<bool>();
      else
        wrong(child(pointer, key), "true or false", *json);
    }
  }

  void integer(const char *key, std::optional<int64_t> &out) {
    if (find(key, false))
      integer(key, out.emplace());
  }

  /// Names in groups, of which each may be empty in form.
  void condition(const char *key, Condition &out, bool required) {
    if (!find(key, required))
      return;
    each(key, [&](const Json &group, const std::string &at) {
      std::vector<std::string> &names = out.emplace_back();
      if (!group.is_array())
        return wrong(at, "a list", group);
      int64_t index = 0;
      for (const Json &item : group) {
        if (item.is_string())
          names.push_back(item.get<std::string>());
        else
          wrong(child(at, index), "a string", item);
        ++index;
      }
    });
  }

  void integers(const char *key, std::vector<int64_t> &out) {
    each(key, [&](const Json &item, const std::string &at) {
      integer(item, at, out.emplace_back());
    });
  }

  void texts(const char *key, std::vector<std::string> &out) {
    each(key, [&](const Json &item, const std::string &at) {
      if (item.is_string())
        out.push_back(item.get<std::string>());
      else
        wrong(at, "a string", item);
    });
  }

  void dtype(DType &out) {
    std::string name;
    text("dtype", name);
    if (std::optional<DType> type = parseDType(name))
      out = *type;
    else if (!name.empty())
      problems.add(child(pointer, "dtype"), "unknown type '" + name + "'");
  }

  /// Calls `fn(item, pointer)` for each item of a list.
  template <typename Fn> void each(const char *key, Fn fn) {
    const Json *json = find(key);
    if (!json)
      return;
    std::string at = child(pointer, key);
    if (!json->is_array())
      return wrong(at, "a list", *json);
    int64_t index = 0;
    for (const Json &item : *json)
      fn(item, child(at, index++));
  }

  void finish() {
    if (!object)
      return;
    for (const auto &[key, value] : object->items())
      if (!known.count(key))
        problems.add(child(pointer, std::string_view(key)), "unknown field");
  }

private:
  void wrong(const std::string &at, const char *expected, const Json &json) {
    problems.add(at, std::string("expected ") + expected + " but got " +
                         json.type_name());
  }

  void integer(const Json &json, const std::string &at, int64_t &out) {
    if (json.is_number_unsigned() && json.get<uint64_t>() > INT64_MAX)
      problems.add(at, "expected a 64-bit integer but got " + json.dump());
    else if (json.is_number_integer())
      out = json.get<int64_t>();
    else
      wrong(at, "an integer", json);
  }

  const Json *object = nullptr;
  std::string pointer;
  ManifestProblems &problems;
  std::set<std::string> known;
};

class Reader {
public:
  Manifest manifest;
  ManifestProblems problems;

  void read(const Json &json) {
    Fields top(json, "", problems);
    int64_t format = 1;
    top.integer("format", format);
    if (format != 1)
      problems.add("/format",
                   "expected format 1 but got " + std::to_string(format));
    top.text("model", manifest.model);
    top.text("producer", manifest.producer);
    if (const Json *target = top.find("target")) {
      Fields fields(*target, "/target", problems);
      fields.text("kind", manifest.target.kind);
      fields.text("arch", manifest.target.arch);
      fields.texts("features", manifest.target.features);
      fields.finish();
    }
    top.text("loss", manifest.loss, false);
    top.text("optimizer", manifest.optimizer, false);
    top.text("graph", manifest.graph, false);
    top.each("values", [&](const Json &item, const std::string &at) {
      value(Fields(item, at, problems), manifest.values.emplace_back());
    });
    for (const Value &value : manifest.values)
      if (value.role != Role::Output)
        valueByName.emplace(value.name, &value);
    top.each("kernels", [&](const Json &item, const std::string &at) {
      kernel(Fields(item, at, problems), manifest.kernels.emplace_back());
    });
    top.each("programs", [&](const Json &item, const std::string &at) {
      program(Fields(item, at, problems), manifest.programs.emplace_back());
    });
    top.integers("mutated_in_backward", manifest.mutatedInBackward);
    if (const Json *json = top.find("step_memory", false))
      stepMemory(Fields(*json, "/step_memory", problems),
                 manifest.stepMemory.emplace());
    if (const Json *json = top.find("partition", false))
      partition(Fields(*json, "/partition", problems),
                manifest.partition.emplace());
    top.finish();
  }

private:
  void role(Fields &fields, Role &out) {
    std::string name;
    fields.text("role", name);
    if (std::optional<Role> role = parseRole(name))
      out = *role;
    else if (!name.empty())
      problems.add(child(fields.at(), "role"), "unknown role '" + name + "'");
  }

  void value(Fields fields, Value &out) {
    role(fields, out.role);
    fields.text("name", out.name);
    fields.dtype(out.dtype);
    fields.integers("shape", out.shape);
    fields.flag("requires_grad", out.requiresGrad);
    if (const Json *json = fields.find("init", false))
      init(Fields(*json, child(fields.at(), "init"), problems),
           out.init.emplace());
    fields.integer("high", out.high);
    fields.integer("low", out.low);
    fields.integer("ignored", out.ignored);
    fields.finish();
  }

  void init(Fields fields, Init &out) {
    std::string kind;
    fields.text("kind", kind);
    if (kind == "constant") {
      out.kind = Init::Kind::Constant;
      fields.number("value", out.a);
    } else if (kind == "uniform") {
      out.kind = Init::Kind::Uniform;
      fields.number("low", out.a);
      fields.number("high", out.b);
    } else if (kind == "normal") {
      out.kind = Init::Kind::Normal;
      fields.number("mean", out.a);
      fields.number("std", out.b);
    } else if (kind == "counter") {
      out.kind = Init::Kind::Counter;
      fields.integer("stream", out.stream);
      fields.number("scale", out.a);
    } else if (kind == "seed") {
      out.kind = Init::Kind::Seed;
    } else {
      problems.add(child(fields.at(), "kind"), "unknown init '" + kind + "'");
      return;
    }
    fields.finish();
  }

  void kernel(Fields fields, Kernel &out) {
    fields.text("symbol", out.symbol);
    fields.text("class", out.kind);
    fields.texts("ops", out.ops);
    fields.integer("flops", out.flops);
    fields.integer("bytes", out.bytes);
    fields.integer("scratch_bytes", out.scratchBytes);
    if (fields.find("block", false))
      fields.integers("block", out.block);
    if (fields.find("shared_bytes", false))
      fields.integer("shared_bytes", out.sharedBytes);
    if (fields.find("tensor_maps", false))
      fields.each("tensor_maps", [&](const Json &item, const std::string &at) {
        tensorMap({item, at, problems}, out.tensorMaps.emplace_back());
      });
    if (fields.find("summary", false))
      fields.text("summary", out.summary);
    if (fields.find("dtype", false))
      fields.dtype(out.dtype);
    fields.finish();
  }

  void tensorMap(Fields fields, TensorMap &out) {
    fields.integer("buffer", out.buffer);
    fields.integer("offset", out.offset);
    fields.text("element", out.element);
    fields.integers("sizes", out.sizes);
    fields.integers("strides", out.strides);
    fields.integers("box", out.box);
    fields.integer("swizzle", out.swizzle);
    fields.finish();
  }

  void slot(Fields fields, Slot &out, bool isArgument) {
    role(fields, out.role);
    fields.text("name", out.name);
    bool named = out.role == Role::Input || out.role == Role::Param ||
                 out.role == Role::State;
    if (isArgument && named) {
      // A name without a value is left for `validate` to report.
      auto found = valueByName.find(out.name);
      if (found != valueByName.end()) {
        out.dtype = found->second->dtype;
        out.shape = found->second->shape;
      }
    } else {
      fields.dtype(out.dtype);
      fields.integers("shape", out.shape);
    }
    if (!isArgument && out.role == Role::Update)
      fields.flag("in_place", out.inPlace);
    if (!isArgument && out.role == Role::Saved)
      fields.text("reason", out.reason, false);
    alias(fields, "alias", out.alias);
    fields.flag("freed", out.freed);
    alias(fields, "metadata", out.metadata);
    alias(fields, "storage", out.storage);
    fields.integer("resize", out.resize);
    fields.flag("as_found", out.asFound);
    fields.flag("unchecked", out.unchecked);
    fields.flag("visible", out.visible);
    fields.condition("needs", out.needs, false);
    fields.text("part_of", out.partOf, false);
    fields.text("where", out.where, false);
    fields.flag("host", out.onHost);
    rows(fields, out);
    fields.finish();
  }

  /// How an output follows from the inputs and their rows.
  void rows(Fields &fields, Slot &out) {
    if (fields.find("inputs", false))
      fields.texts("inputs", out.inputs.emplace());
    std::string how;
    fields.text("rows", how, false);
    if (std::optional<Rows> known = parseRows(how))
      out.rows = *known;
    else if (!how.empty())
      problems.add(child(fields.at(), "rows"),
                   "expected 'each' or 'mean' but got '" + how + "'");
    fields.text("counted", out.counted, false);
  }

  void view(Fields fields, View &out) {
    std::string name;
    fields.text("op", name);
    std::optional<View::Op> op = parseViewOp(name);
    if (!op) {
      if (!name.empty())
        problems.add(child(fields.at(), "op"), "unknown view '" + name + "'");
      return;
    }
    out.op = *op;
    switch (*op) {
    case View::Op::Reshape:
      fields.integers("shape", out.shape);
      break;
    case View::Op::Permute:
      fields.integers("permutation", out.dims);
      break;
    case View::Op::Slice:
      fields.integers("starts", out.starts);
      fields.integers("limits", out.limits);
      fields.integers("strides", out.strides);
      break;
    case View::Op::Broadcast:
      fields.integers("shape", out.shape);
      fields.integers("dims", out.dims);
      break;
    case View::Op::AsStrided:
      fields.integers("sizes", out.shape);
      fields.integers("strides", out.strides);
      fields.integer("offset", out.offset);
      break;
    case View::Op::Bitcast:
      fields.dtype(out.dtype);
      break;
    case View::Op::Detach:
      break;
    }
    fields.finish();
  }

  /// The members of an alias, among others that `fields` may have.
  void alias(Fields &fields, Alias &out) {
    fields.text("of", out.of, false);
    fields.text("output", out.output, false);
    if (out.of.empty() == out.output.empty())
      problems.add(fields.at(), "expected one of the fields 'of' and 'output'");
    fields.each("views", [&](const Json &item, const std::string &at) {
      view(Fields(item, at, problems), out.views.emplace_back());
    });
  }

  void alias(Fields &parent, const char *key, std::optional<Alias> &out) {
    const Json *json = parent.find(key, false);
    if (!json)
      return;
    Fields fields(*json, child(parent.at(), key), problems);
    alias(fields, out.emplace());
    if (fields.find("dtype", false) || fields.find("shape", false)) {
      TensorType &type = out->storage.emplace();
      fields.dtype(type.dtype);
      fields.integers("shape", type.shape);
    }
    fields.finish();
  }

  void outputAlias(Fields fields, OutputAlias &out) {
    fields.text("name", out.name);
    fields.dtype(out.dtype);
    fields.integers("shape", out.shape);
    alias(fields, out.alias);
    fields.text("part_of", out.partOf, false);
    fields.finish();
  }

  void buffer(Fields fields, Buffer &out) {
    std::string place;
    fields.text("in", place);
    if (place == "argument" || place == "result") {
      out.place =
          place == "argument" ? Buffer::Place::Argument : Buffer::Place::Result;
      fields.integer("index", out.index);
    } else if (place == "arena" || place == "constant" || place == "host") {
      out.place = place == "arena"      ? Buffer::Place::Arena
                  : place == "constant" ? Buffer::Place::Constant
                                        : Buffer::Place::Host;
      fields.integer("offset", out.offset);
      fields.integer("bytes", out.bytes);
    } else {
      problems.add(child(fields.at(), "in"), "unknown place '" + place + "'");
      return;
    }
    fields.finish();
  }

  void library(Fields fields, LibraryCall &out) {
    fields.text("op", out.op);
    fields.dtype(out.dtype);
    fields.flag("tf32", out.tf32);
    fields.integers("operands", out.operands);
    fields.integers("sizes", out.sizes);
    for (auto [key, list] : {std::pair("lds", &out.lds),
                             std::pair("batch_strides", &out.batchStrides),
                             std::pair("transposes", &out.transposes),
                             std::pair("strides", &out.strides),
                             std::pair("padding", &out.padding),
                             std::pair("dilation", &out.dilation)})
      if (fields.find(key, false))
        fields.integers(key, *list);
    fields.flag("relu", out.relu);
    fields.integer("workspace", out.workspace);
    fields.finish();
  }

  void launch(Fields fields, Launch &out) {
    bool isCopy = false;
    fields.flag("copy", isCopy);
    if (isCopy) {
      out.kernel = Launch::noKernel;
      fields.integers("buffers", out.buffers);
      fields.integers("reads", out.reads);
      fields.integers("writes", out.writes);
      fields.condition("needs", out.needs, false);
      return fields.finish();
    }
    fields.integer("kernel", out.kernel);
    if (out.kernel < 0)
      problems.add(child(fields.at(), "kernel"),
                   "expected at least 0 but got " + std::to_string(out.kernel));
    fields.integers("buffers", out.buffers);
    fields.integers("reads", out.reads);
    fields.integers("writes", out.writes);
    fields.integer("work", out.work);
    fields.integer("grain", out.grain);
    fields.integer("stream", out.stream);
    fields.condition("needs", out.needs, false);
    if (fields.find("choices", false))
      fields.each("choices", [&](const Json &item, const std::string &at) {
        Fields choice(item, at, problems);
        choice.condition("when", out.choices.emplace_back().when, true);
        choice.integer("copy", out.choices.back().copy);
        choice.finish();
      });
    if (fields.find("grid", false))
      fields.integers("grid", out.grid);
    if (const Json *json = fields.find("library", false))
      library(Fields(*json, child(fields.at(), "library"), problems),
              out.library.emplace());
    fields.finish();
  }

  void program(Fields fields, Program &out) {
    fields.text("name", out.name);
    fields.each("arguments", [&](const Json &item, const std::string &at) {
      slot(Fields(item, at, problems), out.arguments.emplace_back(), true);
    });
    fields.each("results", [&](const Json &item, const std::string &at) {
      slot(Fields(item, at, problems), out.results.emplace_back(), false);
    });
    if (fields.find("aliases", false))
      fields.each("aliases", [&](const Json &item, const std::string &at) {
        outputAlias(Fields(item, at, problems), out.aliases.emplace_back());
      });
    fields.integer("arena_bytes", out.arenaBytes);
    fields.integer("peak_bytes", out.peakBytes);
    if (fields.find("host_bytes", false))
      fields.integer("host_bytes", out.hostBytes);
    fields.each("buffers", [&](const Json &item, const std::string &at) {
      buffer(Fields(item, at, problems), out.buffers.emplace_back());
    });
    fields.each("launches", [&](const Json &item, const std::string &at) {
      launch(Fields(item, at, problems), out.launches.emplace_back());
    });
    fields.finish();
  }

  void stepMemory(Fields fields, StepMemory &out) {
    fields.integer("parameters", out.parameters);
    fields.integer("states", out.states);
    fields.integer("constants", out.constants);
    fields.integer("inputs", out.inputs);
    fields.integer("outputs", out.outputs);
    fields.integer("gradients", out.gradients);
    fields.integer("saved", out.saved);
    fields.integer("staged", out.staged);
    fields.integer("arena", out.arena);
    if (fields.find("host", false))
      fields.integer("host", out.host);
    if (fields.find("prepared", false))
      fields.integer("prepared", out.prepared);
    fields.finish();
  }

  void partition(Fields fields, Partition &out) {
    fields.each("saved", [&](const Json &item, const std::string &at) {
      Fields saved(item, at, problems);
      Partition::Saved &value = out.saved.emplace_back();
      saved.text("name", value.name);
      saved.text("op", value.op);
      saved.text("where", value.where);
      saved.number("seconds", value.seconds);
      saved.finish();
    });
    fields.each("repeated", [&](const Json &item, const std::string &at) {
      Fields repeated(item, at, problems);
      Partition::Repeated &op = out.repeated.emplace_back();
      repeated.text("op", op.op);
      repeated.text("where", op.where);
      repeated.text("reason", op.reason);
      repeated.number("seconds", op.seconds);
      repeated.integer("bytes", op.bytes);
      repeated.finish();
    });
    if (fields.find("seconds", false))
      fields.number("seconds", out.seconds);
    if (fields.find("chain", false))
      fields.each("chain", [&](const Json &item, const std::string &at) {
        Fields chain(item, at, problems);
        Partition::Point &point = out.chain.emplace_back();
        chain.integer("peak", point.peak);
        chain.integer("saved", point.saved);
        chain.number("seconds", point.seconds);
        chain.number("flops", point.flops);
        chain.finish();
      });
    fields.finish();
  }

  std::unordered_map<std::string_view, const Value *> valueByName;
};

} // namespace

Result<Manifest> fromJson(std::string_view text) {
  if (text.size() > mostText)
    return Status::failed("manifest: expected at most " +
                          std::to_string(mostText) + " bytes but got " +
                          std::to_string(text.size()));
  Json json;
  if (auto problem = parseJsonText(text, json, limits))
    return Status::failed("manifest: " +
                          (problem->byte
                               ? "expected JSON but got an error at byte " +
                                     std::to_string(problem->byte)
                               : problem->what));
  Reader reader;
  reader.read(json);
  if (!reader.problems.none())
    return reader.problems.status();
  return std::move(reader.manifest);
}

} // namespace tandem::artifact
