//===- Harness.h - one row of the semantics, run in all ways --------------===//
//
// A row's program is written twice, as IR text and as a traced C++ function,
// and its test once; the test runs on the reference and on compiled code of
// each device:
//
//   class Mutation : public RowTest {};
//   TANDEM_ALL_WAYS(Mutation);
//
//   TEST_P(Mutation, M02_VisibleWritesOfANonLeaf) {
//     Source source{"module ... ", [](Trace &t) {
//       Tensor x = t.input("x", {2}, DType::F32, {.requiresGrad = true});
//       ...
//     }};
//     auto m = start(source);             // fails the test if it cannot
//     compile ASSERT_TRUE(m); m->set("x", {1, 2});                // inputs,
//     params and states ASSERT_EQ(m->forward(), "");        // or the message
//     of the error EXPECT_NUMBERS(m->output("o"), {3, 6});
//     EXPECT_NUMBERS(m->contents("x"), {2, 4});
//     ASSERT_EQ(m->backward({{"o", {1, 1}}, {"update of x", {0, 0}}}), "");
//     EXPECT_NUMBERS(m->gradient("x"), {4, 6});
//   }
//
// A cotangent that is left out is undefined, and so is a gradient that is
// nullopt. Rules that only a call of compiled code has (handles, versions,
// contexts, which memory is shared) are tested under TANDEM_COMPILED_WAYS,
// where `compiled(source)` gives the Model itself. `printed` is the module
// after a phase, `errorOf` what the compiler says ("row.mlir:3:5: error: ...";
// of a traced program, the place in the test's own file).
//
// On the reference the captured program runs on real storage and the joint
// gives the gradients; there each backward also checks that the joint's outputs
// and updates are those of the captured program.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TESTS_SEMANTICS_HARNESS_H
#define TANDEM_TESTS_SEMANTICS_HARNESS_H

#include "compiler/Compile.h"
#include "compiler/trace/Functions.h"
#include "runtime/model/Model.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tandem::test {

/// The elements of a tensor, row-major.
using Numbers = std::vector<double>;
using NamedNumbers = std::map<std::string, Numbers>;

/// A program, in both spellings.
struct Source {
  const char *text;
  std::function<void(Trace &)> trace;
};

/// A program that can be called. Names are those of its roles.
class Machine {
public:
  virtual ~Machine() = default;

  /// What the input, param or state holds from now on. An input gets new
  /// storage.
  virtual void set(const std::string &name, const Numbers &numbers) = 0;
  /// Makes storage for inputs that are declared to share it and that is itself
  /// no argument.
  virtual void setStorage(const std::string &name, const Numbers &numbers,
                          DType dtype = DType::F32) = 0;
  /// Makes the input show the storage of the input or storage `of`, as its role
  /// declares; `strides` and `offset` are in elements of the input's type.
  virtual void setView(const std::string &name, const std::string &of,
                       const Shape &shape, const Shape &strides,
                       int64_t offset) = 0;
  /// Makes the input one whose storage has no elements.
  virtual void setFreed(const std::string &name) = 0;
  /// Makes the input a leaf. An input that requires grad is one unless the
  /// program writes it visibly.
  virtual void setLeaf(const std::string &name) = 0;

  /// Runs the program; returns the error's message, or "".
  virtual std::string forward() = 0;
  /// Differentiates what the last forward computed.
  virtual std::string
  backward(const NamedNumbers &cotangents,
           const runtime::BackwardOptions &options = {}) = 0;

  /// What an input, param, state, storage, or cotangent of the last backward
  /// holds now; {} where the storage has no elements.
  virtual Numbers contents(const std::string &name) = 0;
  /// The metadata of the handle of an argument or output, and whether two of
  /// them show one storage.
  virtual Shape shape(const std::string &name) = 0;
  virtual Shape strides(const std::string &name) = 0;
  virtual bool share(const std::string &a, const std::string &b) = 0;
  Numbers output(const std::string &name) const;
  std::optional<Numbers> gradient(const std::string &name) const;

  NamedNumbers outputs, gradients; ///< of the last calls; undefined: absent
};

/// The machine of compiled code, and what is behind it.
class CompiledMachine : public Machine {
public:
  static std::unique_ptr<CompiledMachine> load(const std::string &artifact,
                                               runtime::Device device);

  void set(const std::string &name, const Numbers &numbers) override;
  void setStorage(const std::string &name, const Numbers &numbers,
                  DType dtype) override;
  void setView(const std::string &name, const std::string &of,
               const Shape &shape, const Shape &strides,
               int64_t offset) override;
  void setFreed(const std::string &name) override;
  void setLeaf(const std::string &name) override;
  std::string forward() override;
  std::string backward(const NamedNumbers &cotangents,
                       const runtime::BackwardOptions &options = {}) override;
  Numbers contents(const std::string &name) override;
  Shape shape(const std::string &name) override;
  Shape strides(const std::string &name) override;
  bool share(const std::string &a, const std::string &b) override;
  /// The handle of that name.
  const runtime::Tensor &handle(const std::string &name);

