//===- NumbersTest.cpp - the same numbers with and without libraries ------===//
//
// Each program is compiled once for the CPU and once for cuda with
// --libraries=yes, and runs on the CPU, on the emulated device with its own
// kernels, and there with the emulated libraries: results and gradients agree,
// and the third run's calls are counted.
//
//===----------------------------------------------------------------------===//
#include "compiler/Compile.h"
#include "cuda/Register.h"
#include "cuda/emulator/Control.h"
#include "runtime/model/Model.h"
#include "tests/support/TestKernels.h"

#include "ir/Dialect.h"

#include "mlir/Parser/Parser.h"

#include <array>
#include <cmath>
#include <cstdlib>
#include <gtest/gtest.h>
#include <map>

using namespace mlir;
using namespace tandem;
using runtime::Device;
using runtime::DeviceKind;
using runtime::Tensor;

namespace {

MLIRContext &theContext() {
  static MLIRContext *context = [] {
    DialectRegistry registry;
    registerCompiler(registry);
    auto *made = new MLIRContext(registry, MLIRContext::Threading::DISABLED);
    made->loadDialect<TandemDialect>();
    return made;
  }();
  return *context;
}

/// A program of inputs a, b, c, ... whose output "y" is made by `body`.
struct Source {
  std::vector<std::string> inputs; ///< "4x8xf32"
  std::string body;                ///< defines %y
  std::string output;              ///< type of y
};

std::string textOf(const Source &source) {
  std::string text = "module @library attributes {tandem.phase = "
                     "\"capture\"} {\n  func.func @graph(";
  char name = 'a';
  for (const std::string &type : source.inputs) {
    text += std::string(name == 'a' ? "" : ", ") + "%" + name + ": tensor<" +
            type + "> {tandem.role = #tandem.role<input \"" + name +
            "\" {requires_grad}>}";
    ++name;
  }
  std::string y = "tensor<" + source.output + ">";
  return text + ") -> (" + y +
         " {tandem.role = #tandem.role<output \"y\">}) {\n" + source.body +
         "\nreturn %y : " + y + "\n}\n}\n";
}

/// The artifact's bytes.
std::string compile(const Source &source, const std::string &target,
                    const std::string &libraries) {
  auto module = parseSourceString<ModuleOp>(textOf(source), &theContext());
  if (!module) {
    ADD_FAILURE() << textOf(source);
    return "";
  }
  CompileOptions options;
  auto kernels = testKernels();
  options.kernels = kernels.get();
  options.target = target == "cuda" ? "cuda:sm_90" : target;
  options.emulation = target == "cuda";
  options.cubin = "no";
  options.libraries = libraries;
  options.threads = 1;
  std::vector<PhaseTime> times;
  Status status = runPhases(*module, options, times);
  if (!status) {
    ADD_FAILURE() << status.message() << "\n" << textOf(source);
    return "";
  }
  auto writer = emitArtifact(*module, options, times);
  auto bytes = writer ? writer->bytes() : Result<std::string>(writer.status());
  if (!bytes) {
    ADD_FAILURE() << bytes.status().message();
    return "";
  }
  return *bytes;
}

using Numbers = std::map<std::string, std::vector<double>>;

/// The output and the gradients of one forward and one backward.
Numbers run(const std::string &bytes, Device device, bool useLibraries) {
  Numbers numbers;
  auto reader = artifact::ArtifactReader::fromMemory(
      std::as_bytes(std::span<const char>(bytes)));
  EXPECT_TRUE(reader.ok()) << reader.status().message();
  auto model = runtime::Model::load(
      std::move(*reader),
      {.threads = 1, .device = device, .useLibraries = useLibraries});
  EXPECT_TRUE(model.ok()) << model.status().message();
  if (!model.ok())
    return numbers;
  std::vector<Tensor> tensors, grads;
  std::vector<std::string> names;
  unsigned seed = 1;
  auto random = [&](const artifact::Value &value) {
    size_t count = 1;
    for (int64_t size : value.shape)
      count *= static_cast<size_t>(size);
    std::vector<double> given(count);
    for (double &number : given) {
      seed = seed * 1664525 + 1013904223;
      number = double(seed >> 16) / 65536 - 0.5;
    }
    return *Tensor::copyOf(given.data(), artifact::DType::F64, value.shape)
                ->to(value.dtype);
  };
  for (const artifact::Value &value : model->manifest().values)
    if (value.role == artifact::Role::Input) {
      tensors.push_back(random(value));
      names.push_back(value.name);
    }
  Tensor cotangent = random(*model->manifest().findOutput("y"));
  grads.resize(tensors.size());
  std::vector<runtime::Argument> arguments;
  std::vector<runtime::Destination> destinations;
  for (size_t i = 0; i < tensors.size(); ++i) {
    arguments.emplace_back(names[i], &tensors[i]);
    destinations.push_back({names[i], &grads[i]});
  }
  Tensor y;
  auto keep = [&](const std::string &name, const Tensor &tensor) {
    auto host = tensor.onHost();
    EXPECT_TRUE(host.ok());
    std::vector<double> &list = numbers[name];
    list.clear();
    for (int64_t i = 0; host.ok() && i < host->elements(); ++i)
      list.push_back(host->at(i));
  };
  auto context =
      model->forward(arguments, std::vector<runtime::Destination>{{"y", &y}});
  EXPECT_TRUE(context.ok()) << context.status().message();
  if (!context.ok())
    return numbers;
  Status status = model->backward(
      *context, std::vector<runtime::Argument>{{"y", &cotangent}},
      destinations);
  EXPECT_TRUE(status.ok()) << status.message();
  keep("y", y);
  for (size_t i = 0; i < grads.size(); ++i)
    keep("grad of " + names[i], grads[i]);
  return numbers;
}

void compare(const Numbers &got, const Numbers &expected, double tolerance,
             const char *what) {
  for (const auto &[name, numbers] : expected) {
    auto found = got.find(name);
    ASSERT_TRUE(found != got.end()) << name;
    ASSERT_EQ(found->second.size(), numbers.size());
    double scale = 1;
    for (double number : numbers)
      scale = std::max(scale, std::abs(number));
    for (size_t i = 0; i < numbers.size(); ++i)
      ASSERT_NEAR(found->second[i], numbers[i], tolerance * scale)
          << what << ": " << name << "[" << i << "]";
  }
}

constexpr Device emulated{DeviceKind::CudaEmu, 0};

/// How often the libraries were called since the log began.
int callsInLog(const char *name) {
  int calls = 0;
  for (size_t i = 0; i < tandemEmulatorLogSize(); ++i)
    calls +=
        std::string(tandemEmulatorLogLine(i))
            .find(std::string("library call '") + name) != std::string::npos;
  return calls;
}

/// `calls` in one forward and backward.
void check(const Source &source, int calls, const char *name,
           double tolerance = 2e-6) {
  SCOPED_TRACE(textOf(source));
  static const bool isSet = [] {
    setenv("TANDEM_CUDA_EMULATOR", TANDEM_EMULATOR, 1);
    cuda::registerDevices();
    return true;
  }();
  ASSERT_TRUE(isSet);
  std::string cpu = compile(source, "cpu", "auto");
  std::string gpu = compile(source, "cuda", "yes");
  if (cpu.empty() || gpu.empty())
    return;
  Numbers expected = run(cpu, {DeviceKind::Cpu, 0}, true);
  tandemEmulatorSetLogging(1);
  tandemEmulatorClearLog();
  compare(run(gpu, emulated, false), expected, tolerance, "own kernels");
  EXPECT_EQ(callsInLog("cu"), 0);
  tandemEmulatorClearLog();
  compare(run(gpu, emulated, true), expected, tolerance, "libraries");
  // Once to record a graph, if one is made, or once to run.
  EXPECT_EQ(callsInLog(name), calls);
  tandemEmulatorSetLogging(0);
  tandemEmulatorClearLog();
  EXPECT_EQ(tandemEmulatorErrorCount(), 0u) << tandemEmulatorFirstError();
}

Source product(const std::string &element, const std::string &batch, int m,
               int n, int k, bool isLhs, bool isRhs) {
  auto type = [&](int rows, int columns) {
    return batch + std::to_string(rows) + "x" + std::to_string(columns) + "x" +
           element;
  };
  std::string a = isLhs ? type(k, m) : type(m, k),
              b = isRhs ? type(n, k) : type(k, n), y = type(m, n);
  std::string flags = isLhs && isRhs ? "{transpose_lhs, transpose_rhs} "
                      : isLhs        ? "{transpose_lhs} "
                      : isRhs        ? "{transpose_rhs} "
                                     : "";
  return {{a, b},
          "%y = tandem.matmul %a, %b " + flags + ": tensor<" + a +
              ">, tensor<" + b + "> -> tensor<" + y + ">",
          y};
}

TEST(LibraryProducts, TransposesAndBatches) {
  for (const char *batch : {"", "3x", "2x3x"})
    for (bool isLhs : {false, true})
      for (bool isRhs : {false, true})
        check(product("f32", batch, 5, 7, 6, isLhs, isRhs), 3,
              "cublasLtMatmul");
}

TEST(LibraryProducts, Types) {
  for (bool isRhs : {false, true}) {
    check(product("f64", "", 9, 8, 33, false, isRhs), 3, "cublasLtMatmul",
          1e-13);
    check(product("f16", "", 9, 8, 33, false, isRhs), 3, "cublasLtMatmul",
          4e-3);
    check(product("bf16", "2x", 9, 8, 33, false, isRhs), 3, "cublasLtMatmul",
          3e-2);
  }
}

TEST(LibraryProducts, ThinOnes) {
  const std::array<int, 3> shapes[] = {
      {1, 7, 6}, {5, 1, 6}, {5, 7, 1}, {1, 1, 9}, {1, 1, 1}};
  for (auto [m, n, k] : shapes)
    for (const char *batch : {"", "4x"})
      check(product("f32", batch, m, n, k, false, true), 3, "cublasLtMatmul");
}

/// A weight that all batches share makes one product of all rows.
TEST(LibraryProducts, SharedWeightsAndEpilogues) {
  std::string sum = R"(
%w = tandem.broadcast %b to [4, 6, 7] along [1, 2] : tensor<6x7xf32> -> tensor<4x6x7xf32>
%p = tandem.matmul %a, %w : tensor<4x5x6xf32>, tensor<4x6x7xf32> -> tensor<4x5x7xf32>
%v = tandem.broadcast %c to [4, 5, 7] along [2] : tensor<7xf32> -> tensor<4x5x7xf32>
)";
  check({{"4x5x6xf32", "6x7xf32", "7xf32"},
         sum + "%y = tandem.add %p, %v : tensor<4x5x7xf32>",
         "4x5x7xf32"},
        3, "cublasLtMatmul");
  check({{"4x5x6xf32", "6x7xf32", "7xf32"},
         sum + "%y = tandem.add %v, %p : tensor<4x5x7xf32>",
         "4x5x7xf32"},
        3, "cublasLtMatmul");
}

