//===- ArchiveTest.cpp - archives that are wrong, and options that are ----===//
#include "compiler/import/torch/Archive.h"
#include "compiler/Compile.h"
#include "compiler/import/torch/Import.h"
#include "compiler/import/torch/Sizes.h"
#include "tests/support/Folder.h"

#include "mlir/IR/MLIRContext.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <zip.h>

using namespace tandem;

namespace {

using Change = std::function<std::string(std::string)>;

std::string fixture(const std::string &name) {
  return std::string(TANDEM_TORCH_FIXTURES "/") + name + ".pt2";
}

/// A copy of the archive of a fixture with one member changed; of one that is
/// empty, without it.
class Archive : public testing::Test {
protected:
  std::string changed(const std::string &name, const std::string &member,
                      const Change &change) {
    std::string path = folder + "/" + name + ".pt2";
    std::filesystem::copy_file(
        fixture(name), path, std::filesystem::copy_options::overwrite_existing);
    int error = 0;
    zip_t *zip = zip_open(path.c_str(), 0, &error);
    EXPECT_TRUE(zip);
    std::string full = "model/" + member;
    zip_int64_t at = zip_name_locate(zip, full.c_str(), 0);
    EXPECT_GE(at, 0) << full;
    zip_stat_t stat;
    EXPECT_EQ(zip_stat(zip, full.c_str(), 0, &stat), 0);
    std::string bytes(stat.size, 0);
    zip_file_t *file = zip_fopen_index(zip, at, 0);
    zip_fread(file, bytes.data(), bytes.size());
    zip_fclose(file);
    bytes = change(bytes);
    if (bytes.empty()) {
      zip_delete(zip, at);
    } else {
      zip_source_t *source =
          zip_source_buffer(zip, bytes.data(), bytes.size(), 0);
      EXPECT_EQ(zip_file_replace(zip, at, source, 0), 0);
      zip_set_file_compression(zip, at, ZIP_CM_STORE, 0);
    }
    EXPECT_EQ(zip_close(zip), 0);
    return path;
  }

  /// `change` of the graph's JSON: `from` becomes `to` wherever it stands.
  std::string replaced(const std::string &name, const std::string &from,
                       const std::string &to) {
    return changed(name, "models/model.json", [&](std::string text) {
      EXPECT_NE(text.find(from), text.npos) << from;
      for (size_t at = 0; (at = text.find(from, at)) != text.npos;
           at += to.size())
        text.replace(at, from.size(), to);
      return text;
    });
  }

  static Status statusOf(const std::string &path,
                         const ImportOptions &options = {}) {
    auto program = torch::readArchive(path);
    if (!program)
      return program.status();
    mlir::DialectRegistry registry;
    registerCompiler(registry);
    mlir::MLIRContext context(registry);
    return torch::importProgram(*program, path, options, context).status();
  }

  /// What is said of an archive that is imported.
  static std::string notesOf(const std::string &path,
                             const ImportOptions &options = {}) {
    auto program = torch::readArchive(path);
    mlir::DialectRegistry registry;
    registerCompiler(registry);
    mlir::MLIRContext context(registry);
    Import made = torch::importProgram(*program, path, options, context);
    EXPECT_TRUE(made.module) << made.status().message();
    std::string notes;
    for (const std::string &note : made.notes)
      notes += note + "\n";
    return notes;
  }

  static void expect(const Status &status, Code code, const std::string &text) {
    EXPECT_EQ(status.code(), code) << status.message();
    EXPECT_NE(status.message().find(text), std::string::npos)
        << status.message();
  }

  test::Folder made;
  const std::string folder = made.path();
};

} // namespace

TEST_F(Archive, ThatIsNone) {
  std::string path = folder + "/x.pt2";
  std::ofstream(path) << "no zip file";
  expect(statusOf(path), Code::Failed, "torch.export.save");
  expect(statusOf(folder + "/none.pt2"), Code::Failed, "none.pt2");
  expect(statusOf(folder), Code::Failed, "");
}

