//===- Signed.cpp - artifacts that somebody signed ------------------------===//
#include "runtime/model/Signed.h"

#include "runtime/comm/Plugin.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sys/stat.h>

namespace tandem::runtime {

Result<const signatures::Signer *> openSigner() {
  return comm::openTable<signatures::Signer>("verifier of signatures",
                                             "signatures", "tandem_signatures",
                                             signatures::kVersion);
}

std::string signaturePath(const std::string &path) { return path + ".sig"; }

Result<std::string> readShortFile(const std::string &path) {
  constexpr std::streamsize most = 1 << 16;
  struct stat facts;
  std::ifstream file;
  errno = 0;
  // A pipe would wait.
  if (::stat(path.c_str(), &facts) == 0 && S_ISREG(facts.st_mode))
    file.open(path, std::ios::binary);
  if (!file.is_open())
    return Status::failed(
        "cannot read '" + path +
        "': " + (errno ? std::strerror(errno) : "expected a regular file"));
  std::string text(size_t(most) + 1, '\0');
  file.read(text.data(), most + 1);
  if (file.gcount() > most)
    return Status::failed("'" + path + "' is too large for a key or signature");
  text.resize(size_t(file.gcount()));
  return text;
}

Result<artifact::ArtifactReader> openSigned(const std::string &path,
                                            const std::string &publicKey) {
  auto signer = openSigner();
  if (!signer)
    return std::move(signer).status();
  auto key = readShortFile(publicKey);
  if (!key)
    return std::move(key).status();
  auto signature = readShortFile(signaturePath(path));
  if (!signature)
    return Status::failed("'" + path +
                          "' is not signed: " + signature.status().message());
  return artifact::ArtifactReader::openVerified(
      path, [&](std::span<const std::byte> bytes) -> Status {
        signatures::Reason reason = {};
        if ((*signer)->verify(
                key->data(), key->size(), bytes.data(), bytes.size(),
                reinterpret_cast<const uint8_t *>(signature->data()),
                signature->size(), &reason) == 0)
          return Status::success();
        return Status::failed("'" + path + "' is refused: " + reason.text +
                              " ('" + signaturePath(path) + "', '" + publicKey +
                              "')");
      });
}

} // namespace tandem::runtime
