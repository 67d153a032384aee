//===- Adapters.h - the names of low-rank adapters ------------------------===//
//
// Of a weight `h0.attn.weight` [out, in] the two factors of its adapter are
// `h0.attn.lora_A.weight` [rank, in] and `h0.attn.lora_B.weight` [out, rank],
// as PEFT names them, and `h0.attn.lora_scale` is the number that their product
// is multiplied with: alpha / rank (Hu and others, "LoRA", 2021). Of a weight
// that lies as [in, out], which PEFT calls `fan_in_fan_out`, the scale says so.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_ARTIFACT_ADAPTERS_H
#define TANDEM_ARTIFACT_ADAPTERS_H

#include <string>
#include <string_view>

namespace tandem::artifact {

struct AdapterNames {
  std::string a, b, scale;
};

/// At the end of the scale's name of a weight that lies as [in, out].
inline constexpr std::string_view kFanInFanOut = ".fan_in_fan_out";

/// The metadata of a checkpoint that names the other parameters which were
/// trained beside adapters, each with a line end behind it (PEFT's
/// `modules_to_save`).
inline constexpr const char *kTrainedWhole = "tandem.trained_whole";

/// The names of the adapter of `weight`. Without ".weight" at its end they have
/// none either.
inline AdapterNames adapterNames(std::string_view weight, bool fanInFanOut) {
  std::string_view tail = weight.ends_with(".weight") ? ".weight" : "";
  std::string stem(weight.substr(0, weight.size() - tail.size()));
  return {stem + ".lora_A" + std::string(tail),
          stem + ".lora_B" + std::string(tail),
          stem + ".lora_scale" + std::string(fanInFanOut ? kFanInFanOut : "")};
}

/// The weight whose adapter has a first factor called `name`; empty if that is
/// no such name.
inline std::string adaptedWeight(std::string_view name) {
  constexpr std::string_view factor = ".lora_A";
  std::string_view tail = name.ends_with(".weight") ? ".weight" : "";
  name.remove_suffix(tail.size());
  if (!name.ends_with(factor))
    return "";
  return std::string(name.substr(0, name.size() - factor.size())) +
         std::string(tail);
}

/// True for the three names of an adapter.
inline bool isAdapterName(std::string_view name) {
  std::string_view stem = name;
  if (stem.ends_with(".weight"))
    stem.remove_suffix(7);
  return stem.ends_with(".lora_A") || stem.ends_with(".lora_B") ||
         name.ends_with(".lora_scale") ||
         name.ends_with(".lora_scale.fan_in_fan_out");
}

} // namespace tandem::artifact

#endif
