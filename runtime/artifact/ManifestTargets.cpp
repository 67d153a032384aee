//===- ManifestTargets.cpp - one model for several targets ----------------===//
//
// What the manifests of an artifact's targets must agree in, so that callers
// and checkpoints do not see which one runs.
//
//===----------------------------------------------------------------------===//
#include "runtime/artifact/Manifest.h"

#include <algorithm>

namespace tandem::artifact {

Status checkSameModel(const Manifest &one, const Manifest &other) {
  std::string wrong;
  auto differs = [&](const std::string &what) {
    wrong += (wrong.empty() ? "" : "; ") + what;
  };
  auto find = [](const Manifest &manifest, const Value &value) {
    return value.role == Role::Output ? manifest.findOutput(value.name)
                                      : manifest.findValue(value.name);
  };
  auto compare = [&](const Manifest &a, const Manifest &b, bool isSecond) {
    for (const Value &value : a.values) {
      std::string name =
          std::string(spelling(value.role)) + " '" + value.name + "'";
      const Value *same = find(b, value);
      if (!same)
        differs(name + " is in the manifest for '" + a.target.kind + "' alone");
      else if (!isSecond && !(*same == value))
        differs(name + " is not the same in both");
    }
  };
  compare(one, other, false);
  compare(other, one, true);
  if (one.loss != other.loss)
    differs("expected one loss, but got '" + one.loss + "' and '" + other.loss +
            "'");
  if (one.optimizer != other.optimizer)
    differs("expected one optimizer, but got '" + one.optimizer + "' and '" +
            other.optimizer + "'");
  if (one.mesh != other.mesh || one.pipeline != other.pipeline)
    differs("expected one mesh");
  if (one.graph != other.graph)
    differs("expected one graph, but got two digests");
  bool sameSizes =
      std::equal(one.sizes.begin(), one.sizes.end(), other.sizes.begin(),
                 other.sizes.end(), [](const Size &a, const Size &b) {
                   return a.name == b.name && a.values == b.values;
                 });
  if (!sameSizes)
    differs("expected the same sizes");
  if (wrong.empty())
    return Status::success();
  return Status::failed("the manifests for '" + one.target.kind + "' and '" +
                        other.target.kind + "' differ: " + wrong);
}

} // namespace tandem::artifact
