//===- DriverTest.cpp - drivers that cannot be used -----------------------===//
//
// Libraries that are not there, or are no driver.
//
//===----------------------------------------------------------------------===//
#include "cuda/Driver.h"

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

TEST(Driver, Versions) {
  EXPECT_EQ(Driver::text(12040), "12.4");
  EXPECT_EQ(Driver::text(13000), "13.0");
}

} // namespace
