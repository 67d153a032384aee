//===- Signatures.h - what libtandem-signatures.so gives ------------------===//
//
// Ed25519 (RFC 8032) by OpenSSL's libcrypto. It is opened at run time, so that
// the runtime needs no libcrypto. Keys are in PEM, the public one as
// SubjectPublicKeyInfo and the secret one as PKCS #8, and a signature is its 64
// bytes, as `openssl pkeyutl -rawin` has them. Functions may be called from
// several threads at once; none throws, prints or ends the process.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_SIGNATURES_SIGNATURES_H
#define TANDEM_RUNTIME_SIGNATURES_SIGNATURES_H

#include <cstddef>
#include <cstdint>

namespace tandem::signatures {

inline constexpr size_t kSignatureBytes = 64;
/// A key in PEM takes less.
inline constexpr size_t kKeyBytes = 1024;

/// Why something failed, a sentence without its end; ends with 0.
struct Reason {
  char text[200];
};

inline constexpr int kVersion = 1;

/// What the library's function "tandem_signatures" returns.
struct Signer {
  int version; ///< kVersion
  /// Returns 0 if `signature` is that of `data` by the secret key of the public
  /// one, else -1 and why.
  int (*verify)(const char *publicKey, size_t keyBytes, const void *data,
                size_t bytes, const uint8_t *signature, size_t signatureBytes,
                Reason *reason);
  /// Writes kSignatureBytes; returns 0, or -1 and why.
  int (*sign)(const char *secretKey, size_t keyBytes, const void *data,
              size_t bytes, uint8_t *signature, Reason *reason);
  /// Draws a pair of keys into texts of kKeyBytes, which end with 0; returns 0,
  /// or -1 and why.
  int (*newKeys)(char *secretKey, char *publicKey, Reason *reason);
};

} // namespace tandem::signatures

#endif
