//===- Golden.cpp - artifacts of earlier compilers ------------------------===//
//
// runtime-golden FOLDER: of each format there is FOLDER/format-N.tdm, which is
// never written again. Those that this runtime reads are trained for three
// steps, and the numbers compared with format-N.numbers; the others are refused
// with all numbers. runtime-golden --numbers FILE prints what is compared
// (tools/golden-artifact writes it). Links libtandem.so only.
//
//===----------------------------------------------------------------------===//
#include "runtime/artifact/FormatVersion.h"
#include "runtime/tandem.hpp"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <unistd.h>
#include <vector>

using tandem::artifact::formatVersion;
using tandem::artifact::oldestFormat;

namespace {

using Lists = std::vector<tdm_argument>;

/// Trains an artifact by what it says of itself.
class Trainer {
public:
  explicit Trainer(const std::string &path) : model(path, 1, 7, "cpu") {
    for (const tdm_value &value : model.values()) {
      if (value.role == TDM_INPUT)
        add(inputs, value, true);
      if (value.role == TDM_OUTPUT)
        add(outputs, value, false);
      if (value.role == TDM_OUTPUT && std::string(value.name) == "loss")
        add(cotangents, value, true);
      if (value.role == TDM_PARAM && value.requires_grad)
        add(grads, value, false);
      if (value.role == TDM_PARAM || value.role == TDM_STATE)
        kept.push_back(value.name);
    }
    *static_cast<float *>(tdm_tensor_data(cotangents.at(0).tensor)) = 1;
  }

  std::string numbers() {
    tdm_context *context = nullptr;
    for (int step = 0; step < 3; ++step) {
      tdm::check(tdm_forward(model.get(), inputs.data(), inputs.size(),
                             outputs.data(), outputs.size(), &context));
      tdm::check(tdm_backward(model.get(), context, cotangents.data(),
                              cotangents.size(), grads.data(), grads.size(),
                              0));
      print("forward", outputs);
      print("backward", grads);
      tdm::check(tdm_update(model.get(), grads.data(), grads.size()));
    }
    tdm_context_free(context);
    tdm::check(tdm_step(model.get(), inputs.data(), inputs.size(),
                        outputs.data(), outputs.size()));
    print("step", outputs);
    tdm::check(tdm_run(model.get(), "evaluate", inputs.data(), inputs.size(),
                       outputs.data(), outputs.size()));
    print("evaluate", outputs);
    for (const std::string &name : kept) {
      tdm::Tensor tensor = model.parameter(name.c_str());
      print("kept", {{name.c_str(), tensor.get()}});
    }
    return out.str();
  }

private:
  void add(Lists &list, const tdm_value &value, bool isFilled) {
    if (value.dtype != TDM_F32)
      throw std::runtime_error("expected values of f32");
    tdm::Tensor &tensor = tensors.emplace_back(tdm::Tensor::zeros(
        value.dtype, {value.shape, value.shape + value.rank}));
    if (isFilled)
      for (int64_t i = 0; i < tensor.elements(); ++i)
        // Sines of the C library differ in their last bits: these are exact.
        tensor.data<float>()[i] =
            static_cast<float>((i * 7 + 3 * value.rank) % 11 - 5) / 8;
    list.push_back({value.name, tensor.get()});
  }

  void print(const char *program, const Lists &list) {
    char number[32];
    for (const tdm_argument &one : list) {
      std::vector<float> values(
          static_cast<size_t>(tdm_tensor_elements(one.tensor)));
      tdm::check(tdm_tensor_read(one.tensor, values.data(),
                                 values.size() * sizeof(float)));
      for (float value : values) {
        std::snprintf(number, sizeof number, "%.9g", value);
        out << program << ' ' << one.name << ' ' << number << '\n';
      }
    }
  }

  tdm::Model model;
  std::vector<tdm::Tensor> tensors;
  Lists inputs, outputs, cotangents, grads;
  std::vector<std::string> kept;
  std::ostringstream out;
};

/// Compares texts word by word, numbers by their values; prints what differs.
bool areSame(const std::string &path, std::istream &expected,
             std::istream &got) {
  std::string program, name, otherProgram, otherName;
  double value = 0, other = 0;
  size_t count = 0;
  while (expected >> program >> name >> value) {
    if (!(got >> otherProgram >> otherName >> other) ||
        program != otherProgram || name != otherName ||
        !(std::fabs(value - other) <= 1e-6 * std::fmax(1, std::fabs(value)))) {
      std::fprintf(stderr,
                   "%s: number %zu: expected %s %s %.9g but got %s %s %.9g\n",
                   path.c_str(), count, program.c_str(), name.c_str(), value,
                   otherProgram.c_str(), otherName.c_str(), other);
      return false;
    }
    ++count;
  }
  if (count >= 50 && !(got >> program))
    return true;
  std::fprintf(stderr, "%s: expected as many numbers, at least 50\n",
               path.c_str());
  return false;
}

bool isRefused(const std::string &path, int64_t format) {
  std::string expected = "artifact has format " + std::to_string(format) +
                         ", but this runtime (" + tdm_version() + ") reads " +
                         std::to_string(oldestFormat) + " to " +
                         std::to_string(formatVersion);
  tdm_model *model = nullptr;
  tdm_status status = tdm_model_load(path.c_str(), nullptr, &model);
  std::string said = tdm_last_error();
  tdm_model_free(model);
  if (status == TDM_UNSUPPORTED && said.find(expected) != said.npos)
    return true;
  std::fprintf(stderr, "%s: expected '%s' but got '%s'\n", path.c_str(),
               expected.c_str(), said.c_str());
  return false;
}

/// A file of the newest format that says another one.
bool isNewerRefused(const std::string &folder) {
  std::ifstream file(folder + "/format-" + std::to_string(formatVersion) +
                         ".tdm",
                     std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  char path[] = "/tmp/tandem-golden-XXXXXX";
  int made = mkstemp(path);
  if (made < 0)
    return false;
  close(made);
  if (bytes.size() < 16)
    return false;
  bytes[8] = static_cast<char>(formatVersion + 1);
  std::ofstream(path, std::ios::binary) << bytes;
  bool refused = isRefused(path, formatVersion + 1);
  std::remove(path);
  return refused;
}

} // namespace

int main(int argc, char **argv) {
  try {
    if (argc == 3 && std::string(argv[1]) == "--numbers") {
      std::fputs(Trainer(argv[2]).numbers().c_str(), stdout);
      return 0;
    }
    if (argc != 2)
      return 2;
    bool isRight = isNewerRefused(argv[1]);
    for (int64_t format = 1; format <= formatVersion; ++format) {
      std::string stem =
          std::string(argv[1]) + "/format-" + std::to_string(format);
      if (format < oldestFormat) {
        isRight &= isRefused(stem + ".tdm", format);
        continue;
      }
      std::istringstream got(Trainer(stem + ".tdm").numbers());
      std::ifstream expected(stem + ".numbers");
      isRight &= areSame(stem, expected, got);
    }
    return isRight ? 0 : 1;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
