// The C++ wrapper as an installed header.
#include <tandem/tandem.hpp>

#include <cstdio>

int main() {
  std::printf("tandem %s\n", tdm_version());
  try {
    tdm::check(tdm_model_load("nowhere.tdm", nullptr, nullptr));
  } catch (const tdm::Error &error) {
    return error.status == TDM_USAGE ? 0 : 1;
  }
  return 1;
}
