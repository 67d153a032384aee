//===- Emulated.cpp - a GPU for tests, on the driver emulator -------------===//
//
// See Emulated.h.
//
//===----------------------------------------------------------------------===//
#include "tests/cuda/Emulated.h"

namespace tandem::test {

using namespace artifact;
using runtime::Stream;

namespace {

using Access = const TandemEmulatorLaunch *;

/// Runs over `length` floats that are read and written where allowed.
template <typename Fn>
void each(Access launch, std::initializer_list<const void *> reads, void *to,
          Fn fn) {
  constexpr size_t bytes = length * sizeof(float);
  for (const void *read : reads)
    if (!launch->access(launch, read, bytes, 0))
      return;
  if (!launch->access(launch, to, bytes, 1))
    return;
  for (int64_t i = 0; i < length; ++i)
    static_cast<float *>(to)[i] = fn(i);
}

float *pointer(void **parameters, int i) {
  return *static_cast<float **>(parameters[i]);
}

void twice(void **p, Access launch) {
  float *x = pointer(p, 0);
  each(launch, {x}, pointer(p, 1), [=](int64_t i) { return 2 * x[i]; });
}
void thrice(void **p, Access launch) {
  float *x = pointer(p, 0);
  each(launch, {x}, pointer(p, 1), [=](int64_t i) { return 3 * x[i]; });
}
void sum(void **p, Access launch) {
  float *x = pointer(p, 0), *y = pointer(p, 1);
  each(launch, {x, y}, pointer(p, 2), [=](int64_t i) { return x[i] + y[i]; });
}
void next(void **p, Access launch) {
  float *x = pointer(p, 0);
  each(launch, {x}, pointer(p, 1), [=](int64_t i) { return x[i] + 1; });
}
/// Adds what it finds in its scratch memory, which must be zeros.
void scratched(void **p, Access launch) {
  float *x = pointer(p, 0), *scratch = pointer(p, 2);
  if (!launch->access(launch, scratch, 64, 0) ||
      !launch->access(launch, scratch, 64, 1))
    return;
  each(launch, {x}, pointer(p, 1),
       [=](int64_t i) { return 2 * x[i] + 1000 * scratch[i % 16]; });
}

struct TestKernel {
  const char *name;
  size_t parameters;
  TandemEmulatorKernel twin;
};
constexpr TestKernel kernels[] = {{"twice", 2, twice},
                                  {"thrice", 2, thrice},
                                  {"sum", 3, sum},
                                  {"next", 2, next},
                                  {"scratched", 3, scratched}};

std::string ptx() {
  std::string text = ".version 7.0\n.target sm_80\n.address_size 64\n";
  for (const TestKernel &kernel : kernels) {
    text += std::string(".visible .entry ") + kernel.name + "(";
    for (size_t i = 0; i < kernel.parameters; ++i)
      text += (i ? ", .param .u64 p" : ".param .u64 p") + std::to_string(i);
    text += ")\n{\n  ret;\n}\n";
  }
  return text + '\0';
}

Slot slot(Role role, const char *name) {
  Slot made;
  made.role = role;
  made.name = name;
  made.shape = {length};
  return made;
}

void launch(Program &program, int64_t kernel, std::vector<int64_t> buffers,
            int64_t stream = 0) {
  Launch made;
  made.kernel = kernel;
  made.buffers = std::move(buffers);
  auto count = static_cast<int64_t>(made.buffers.size());
  for (int64_t i = 0; i + 1 < count; ++i)
    made.reads.push_back(i);
  made.writes = {count - 1};
  made.stream = stream;
  made.grid = {1, 1, 1};
  program.launches.push_back(made);
}

Program evaluateProgram() {
  Program p;
  p.name = "evaluate";
  p.arguments = {slot(Role::Input, "x"), slot(Role::Input, "y")};
  p.results = {slot(Role::Output, "out")};
  p.arenaBytes = 512;
  p.buffers = {Buffer::argument(0), Buffer::argument(1), Buffer::result(0),
               Buffer::arena(0, 256), Buffer::arena(256, 256)};
  launch(p, 0, {0, 3}, 0);
  launch(p, 1, {1, 4}, 1);
  launch(p, 2, {3, 4, 2}, 0);
  return p;
}

Program forwardProgram() {
  Program p;
  p.name = "forward";
  p.arguments = {slot(Role::Input, "x"), slot(Role::State, "count")};
  Slot update = slot(Role::Update, "count");
  update.inPlace = true;
  p.results = {slot(Role::Output, "out"), update};
  p.arenaBytes = 512;
  p.buffers = {Buffer::argument(0),     Buffer::argument(1),
               Buffer::result(0),       Buffer::arena(0, 256),
               Buffer::arena(256, 256), Buffer::constant(0, 256)};
  launch(p, 3, {0, 3});    // arena 0 = x + 1
  launch(p, 4, {3, 4});    // arena 1 = 2 * that
  launch(p, 2, {4, 5, 2}); // out = that + 5
  launch(p, 3, {1, 1});    // count += 1
  return p;
}

} // namespace

void expectOk(const Status &status) {
  EXPECT_TRUE(status.ok()) << status.message();
}

void expectError(const Status &status, const std::string &part) {
  EXPECT_FALSE(status.ok()) << "expected '" << part << "'";
  EXPECT_NE(status.message().find(part), std::string::npos)
      << "expected '" << part << "' in: " << status.message();
}

std::vector<float> range(size_t count, float first) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = first + static_cast<float>(i);
  return values;
}

