//===- OpenSsl.cpp - Ed25519 by libcrypto ---------------------------------===//
#include "runtime/signatures/Signatures.h"

#include <climits>
#include <cstdio>
#include <cstring>
#include <memory>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <string_view>

namespace tandem::signatures {
namespace {

template <auto Free> struct Deleter {
  template <typename T> void operator()(T *made) const { Free(made); }
};
using Key = std::unique_ptr<EVP_PKEY, Deleter<EVP_PKEY_free>>;
using Digest = std::unique_ptr<EVP_MD_CTX, Deleter<EVP_MD_CTX_free>>;
using Text = std::unique_ptr<BIO, Deleter<BIO_free>>;

int refuse(Reason *reason, const char *text) {
  ERR_clear_error(); // of this thread, whose owner may use libcrypto too
  std::snprintf(reason->text, sizeof reason->text, "%s", text);
  return -1;
}

/// Nobody is asked for the password of an encrypted key.
int noPassword(char *, int, int, void *) { return -1; }

bool isEd25519(const Key &key) {
  return key && EVP_PKEY_get_base_id(key.get()) == EVP_PKEY_ED25519;
}

Text reading(const char *text, size_t bytes) {
  return Text(bytes < INT_MAX ? BIO_new_mem_buf(text, int(bytes)) : nullptr);
}

int verify(const char *publicKey, size_t keyBytes, const void *data,
           size_t bytes, const uint8_t *signature, size_t signatureBytes,
           Reason *reason) {
  Text text = reading(publicKey, keyBytes);
  Key key(text ? PEM_read_bio_PUBKEY(text.get(), nullptr, noPassword, nullptr)
               : nullptr);
  if (!isEd25519(key))
    return refuse(reason, "expected a public key of Ed25519 in PEM");
  // Which of several it would be, nobody has said.
  constexpr std::string_view begin = "-----BEGIN PUBLIC KEY-----";
  std::string_view all(publicKey, keyBytes);
  if (all.find(begin) != all.rfind(begin))
    return refuse(reason, "expected one public key, but the file has several");
  if (signatureBytes != kSignatureBytes)
    return refuse(reason, "a signature has 64 bytes");
  Digest digest(EVP_MD_CTX_new());
  if (!digest || EVP_DigestVerifyInit(digest.get(), nullptr, nullptr, nullptr,
                                      key.get()) != 1)
    return refuse(reason, "libcrypto cannot verify");
  // Anything but 1 is no.
  if (EVP_DigestVerify(digest.get(), signature, signatureBytes,
                       static_cast<const unsigned char *>(data), bytes) != 1)
    return refuse(reason, "the signature is not that of this file by this key");
  return 0;
}

int sign(const char *secretKey, size_t keyBytes, const void *data, size_t bytes,
         uint8_t *signature, Reason *reason) {
  Text text = reading(secretKey, keyBytes);
  Key key(
      text ? PEM_read_bio_PrivateKey(text.get(), nullptr, noPassword, nullptr)
           : nullptr);
  if (!isEd25519(key))
    return refuse(reason, "expected a secret key of Ed25519 in PEM, without a "
                          "password");
  Digest digest(EVP_MD_CTX_new());
  size_t length = kSignatureBytes;
  if (!digest ||
      EVP_DigestSignInit(digest.get(), nullptr, nullptr, nullptr, key.get()) !=
          1 ||
      EVP_DigestSign(digest.get(), signature, &length,
                     static_cast<const unsigned char *>(data), bytes) != 1 ||
      length != kSignatureBytes)
    return refuse(reason, "libcrypto cannot sign");
  return 0;
}

bool take(BIO *from, char *to) {
  int length = BIO_read(from, to, int(kKeyBytes) - 1);
  if (length > 0)
    to[length] = 0;
  return length > 0 && BIO_pending(from) == 0;
}

int newKeys(char *secretKey, char *publicKey, Reason *reason) {
  Key key(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"));
  // What held the secret is wiped.
  Text secret(BIO_new(BIO_s_secmem())), open(BIO_new(BIO_s_mem()));
  if (!key || !secret || !open ||
      PEM_write_bio_PKCS8PrivateKey(secret.get(), key.get(), nullptr, nullptr,
                                    0, nullptr, nullptr) != 1 ||
      PEM_write_bio_PUBKEY(open.get(), key.get()) != 1 ||
      !take(secret.get(), secretKey) || !take(open.get(), publicKey))
    return refuse(reason, "libcrypto cannot make keys");
  return 0;
}

constexpr Signer signer = {kVersion, verify, sign, newKeys};

} // namespace
} // namespace tandem::signatures

extern "C" __attribute__((visibility("default")))
const tandem::signatures::Signer *
tandem_signatures() {
  return &tandem::signatures::signer;
}