TEST_F(Archive, ThatIsCutOff) {
  std::ifstream file(fixture("mlp"), std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  for (size_t size :
       {size_t(0), size_t(100), bytes.size() / 2, bytes.size() - 1}) {
    std::string path = folder + "/cut.pt2";
    std::ofstream(path, std::ios::binary) << bytes.substr(0, size);
    EXPECT_FALSE(statusOf(path)) << size;
  }
}

TEST_F(Archive, WithBitsThatChanged) {
  std::ifstream file(fixture("mlp"), std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  size_t at = bytes.find("graph_module");
  ASSERT_NE(at, bytes.npos);
  bytes[at] = 'G';
  std::string path = folder + "/x.pt2";
  std::ofstream(path, std::ios::binary) << bytes;
  expect(statusOf(path), Code::Failed, "cannot be read");
}

TEST_F(Archive, OfAnotherSchema) {
  expect(statusOf(replaced("mlp", "\"major\": 8", "\"major\": 9")),
         Code::Unsupported, "expected version 8");
  expect(statusOf(replaced("mlp", "\"schema_version\"", "\"version\"")),
         Code::Failed, "schema_version");
}

TEST_F(Archive, WithoutItsGraphOrWeights) {
  auto nothing = [](const std::string &) { return std::string(); };
  expect(statusOf(changed("mlp", "models/model.json", nothing)), Code::Failed,
         "models/NAME.json");
  expect(statusOf(changed("mlp", "data/weights/weight_0", nothing)),
         Code::Failed, "weight_0");
  expect(statusOf(changed("mlp", "data/weights/weight_0",
                          [](std::string bytes) {
                            return bytes.substr(0, bytes.size() - 4);
                          })),
         Code::Failed, "expected its elements to lie");
  expect(statusOf(changed(
             "mlp", "data/weights/model_weights_config.json",
             [](std::string) { return std::string("{\"config\": {}}"); })),
         Code::Failed, "no value of it");
}

// These were internal errors of the library that reads JSON.
TEST_F(Archive, WhoseJsonHasOtherTypes) {
  for (auto [from, to, problem] :
       {std::tuple{"\"tensor_values\": {", "\"tensor_values\": 3, \"x\": {",
                   "tensor_values: expected an object, but got number"},
        std::tuple{"\"sym_int_values\": {", "\"sym_int_values\": [3], \"x\": {",
                   "sym_int_values: expected an object, but got array"},
        std::tuple{"\"range_constraints\": {",
                   "\"range_constraints\": \"s\", \"x\": {",
                   "range_constraints: expected an object, but got string"}})
    expect(statusOf(replaced("mlp", from, to)), Code::Failed, problem);
  for (auto [from, to, problem] :
       {std::tuple{"\"use_pickle\": false", "\"use_pickle\": 3",
                   "': expected 'use_pickle' to be true or false, but got 3"},
        std::tuple{"\"is_param\": true", "\"is_param\": \"a\"",
                   "expected 'is_param' to be true or false, but got \"a\""},
        std::tuple{"\"requires_grad\": true", "\"requires_grad\": []",
                   "expected 'requires_grad' to be true or false, but got []"},
        std::tuple{"\"storage_offset\": {\"as_int\": 0}",
                   "\"storage_offset\": {\"as_int\": {}}",
                   "expected 'storage_offset' to be an integer"}})
    expect(statusOf(changed("mlp", "data/weights/model_weights_config.json",
                            [&](std::string text) {
                              size_t at = text.find(from);
                              EXPECT_NE(at, text.npos) << from;
                              return text.replace(at, strlen(from), to);
                            })),
           Code::Failed, problem);
}

TEST_F(Archive, WhosePicklesAreNotRead) {
  std::string path = changed(
      "mlp", "data/weights/model_weights_config.json", [](std::string text) {
        size_t at = text.find("\"use_pickle\": false");
        return text.replace(at, 19, "\"use_pickle\": true");
      });
  // A parameter can be given when it is trained.
  EXPECT_TRUE(statusOf(path));
}

// Each step would begin with the archive's value again.
TEST_F(Archive, WhoseConstantsAreWritten) {
  ImportOptions options;
  options.dims["s77"] = 4;
  Status status =
      statusOf(replaced("cnn", "\"persistent\": true", "\"persistent\": false"),
               options);
  expect(status, Code::Unsupported, "'norm.running_mean': unsupported: the");
  EXPECT_EQ(status.message().find("'mean'"), std::string::npos)
      << status.message();
}

TEST_F(Archive, WhoseParametersShowOneStorageDifferently) {
  std::string path = changed(
      "tied", "data/weights/model_weights_config.json", [](std::string text) {
        size_t at = text.find("head.weight");
        at = text.find("\"strides\": [{\"as_int\": 8}", at);
        EXPECT_NE(at, text.npos);
        return text.replace(at, 25, "\"strides\": [{\"as_int\": 4}");
      });
  expect(statusOf(path), Code::Unsupported, "show one storage");
}

TEST_F(Archive, WhoseBuffersShowAStorageThatChanges) {
  // The running mean is made a view of the parameter beside it.
  std::string path = changed(
      "cnn", "data/weights/model_weights_config.json", [](std::string text) {
        auto pathOf = [&](const char *name) {
          size_t at = text.find("\"path_name\": ", text.find(name));
          EXPECT_NE(at, text.npos);
          return at;
        };
        size_t from = pathOf("\"norm.weight\"");
        std::string owner = text.substr(from, text.find(',', from) - from);
        size_t to = pathOf("\"norm.running_mean\"");
        return text.replace(to, text.find(',', to) - to, owner);
      });
  ImportOptions options;
  options.dims["s77"] = 4;
  expect(statusOf(path, options), Code::Unsupported,
         "'norm.running_mean' and 'norm.weight': unsupported: they show one "
         "storage, and it changes");
}

// The layout before PyTorch 2.8: its weights are what torch.save writes.
TEST_F(Archive, OfTheOlderLayoutHasItsTies) {
  auto program = torch::readArchive(fixture("tied-2.6"));
  ASSERT_TRUE(program) << program.status().message();
  EXPECT_TRUE(program->unread.empty());
  EXPECT_EQ(program->values.at("head.weight"),
            program->values.at("embed.weight"));
}

// Two objects were trained as one. The embedding reads the other name, as of
// two parameters with one `.data`.
TEST_F(Archive, WhoseParametersAreTwoOnOneStorage) {
  const char *text =
      "\"weight\", \"arg\": {\"as_tensor\": {\"name\": \"p_%s\"}}"
      ", \"kind\": 1}, {\"name\": \"indices\"";
  auto with = [&](const std::string &name) {
    std::string made = text;
    return made.replace(made.find("%s"), 2, name);
  };
  EXPECT_TRUE(statusOf(fixture("tied")));
  std::string path =
      replaced("tied", with("head_weight"), with("embed_weight"));
  expect(statusOf(path), Code::Unsupported,
         "'head.weight' and 'embed.weight': unsupported: two parameters that "
         "show one storage, and it changes");
}

TEST_F(Archive, WithUnknownOperators) {
  expect(statusOf(replaced("mlp", "torch.ops.aten.gelu.default",
                           "torch.ops.mine.gelu.default")),
         Code::Unsupported,
         "the operator 'mine.gelu'\nhint: an archive of "
         "exported.run_decompositions()");
}

// Only a bare symbol was found in a shape that is given.
// It was said that the weights were too many.
TEST_F(Archive, WithProjections) {
  expect(statusOf(fixture("projected")), Code::Unsupported, "'proj_size'");
}

TEST_F(Archive, WhoseDimensionsAreDerived) {
  std::string symbol = "Symbol('s77', positive=True, integer=True)";
  std::string path = replaced("cnn", "\"" + symbol + "\"",
                              "\"Mul(Integer(2), " + symbol + ")\"");
  auto of = [&](std::vector<int64_t> shape) {
    ImportOptions options;
    options.shapes["x"] = std::move(shape);
    return statusOf(path, options);
  };
  Status status = of({6, 1, 8, 8});
  EXPECT_TRUE(status) << status.message();
  expect(of({7, 1, 8, 8}), Code::Usage, "no size of 's77' follows from 7");
  expect(of({2, 1, 8, 8}), Code::Usage, "the size 1 of 's77'");
  expect(statusOf(path), Code::Usage,
         "--dim=s77=N (dimension 0: Mul(2, s77), s77 at least 2)");
}

TEST_F(Archive, WhoseNamesLeadNowhere) {
  expect(statusOf(replaced("mlp", "{\"name\": \"gelu\"}", "{\"name\": \"x\"}")),
         Code::Failed, "");
  expect(statusOf(replaced("mlp", "{\"name\": \"p_net_0_weight\"}}, \"kind\"",
                           "{\"name\": \"elsewhere\"}}, \"kind\"")),
         Code::Failed, "");
}

TEST_F(Archive, WhoseTypesAreOthers) {
  // 7 is f32, 8 is f64: what a node makes has to be what the archive says.
  expect(statusOf(replaced("mlp", "\"gelu\": {\"dtype\": 7",
                           "\"gelu\": {\"dtype\": 8")),
         Code::Failed, "as the archive says");
}

TEST_F(Archive, OptionsThatNameNothing) {
  auto with = [](auto set) {
    ImportOptions options;
    set(options);
    return options;
  };
  expect(statusOf(fixture("cnn")), Code::Usage, "--dim=s77=N");
  expect(statusOf(fixture("cnn"), with([](auto &o) { o.dims["batch"] = 4; })),
         Code::Usage, "there are 's77'");
  expect(statusOf(fixture("cnn"), with([](auto &o) { o.dims["s77"] = 1; })),
         Code::Usage, "at least 2");
  EXPECT_TRUE(statusOf(fixture("cnn"), with([](auto &o) {
                         o.shapes["x"] = {3, 1, 8, 8};
                       })));
  expect(statusOf(fixture("cnn"), with([](auto &o) {
                    o.shapes["x"] = {3, 1, 8, 9};
                  })),
         Code::Usage, "expected dimension 3 to be 8");
  expect(statusOf(fixture("mlp"), with([](auto &o) { o.freeze = "nett"; })),
         Code::Usage, "matches no parameter");
  expect(statusOf(fixture("mlp"), with([](auto &o) { o.freeze = "."; })),
         Code::Usage, "nothing is left to train");
  expect(statusOf(fixture("mlp"), with([](auto &o) {
                    o.train = "net.0";
                    o.freeze = "net.0.bias|net.2";
                  })),
         Code::Usage, "'net.2' has no effect");
  expect(
      statusOf(fixture("mlp"), with([](auto &o) { o.loss = "mse:nothing,t"; })),
      Code::Usage, "its outputs are 'loss', 'logits'");
}

// It trained without dropout and with statistics that stay, and nothing said
// so.
TEST_F(Archive, ThatWasExportedInEval) {
  std::string path =
      replaced("cnn", "\"training\", \"arg\": {\"as_bool\": true}",
               "\"training\", \"arg\": {\"as_bool\": false}");
  ImportOptions options;
  options.dims["s77"] = 4;
  std::string remark = "exported in eval(): 1 normalization takes its running "
                       "statistics, which training leaves as they are; to "
                       "train with them, call model.train()";
  EXPECT_EQ(notesOf(path, options).find("eval()"), std::string::npos);
  options.loss = "loss";
  EXPECT_NE(notesOf(path, options).find(remark), std::string::npos)
      << notesOf(path, options);
  EXPECT_EQ(notesOf(fixture("cnn"), options).find("eval()"), std::string::npos);
  options.keepEval = true;
  EXPECT_EQ(notesOf(path, options).find("eval()"), std::string::npos);
}

// torch.export makes one of two inputs that one tensor was given for: the loss
// of a language model was of the tokens that it read, and near 0.
TEST_F(Archive, ThatDoesNotReadAnInput) {
  std::string y = R"("arg": {"as_tensor": {"name": "y"}}, "kind": 1)";
  std::string x = R"("arg": {"as_tensor": {"name": "x"}}, "kind": 1)";
  std::string notes = notesOf(replaced("distances", y, x));
  EXPECT_NE(notes.find("nothing reads 'y' (torch.export takes one tensor that "
                       "is given for two arguments for one"),
            std::string::npos)
      << notes;
  EXPECT_EQ(notesOf(fixture("distances")).find("nothing reads"),
            std::string::npos);
}

// The manifest was refused, after everything was compiled.
TEST_F(Archive, WithNamesThatHaveControlCharacters) {
  std::string path = replaced("mlp", "logits", "lo\\\\\\\\ngits"), said;
  mlir::DialectRegistry registry;
  registerCompiler(registry);
  mlir::MLIRContext context(registry);
  context.getDiagEngine().registerHandler(
      [&](mlir::Diagnostic &diagnostic) { said += diagnostic.str() + "\n"; });
  Status status;
  EXPECT_FALSE(readModel(path, context, status));
  expect(status, Code::Failed, "has names with control characters");
  EXPECT_EQ(said, "expected a name without control characters, but got "
                  "'lo\\x0agits'\n");
}

// Results went nowhere: the operator was taken for the one that gives them.
TEST_F(Archive, ThatWritesSeveralResultsElsewhere) {
  std::string path = replaced("random", "torch.ops.aten.sort.default",
                              "torch.ops.aten.sort.values");
  expect(statusOf(path), Code::Unsupported,
         "(aten.sort.values): unsupported: the operator 'aten.sort' with "
         "several tensors that it writes its results to");
}

// What read the results of an operator that is not known was called wrong, as
// expand_as(them), so that the exit code was that of a malformed model.
TEST_F(Archive, OfAnyUnknownOperatorIsUnsupported) {
  for (const char *name : {"edges", "experts", "flow", "in-place", "masked",
                           "mlp", "numbers", "operators", "random"}) {
    auto program = torch::readArchive(fixture(name));
    ASSERT_TRUE(program) << program.status().message();
    mlir::DialectRegistry registry;
    registerCompiler(registry);
    mlir::MLIRContext context(registry);
    for (torch::NodeData &node : program->graph.nodes) {
      std::string known =
          std::exchange(node.target, "torch.ops.aten.unheard_of.default");
      Status status =
          torch::importProgram(*program, fixture(name), {}, context).status();
      bool isSize = status.ok(); // what only counts is not translated
      EXPECT_TRUE(isSize || status.code() == Code::Unsupported)
          << name << ": " << known << ": " << status.message();
      node.target = known;
    }
  }
}

TEST(TorchSizes, AreExpressions) {
  using torch::evaluate;
  torch::Symbols symbols = {{"s0", 5}, {"s77", 4}};
  auto of = [&](const char *text) {
    return evaluate({std::nullopt, text, std::nullopt}, symbols).value_or(-99);
  };
  EXPECT_EQ(of("Symbol('s77', positive=True, integer=True)"), 4);
  EXPECT_EQ(of("Add(Mul(Integer(2), Symbol('s0', integer=True)), Integer(1))"),
            11);
  EXPECT_EQ(of("2*s0 + 1"), 11);
  EXPECT_EQ(of("s0**2 - s77//3"), 24);
  EXPECT_EQ(of("FloorDiv(Add(s0, Integer(-8)), 2)"), -2);
  EXPECT_EQ(of("Mod(-1, s0)"), 4);
  EXPECT_EQ(of("Max(1, s77 - s0)"), 1);
  EXPECT_EQ(of("(s0 + 1) % 4"), 2);
  EXPECT_EQ(of("s0 >= 5"), 1);
  // What is not known, or no number, is none.
  EXPECT_EQ(of("u0"), -99);
  EXPECT_EQ(of("FloorDiv(s0, 0)"), -99);
  EXPECT_EQ(of("Gamma(s0)"), -99);
  EXPECT_EQ(of("s0 +"), -99);
  EXPECT_EQ(of("s0*9223372036854775807"), -99);
  EXPECT_EQ(of(std::string(5000, '(').c_str()), -99);
}

TEST(TorchSizes, AreSolvedWhereTheyAreLinear) {
  auto of = [](const char *text, int64_t value) {
    auto made =
        torch::solve({std::nullopt, text, std::nullopt}, {{"s0", 5}}, value);
    EXPECT_TRUE(!made || made->first == "b");
    return made ? made->second : -99;
  };
  EXPECT_EQ(of("Mul(Integer(2), Symbol('b', integer=True))", 8), 4);
  EXPECT_EQ(of("2*b + s0", 11), 3);
  EXPECT_EQ(of("10 - b", 3), 7);
  EXPECT_EQ(of("2*b", 7), -99);
  EXPECT_EQ(of("b*b", 4), -99);
  EXPECT_EQ(of("FloorDiv(b, 2)", 4), -99);
  EXPECT_EQ(of("Max(b, 1)", 4), -99);
  EXPECT_EQ(of("Min(b, 100)", 4), -99);
  EXPECT_EQ(of("b*c", 4), -99);
  EXPECT_EQ(of("s0", 5), -99);
}
