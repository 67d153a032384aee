//===- Sign.cpp - the commands `keys` and `sign` --------------------------===//
#include "runtime/artifact/ArtifactReader.h"
#include "runtime/io/Array.h"
#include "runtime/io/File.h"
#include "runtime/model/Signed.h"
#include "tools/commands/Files.h"
#include "tools/commands/Print.h"
#include "tools/tandem/CompilerCommands.h"

#include <filesystem>
#include <optional>

using namespace tandem;
using namespace tandem::commands;

namespace {

using signatures::Reason;

struct KeysOptions {
  static constexpr std::string_view
      usage = "keys NAME [options]",
      description =
          "Draws a pair of keys (Ed25519, in PEM): NAME.pem, which is secret "
          "and signs, and NAME.pub.pem, which --require-signature takes.";

  std::string name;
  bool force = false;

  void declare(OptionTable &table) {
    table.positional("NAME", name, "how both files begin");
    table.flag("force", force, "let them replace any files");
  }
};

struct SignOptions {
  static constexpr std::string_view
      usage = "sign X.tdm --key=F.pem [options]",
      description =
          "Signs an artifact, for --require-signature of what loads it. The "
          "signature (Ed25519, its 64 bytes) is a file beside it, and of the "
          "whole of it: who compiles it again signs it again. The same as "
          "'openssl pkeyutl -sign -rawin -inkey F.pem -in X.tdm'.";

  std::string artifact, key, output;
  bool force = false;

  void declare(OptionTable &table) {
    table.positional("X.tdm", artifact, "the artifact");
    table.text("key", "F.pem", key, "the secret key, which 'keys' made")
        .required();
    table.text("o", "F.sig", output, "where the signature goes")
        .byDefault("X.tdm.sig");
    table.flag("force", force, "let the output replace any file");
  }
};

Status replaceFile(const std::string &path, std::string_view text,
                   std::optional<unsigned> mode = {}) {
  std::span<const std::byte> bytes = std::as_bytes(std::span(text));
  return io::replaceFile(path, {&bytes, 1}, mode);
}

Status runKeys(const KeysOptions &options) {
  std::string secret = options.name + ".pem", open = options.name + ".pub.pem";
  Files files;
  files.writes({"the secret key", secret, {}});
  files.writes({"the public key", open, {}});
  if (Status status = files.check(options.force); !status)
    return status;
  auto signer = runtime::openSigner();
  if (!signer)
    return std::move(signer).status();
  char secretText[signatures::kKeyBytes], openText[signatures::kKeyBytes];
  Reason reason = {};
  if ((*signer)->newKeys(secretText, openText, &reason) != 0)
    return Status::failed(reason.text);
  // Nobody else reads the secret one, whatever file it replaces.
  Status status = replaceFile(secret, secretText, 0600);
  explicit_bzero(secretText, sizeof secretText);
  if (!status)
    return status;
  return replaceFile(open, openText);
}

Status runSign(const SignOptions &options) {
  std::string output = options.output.empty()
                           ? runtime::signaturePath(options.artifact)
                           : options.output;
  Files files;
  files.reads("X.tdm", options.artifact);
  files.reads("--key", options.key);
  files.writes({"-o", output, {io::FileKind::Signature}});
  // Nor by force: there would be nothing left to sign, or to sign with.
  for (const std::string &read : {options.artifact, options.key})
    if (std::error_code error; std::filesystem::equivalent(output, read, error))
      return Status::usage("the signature would replace " +
                           io::inQuotes(output) + ", which 'sign' reads");
  if (Status status = files.check(options.force); !status)
    return status;
  auto signer = runtime::openSigner();
  if (!signer)
    return std::move(signer).status();
  auto key = runtime::readShortFile(options.key);
  if (!key)
    return std::move(key).status();
  uint8_t signature[signatures::kSignatureBytes];
  auto reader = artifact::ArtifactReader::openVerified(
      options.artifact, [&](std::span<const std::byte> bytes) -> Status {
        Reason reason = {};
        if ((*signer)->sign(key->data(), key->size(), bytes.data(),
                            bytes.size(), signature, &reason) == 0)
          return Status::success();
        return Status::failed(io::inQuotes(options.key) + ": " + reason.text);
      });
  explicit_bzero(key->data(), key->size());
  if (!reader)
    return std::move(reader).status();
  return replaceFile(output,
                     {reinterpret_cast<char *>(signature), sizeof signature});
}

} // namespace

Command commands::keysCommand() {
  return commandOf<runKeys>("keys", "draw a pair of keys for signatures");
}

Command commands::signCommand() {
  return commandOf<runSign>("sign", "sign an artifact");
}
