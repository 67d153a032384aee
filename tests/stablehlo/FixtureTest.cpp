//===- FixtureTest.cpp - modules that JAX wrote, and JAX's numbers --------===//
//
// Each fixture is a module as `jax.export` writes it and a file of what JAX
// computes: of given arguments the results, and of modules with parameters the
// loss and every gradient (make-fixtures).
//
//===----------------------------------------------------------------------===//
#include "compiler/Compile.h"
#include "compiler/import/stablehlo/Import.h"
#include "runtime/io/Safetensors.h"
#include "runtime/model/Model.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/StringRef.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace tandem;
using runtime::Tensor;

namespace {

struct Fixture {
  const char *name;
  const char *loss = "";   ///< as --loss has it
  double tolerance = 1e-5; ///< of a number by the largest of its tensor
  const char *train = "";
};

void PrintTo(const Fixture &fixture, std::ostream *out) {
  *out << fixture.name;
}

/// The file of numbers: a module in bytecode has those of its text.
std::string numbersOf(llvm::StringRef name) {
  (void)(name.consume_back("_portable") || name.consume_back("_exported"));
  return std::string(TANDEM_STABLEHLO_FIXTURES) + "/" + name.str() +
         ".safetensors";
}

Tensor tensorOf(const io::ArrayView &array) {
  return *Tensor::copyOf(array.bytes.data(), array.dtype, array.shape);
}

Result<runtime::Model> compiled(const Fixture &fixture) {
  mlir::DialectRegistry registry;
  registerCompiler(registry);
  mlir::MLIRContext context(registry);
  CompileOptions options;
  options.import.loss = fixture.loss;
  options.import.train = fixture.train;
  if (!llvm::StringRef(fixture.loss).contains(':'))
    options.loss = fixture.loss;
  Status status;
  bool isExported = llvm::StringRef(fixture.name).ends_with("_exported");
  auto module = readModel(std::string(TANDEM_STABLEHLO_FIXTURES) + "/" +
                              fixture.name + (isExported ? ".bin" : ".mlir"),
                          context, status, options.import);
  if (!module)
    return status;
  std::vector<PhaseTime> times;
  auto modules = runTargets(std::move(module), options, times);
  if (!modules)
    return modules.status();
  auto writer = emitTargets(*modules, options, times);
  if (!writer)
    return writer.status();
  auto bytes = writer->bytes();
  if (!bytes)
    return bytes.status();
  auto reader =
      artifact::ArtifactReader::fromMemory(std::as_bytes(std::span(*bytes)));
  if (!reader)
    return reader.status();
  return runtime::Model::load(std::move(*reader), {});
}

class FixtureTest : public testing::TestWithParam<Fixture> {
protected:
  void SetUp() override {
    auto read = io::Safetensors::read(numbersOf(GetParam().name));
    ASSERT_TRUE(read) << read.status().message();
    file.emplace(std::move(*read));
    auto made = compiled(GetParam());
    ASSERT_TRUE(made) << made.status().message();
    model.emplace(std::move(*made));
    for (const auto &[key, entry] : file->entries()) {
      if (key.rfind("in ", 0) != 0)
        continue;
      std::string name = key.substr(3);
      const artifact::Value *value = model->manifest().findValue(name);
      ASSERT_TRUE(value) << "the model has no '" << name << "'";
      Tensor tensor = tensorOf(*file->find(key));
      if (value->role == artifact::Role::Input)
        inputs[name] = std::move(tensor);
      else
        ASSERT_TRUE(model->set(name, tensor));
    }
  }

  std::vector<runtime::Argument> arguments(std::string_view program) const {
    std::vector<runtime::Argument> list;
    for (const auto &argument :
         model->manifest().findProgram(program)->arguments)
      if (auto it = inputs.find(argument.name); it != inputs.end())
        list.emplace_back(std::string_view(it->first), &it->second);
    return list;
  }

  void expectEqual(const Tensor &got, const std::string &key) const {
    auto array = file->find(key);
    ASSERT_TRUE(array) << key;
    Tensor want = tensorOf(*array);
    ASSERT_EQ(got.elements(), want.elements()) << key;
    double largest = 1e-3;
    for (int64_t i = 0; i < want.elements(); ++i)
      if (std::isfinite(want.at(i)))
        largest = std::max(largest, std::abs(want.at(i)));
    for (int64_t i = 0; i < want.elements(); ++i) {
      if (std::isnan(want.at(i)) || std::isinf(want.at(i))) {
        ASSERT_TRUE(std::isnan(want.at(i)) ? std::isnan(got.at(i))
                                           : want.at(i) == got.at(i))
            << key << "[" << i << "] is " << got.at(i);
        continue;
      }
      ASSERT_NEAR(got.at(i), want.at(i), GetParam().tolerance * largest)
          << key << "[" << i << "]";
    }
  }

  std::optional<io::Safetensors> file;
  std::optional<runtime::Model> model;
  std::map<std::string, Tensor> inputs;
};

} // namespace