  /// One forward into another context than the machine's own; its outputs are
  /// dropped.
  Result<runtime::Context> forwardContext();

  runtime::Model model;
  runtime::Context context; ///< of the last forward
  /// The caller's handles. Those of params and states share the model's
  /// storage.
  std::map<std::string, runtime::Tensor> tensors, outputTensors, gradTensors,
      cotangentTensors;

private:
  explicit CompiledMachine(runtime::Model model) : model(std::move(model)) {}
  /// A tensor on the model's device.
  runtime::Tensor placed(DType dtype, const Shape &shape,
                         const Numbers &numbers);
  /// Marks the handle of an input as its role and the program ask.
  void mark(const std::string &name);
};

/// The numbers of a tensor, and a tensor of these numbers.
Numbers numbersOf(const runtime::Tensor &tensor);
runtime::Tensor tensorOf(DType dtype, const Shape &shape,
                         const Numbers &numbers);

/// What runs a program: the reference, or compiled code on a device. The CUDA
/// device is emulated.
enum class Runner { Reference, Cpu, Cuda };

struct Way {
  bool isTraced;
  Runner runner;
};
void PrintTo(const Way &way, std::ostream *out);
std::string nameOf(const testing::TestParamInfo<Way> &way);

class RowTest : public testing::TestWithParam<Way> {
protected:
  bool isTraced() const { return GetParam().isTraced; }
  bool isCompiled() const { return GetParam().runner != Runner::Reference; }
  bool isCuda() const { return GetParam().runner == Runner::Cuda; }

  /// The program, ready to be called; null, and the test has failed, if it does
  /// not compile.
  std::unique_ptr<Machine> start(const Source &source,
                                 const CompileOptions &options = {}) const;
  std::unique_ptr<CompiledMachine>
  compiled(const Source &source, const CompileOptions &options = {}) const;
  /// The same of one model in several sizes, as one artifact; their names are
  /// "size 0", "size 1", ... With `error`, it may fail, and says why.
  std::unique_ptr<CompiledMachine>
  compiledSizes(const std::vector<Source> &sources,
                const CompileOptions &options = {},
                std::string *error = nullptr) const;
  /// The module after `phase`, without its target; "", and the test has failed,
  /// if it does not compile as far as that.
  std::string printed(const Source &source, const std::string &phase,
                      const CompileOptions &options = {},
                      bool withPlaces = false) const;
  /// The captured text or, from the tracer, every mistake.
  std::string captured(const Source &source) const;
  /// What the compiler says of the program: the name of the phase that fails,
  /// then a line per diagnostic; "" if it compiles.
  std::string errorOf(const Source &source,
                      const CompileOptions &options = {}) const;
};

/// True if `text` has `part`.
bool contains(const std::string &text, const std::string &part);
int count(const std::string &text, const std::string &part);

testing::AssertionResult areNear(const char *, const char *,
                                 const std::optional<Numbers> &actual,
                                 const Numbers &expected);
testing::AssertionResult hasPart(const char *, const char *,
                                 const std::string &text,
                                 const std::string &part);

} // namespace tandem::test

/// Equal up to the rounding of f32.
#define EXPECT_NUMBERS(actual, ...)                                            \
  EXPECT_PRED_FORMAT2(::tandem::test::areNear, actual,                         \
                      (::tandem::test::Numbers __VA_ARGS__))
/// The text has the part.
#define EXPECT_PART(text, part)                                                \
  EXPECT_PRED_FORMAT2(::tandem::test::hasPart, text, part)

#define TANDEM_WAYS(Suite, ...)                                                \
  INSTANTIATE_TEST_SUITE_P(, Suite, testing::Values(__VA_ARGS__),              \
                           ::tandem::test::nameOf)
#define TANDEM_TEXT_AND_TRACED(runner)                                         \
  ::tandem::test::Way{false, ::tandem::test::Runner::runner},                  \
      ::tandem::test::Way {                                                    \
    true, ::tandem::test::Runner::runner                                       \
  }
#define TANDEM_ALL_WAYS(Suite)                                                 \
  TANDEM_WAYS(Suite, TANDEM_TEXT_AND_TRACED(Reference),                        \
              TANDEM_TEXT_AND_TRACED(Cpu), TANDEM_TEXT_AND_TRACED(Cuda))
/// Of what holds for any compiled code: of a call, of compiling.
#define TANDEM_COMPILED_WAYS(Suite)                                            \
  TANDEM_WAYS(Suite, TANDEM_TEXT_AND_TRACED(Cpu))

#endif
