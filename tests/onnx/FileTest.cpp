//===- FileTest.cpp - ONNX files, right and wrong -------------------------===//
#include "compiler/import/onnx/OnnxFile.h"
#include "tests/support/Folder.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include "onnx/onnx_pb.h"
#pragma GCC diagnostic pop

using namespace tandem;
using namespace tandem::onnx;
namespace pb = ::onnx;

namespace {

/// y = x, with an initializer to put mistakes into.
pb::ModelProto small() {
  pb::ModelProto model;
  model.set_ir_version(8);
  auto *opset = model.add_opset_import();
  opset->set_domain("ai.onnx");
  opset->set_version(17);
  pb::GraphProto &graph = *model.mutable_graph();
  graph.set_name("small");
  auto *node = graph.add_node();
  node->set_op_type("Identity");
  node->add_input("x");
  node->add_output("y");
  pb::TensorProto &w = *graph.add_initializer();
  w.set_name("w");
  w.set_data_type(pb::TensorProto::FLOAT);
  w.add_dims(2);
  w.add_float_data(1);
  w.add_float_data(2);
  return model;
}

pb::TensorProto &initializer(pb::ModelProto &model) {
  return *model.mutable_graph()->mutable_initializer(0);
}

std::string messageOf(const pb::ModelProto &model,
                      const std::string &folder = "") {
  auto parsed = parseModel(model.SerializeAsString(), folder);
  return parsed ? "" : parsed.status().message();
}

#define EXPECT_IN(part, text)                                                  \
  EXPECT_NE((text).find(part), std::string::npos) << (text)

class Folder : public testing::Test {
protected:
  void SetUp() override {
    std::ofstream(path + "/weights.bin", std::ios::binary)
        << std::string("\0\0\0\0\0\0\x80\x3f\0\0\0\x40", 12);
  }

  /// The initializer's bytes are in another file.
  static pb::ModelProto external(const char *location, const char *offset) {
    pb::ModelProto model = small();
    pb::TensorProto &w = initializer(model);
    w.clear_float_data();
    w.set_data_location(pb::TensorProto::EXTERNAL);
    for (auto [key, value] :
         {std::pair("location", location), std::pair("offset", offset)}) {
      auto *entry = w.add_external_data();
      entry->set_key(key);
      entry->set_value(value);
    }
    return model;
  }

  tandem::test::Folder made;
  const std::string path = made.path();
};

} // namespace

TEST(OnnxFile, ReadsWhatIsThere) {
  auto model = parseModel(small().SerializeAsString(), "");
  ASSERT_TRUE(model) << model.status().message();
  EXPECT_EQ(model->opsets.at(""), 17);
  ASSERT_EQ(model->graph.nodes.size(), 1u);
  EXPECT_EQ(model->graph.nodes[0].op, "Identity");
  EXPECT_EQ(model->graph.initializers[0]->bytes.size(), 8u);
}

TEST(OnnxFile, ATruncatedFileIsNoModel) {
  std::string bytes = small().SerializeAsString();
  auto parsed =
      parseModel(std::string_view(bytes).substr(0, bytes.size() - 3), "");
  ASSERT_FALSE(parsed);
  EXPECT_IN("truncated", parsed.status().message());
  EXPECT_IN("truncated", parseModel("hello", "").status().message());
  EXPECT_IN("expected a graph", parseModel("", "").status().message());
  EXPECT_IN("cannot read", readModelFile("/nowhere.onnx").status().message());
}

TEST(OnnxFile, ATensorHasAsManyBytesAsItsShapeSays) {
  pb::ModelProto model = small();
  initializer(model).set_dims(0, 3);
  EXPECT_IN("initializer 'w': expected 3 elements (12 bytes), but got 8 bytes",
            messageOf(model));
  initializer(model).set_dims(0, -2);
  EXPECT_IN("at least 0", messageOf(model));
  initializer(model).set_dims(0, int64_t(1) << 39);
  initializer(model).add_dims(int64_t(1) << 39);
  EXPECT_IN("too large", messageOf(model));
}

// They were cut to their width: 300 became 44, and a bool of 256 false.
TEST(OnnxFile, ElementsAreInTheRangeOfTheirType) {
  pb::ModelProto model = small();
  pb::TensorProto &w = initializer(model);
  w.clear_float_data();
  for (auto [type, beyond] : {std::pair(pb::TensorProto::INT8, 300),
                              {pb::TensorProto::UINT8, -1},
                              {pb::TensorProto::INT16, 40000},
                              {pb::TensorProto::UINT16, 70000}}) {
    w.set_data_type(type);
    w.clear_int32_data();
    w.add_int32_data(7);
    w.add_int32_data(beyond);
    EXPECT_IN("but got " + std::to_string(beyond), messageOf(model));
    w.set_int32_data(1, 100);
    EXPECT_EQ(messageOf(model), "");
  }
  w.set_data_type(pb::TensorProto::BOOL);
  w.set_int32_data(1, 256);
  auto parsed = parseModel(model.SerializeAsString(), "");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->graph.initializers[0]->bytes, "\1\1");
  w.clear_int32_data();
  w.set_data_type(pb::TensorProto::UINT32);
  w.add_uint64_data(1);
  w.add_uint64_data(uint64_t(1) << 32);
  EXPECT_IN("but got 4294967296", messageOf(model));
}