TEST_P(FixtureTest, ResultsAreThoseOfJax) {
  std::map<std::string, Tensor> outputs;
  std::vector<runtime::Destination> destinations;
  for (const auto &[key, entry] : file->entries())
    if (key.rfind("out ", 0) == 0)
      outputs[key.substr(4)];
  for (auto &[name, tensor] : outputs)
    destinations.push_back({name, &tensor});
  Status status = model->run("evaluate", arguments("evaluate"), destinations);
  ASSERT_TRUE(status) << status.message();
  for (const auto &[name, tensor] : outputs)
    expectEqual(tensor, "out " + name);
}

class LossTest : public FixtureTest {};

TEST_P(LossTest, LossAndGradientsAreThoseOfJax) {
  std::string loss = GetParam().loss;
  if (loss.find(':') != std::string::npos)
    loss = "loss";
  Tensor value;
  std::vector<runtime::Destination> outputs = {{loss, &value}};
  auto context = model->forward(arguments("forward"), outputs);
  ASSERT_TRUE(context) << context.status().message();
  expectEqual(value, "loss");
  Tensor one = *Tensor::empty(value.dtype(), value.shape());
  ASSERT_TRUE(one.fill(1));
  std::map<std::string, Tensor> gradients;
  for (const auto &[key, entry] : file->entries())
    if (key.rfind("grad ", 0) == 0)
      gradients[key.substr(5)];
  std::vector<runtime::Destination> destinations;
  for (auto &[name, tensor] : gradients)
    destinations.push_back({name, &tensor});
  std::vector<runtime::Argument> cotangents = {{loss, &one}};
  Status status = model->backward(*context, cotangents, destinations);
  ASSERT_TRUE(status) << status.message();
  for (const auto &[name, tensor] : gradients)
    expectEqual(tensor, "grad " + name);
}

/// A step that JAX differentiated: what was donated is updated in place.
class StepTest : public testing::TestWithParam<Fixture> {};

TEST_P(StepTest, DonatedArgumentsAreStates) {
  const Fixture &fixture = GetParam();
  auto read = io::Safetensors::read(numbersOf(fixture.name));
  ASSERT_TRUE(read) << read.status().message();
  auto model = compiled(fixture);
  ASSERT_TRUE(model) << model.status().message();
  Tensor x = tensorOf(*read->find("in x")), y = tensorOf(*read->find("in y"));
  std::vector<std::string> states;
  for (const artifact::Value &value : model->manifest().values)
    if (value.role == artifact::Role::State) {
      states.push_back(value.name);
      auto start = read->find("in " + value.name);
      ASSERT_TRUE(start) << value.name;
      ASSERT_TRUE(model->set(value.name, tensorOf(*start)));
    }
  ASSERT_EQ(states.size(), 7U); // Two parameters, two moments of each, a count.
  Tensor loss;
  std::vector<runtime::Argument> arguments = {{"x", &x}, {"y", &y}};
  std::vector<runtime::Destination> outputs = {{"result[2]", &loss}};
  Status status = model->run("forward", arguments, outputs);
  ASSERT_TRUE(status) << status.message();
  auto expectNear = [&](const Tensor &got, const std::string &key) {
    auto found = read->find("out " + key);
    ASSERT_TRUE(found) << key;
    Tensor want = tensorOf(*found);
    ASSERT_EQ(got.elements(), want.elements()) << key;
    for (int64_t i = 0; i < want.elements(); ++i)
      ASSERT_NEAR(got.at(i), want.at(i), 1e-5) << key;
  };
  expectNear(loss, "result[2]");
  for (const std::string &name : states) {
    auto now = model->get(name);
    ASSERT_TRUE(now) << now.status().message();
    // `params['w']` came out as `result[0]['w']`, `state...` as `result[1]...`.
    size_t end = name.find_first_of("[.");
    std::string rest = name.substr(end);
    expectNear(*now, (name[0] == 'p' ? "result[0]" : "result[1]") + rest);
  }
}

static std::string nameOf(const testing::TestParamInfo<Fixture> &info) {
  return info.param.name;
}

static const std::vector<Fixture> withLoss = {
    {"mlp", "cross_entropy:result,labels"},
    {"scan", "result"},
    {"flax_cnn", "cross_entropy:result,labels"},
    {"flax_transformer", "cross_entropy:result,labels", 2e-5},
    {"flax_lstm", "mse:result,target"},
    {"flax_cnn_portable", "cross_entropy:result,labels"},
    {"mlp_exported", "cross_entropy:result,labels"},
    {"equinox_mlp", "result", 1e-5, "^model"}};
static const std::vector<Fixture> values = {
    {"elementwise"},      {"integers"},
    {"shapes"},           {"products"},
    {"reductions"},       {"convolutions"},
    {"windows"},          {"lookups"},
    {"orders"},           {"loops"},
    {"random"},           {"elementwise_portable"},
    {"lookups_portable"}, {"loops_portable"},
    {"empties"}};

INSTANTIATE_TEST_SUITE_P(Values, FixtureTest, testing::ValuesIn(values),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(Models, FixtureTest, testing::ValuesIn(withLoss),
                         nameOf);
static const std::vector<Fixture> steps = {{"step_portable"},
                                           {"step_exported"}};
INSTANTIATE_TEST_SUITE_P(Steps, StepTest, testing::ValuesIn(steps), nameOf);
INSTANTIATE_TEST_SUITE_P(Models, LossTest, testing::ValuesIn(withLoss), nameOf);
