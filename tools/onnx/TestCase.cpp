//===- TestCase.cpp - one case of ONNX's backend tests --------------------===//
#include "tools/onnx/TestCase.h"

#include "compiler/import/onnx/Known.h"
#include "compiler/import/onnx/Narrow.h"
#include "compiler/import/onnx/OnnxFile.h"
#include "ir/Keys.h"
#include "runtime/model/Model.h"
#include "tools/onnx/Tensors.h"

#include "mlir/IR/MLIRContext.h"

#include <cmath>
#include <filesystem>

using namespace mlir;

namespace tandem::onnx {

namespace fs = std::filesystem;

namespace {

Outcome failed(const Status &status) {
  return {status.code() == Code::Unsupported ? Outcome::Kind::Unsupported
                                             : Outcome::Kind::Failed,
          "", status.message()};
}

std::string textOf(const std::vector<int64_t> &shape) {
  std::string text;
  for (int64_t size : shape)
    text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "[" + text + "]";
}

Status readValues(const fs::path &folder, const std::string &prefix,
                  const std::vector<NamedType> &types,
                  std::map<std::string, TensorPtr> &to) {
  for (size_t i = 0; i < types.size(); ++i) {
    fs::path file = folder / (prefix + std::to_string(i) + ".pb");
    if (!fs::exists(file))
      break;
    if (types[i].type.form != ValueType::Form::Tensor)
      return Status::unsupported("'" + types[i].name + "' is no tensor");
    auto value = readValueFile(file, ValueType::Form::Tensor);
    if (!value)
      return value.status();
    // ONNX's generator has no bfloat16 and writes its bits.
    auto tensor = std::make_shared<TensorData>(*value->tensor);
    if (types[i].type.kind == ElementKind::BF16 &&
        tensor->kind == ElementKind::U16)
      tensor->kind = ElementKind::BF16;
    to[types[i].name] = carried(tensor);
  }
  return Status::success();
}

/// The sizes that the data has where the model leaves them open.
std::map<std::string, std::vector<int64_t>> openShapes(const Model &model,
                                                       const DataSet &data) {
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const NamedType &input : model.graph.inputs) {
    auto value = data.inputs.find(input.name);
    bool isOpen = !input.type.hasShape;
    for (const Dim &dim : input.type.shape)
      isOpen |= dim.size < 0;
    if (isOpen && value != data.inputs.end())
      shapes[input.name] = value->second->shape;
  }
  return shapes;
}

} // namespace

std::string differenceOf(const TensorData &got, const TensorData &expected,
                         const Tolerance &tolerance) {
  if (got.kind != expected.kind)
    return "expected " + spelling(expected.kind) + ", but got " +
           spelling(got.kind);
  if (got.shape != expected.shape)
    return "expected the shape " + textOf(expected.shape) + ", but got " +
           textOf(got.shape);
  double relative = std::max(tolerance.relative,
                             got.kind == ElementKind::BF16  ? std::ldexp(1, -7)
                             : got.kind == ElementKind::F16 ? std::ldexp(1, -9)
                                                            : 0);
  auto a = numbersOf(got), b = numbersOf(expected);
  int64_t wrong = 0;
  std::string first;
  for (size_t i = 0; i < a.size(); ++i) {
    bool same =
        a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i])) ||
        std::abs(a[i] - b[i]) <= tolerance.absolute + relative * std::abs(b[i]);
    if (!same && !wrong++)
      first = "element " + std::to_string(i) + ": expected " +
              std::to_string(b[i]) + ", but got " + std::to_string(a[i]);
  }
  return wrong ? std::to_string(wrong) + " of " + std::to_string(a.size()) +
                     " elements differ; " + first
               : "";
}

Import importFor(const TestCase &one, const DataSet &data,
                 ImportOptions &options, MLIRContext &context) {
  options.shapes = openShapes(one.model, data);
  while (true) {
    Import import = importModel(one.model, one.path, options, context);
    size_t before = options.values.size();
    for (const std::string &name : import.neededValues)
      if (auto value = data.inputs.find(name); value != data.inputs.end())
        options.values.insert(*value);
    for (auto &[name, value] : options.values)
      options.shapes.erase(name);
    if (options.values.size() == before)
      return import;
  }
}

Outcome outcomeOf(const Import &import) {
  Outcome outcome = failed(import.status());
  std::string where = import.problems.front().where;
  if (size_t open = where.rfind('('); open != std::string::npos)
    outcome.op = where.substr(open + 1, where.size() - open - 2);
  return outcome;
}

