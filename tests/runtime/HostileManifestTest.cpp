//===- HostileManifestTest.cpp - valid manifests with hostile fields ------===//
//
// What a file says is refused in words or is sound: thousands of mutants of
// valid manifests go through the reader, and what it takes is loaded and run
// with kernels that do nothing, so that what goes wrong is the runtime's own.
// And, one by one, the fields that once went wrong.
//
//===----------------------------------------------------------------------===//
#include "runtime/artifact/Text.h"
#include "tests/runtime/Maker.h"
#include "tests/runtime/Mutants.h"

#include <deque>
#include <fstream>
#include <iterator>
#include <random>

using namespace tandem;
using namespace tandem::artifact;
using namespace tandem::test;
using runtime::Tensor;

namespace {

std::string emptyKernels() {
  std::ifstream file(TANDEM_EMPTY_KERNELS, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// What a model of the manifest and its calls would allocate, or nothing if
/// that is too much for a test.
std::optional<int64_t> allocated(const Manifest &manifest) {
  constexpr int64_t most = 1 << 22;
  int64_t bytes = 0;
  auto add = [&](int64_t more) { bytes = std::min(bytes + more, maxBytes); };
  for (const Value &value : manifest.values)
    add(*tensorBytes(value.dtype, value.shape));
  for (const Kernel &kernel : manifest.kernels)
    add(kernel.scratchBytes);
  for (const Program &program : manifest.programs) {
    add(program.arenaBytes + program.hostBytes);
    for (const auto *slots : {&program.arguments, &program.results})
      for (const Slot &slot : *slots) {
        add(*tensorBytes(slot.dtype, slot.shape));
        add(8 * slot.resize.value_or(0));
      }
    for (const OutputAlias &output : program.aliases)
      add(*tensorBytes(output.dtype, output.shape));
    for (const Launch &launch : program.launches)
      add(launch.work);
  }
  return bytes <= most ? std::optional(bytes) : std::nullopt;
}

/// Tensors for all that a program takes of its caller and gives to it.
struct Given {
  std::deque<Tensor> tensors;
  std::vector<runtime::Argument> inputs;
  std::vector<runtime::Destination> outputs;

  Given(const Program &program, const Decide &decide) {
    for (const Slot &slot : program.arguments)
      if (slot.role == Role::Input || slot.role == Role::Cotangent ||
          slot.role == Role::Grad) {
        if (slot.role != Role::Input && decide(4) == 0)
          continue;
        Tensor &tensor =
            tensors.emplace_back(*Tensor::zeros(slot.dtype, slot.shape));
        if (slot.freed)
          (void)tensor.resizeStorage(0).ok();
        inputs.push_back({slot.name, &tensor});
      }
    auto wants = [&](const std::string &name, DType dtype,
                     const std::vector<int64_t> &shape) {
      size_t how = decide(3);
      if (how == 0)
        return;
      Tensor &tensor = tensors.emplace_back();
      if (how == 2)
        tensor = *Tensor::zeros(dtype, shape);
      outputs.push_back({name, &tensor});
    };
    for (const Slot &slot : program.results)
      if (slot.role == Role::Output || slot.role == Role::Grad)
        wants(slot.name, slot.dtype, slot.shape);
    for (const OutputAlias &output : program.aliases)
      wants(output.name, output.dtype, output.shape);
  }
};

void run(const Manifest &manifest, const std::string &file,
         const Decide &decide) {
  auto reader = ArtifactReader::fromMemory(std::as_bytes(std::span(file)));
  auto model = runtime::Model::load(std::move(*reader), {1, 0});
  if (!model) {
    EXPECT_NE(model.status().message(), "");
    return;
  }
  runtime::Context context;
  for (int round = 0; round < 2; ++round)
    for (const Program &program : manifest.programs) {
      Given given(program, decide);
      if (program.name == "forward") {
        auto made = model->forward(given.inputs, given.outputs);
        if (made)
          context = std::move(*made);
      } else if (program.name == "backward") {
        (void)model->backward(context, given.inputs, given.outputs).ok();
      } else {
        (void)model->run(program.name, given.inputs, given.outputs).ok();
      }
    }
}

// Attack 1 and 2: mutations that know the structure found a stack overflow by a
// rank and a crash by an overflowing view, which thousands of random ones
// missed.
TEST(HostileManifest, MutantsAreRefusedOrSound) {
  Mutants mutants(
      seedManifests({std::string(TANDEM_SEEDS) + "/manifest.json",
                     std::string(TANDEM_SEEDS) + "/manifest-cuda.json",
                     std::string(TANDEM_SEEDS) + "/manifest-prepared.json"}));
  std::mt19937_64 random(20261123);
  Decide decide = [&](size_t limit) { return random() % limit; };
  std::string kernels = emptyKernels();
  int taken = 0, ran = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string text = mutants.next(decide);
    std::string file = fileAround(text, kernels);
    auto reader = ArtifactReader::fromMemory(std::as_bytes(std::span(file)));
    if (!reader) {
      std::string message = reader.status().message();
      ASSERT_NE(message, "");
      ASSERT_LT(message.size(), 20000u);
      ASSERT_FALSE(hasControls(message)) << message;
      continue;
    }
    ++taken;
    const Manifest &manifest = reader->manifest();
    ASSERT_EQ(unsoundness(manifest, reader->constants().size()), "") << text;
    ASSERT_EQ(*fromJson(*toJson(manifest)), manifest);
    if (manifest.target.kind != "cpu" || !allocated(manifest))
      continue;
    ++ran;
    run(manifest, file, decide);
  }
  // A test that takes nothing would find nothing.
  EXPECT_GT(taken, 150);
  EXPECT_GT(ran, 75);
}

/// The message with which the manifest is refused; "" if it is taken.
std::string refusal(const Manifest &manifest) {
  return validate(manifest, 128).message();
}

// Attack 1: a rank above 16 of a saved value that lies in an output wrote past
// the end of a layout on the stack.
TEST(HostileManifest, RanksOfEverySlot) {
  for (size_t rank : {17, 18, 64, 123, 5000}) {
    for (int list = 0; list < 2; ++list)
      for (size_t p = 0; p < mutatingRegression().programs.size(); ++p)
        for (size_t i = 0;; ++i) {
          Manifest m = mutatingRegression();
          auto &slots = list ? m.programs[p].results : m.programs[p].arguments;
          if (i == slots.size())
            break;
          slots[i].shape.assign(rank, 1);
          std::string at = "/programs/" + std::to_string(p) +
                           (list ? "/results/" : "/arguments/") +
                           std::to_string(i) + "/shape: no tensor has the type";
          EXPECT_NE(refusal(m).find(at), std::string::npos) << refusal(m);
        }
    Manifest m = mutatingRegression();
    m.programs[1].arguments[5].alias->storage->shape.assign(rank, 1);
    EXPECT_NE(refusal(m).find("/programs/1/arguments/5/alias/shape: no tensor"),
              std::string::npos)
        << refusal(m);
    m = mutatingRegression();
    m.programs[1].aliases[0].alias.views = {
        View::reshape(std::vector<int64_t>(rank, 1))};
    EXPECT_NE(refusal(m).find("/programs/1/aliases/0/views: 'reshape': no "
                              "tensor has the shape [1, 1"),
              std::string::npos)
        << refusal(m);
  }
}

// Attack 2: two shapes whose numbers of elements overflow were one shape, and
// what was made of them crashed where it was seen as a tensor.
TEST(HostileManifest, ViewsThatOverflow) {
  constexpr int64_t big = int64_t(1) << 32, huge = int64_t(1) << 62;
  const std::vector<std::vector<View>> chains = {
      {View::broadcast({huge, 3, 8, 3}, {2, 3}),
       View::reshape({huge / 2, 6, 8, 3})},
      {View::broadcast({big, big, 8, 3}, {2, 3}), View::reshape({8, 3})},
      {View::broadcast({big, big, 8, 3}, {2, 3}), View::reshape({0})},
      {View::broadcast({INT64_MAX, 8, 3}, {1, 2})},
      {View::reshape({24, huge, 0})},
      {View::reshape({-1, -24})},
      {View::asStrided({huge, huge}, {0, 0}, 0)},
      {View::asStrided({2, 2}, {INT64_MAX, INT64_MAX}, 0)},
      {View::asStrided({2}, {INT64_MIN}, INT64_MAX)},
      {View::asStrided({1}, {0}, INT64_MIN)},
      {View::slice({INT64_MIN, 0}, {INT64_MAX, 3}, {1, 1})}};
  for (const std::vector<View> &chain : chains) {
    Layout layout = Layout::of(DType::F32, std::vector<int64_t>{8, 3});
    EXPECT_FALSE(applyViews(chain, layout).ok());
    Manifest m = mutatingRegression();
    m.programs[1].aliases[0].alias.views = chain;
    EXPECT_NE(refusal(m).find("/programs/1/aliases/0/views"), std::string::npos)
        << refusal(m);
  }
}

// Attack 2: a saved value that is larger than the output in which it lies was
// taken; one that is smaller brought too little memory for both.
TEST(HostileManifest, SavedValuesAreAsLargeAsTheirOutput) {
  for (std::vector<View> chain :
       {std::vector{View::slice({0}, {4}, {1})},
        std::vector{View::asStrided({4}, {1}, 0)},
        std::vector{View::broadcast({1, 8}, {1}),
                    View::slice({0, 0}, {1, 2}, {1, 1})}}) {
    Manifest m = mutatingRegression();
    Layout layout = Layout::of(DType::F32, std::vector<int64_t>{8});
    ASSERT_TRUE(applyViews(chain, layout).ok());
    std::vector<int64_t> shape(layout.shape().begin(), layout.shape().end());
    m.programs[1].results.back().shape = shape;
    m.programs[1].results.back().alias->views = chain;
    for (Slot &slot : m.programs[2].arguments)
      if (slot.name == "pred.saved")
        slot.shape = shape;
    EXPECT_NE(refusal(m).find("/alias/views: expected the row-major elements "
                              "of 'pred'"),
              std::string::npos)
        << refusal(m);
  }
}

// Attack 8: escape sequences of names went to the terminal.
TEST(HostileManifest, TextsHaveNoControlCharacters) {
  for (const char *text : {"a\nb", "\x1b[2J", "\x7f"}) {
    Manifest m = regression();
    m.model = text;
    m.kernels[1].ops = {"tandem.add", text};
    m.programs[2].arguments[1].where = text;
    EXPECT_EQ(refusal(m),
              "/model: expected a text without control characters; "
              "/kernels/1/ops/1: expected a text without control characters; "
              "/programs/2/arguments/1/where: expected a text without control "
              "characters");
  }
  Manifest m = regression();
  m.programs[0].results[0].name = "\x1b]0;x";
  EXPECT_NE(refusal(m).find("'\\x1b]0;x'"), std::string::npos) << refusal(m);
}

// Lists of any length made rules look at all pairs of their items.
TEST(HostileManifest, ListsHaveALimit) {
  Manifest m = regression();
  m.programs[0].launches.resize(70000, m.programs[0].launches[0]);
  EXPECT_EQ(refusal(m), "/programs/0/launches: expected at most 65536 items "
                        "but got 70000");
  std::string text = *toJson(regression());
  std::string deep(100000, '[');
  EXPECT_EQ(fromJson(text.substr(0, text.size() - 2) + ",\"x\":" + deep)
                .status()
                .message(),
            "manifest: expected at most 32 levels of lists and objects");
  std::string wide = "{";
  for (int i = 0; i < 200000; ++i)
    wide += "\"" + std::to_string(i) + "\":0,";
  EXPECT_EQ(fromJson(wide).status().message(),
            "manifest: expected objects of at most 64 members");
}

} // namespace