Source convolution(const std::string &element, std::array<int, 4> x,
                   std::array<int, 4> w, const std::string &attributes,
                   std::array<int, 2> y) {
  auto type = [&](std::array<int, 4> sizes) {
    std::string text;
    for (int size : sizes)
      text += std::to_string(size) + "x";
    return text + element;
  };
  std::string xs = type(x), ws = type(w), ys = type({x[0], w[0], y[0], y[1]});
  return {{xs, ws},
          "%y = tandem.conv2d %a, %b " + attributes + " : tensor<" + xs +
              ">, tensor<" + ws + "> -> tensor<" + ys + ">",
          ys};
}

TEST(LibraryConvolutions, ForwardAndBothGradients) {
  const char *name = "cudnnConvolution";
  check(convolution("f32", {2, 3, 6, 5}, {4, 3, 3, 3}, "", {4, 3}), 3, name);
  check(convolution("f32", {2, 3, 6, 5}, {4, 3, 3, 3}, "padding [1, 1, 1, 1]",
                    {6, 5}),
        3, name);
  check(convolution("f32", {2, 4, 9, 7}, {6, 2, 3, 2},
                    "strides [2, 1] padding [1, 1, 0, 0] groups 2", {5, 6}),
        3, name);
  check(convolution("f32", {2, 3, 9, 9}, {4, 3, 3, 3},
                    "padding [2, 2, 2, 2] dilation [2, 2]", {9, 9}),
        3, name);
  check(convolution("f64", {1, 2, 5, 5}, {3, 2, 1, 1}, "", {5, 5}), 3, name,
        1e-13);
  check(convolution("bf16", {1, 2, 5, 5}, {3, 2, 3, 3}, "padding [1, 1, 1, 1]",
                    {5, 5}),
        3, name, 3e-2);
}

/// Padding that differs makes no difference where the last window does not
/// reach it; where it does, the kernel runs.
TEST(LibraryConvolutions, UnequalPadding) {
  check(convolution("f32", {1, 2, 6, 6}, {3, 2, 3, 3},
                    "strides [2, 2] padding [1, 0, 1, 0]", {3, 3}),
        3, "cudnnConvolution");
  check(convolution("f32", {1, 2, 6, 6}, {3, 2, 3, 3},
                    "strides [2, 2] padding [0, 1, 0, 1]", {3, 3}),
        0, "cudnnConvolution");
}

} // namespace
