//===- DriverTest.cpp - drivers that cannot be used -----------------------===//
//
// Libraries that are not there, or are no driver.
//
//===----------------------------------------------------------------------===//
#include "cuda/Driver.h"
#include "cuda/Register.h"
#include "runtime/device/Backend.h"

#include <cstdlib>
#include <gtest/gtest.h>

using namespace tandem;
using namespace tandem::cuda;

namespace {

void expectNoDevice(const std::string &library, const std::string &part) {
  Result<Driver> driver = Driver::open(library);
  ASSERT_FALSE(driver.ok());
  EXPECT_EQ(driver.status().code(), Code::NoDevice);
  EXPECT_NE(driver.status().message().find(part), std::string::npos)
      << driver.status().message();
}

TEST(Driver, NoLibrary) {
  expectNoDevice("libno-such-driver.so.1",
                 "no CUDA driver: cannot open 'libno-such-driver.so.1': ");
}

TEST(Driver, ALibraryThatIsNoDriver) {
  expectNoDevice("libc.so.6", "no CUDA driver: 'libc.so.6' has no "
                              "'cuDriverGetVersion'");
}

// The registered devices: "cuda" needs a driver, "cuda-emu" the emulator.
TEST(Driver, RegisteredDevices) {
  cuda::registerDevices();
  ::setenv("TANDEM_CUDA_EMULATOR", "libno-such-emulator.so", 1);
  auto missing = runtime::backendOf({runtime::DeviceKind::CudaEmu, 0});
  EXPECT_EQ(missing.status().code(), Code::NoDevice);
  EXPECT_NE(missing.status().message().find("libno-such-emulator.so"),
            std::string::npos)
      << missing.status().message();
  ::setenv("TANDEM_CUDA_EMULATOR", TANDEM_EMULATOR, 1);
  auto opened = runtime::backendOf({runtime::DeviceKind::CudaEmu, 0});
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  EXPECT_EQ(toString((*opened)->device()), "cuda-emu:0");
  EXPECT_EQ(*runtime::backendOf({runtime::DeviceKind::CudaEmu, 0}), *opened);
}

TEST(Driver, Versions) {
  EXPECT_EQ(Driver::text(12040), "12.4");
  EXPECT_EQ(Driver::text(13000), "13.0");
}

} // namespace
