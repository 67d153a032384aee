//===- RanksTest.cpp - compiled programs on several ranks -----------------===//
//
// Random models of pointwise ops, products and collectives over both axes of a
// mesh and along any dimension are compiled, with their gradients, and run on 4
// threads; what each rank gets is what the reference gets over as many
// simulated ranks, whose gradients tests/gradients checks against differences.
//
//===----------------------------------------------------------------------===//
#include "ir/reference/Ranks.h"
#include "compiler/Compile.h"
#include "ir/Dialect.h"
#include "ir/Signature.h"
#include "runtime/comm/MeshCommunicators.h"
#include "runtime/device/HostBackend.h"
#include "tests/ir/Random.h"
#include "tests/runtime/comm/Ranks.h"

#include "mlir/Parser/Parser.h"

#include <cmath>
#include <deque>
#include <gtest/gtest.h>
#include <random>

using namespace mlir;
using namespace tandem;
using namespace tandem::test;
using artifact::Buffer;
using artifact::Role;
using reference::Array;

namespace {

constexpr int ranks = 4;

/// Values of one rank, by what their roles say: 'output "y"'.
using Named = std::map<std::string, std::vector<float>>;

std::string keyOf(const artifact::Slot &slot) {
  // What the forward saves, the backward takes.
  return std::string(spelling(slot.role)) + " " + slot.name;
}

/// Numbers at a multiple of 64 bytes with a line behind them, as the runtime
/// has tensors.
class Lines {
public:
  explicit Lines(const std::vector<float> &numbers)
      : memory(numbers.size() + 32), size(numbers.size()) {
    std::copy(numbers.begin(), numbers.end(), begin());
  }
  float *begin() {
    auto address = reinterpret_cast<uintptr_t>(memory.data());
    return memory.data() + (64 - address % 64) % 64 / sizeof(float);
  }
  std::vector<float> numbers() { return {begin(), begin() + size}; }

private:
  std::vector<float> memory;
  size_t size;
};

/// Runs a program of an artifact on one rank: takes arguments from `values`,
/// and puts results there.
Status call(runtime::DeviceCode &code, const artifact::Manifest &manifest,
            const std::string &name, comm::MeshCommunicators *communicators,
            Named &values) {
  runtime::ProgramRun run;
  while (manifest.programs[run.program].name != name)
    ++run.program;
  const artifact::Program &program = manifest.programs[run.program];
  std::deque<Lines> arguments, results;
  for (const artifact::Slot &slot : program.arguments)
    arguments.emplace_back(values.at(keyOf(slot)));
  for (const artifact::Slot &slot : program.results)
    results.emplace_back(std::vector<float>(static_cast<size_t>(
        *artifact::tensorBytes(slot.dtype, slot.shape) / 4)));
  Lines arena(std::vector<float>(static_cast<size_t>(program.arenaBytes) / 4));
  std::vector<void *> buffers;
  for (const Buffer &buffer : program.buffers)
    if (buffer.place == Buffer::Place::Argument)
      buffers.push_back(arguments[buffer.index].begin());
    else if (buffer.place == Buffer::Place::Result)
      buffers.push_back(results[buffer.index].begin());
    else if (buffer.place == Buffer::Place::Arena)
      buffers.push_back(arena.begin() + buffer.offset / 4);
    else
      return Status::failed("a constant in memory");
  std::vector<runtime::Action> actions(program.launches.size(),
                                       runtime::runKernel);
  run.buffers = buffers;
  run.actions = actions;
  run.communicators = communicators;
  if (Status status = code.reserve(run.program, nullptr); !status)
    return status;
  Status status = code.run(run);
  for (size_t i = 0; i < results.size(); ++i)
    values[keyOf(program.results[i])] = results[i].numbers();
  for (const artifact::Slot &slot : program.results)
    if (slot.alias)
      values[keyOf(slot)] = values.at("output " + slot.alias->output);
  return status;
}

/// A random model: values of rank 2, each dimension with a power of two.
class Models {
public:
  explicit Models(uint64_t seed) : random(seed) {}