ArtifactReader programs(const std::function<void(Manifest &)> &change,
                        const std::function<void(ArtifactWriter &)> &sections) {
  Manifest manifest;
  manifest.model = "small";
  manifest.producer = "test";
  manifest.target = {"cuda", "sm_80", {}};
  auto value = [&](Role role, const char *name) {
    Value made;
    made.role = role;
    made.name = name;
    made.shape = {length};
    if (role == Role::State)
      made.init = Init::constant(0);
    manifest.values.push_back(made);
  };
  value(Role::Input, "x");
  value(Role::Input, "y");
  value(Role::State, "count");
  value(Role::Output, "out");
  for (const TestKernel &one : kernels) {
    Kernel kernel;
    kernel.symbol = one.name;
    kernel.kind = "pointwise";
    kernel.ops = {"tandem.test"};
    kernel.block = {length, 1, 1};
    manifest.kernels.push_back(kernel);
  }
  manifest.kernels[4].scratchBytes = 64;
  manifest.programs = {evaluateProgram(), forwardProgram()};
  if (change)
    change(manifest);
  ArtifactWriter writer;
  writer.setManifest(manifest);
  std::vector<float> five(length, 5);
  writer.addConstant(std::as_bytes(std::span<const float>(five)));
  if (sections)
    sections(writer);
  else
    writer.addCode("ptx", ptx());
  Result<std::string> bytes = writer.bytes();
  EXPECT_TRUE(bytes.ok()) << bytes.status().message();
  Result<ArtifactReader> reader =
      ArtifactReader::fromMemory(std::as_bytes(std::span<const char>(*bytes)));
  EXPECT_TRUE(reader.ok()) << reader.status().message();
  return *reader;
}

/// Handles of the emulator by kind.
static std::vector<size_t> liveHandles() {
  std::vector<size_t> counts;
  for (const char *kind :
       {"stream", "event", "module", "graph", "exec", "pool"})
    counts.push_back(tandemEmulatorLiveHandles(kind));
  return counts;
}

void Emulated::SetUp() {
  tandemEmulatorReset();
  tandemEmulatorSetPolicy("eager");
  liveBefore = tandemEmulatorLiveAllocations();
  handlesBefore = liveHandles();
  for (const TestKernel &kernel : kernels) {
    const std::vector<size_t> bytes(kernel.parameters, sizeof(void *));
    tandemEmulatorRegisterKernel(kernel.name, bytes.data(), bytes.size(),
                                 kernel.twin);
  }
}

void Emulated::TearDown() {
  close();
  if (!hasErrors) {
    EXPECT_EQ(tandemEmulatorErrorCount(), 0u) << tandemEmulatorFirstError();
  }
  tandemEmulatorReset();
}

Result<std::shared_ptr<runtime::Backend>> Emulated::tryOpen() {
  Result<cuda::Driver> driver = cuda::Driver::open(TANDEM_EMULATOR);
  if (!driver)
    return std::move(driver).status();
  return cuda::CudaDevice::open(std::make_shared<const cuda::Driver>(*driver),
                                {runtime::DeviceKind::Cuda, 0});
}

void Emulated::open() {
  Result<std::shared_ptr<runtime::Backend>> opened = tryOpen();
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  device = *opened;
}

void Emulated::close() {
  if (!device)
    return;
  bool isLost = device->isLost();
  device.reset();
  if (isLost)
    return;
  EXPECT_EQ(tandemEmulatorLiveAllocations(), liveBefore);
  // Streams, events, modules, graphs, executable graphs, pools.
  EXPECT_EQ(liveHandles(), handlesBefore);
}

float *Emulated::allocate(int64_t floats, Stream stream) {
  Result<void *> data = device->allocate(floats * 4, stream);
  EXPECT_TRUE(data.ok()) << data.status().message();
  return static_cast<float *>(*data);
}

void Emulated::upload(void *to, const std::vector<float> &values,
                      Stream stream) {
  expectOk(device->copy(to, values.data(),
                        static_cast<int64_t>(values.size() * 4), stream));
}

std::vector<float> Emulated::download(const void *from, size_t count,
                                      Stream stream) {
  std::vector<float> values(count);
  expectOk(device->copy(values.data(), from, static_cast<int64_t>(count * 4),
                        stream));
  return values;
}

void Emulated::startLog() {
  tandemEmulatorClearLog();
  tandemEmulatorSetLogging(1);
}

std::string Emulated::log() {
  std::string lines;
  for (size_t i = 0; i < tandemEmulatorLogSize(); ++i)
    lines += std::string(tandemEmulatorLogLine(i)) + "\n";
  return lines;
}

} // namespace tandem::test