// Elements of 4 and 2 bits share bytes.
TEST(OnnxFile, NarrowTensorsHaveAsManyBytesAsTheirBitsNeed) {
  pb::ModelProto model = small();
  pb::TensorProto &w = initializer(model);
  w.clear_float_data();
  w.set_data_type(22); // int4
  w.set_dims(0, 3);
  w.add_int32_data(0x21);
  w.add_int32_data(0x03);
  EXPECT_EQ(messageOf(model), "");
  w.add_int32_data(0);
  EXPECT_IN("expected 3 elements (2 bytes), but got 3 bytes", messageOf(model));
  w.clear_int32_data();
  w.set_raw_data("\x21");
  EXPECT_IN("expected 3 elements (2 bytes), but got 1 bytes", messageOf(model));
}

TEST(OnnxFile, NamesAreText) {
  pb::ModelProto model = small();
  model.mutable_graph()->mutable_node(0)->set_output(0, "y\xff");
  EXPECT_IN("expected names in UTF-8", messageOf(model));
}

TEST(OnnxFile, EveryMistakeIsListed) {
  pb::ModelProto model = small();
  initializer(model).set_dims(0, 3);
  *model.mutable_graph()->add_sparse_initializer()->mutable_values() =
      pb::TensorProto();
  auto *twice = model.mutable_graph()->mutable_node(0);
  for (int i = 0; i < 2; ++i) {
    auto *attribute = twice->add_attribute();
    attribute->set_name("a");
    attribute->set_type(pb::AttributeProto::INT);
  }
  std::string message = messageOf(model);
  EXPECT_IN("but got 8 bytes", message);
  EXPECT_IN("a sparse tensor", message);
  EXPECT_IN("node 'y' (Identity): expected one attribute 'a'", message);
}

TEST_F(Folder, ExternalDataIsRead) {
  auto model =
      parseModel(external("weights.bin", "4").SerializeAsString(), path);
  ASSERT_TRUE(model) << model.status().message();
  float elements[2];
  std::memcpy(elements, model->graph.initializers[0]->bytes.data(), 8);
  EXPECT_EQ(elements[0], 1);
  EXPECT_EQ(elements[1], 2);
}

TEST_F(Folder, ExternalDataThatIsNotThereIsAMistake) {
  EXPECT_IN("initializer 'w': cannot read external data",
            messageOf(external("nothing.bin", "0"), path));
  EXPECT_IN("expected 8 bytes at 8",
            messageOf(external("weights.bin", "8"), path));
  EXPECT_IN("in the model's folder",
            messageOf(external("../weights.bin", "0"), path));
  EXPECT_IN("in the model's folder",
            messageOf(external("/weights.bin", "0"), path));
  EXPECT_IN("to be a number", messageOf(external("weights.bin", "x"), path));
}

// Attack 6: symbolic links led out of the model's folder, and a location with a
// NUL was taken for what stands before it.
TEST_F(Folder, ExternalDataStaysInTheModelsFolder) {
  namespace fs = std::filesystem;
  const char *outside = "expected external data in the model's folder, but got";
  fs::path models = fs::path(path) / "models";
  fs::create_directories(models / "inner");
  fs::create_symlink("../weights.bin", models / "link.bin");
  fs::create_symlink("/etc/passwd", models / "root.bin");
  fs::create_symlink("..", models / "up");
  fs::create_symlink("gone.bin", models / "dangling.bin");
  fs::copy(fs::path(path) / "weights.bin", models / "inner" / "weights.bin");
  for (const char *location :
       {"link.bin", "root.bin", "up/weights.bin", "dangling.bin",
        "../weights.bin", "inner/../../weights.bin", "inner/..", "..", "",
        "/etc/passwd"})
    EXPECT_IN(outside, messageOf(external(location, "0"), models.string()));
  pb::ModelProto model = external("inner/weights.bin", "0");
  EXPECT_EQ(messageOf(model, models.string()), "");
  EXPECT_EQ(messageOf(external("inner/./weights.bin", "0"), models.string()),
            "");
  initializer(model).mutable_external_data(0)->set_value(
      std::string("inner/weights.bin\0x", 19));
  EXPECT_IN(outside, messageOf(model, models.string()));
  // What is there but no file.
  EXPECT_IN("cannot read external data",
            messageOf(external("inner", "0"), models.string()));
  EXPECT_IN("cannot read external data",
            messageOf(external("weights.bin/x", "0"), path));
  // A model's folder may itself be behind a link.
  fs::create_symlink(models, fs::path(path) / "elsewhere");
  EXPECT_EQ(messageOf(external("inner/weights.bin", "0"),
                      (fs::path(path) / "elsewhere").string()),
            "");
}