  std::string next() {
    shapes = {{8, 4}, {4, 8}};
    text.clear();
    for (size_t count = 6 + below(6), made = 0; made < count;)
      made += addOp();
    // Of every value that nobody reads something reaches the loss.
    std::string sum;
    for (size_t i = 0; i < shapes.size(); ++i) {
      std::string s = std::to_string(i);
      text += "%s" + s + " = tandem.reduce_sum %v" + s +
              " over [0, 1] : " + typeOf(shapes[i]) + " -> tensor<f32>\n";
      std::string next = "%t" + s;
      text += sum.empty() ? ""
                          : next + " = tandem.add " + sum + ", %s" + s +
                                " : tensor<f32>\n";
      sum = sum.empty() ? "%s" + s : next;
    }
    return "module @m attributes {tandem.phase = \"capture\", tandem.mesh = "
           "#tandem.mesh<a = 2, b = 2>} {\nfunc.func @graph("
           "%v0: tensor<8x4xf32> {tandem.role = #tandem.role<input \"x\" "
           "{requires_grad}>}, %v1: tensor<4x8xf32> {tandem.role = "
           "#tandem.role<input \"y\" {requires_grad}>}) -> (tensor<f32> "
           "{tandem.role = #tandem.role<output \"loss\">}) {\n" +
           text + "return " + sum + " : tensor<f32>\n}\n}";
  }

private:
  using Sizes = std::array<int64_t, 2>;
  uint64_t below(uint64_t limit) { return random() % limit; }
  static std::string typeOf(const Sizes &shape) {
    return "tensor<" + std::to_string(shape[0]) + "x" +
           std::to_string(shape[1]) + "xf32>";
  }

  /// Returns whether it could add one.
  bool addOp() {
    size_t x = below(shapes.size());
    Sizes in = shapes[x], out = in;
    std::string operand = "%v" + std::to_string(x), op;
    static constexpr const char *axes[] = {R"(["a"])", R"(["b"])",
                                           R"(["a", "b"])", R"(["b", "a"])"};
    size_t which = below(4);
    int64_t group = which < 2 ? 2 : 4;
    std::string over = std::string(" over ") + axes[which];
    size_t dim = below(2), other = below(2);
    std::string along = " dim " + std::to_string(dim);
    switch (below(9)) {
    case 0:
      op = "tanh " + operand;
      text += "%v" + std::to_string(shapes.size()) + " = tandem." + op + " : " +
              typeOf(in) + "\n";
      shapes.push_back(out);
      return true;
    case 1: {
      size_t y = below(shapes.size());
      if (shapes[y][0] != in[1])
        return false;
      out = {in[0], shapes[y][1]};
      text += "%v" + std::to_string(shapes.size()) + " = tandem.matmul " +
              operand + ", %v" + std::to_string(y) + " : " + typeOf(in) + ", " +
              typeOf(shapes[y]) + " -> " + typeOf(out) + "\n";
      shapes.push_back(out);
      return true;
    }
    case 2: {
      size_t y = below(shapes.size());
      if (shapes[y] != in)
        return false;
      text += "%v" + std::to_string(shapes.size()) + " = tandem.mul " +
              operand + ", %v" + std::to_string(y) + " : " + typeOf(in) + "\n";
      shapes.push_back(out);
      return true;
    }
    case 3:
      op = "all_reduce sum " + operand + over;
      break;
    case 4:
      op = "reduce_scatter sum " + operand + along + over;
      out[dim] /= group;
      break;
    case 5:
      op = "all_gather " + operand + along + over;
      out[dim] *= group;
      break;
    case 6:
      op = "all_to_all " + operand + " split " + std::to_string(dim) +
           " concat " + std::to_string(other) + over;
      out[dim] /= group;
      out[other] *= group;
      break;
    case 7:
      op = "broadcast_from " + operand + " root " +
           std::to_string(below(group)) + over;
      break;
    default:
      op = "rank_slice " + operand + along + over;
      out[dim] /= group;
    }
    if (out[0] * out[1] > 256 || out[0] < 1 || out[1] < 1 ||
        (in[dim] % group && out != in))
      return false;
    std::string number = below(4) || op.substr(0, 4) == "rank"
                             ? ""
                             : " {number = " + std::to_string(below(3)) + "}";
    text += "%v" + std::to_string(shapes.size()) + " = tandem." + op + number +
            " : " + typeOf(in) + " -> " + typeOf(out) + "\n";
    shapes.push_back(out);
    return true;
  }