/// True if the model asks for what is done in training, which the program
/// `evaluate` does not do, whatever a model says.
static bool trains(ModuleOp module) {
  return module
      .walk([](Operation *op) {
        return op->getAttr(key::kTraining) ? WalkResult::interrupt()
                                           : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Compiles, runs and compares one data set.
static Outcome runDataSet(const TestCase &one, const DataSet &data,
                          const Tolerance &tolerance) {
  DialectRegistry registry;
  registerCompiler(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  std::string said;
  context.getDiagEngine().registerHandler([&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
      said += (said.empty() ? "" : "; ") + diagnostic.str();
  });
  CompileOptions options;
  options.threads = 1;
  Import import = importFor(one, data, options.import, context);
  if (!import.problems.empty())
    return outcomeOf(import);
  options.inference = !trains(*import.module);
  const char *which = options.inference ? "evaluate" : "forward";
  std::vector<PhaseTime> times;
  auto withSaid = [&](Status status) {
    if (StringRef(said).starts_with("unsupported"))
      return failed(Status::unsupported(said));
    return failed(std::move(status).in(said.empty() ? "compile" : said));
  };
  auto modules = runTargets(std::move(import.module), options, times);
  if (!modules)
    return withSaid(modules.status());
  auto writer = emitTargets(*modules, options, times);
  if (!writer)
    return withSaid(writer.status());
  auto bytes = writer->bytes();
  if (!bytes)
    return failed(bytes.status());
  auto reader =
      artifact::ArtifactReader::fromMemory(std::as_bytes(std::span(*bytes)));
  if (!reader)
    return failed(reader.status());
  auto loaded = runtime::Model::load(std::move(*reader), {.threads = 1});
  if (!loaded)
    return failed(loaded.status());
  for (const auto &[name, weight] : import.weights) {
    auto tensor = toTensor(*weight);
    if (!tensor)
      return failed(tensor.status());
    if (Status s = loaded->set(name, *tensor); !s)
      return failed(s);
  }
  const artifact::Program *program = loaded->manifest().findProgram(which);
  if (!program)
    return {Outcome::Kind::Failed, "",
            "there is no program '" + std::string(which) + "'"};
  std::map<std::string, runtime::Tensor> inputs, outputs;
  std::vector<runtime::Argument> arguments;
  std::vector<runtime::Destination> destinations;
  for (const artifact::Slot &slot : program->arguments) {
    auto value = data.inputs.find(slot.name);
    if (slot.role != artifact::Role::Input || value == data.inputs.end())
      continue;
    auto tensor = toTensor(*value->second);
    if (!tensor)
      return failed(tensor.status());
    inputs[slot.name] = std::move(*tensor);
    arguments.push_back({slot.name, &inputs[slot.name]});
  }
  for (const auto &[name, value] : data.outputs)
    destinations.push_back({name, &outputs[name]});
  if (Status s = loaded->run(which, arguments, destinations); !s)
    return failed(s);
  for (const auto &[name, expected] : data.outputs) {
    auto got = toData(outputs[name]);
    if (!got)
      return failed(got.status());
    std::string difference = differenceOf(**got, *expected, tolerance);
    if (!difference.empty())
      return {Outcome::Kind::Failed, "", "'" + name + "': " + difference};
  }
  return {Outcome::Kind::Passed, "", ""};
}

Result<TestCase> readTestCase(const std::string &folder) {
  TestCase one;
  one.path = folder + "/model.onnx";
  auto model = readModelFile(one.path);
  if (!model)
    return model.status();
  one.model = std::move(*model);
  // Initializers are no inputs, although old files list them among them.
  const Graph &graph = one.model.graph;
  std::vector<NamedType> inputs;
  for (const NamedType &input : graph.inputs) {
    bool isInitializer = false;
    for (const TensorPtr &data : graph.initializers)
      isInitializer |= data->name == input.name;
    if (!isInitializer)
      inputs.push_back(input);
  }
  for (int i = 0;; ++i) {
    fs::path set = fs::path(folder) / ("test_data_set_" + std::to_string(i));
    if (!fs::exists(set))
      break;
    DataSet data;
    if (Status s = readValues(set, "input_", inputs, data.inputs); !s)
      return s;
    if (Status s = readValues(set, "output_", graph.outputs, data.outputs); !s)
      return s;
    one.sets.push_back(std::move(data));
  }
  if (one.sets.empty())
    return Status::failed("there is no data set");
  return one;
}

Outcome runTestCase(const std::string &folder, const Tolerance &tolerance) {
  auto one = readTestCase(folder);
  if (!one)
    return failed(one.status());
  for (const DataSet &data : one->sets)
    if (Outcome outcome = runDataSet(*one, data, tolerance);
        outcome.kind != Outcome::Kind::Passed)
      return outcome;
  return {Outcome::Kind::Passed, "", ""};
}

} // namespace tandem::onnx
