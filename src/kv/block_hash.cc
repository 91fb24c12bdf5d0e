#include "kv/block_hash.h"

#include <memory>
#include <openssl/evp.h>

#include "base/check.h"

namespace tinyvllm {
namespace {

// One digest context per thread that hashes: making one costs more than hashing a block.
class Sha256 {
 public:
  BlockHash operator()(const void* a, size_t a_bytes, const void* b, size_t b_bytes) {
    BlockHash hash;
    const bool ok = EVP_DigestInit_ex2(context_.get(), kind_.get(), nullptr) == 1 &&
                    EVP_DigestUpdate(context_.get(), a, a_bytes) == 1 &&
                    EVP_DigestUpdate(context_.get(), b, b_bytes) == 1 &&
                    EVP_DigestFinal_ex(context_.get(), hash.bytes.data(), nullptr) == 1;
    CHECK(ok) << "SHA-256 failed";
    return hash;
  }

 private:
  std::unique_ptr<EVP_MD, decltype(&EVP_MD_free)> kind_{EVP_MD_fetch(nullptr, "SHA256", nullptr),
                                                        EVP_MD_free};
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_{EVP_MD_CTX_new(),
                                                                   EVP_MD_CTX_free};
};

BlockHash sha256(const void* a, size_t a_bytes, const void* b, size_t b_bytes) {
  thread_local Sha256 digest;
  return digest(a, a_bytes, b, b_bytes);
}

}  // namespace

BlockHash root_hash(std::string_view salt) {
  constexpr std::string_view kDomain = "tinyvllm kv root:";
  return sha256(kDomain.data(), kDomain.size(), salt.data(), salt.size());
}

BlockHash next_hash(const BlockHash& before, std::span<const int32_t> tokens) {
  return sha256(before.bytes.data(), before.bytes.size(), tokens.data(), tokens.size_bytes());
}

}  // namespace tinyvllm