  std::mt19937_64 random;
  std::vector<Sizes> shapes;
  std::string text;
};

class CompiledRanks : public ::testing::TestWithParam<int> {};

/// The results of the reference's @joint: outputs and gradients by name.
using Expected = std::vector<std::map<std::string, Array>>;

Expected referenceOf(ModuleOp module, std::vector<Named> &values,
                     std::mt19937_64 &random) {
  auto joint = module.lookupSymbol<func::FuncOp>("joint");
  std::vector<SmallVector<Array>> arguments(ranks);
  values.resize(ranks);
  for (int r = 0; r < ranks; ++r)
    for (unsigned i = 0; i < joint.getNumArguments(); ++i) {
      auto type = cast<RankedTensorType>(joint.getArgumentTypes()[i]);
      Array array = randomArray(type, random, -0.5, 0.5, 1);
      std::vector<float> numbers(array.data.begin(), array.data.end());
      array.data.assign(numbers.begin(), numbers.end());
      RoleAttr role = roleOfArgument(joint, i);
      values[r][(stringifyRoleKind(role.getKind()) + " " +
                 role.getName().getValue())
                    .str()] = numbers;
      arguments[r].push_back(array);
    }
  auto results = reference::evaluateRanks(joint, arguments);
  Expected expected(ranks);
  EXPECT_TRUE(succeeded(results));
  for (int r = 0; succeeded(results) && r < ranks; ++r)
    for (auto [i, array] : llvm::enumerate((*results)[r])) {
      RoleAttr role = roleOfResult(joint, i);
      expected[r][(stringifyRoleKind(role.getKind()) + " " +
                   role.getName().getValue())
                      .str()] = array;
    }
  return expected;
}

TEST_P(CompiledRanks, X20_GivesWhatTheReferenceGives) {
  DialectRegistry registry;
  registerCompiler(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadDialect<TandemDialect>();
  std::string text = Models(GetParam()).next();
  auto module = parseSourceString<ModuleOp>(text, &context);
  ASSERT_TRUE(module) << text;
  CompileOptions options;
  options.threads = 1;
  options.stopAfter = "joint";
  std::vector<PhaseTime> times;
  Status status = runPhases(*module, options, times);
  ASSERT_TRUE(status.ok()) << status.message() << text;
  std::mt19937_64 random(GetParam());
  std::vector<Named> values;
  Expected expected = referenceOf(*module, values, random);
  options.stopAfter.clear();
  status = runPhases(*module, options, times);
  ASSERT_TRUE(status.ok()) << status.message() << text;
  auto writer = emitArtifact(*module, options, times);
  ASSERT_TRUE(writer) << writer.status().message();
  auto bytes = writer->bytes();
  ASSERT_TRUE(bytes) << bytes.status().message();
  auto reader =
      artifact::ArtifactReader::fromMemory(std::as_bytes(std::span(*bytes)));
  ASSERT_TRUE(reader) << reader.status().message() << text;
  comm::testing::withRanks(
      ranks,
      [&](comm::Communicator &borrowed) {
        std::shared_ptr<comm::Communicator> world(&borrowed,
                                                  [](comm::Communicator *) {});
        auto groups = comm::MeshCommunicators::make(world, reader->manifest());
        ASSERT_TRUE(groups) << groups.status().message();
        auto code = runtime::hostBackend().load(*reader, {});
        ASSERT_TRUE(code) << code.status().message();
        Named &own = values[world->rank()];
        for (const char *program : {"forward", "backward"}) {
          Status ran =
              call(**code, reader->manifest(), program, groups->get(), own);
          ASSERT_TRUE(ran.ok()) << ran.message();
        }
        for (auto &[name, array] : expected[world->rank()]) {
          ASSERT_TRUE(own.count(name)) << name;
          for (int64_t i = 0; i < array.size(); ++i)
            ASSERT_NEAR(own[name][i], array[i], 1e-3 * (1 + std::abs(array[i])))
                << name << " on rank " << world->rank() << "\n"
                << text;
        }
      },
      std::chrono::seconds(20));
}

INSTANTIATE_TEST_SUITE_P(Random, CompiledRanks, ::testing::Range(1, 25));

} // namespace
