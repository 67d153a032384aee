//===- CalledModels.h - the models that programs of calls share -----------===//
//
// The artifacts of TestModel.h, in files of a folder of their own, and what
// each of them takes.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TESTS_FUZZ_CALLEDMODELS_H
#define TANDEM_TESTS_FUZZ_CALLEDMODELS_H

#include "tests/fuzz/CalledApi.h"
#include "tests/runtime/TestModel.h"
#include "tests/support/Folder.h"

#include <filesystem>
#include <memory>
#include <unistd.h>
#include <vector>

namespace tandem::fuzz {

/// The arguments that the programs of a model take, of a thread's own: inputs
/// and cotangents that fit, empty handles for what they give.
class Rights {
public:
  explicit Rights(tdm_model *model) {
    for (size_t i = 0; i < tdm_value_count(model); ++i) {
      tdm_value value = TDM_VALUE_INIT;
      require(tdm_value_at(model, i, &value) == TDM_OK);
      if (value.role == TDM_INPUT)
        inputs.push_back({value.name, filled(value)});
      if (value.role == TDM_OUTPUT) {
        outputs.push_back({value.name, empty()});
        cotangents.push_back({value.name, filled(value)});
      }
      if (value.requires_grad)
        grads.push_back({value.name, empty()});
    }
  }
  Rights(const Rights &) = delete;
  ~Rights() {
    for (auto *list : {&inputs, &outputs, &cotangents, &grads})
      for (const tdm_argument &one : *list)
        tdm_tensor_free(one.tensor);
  }

  tdm_tensor *any(Decisions &next) const {
    const std::vector<tdm_argument> *lists[] = {&inputs, &outputs, &cotangents,
                                                &grads};
    const auto &list = *lists[next.below(4)];
    return list.empty() ? nullptr : list[next.below(list.size())].tensor;
  }

  std::vector<tdm_argument> inputs, outputs, cotangents, grads;

private:
  static tdm_tensor *empty() {
    tdm_tensor *made = nullptr;
    require(tdm_tensor_empty(&made) == TDM_OK);
    return made;
  }
  static tdm_tensor *filled(const tdm_value &value) {
    tdm_tensor *made = nullptr;
    require(tdm_tensor_zeros(value.dtype, value.rank, value.shape, &made) ==
            TDM_OK);
    std::vector<float> numbers(size_t(tdm_tensor_elements(made)));
    for (size_t i = 0; i < numbers.size(); ++i)
      numbers[i] = 0.25f * float(i % 7) - 0.5f;
    if (value.dtype == TDM_F32)
      require(tdm_tensor_write(made, numbers.data(),
                               numbers.size() * sizeof(float)) == TDM_OK);
    return made;
  }
};

class CalledModels {
public:
  CalledModels() {
    for (const auto &manifest : {test::regression(), test::scaledRegression(),
                                 test::mutatingRegression()}) {
      artifacts.push_back(folder / (std::to_string(artifacts.size()) + ".tdm"));
      require(test::writerFor(manifest).write(artifacts.back()).ok());
      tdm_options options = TDM_OPTIONS_INIT;
      options.threads = 2;
      models.push_back(nullptr);
      require(tdm_model_load(artifacts.back().c_str(), &options,
                             &models.back()) == TDM_OK);
    }
    expected = trained();
  }
  ~CalledModels() {
    for (tdm_model *model : models)
      tdm_model_free(model);
  }

  const std::vector<tdm_model *> &all() const { return models; }
  const char *artifact(size_t which) const { return artifacts[which].c_str(); }
  /// A file that may be there.
  std::string path(size_t number) const {
    return folder / (std::to_string(number) + ".safetensors");
  }

  /// The regression, initialized, trains as it did at first.
  void requireUndisturbed() const { require(trained() == expected); }

private:
  std::vector<float> trained() const {
    tdm_model *model = models.front();
    require(tdm_initialize(model, 3) == TDM_OK);
    Rights right(model);
    std::vector<float> numbers;
    for (int step = 0; step < 2; ++step)
      require(tdm_step(model, right.inputs.data(), right.inputs.size(),
                       right.outputs.data(), 1) == TDM_OK);
    tdm_tensor *w = nullptr;
    require(tdm_get(model, "w", &w) == TDM_OK);
    for (tdm_tensor *one : {w, right.outputs[0].tensor}) {
      std::vector<float> more(size_t(tdm_tensor_elements(one)));
      require(tdm_tensor_read(one, more.data(), more.size() * sizeof(float)) ==
              TDM_OK);
      numbers.insert(numbers.end(), more.begin(), more.end());
    }
    tdm_tensor_free(w);
    return numbers;
  }

  test::Folder folder;
  std::vector<std::string> artifacts;
  std::vector<tdm_model *> models;
  std::vector<float> expected;
};

} // namespace tandem::fuzz

#endif
