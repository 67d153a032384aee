//===- Zip.cpp - the members of a zip file --------------------------------===//
#include "compiler/import/torch/Zip.h"
#include "runtime/artifact/DeviceFiles.h"
#include "runtime/artifact/Text.h"

#include <zip.h>

using namespace tandem;
using namespace tandem::torch;
using llvm::StringRef;

/// A graph of more JSON than this is none that was exported.
static constexpr uint64_t kMostJson = uint64_t(1) << 30;
/// Compressed members may grow by this factor.
static constexpr uint64_t kMostGrowth = 100;

Result<std::unique_ptr<Zip>> Zip::open(const std::string &path) {
  if (Status s = artifact::expectNoDevice(path); !s)
    return s;
  int code = 0;
  zip_t *archive = zip_open(path.c_str(), ZIP_RDONLY | ZIP_CHECKCONS, &code);
  if (!archive) {
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    std::string why = zip_error_strerror(&error);
    zip_error_fini(&error);
    return Status::failed("cannot read '" + path +
                          "' as an archive of "
                          "torch.export.save (a zip file): " +
                          why);
  }
  return std::unique_ptr<Zip>(new Zip(archive));
}

Result<std::unique_ptr<Zip>> Zip::openBytes(StringRef bytes) {
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t *source =
      zip_source_buffer_create(bytes.data(), bytes.size(), 0, &error);
  zip_t *archive =
      source ? zip_open_from_source(source, ZIP_RDONLY | ZIP_CHECKCONS, &error)
             : nullptr;
  std::string why = archive ? "" : zip_error_strerror(&error);
  zip_error_fini(&error);
  if (archive)
    return std::unique_ptr<Zip>(new Zip(archive));
  if (source)
    zip_source_free(source);
  return Status::failed("expected a zip file: " + why);
}

Zip::Zip(struct zip *archive) : archive(archive) {
  // The folder is that of the first member.
  if (const char *first = zip_get_name(archive, 0, 0)) {
    auto [name, rest] = StringRef(first).split('/');
    if (!rest.empty() && name != "models" && name != "data" &&
        !name.starts_with("."))
      folder = name.str() + "/";
  }
}

Zip::~Zip() { zip_discard(archive); }

bool Zip::has(const std::string &name) const {
  return zip_name_locate(archive, (folder + name).c_str(), 0) >= 0;
}

Result<std::string> Zip::read(const std::string &name) const {
  std::string member = folder + name;
  auto wrong = [&](const std::string &why) {
    return Status::failed("'" + artifact::printable(member) + "': " + why);
  };
  zip_stat_t stat;
  if (zip_stat(archive, member.c_str(), 0, &stat) != 0)
    return wrong("the archive has no such member");
  constexpr zip_uint64_t needed =
      ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD;
  if ((stat.valid & needed) != needed)
    return wrong("the archive does not say its size");
  bool isStored = stat.comp_method == ZIP_CM_STORE;
  if (isStored
          ? stat.size != stat.comp_size
          : stat.size > kMostJson || stat.size / kMostGrowth > stat.comp_size)
    return wrong("expected a plausible size, but got " +
                 std::to_string(stat.size) + " bytes made of " +
                 std::to_string(stat.comp_size));
  zip_file_t *file = zip_fopen(archive, member.c_str(), 0);
  if (!file)
    return wrong(zip_strerror(archive));
  std::string bytes(stat.size, 0);
  zip_int64_t got = zip_fread(file, bytes.data(), bytes.size());
  // Reading past the end checks the sum.
  char end;
  bool isWhole = got == static_cast<zip_int64_t>(bytes.size()) &&
                 zip_fread(file, &end, 1) == 0;
  std::string why = isWhole ? "" : zip_file_strerror(file);
  zip_fclose(file);
  if (!isWhole)
    return wrong("cannot be read: " + why);
  return bytes;
}

std::vector<std::string> Zip::list(StringRef prefix, StringRef suffix) const {
  std::vector<std::string> names;
  for (zip_int64_t i = 0, n = zip_get_num_entries(archive, 0); i < n; ++i)
    if (const char *name = zip_get_name(archive, i, 0)) {
      StringRef inside = name;
      if (inside.consume_front(folder) && inside.starts_with(prefix) &&
          inside.ends_with(suffix))
        names.push_back(inside.str());
    }
  return names;
}