// Protobuf counts bytes with an int: it is said before all are read.
TEST_F(Folder, FilesOfMoreThanTwoGigabytesAreRefused) {
  std::string large = path + "/large.onnx";
  std::ofstream(large) << "x";
  std::filesystem::resize_file(large, std::uintmax_t(3) << 30);
  EXPECT_IN("has 3221225472 bytes; larger models have external data",
            readModelFile(large).status().message());
}

// The last byte of a sparse file of more than 4 GiB.
TEST_F(Folder, ExternalDataMayBeFarIntoAFile) {
  std::filesystem::resize_file(path + "/weights.bin",
                               (std::uintmax_t(1) << 32) + 8);
  auto model = parseModel(
      external("weights.bin", "4294967296").SerializeAsString(), path);
  ASSERT_TRUE(model) << model.status().message();
  EXPECT_EQ(model->graph.initializers[0]->bytes, std::string(8, '\0'));
  EXPECT_IN("expected 8 bytes at 4294967297",
            messageOf(external("weights.bin", "4294967297"), path));
}

TEST_F(Folder, PlacesOfExternalDataAreChecked) {
  for (const char *offset : {"18446744073709551615", "18446744073709551608",
                             "9223372036854775807", "12", "5"})
    EXPECT_IN("expected 8 bytes at " + std::string(offset),
              messageOf(external("weights.bin", offset), path));
  EXPECT_IN("to be a number",
            messageOf(external("weights.bin", "18446744073709551616"), path));
  EXPECT_IN("to be a number", messageOf(external("weights.bin", "-1"), path));
}

// Attack 5: graphs in graphs end where protobuf does, in words that say where.
TEST(OnnxFile, GraphsNestAsDeepAsTheLimit) {
  pb::ModelProto model = small();
  pb::GraphProto *graph = model.mutable_graph();
  for (int i = 0; i < 60; ++i) {
    pb::NodeProto *node = graph->add_node();
    node->set_op_type("If");
    node->add_output("z");
    auto *attribute = node->add_attribute();
    attribute->set_name("then_branch");
    attribute->set_type(pb::AttributeProto::GRAPH);
    graph = attribute->mutable_g();
  }
  EXPECT_IN("messages at most 100 deep in one another", messageOf(model));
}

// Debian's schema ends with version 8 of the format: what newer files have,
// are fields that it does not know.
TEST(OnnxFile, FieldsOfNewerFilesAreRead) {
  pb::ModelProto model = small();
  model.set_ir_version(14);
  auto *node = model.mutable_graph()->mutable_node(0);
  auto newer = [](auto &message, int number, const std::string &bytes) {
    message.GetReflection()->MutableUnknownFields(&message)->AddLengthDelimited(
        number, bytes);
  };
  newer(*node, 8, "second");
  auto *function = model.add_functions();
  function->set_name("F");
  newer(*function, 13, "second");
  pb::AttributeProto slope;
  slope.set_name("slope");
  slope.set_type(pb::AttributeProto::FLOAT);
  slope.set_f(0.5F);
  newer(*function, 11, slope.SerializeAsString());
  initializer(model).set_data_type(24); // float8e8m0
  initializer(model).clear_float_data();
  initializer(model).set_raw_data("ab");
  auto parsed = parseModel(model.SerializeAsString(), "");
  ASSERT_TRUE(parsed) << parsed.status().message();
  EXPECT_EQ(parsed->graph.nodes[0].overload, "second");
  EXPECT_EQ(spelling(parsed->graph.initializers[0]->kind), "float8e8m0");
  ASSERT_EQ(parsed->functions.size(), 1u);
  EXPECT_EQ(parsed->functions[0].overload, "second");
  ASSERT_EQ(parsed->functions[0].defaults.size(), 1u);
  EXPECT_EQ(parsed->functions[0].defaults[0].name, "slope");
  EXPECT_EQ(parsed->functions[0].defaults[0].number, 0.5F);
  newer(*model.mutable_functions(0), 11, "\xff");
  EXPECT_IN("function 'F': expected attributes with their defaults",
            messageOf(model));
}

TEST(OnnxFile, NamesHaveNoControlCharacters) {
  pb::ModelProto model = small();
  model.mutable_graph()->mutable_node(0)->set_output(0, "y\x1b[2J");
  EXPECT_IN("expected names without control characters, but got 'y\\x1b[2J'",
            messageOf(model));
}
