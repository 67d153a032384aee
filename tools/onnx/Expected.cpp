//===- Expected.cpp - the cases that are known not to pass ----------------===//
#include "tools/onnx/Expected.h"

#include <fstream>

namespace tandem::onnx {

Result<Expected> Expected::read(const std::string &path) {
  std::ifstream file(path);
  if (!file)
    return Status::failed("cannot read '" + path + "'");
  Expected list;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (line.empty() || line[0] == '#')
      continue;
    size_t begin = line.find_first_not_of(' ');
    if (begin == 0)
      list.reasons_.push_back({line, {}});
    else if (list.reasons_.empty())
      return Status::failed(path + ":" + std::to_string(number) +
                            ": expected a reason before its cases");
    else
      list.reasons_.back().cases.push_back(line.substr(begin));
  }
  return list;
}

const Expected::Reason *Expected::find(const std::string &name) const {
  for (const Reason &reason : reasons_)
    for (const std::string &one : reason.cases)
      if (one.ends_with('*')
              ? std::string_view(name).starts_with(
                    std::string_view(one).substr(0, one.size() - 1))
              : one == name)
        return &reason;
  return nullptr;
}

} // namespace tandem::onnx
