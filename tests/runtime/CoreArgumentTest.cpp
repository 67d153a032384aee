//===- CoreArgumentTest.cpp - calls that must be refused ------------------===//
//
// Every way to call a program wrongly: the message names the argument, what was
// expected and what came; all problems come at once; nothing has changed.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/CodeObject.h"
#include "runtime/dlpack.h"
#include "tests/runtime/TestModel.h"

#include <cstring>
#include <elf.h>
#include <fcntl.h>
#include <filesystem>
#include <gtest/gtest.h>
#include <span>
#include <unistd.h>

using namespace tandem;
using namespace tandem::runtime;
using namespace tandem::test;

namespace {

using Sizes = std::vector<int64_t>;

class Arguments : public ::testing::Test {
protected:
  Model model = modelFor(regression());
  Tensor x = sampleX(), y = sampleY(), loss, pred;

  std::string forward(std::vector<Argument> in,
                      std::vector<Destination> out = {}) {
    std::vector<float> before = valuesOf(*model.get("w"));
    Result<Context> context = model.forward(in, out);
    if (context)
      return "";
    EXPECT_EQ(context.status().code(), Code::Usage);
    EXPECT_EQ(valuesOf(*model.get("w")), before);
    EXPECT_EQ(model.get("steps")->at(0), 0) << "a refused call ran";
    return context.status().message();
  }
};

TEST_F(Arguments, AllProblemsAtOnce) {
  Tensor wrong = tensorOf({1, 2}, {2});
  EXPECT_EQ(forward({{"z", &x}, {"x", &wrong}, {"q", &x}},
                    {{"losss", &loss}, {"pred", &wrong}}),
            "cannot run 'forward': unknown argument 'z'; unknown argument 'q'; "
            "missing input 'y' (index 1): expected f32 [8]; unknown result "
            "'losss'; input 'x' (index 0): expected f32 [8, 3] but got f32 "
            "[2]; output 'pred' (index 1): expected f32 [8] but got f32 [2]");
}

TEST_F(Arguments, TypeIsNeverConverted) {
  Tensor doubles = *x.to(DType::F64);
  EXPECT_EQ(forward({{"x", &doubles}, {"y", &y}}),
            "cannot run 'forward': input 'x' (index 0): expected f32 [8, 3] "
            "but got f64 [8, 3]");
}

TEST_F(Arguments, ParamsAndStatesAreNotArguments) {
  Tensor w = tensorOf({1, 2, 3}, {3});
  EXPECT_EQ(forward({{"x", &x}, {"y", &y}, {"w", &w}}),
            "cannot run 'forward': unknown argument 'w'");
}

TEST_F(Arguments, TwiceNullAndUndefined) {
  Tensor none;
  EXPECT_EQ(forward({{"x", &x}, {"y", &y}, {"x", &x}}),
            "cannot run 'forward': input 'x' (index 0) is given twice");
  EXPECT_EQ(forward({{"x", nullptr}, {"y", &none}}),
            "cannot run 'forward': input 'x' (index 0): expected f32 [8, 3] "
            "but got an undefined tensor; input 'y' (index 1): expected f32 "
            "[8] but got an undefined tensor");
  EXPECT_EQ(forward({{"x", &x}, {"y", &y}}, {{"loss", nullptr}}),
            "cannot run 'forward': output 'loss' (index 0): expected a tensor "
            "to write to but got null");
  EXPECT_EQ(forward({{"x", &x}, {"y", &y}}, {{"loss", &loss}, {"loss", &pred}}),
            "cannot run 'forward': output 'loss' (index 0) is asked for twice");
}

TEST_F(Arguments, OtherDevices) {
  float memory[24];
  int64_t shape[] = {8, 3};
  DLManagedTensor managed{};
  managed.dl_tensor = {memory, {kDLCUDA, 1}, 2, {kDLFloat, 32, 1},
                       shape,  nullptr,      0};
  Tensor cuda = *Tensor::fromDLPack(&managed);
  EXPECT_EQ(forward({{"x", &cuda}, {"y", &y}}),
            "cannot run 'forward': input 'x' (index 0): expected device 'cpu' "
            "but got 'cuda:1'");
  EXPECT_FALSE(cuda.dense().ok());
  EXPECT_FALSE(cuda.fill(0).ok());
  EXPECT_FALSE(model.set("w", cuda).ok());
}

TEST_F(Arguments, OutputsThatShareMemory) {
  Tensor both = *Tensor::zeros(DType::F32, Sizes{9});
  Tensor first = *both.view(Sizes{}, Sizes{}, 4), all = *both.slice(0, 8);
  EXPECT_EQ(forward({{"x", &x}, {"y", &y}}, {{"loss", &first}, {"pred", &all}}),
            "cannot run 'forward': output 'pred' (index 1) shares memory with "
            "output 'loss' (index 0)");
  EXPECT_EQ(forward({{"x", &x}, {"y", &y}}, {{"loss", &loss}, {"pred", &loss}}),
            "cannot run 'forward': output 'loss' (index 0) shares memory with "
            "output 'pred' (index 1)");
  Tensor expanded = *both.view(Sizes{8}, Sizes{0});
  EXPECT_EQ(forward({{"x", &x}, {"y", &y}}, {{"pred", &expanded}}),
            "cannot run 'forward': output 'pred' (index 1): expected elements "
            "that share no memory but got strides [0]");
  Tensor b = *model.get("b");
  EXPECT_EQ(forward({{"x", &x}, {"y", &y}}, {{"loss", &b}}),
            "cannot run 'forward': output 'loss' (index 0) shares memory with "
            "'b'");
}

TEST_F(Arguments, InputsThatShareMemoryWithWhatIsUpdated) {
  artifact::Manifest m = regression();
  m.values[4].shape = m.values[5].shape = {8};
  for (artifact::Program &program : m.programs)
    for (auto *slots : {&program.arguments, &program.results})
      for (artifact::Slot &slot : *slots)
        if (slot.name == "rate" || slot.name == "steps")
          slot.shape = {8};
  for (artifact::Launch *launch :
       {&m.programs[1].launches[3], &m.programs[4].launches[7]})
    launch->work = 8;
  Model other = modelFor(m);
  Tensor steps = *other.get("steps"), rate = *other.get("rate");
  std::vector<Argument> in = {{"x", &x}, {"y", &steps}};
  Status status = other.step(in, {});
  EXPECT_EQ(status.message(),
            "cannot run 'step': input 'y' (index 1) shares memory with "
            "'steps', which the program updates");
  in[1].tensor = &rate;
  EXPECT_TRUE(other.step(in, {}).ok()) << "a value that is only read";
}

TEST_F(Arguments, WrongPrograms) {
  std::vector<Argument> in = {{"x", &x}};
  EXPECT_EQ(model.run("infer", in, {}).message(),
            "the artifact has no program 'infer'; it has 'evaluate', "
            "'forward', 'backward', 'update', 'step'");
  EXPECT_EQ(model.run("backward", in, {}).message(),
            "cannot run 'backward' by itself: it needs the context of a "
            "forward");
  artifact::Manifest m = regression();
  m.programs.resize(1);
  Model inference = modelFor(m);
  EXPECT_EQ(inference.forward(in, {}).status().message(),
            "the artifact has no program 'forward'; it has 'evaluate'");
  Context context;
  EXPECT_FALSE(inference.backward(context, {}, {}).ok());
}

TEST_F(Arguments, VariablesWithoutAValue) {
  artifact::Manifest m = regression();
  m.values[2].init.reset();
  m.values[3].init.reset();
  Model unset = modelFor(m);
  EXPECT_EQ(unset.get("w").status().message(),
            "'w' has no value: it has no initial one and was not set");
  std::vector<Argument> in = {{"x", &x}};
  EXPECT_EQ(unset.run("evaluate", in, {}).message(),
            "cannot run 'evaluate': param 'w' (index 1) has no value: it has "
            "no initial one and was not set; param 'b' (index 2) has no value: "
            "it has no initial one and was not set");
  ASSERT_TRUE(unset.set("w", tensorOf({1, 2, 3}, {3})).ok());
  ASSERT_TRUE(unset.set("b", tensorOf({1}, {})).ok());
  EXPECT_TRUE(unset.run("evaluate", in, {}).ok());
}

TEST_F(Arguments, SetChecksNameTypeAndShape) {
  EXPECT_EQ(model.set("q", x).message(), "there is no param or state 'q'");
  EXPECT_EQ(model.set("x", x).message(), "there is no param or state 'x'");
  EXPECT_EQ(model.set("w", tensorOf({1}, {1})).message(),
            "'w': expected f32 [3] but got f32 [1]");
  EXPECT_EQ(model.set("w", Tensor()).message(),
            "'w': expected a tensor but got none");
}

TEST(Load, TargetsThatCannotRunHere) {
  auto codeOf = [](auto change, std::optional<Device> device = {}) {
    artifact::Manifest m = regression();
    change(m);
    Options options;
    options.device = device;
    return Model::load(readerFor(m), options).status();
  };
  auto asItIs = [](auto &) {};
  Status layer = codeOf([](auto &m) { m = forDevice(m); });
  EXPECT_EQ(layer.code(), Code::NoDevice);
  EXPECT_EQ(layer.message(), "device 'cuda:0': this program has no layer for "
                             "such devices");
  Status kind = codeOf([](auto &m) { m = forDevice(m); }, Device{});
  EXPECT_EQ(kind.code(), Code::NoDevice);
  EXPECT_EQ(kind.message(), "the artifact has no code for device 'cpu'; it has "
                            "the targets 'cuda:sm_90'");
  Status device = codeOf(asItIs, Device{DeviceKind::Cuda, 1});
  EXPECT_EQ(device.code(), Code::NoDevice);
  EXPECT_EQ(device.message(), "the artifact has no code for device 'cuda:1'; "
                              "it has the targets 'cpu'");
  Status feature = codeOf([](auto &m) {
    m.target.arch = "future";
#if defined(__aarch64__)
    m.target.features = {"neon", "time-travel"};
#else
    m.target.features = {"sse2", "time-travel"};
#endif
  });
  EXPECT_EQ(feature.code(), Code::NoDevice);
  EXPECT_EQ(feature.message(), "the artifact's code is for 'future' and this "
                               "processor lacks 'time-travel'");
  Status symbol = codeOf([](auto &m) { m.kernels[1].symbol = "nowhere"; });
  EXPECT_EQ(symbol.code(), Code::Failed);
  EXPECT_EQ(symbol.message(),
            "the artifact's code object lacks the kernels 'nowhere'");
}

TEST(Load, CodeThatIsNone) {
  auto load = [](std::string object) {
    artifact::ArtifactWriter writer = writerFor(regression());
    writer.setObject(std::move(object));
    std::string bytes = *writer.bytes();
    return Model::load(*artifact::ArtifactReader::fromMemory(
                           std::as_bytes(std::span(bytes))))
        .status();
  };
  EXPECT_EQ(load("").message(), "the artifact has no code object");
  EXPECT_NE(load(std::string(100, 'x')).message().find("no 64-bit ELF"),
            std::string::npos);
  std::string foreign = kernelObject();
  foreign[18] = static_cast<char>(0xf3); // e_machine: RISC-V
  foreign[19] = 0;
  EXPECT_EQ(load(foreign).code(), Code::NoDevice);
}

// Attack 9: an object could ask for memory that is both written and run, also
// for the stack of the process.
TEST(Load, CodeIsNotWritten) {
  auto withFlags = [](uint32_t type, uint32_t flags) {
    std::string object = kernelObject();
    Elf64_Ehdr header;
    std::memcpy(&header, object.data(), sizeof(header));
    for (size_t i = 0; i < header.e_phnum; ++i) {
      char *place = object.data() + header.e_phoff + i * sizeof(Elf64_Phdr);
      Elf64_Phdr segment;
      std::memcpy(&segment, place, sizeof(segment));
      if (segment.p_type == type)
        segment.p_flags |= flags;
      std::memcpy(place, &segment, sizeof(segment));
    }
    artifact::ArtifactWriter writer = writerFor(regression());
    writer.setObject(std::move(object));
    std::string bytes = *writer.bytes();
    return Model::load(*artifact::ArtifactReader::fromMemory(
                           std::as_bytes(std::span(bytes))))
        .status()
        .message();
  };
  EXPECT_EQ(withFlags(PT_LOAD, 0), "");
  const char *both = "wants memory that is both written and run";
  EXPECT_NE(withFlags(PT_GNU_STACK, PF_X).find(both), std::string::npos);
  EXPECT_NE(withFlags(PT_LOAD, PF_X | PF_W).find(both), std::string::npos);
  std::string cut = kernelObject();
  Elf64_Ehdr header;
  std::memcpy(&header, cut.data(), sizeof(header));
  header.e_phnum = 0xffff;
  std::memcpy(cut.data(), &header, sizeof(header));
  EXPECT_NE(runtime::CodeObject::load(std::as_bytes(std::span(cut)))
                .status()
                .message()
                .find("its table of segments"),
            std::string::npos);
}

// Attack 9: the file with the code could be written while it ran.
TEST(Load, CodeIsSealed) {
  Model model = modelFor(regression());
  int sealed = 0;
  for (const auto &entry :
       std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code none;
    std::string to = std::filesystem::read_symlink(entry.path(), none).string();
    if (to.find("memfd:tandem-code") == std::string::npos)
      continue;
    int fd = ::open(entry.path().c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_GE(fd, 0);
    EXPECT_LT(::write(fd, "x", 1), 0);
    EXPECT_NE(::ftruncate(fd, 0), 0);
    EXPECT_TRUE(::fcntl(fd, F_GET_SEALS) & F_SEAL_SEAL);
    ::close(fd);
    ++sealed;
  }
  EXPECT_GE(sealed, 1);
}

TEST(Load, TwoModelsAtOnceKeepTheirOwnCode) {
  Model a = modelFor(regression()), b = modelFor(wide(16, 1));
  Tensor x = *Tensor::zeros(DType::F32, Sizes{16}), big;
  std::vector<Argument> in = {{"x", &x}};
  std::vector<Destination> out = {{"big", &big}};
  ASSERT_TRUE(b.run("evaluate", in, out).ok());
  EXPECT_EQ(big.at(15), 15);
  Tensor sx = sampleX(), pred;
  std::vector<Argument> in2 = {{"x", &sx}};
  std::vector<Destination> out2 = {{"pred", &pred}};
  EXPECT_TRUE(a.run("evaluate", in2, out2).ok());
}

TEST(Load, ThreadsAreChecked) {
  EXPECT_FALSE(Model::load(readerFor(regression()), {-1, 0}));
  EXPECT_FALSE(Model::load(readerFor(regression()), {100000, 0}));
  EXPECT_EQ(modelFor(regression(), {3, 0}).threads(), 3);
  EXPECT_GE(modelFor(regression(), {0, 0}).threads(), 1);
}

} // namespace
