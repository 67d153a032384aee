//===- Fixture.h - files written by NumPy ---------------------------------===//
//
// See fixtures/make_fixtures.py.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TESTS_RUNTIME_IO_FIXTURE_H
#define TANDEM_TESTS_RUNTIME_IO_FIXTURE_H

#include <string>

namespace tandem::io::test {

inline std::string fixture(const std::string &name) {
  return std::string(TANDEM_FIXTURES) + "/" + name;
}

} // namespace tandem::io::test

#endif
