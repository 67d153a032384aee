//===- Signed.h - artifacts that somebody signed --------------------------===//
#ifndef TANDEM_RUNTIME_MODEL_SIGNED_H
#define TANDEM_RUNTIME_MODEL_SIGNED_H

#include "runtime/artifact/ArtifactReader.h"
#include "runtime/signatures/Signatures.h"

namespace tandem::runtime {

/// Opens libtandem-signatures.so.
Result<const signatures::Signer *> openSigner();

/// Where the signature of `path` lies.
std::string signaturePath(const std::string &path);

/// Reads a key or a signature, of at most 64 KiB.
Result<std::string> readShortFile(const std::string &path);

/// Reads an artifact whose signature, beside it, is by the secret key of
/// `publicKey`, a file in PEM. It lies in memory of its own: who changes the
/// file afterwards changes nothing that was verified.
Result<artifact::ArtifactReader> openSigned(const std::string &path,
                                            const std::string &publicKey);

} // namespace tandem::runtime

#endif
