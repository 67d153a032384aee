//===- SavedTensorsTest.cpp - pickles are read as data, or refused --------===//
#include "compiler/import/torch/SavedTensors.h"

#include <gtest/gtest.h>

using namespace tandem;

namespace {

Result<std::vector<torch::SavedTensor>> read(const std::string &pickle) {
  return torch::readSavedTensors(
      pickle, [](const std::string &name) -> Result<std::string> {
        if (name != "0")
          return Status::failed("no storage '" + name + "'");
        return std::string("\0\0\x80\x3f\0\0\0\x40", 8); // 1, 2
      });
}

std::string text(const std::string &of) {
  return std::string("X") + static_cast<char>(of.size()) +
         std::string(3, '\0') + of;
}

/// A tensor of floats of the storage `name`.
std::string tensor(const std::string &name, char size, char stride) {
  return "ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage") +
         "ctorch\nFloatStorage\n" + text(name) + text("cpu") + "K\x02tQK" +
         std::string(1, '\0') + "K" + size + "\x85K" + stride +
         "\x85\x89"
         "ccollections\nOrderedDict\n)RtR";
}

std::string dictionary(const std::string &items) {
  return "\x80\x02}(" + items + "u.";
}

void expect(const std::string &pickle, Code code, const std::string &why) {
  auto made = read(pickle);
  ASSERT_FALSE(made) << why;
  EXPECT_EQ(made.status().code(), code) << made.status().message();
  EXPECT_NE(made.status().message().find(why), std::string::npos)
      << made.status().message();
}

} // namespace

TEST(SavedTensors, ADictionaryOfTensors) {
  auto made =
      read(dictionary(text("a") + tensor("0", 2, 1) + text("b") +
                      tensor("0", 2, 1) + text("c") + tensor("0", 1, 1)));
  ASSERT_TRUE(made) << made.status().message();
  ASSERT_EQ(made->size(), 3U);
  EXPECT_EQ((*made)[0].name, "a");
  EXPECT_EQ((*made)[0].data->shape, std::vector<int64_t>{2});
  EXPECT_EQ((*made)[0].data, (*made)[1].data);
  EXPECT_NE((*made)[0].data, (*made)[2].data);
  EXPECT_EQ((*made)[2].storage, "0");
}

// What a pickle would call when it is run is named, and nothing happens.
TEST(SavedTensors, NothingElseIsCalled) {
  expect("cos\nsystem\n(" + text("id") + "tR.", Code::Unsupported,
         "a call of 'os system'");
  expect(dictionary(text("a") + "cbuiltins\neval\n(" + text("1") + "tR"),
         Code::Unsupported, "a call of 'builtins eval'");
  // The instruction that sets an object's state, and one that makes an object.
  expect("}" + tensor("0", 2, 1) + "b.", Code::Unsupported,
         "the instruction 98");
  expect("(cos\nsystem\no.", Code::Unsupported, "the instruction 111");
  expect(dictionary(text("a") + "}"), Code::Unsupported,
         "a dictionary of more than tensors");
}

TEST(SavedTensors, ThatAreWrong) {
  expect("", Code::Failed, "it ends too early");
  expect("}", Code::Failed, "it ends too early");
  expect("}}.", Code::Failed, "it leaves things behind");
  expect("u.", Code::Failed, "it takes what is not there");
  expect("h\x01.", Code::Failed, "it recalls what is not there");
  expect("X\xff\xff\xff\xff"
         "a.",
         Code::Failed, "it ends too early");
  expect("K\x01.", Code::Unsupported, "a dictionary of tensors");
  expect(dictionary(text("a") + tensor("1", 2, 1)), Code::Failed,
         "no storage '1'");
  expect(dictionary(text("a") + tensor("0", 3, 1)), Code::Failed,
         "expected its elements to lie in the 8 bytes");
  // Tuples in tuples in ...
  expect(")" + std::string(100000, '\x85') + ".", Code::Unsupported,
         "tuples in tuples");
}
