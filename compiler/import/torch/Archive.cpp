//===- Archive.cpp - the files of a torch.export archive ------------------===//
//
// The members of PyTorch's archives are stored as they are, in one folder of
// any name. What a member says of its size is not believed beyond the size of
// the archive itself, unless it is compressed JSON of a plausible size.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/torch/Archive.h"
#include "compiler/import/JsonReader.h"
#include "compiler/import/torch/ElementTypes.h"
#include "runtime/artifact/DeviceFiles.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"

#include <zip.h>

#include <limits>

using namespace tandem;
using namespace tandem::torch;
using llvm::StringRef;

/// A graph of more JSON than this is none that was exported.
static constexpr uint64_t kMostJson = uint64_t(1) << 30;
/// Compressed members may grow by this factor.
static constexpr uint64_t kMostGrowth = 100;

namespace {
class Zip {
public:
  static Result<std::unique_ptr<Zip>> open(const std::string &path);
  ~Zip() { zip_discard(archive); }

  bool has(const std::string &name) const {
    return zip_name_locate(archive, (folder + name).c_str(), 0) >= 0;
  }
  /// The bytes of a member.
  Result<std::string> read(const std::string &name) const;
  /// Names of members below `prefix` that end in `suffix`.
  std::vector<std::string> list(StringRef prefix, StringRef suffix) const;

private:
  explicit Zip(zip_t *archive) : archive(archive) {}
  zip_t *archive;
  std::string folder; ///< that everything is in: "model/"
};
} // namespace

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
  std::unique_ptr<Zip> zip(new Zip(archive));
  // The folder is that of the first member.
  if (const char *first = zip_get_name(archive, 0, 0)) {
    auto [folder, rest] = StringRef(first).split('/');
    if (!rest.empty() && folder != "models" && folder != "data" &&
        !folder.starts_with("."))
      zip->folder = folder.str() + "/";
  }
  return zip;
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

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

/// Elements of `size` bytes in row-major order, from a storage in which they
/// stand `strides` apart; nothing if they lie outside.
static std::optional<std::string> gather(StringRef storage,
                                         const std::vector<int64_t> &shape,
                                         const std::vector<int64_t> &strides,
                                         int64_t offset, int64_t size) {
  int64_t count = 1, last = offset;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] < 0 || strides[i] < 0 ||
        __builtin_mul_overflow(count, shape[i], &count))
      return std::nullopt;
    int64_t reach;
    if (shape[i] > 0 &&
        (__builtin_mul_overflow(shape[i] - 1, strides[i], &reach) ||
         __builtin_add_overflow(last, reach, &last)))
      return std::nullopt;
  }
  if (count == 0)
    return std::string();
  int64_t held = static_cast<int64_t>(storage.size()) / size;
  // Strides of 0 repeat elements; nothing stored is as much as that.
  if (offset < 0 || last >= held || count > (int64_t(1) << 40) / size)
    return std::nullopt;
  std::string bytes;
  bytes.reserve(count * size);
  std::vector<int64_t> index(shape.size(), 0);
  for (int64_t at = offset, left = count; left > 0; --left) {
    bytes.append(storage.data() + at * size, size);
    for (size_t i = shape.size(); i-- > 0;) {
      at += strides[i];
      if (++index[i] < shape[i])
        break;
      at -= strides[i] * shape[i];
      index[i] = 0;
    }
  }
  return bytes;
}

static std::optional<std::vector<int64_t>> integersOf(const Json &meta,
                                                      const char *key) {
  std::vector<int64_t> list;
  auto found = meta.find(key);
  if (found == meta.end() || !found->is_array())
    return std::nullopt;
  for (const Json &element : *found) {
    auto number = element.is_object() ? element.find("as_int") : element.end();
    if (!element.is_object() || number == element.end() ||
        !number->is_number_integer())
      return std::nullopt;
    list.push_back(number->get<int64_t>());
  }
  return list;
}

/// A tensor of the archive; or why there is none.
static Result<TensorPtr> readTensor(const Zip &zip, const std::string &folder,
                                    const std::string &name,
                                    const Json &entry) {
  if (entry.value("use_pickle", false))
    return Status::unsupported("is pickled, and pickles are not read");
  auto meta = entry.find("tensor_meta");
  auto path = entry.find("path_name");
  if (meta == entry.end() || !meta->is_object() || path == entry.end() ||
      !path->is_string())
    return Status::failed("expected 'tensor_meta' and 'path_name'");
  auto shape = integersOf(*meta, "sizes");
  auto strides = integersOf(*meta, "strides");
  auto dtype = meta->find("dtype");
  if (!shape || !strides || shape->size() != strides->size() ||
      dtype == meta->end() || !dtype->is_number_integer())
    return Status::failed("expected sizes, strides and an element type");
  auto data = std::make_shared<TensorData>();
  data->name = name;
  data->kind = kindOf(dtype->get<int64_t>());
  data->shape = *shape;
  if (!byteSize(data->kind))
    return Status::unsupported("has elements of type " +
                               spellingOf(dtype->get<int64_t>()));
  int64_t offset = 0;
  if (auto at = meta->find("storage_offset");
      at != meta->end() && at->is_object())
    offset = at->value("as_int", int64_t(0));
  auto bytes = zip.read(folder + path->get<std::string>());
  if (!bytes)
    return bytes.status();
  auto dense = gather(*bytes, *shape, *strides, offset, byteSize(data->kind));
  if (!dense)
    return Status::failed("expected its elements to lie in the " +
                          std::to_string(bytes->size()) +
                          " bytes that are stored");
  data->bytes = *std::move(dense);
  return TensorPtr(std::move(data));
}

/// Reads what `config` lists: parameters and buffers, or constants.
static Status readTensors(const Zip &zip, const std::string &folder,
                          const std::string &config, Program &to) {
  auto text = zip.read(folder + config);
  if (!text)
    return text.status();
  auto json = parseJson(*text);
  if (!json)
    return std::move(json).status().in("'" + folder + config + "'");
  auto list = json->find("config");
  if (!json->is_object() || list == json->end() || !list->is_object())
    return Status::failed("'" + folder + config +
                          "': expected a field 'config'");
  // What is stored once and shown alike is one tensor with several names.
  std::map<std::string, TensorPtr> stored;
  std::map<std::string, std::string> owners; ///< parameters by what they show
  for (auto &[name, entry] : list->items()) {
    if (!entry.is_object())
      return Status::failed("'" + folder + config + "': expected '" +
                            artifact::printable(name) + "' to be an object");
    auto tensor = readTensor(zip, folder, name, entry);
    if (tensor) {
      // Tensors without elements have the same file, and share nothing.
      bool isEmpty = (*tensor)->bytes.empty();
      std::string file = entry["path_name"].dump();
      if (isEmpty)
        file += "/" + name;
      TensorPtr &one = stored[file + entry["tensor_meta"].dump()];
      one = one ? one : *tensor;
      // Trained apart, they would not stay the same storage.
      if (entry.value("is_param", false) &&
          entry["tensor_meta"].value("requires_grad", false)) {
        auto [owner, isNew] = owners.emplace(file, name);
        if (!isNew && to.values.at(owner->second) != one)
          return Status::unsupported(
              "unsupported: '" + artifact::printable(name) + "' and '" +
              artifact::printable(owner->second) +
              "' are parameters that show one storage in different ways");
      }
      to.values[name] = one;
      to.storage[name] = folder + file;
      to.requiresGrad[name] =
          entry["tensor_meta"].value("requires_grad", false);
    } else if (tensor.status().code() == Code::Unsupported) {
      to.unread[name] = tensor.status().message();
    } else {
      return std::move(tensor).status().in("'" + artifact::printable(name) +
                                           "'");
    }
  }
  return Status::success();
}

//===----------------------------------------------------------------------===//
// Archives
//===----------------------------------------------------------------------===//

/// The layout before PyTorch 2.8: weights are pickles.
static Result<Program> readOld(const Zip &zip, const std::string &path) {
  auto text = zip.read("serialized_exported_program.json");
  if (!text)
    return std::move(text).status().in(path);
  auto program = readProgram(*text, path);
  if (!program)
    return program.status();
  for (const InputSpec &input : program->inputs)
    if (!input.target.empty())
      program->unread[input.target] =
          "is pickled, as archives of before PyTorch 2.8 have it, and pickles "
          "are not read";
  return program;
}

Result<Program> torch::readArchive(const std::string &path) {
  auto zip = Zip::open(path);
  if (!zip)
    return zip.status();
  if ((*zip)->has("serialized_exported_program.json"))
    return readOld(**zip, path);
  std::vector<std::string> models = (*zip)->list("models/", ".json");
  if (models.empty())
    return Status::failed(
        "'" + path +
        "' is no archive of torch.export.save: it has no 'models/NAME.json'");
  if (models.size() > 1)
    return Status::unsupported("unsupported: '" + path + "' has " +
                               std::to_string(models.size()) +
                               " models: " + llvm::join(models, ", "));
  if ((*zip)->has("byteorder")) {
    auto order = (*zip)->read("byteorder");
    if (order && StringRef(*order).trim() != "little")
      return Status::unsupported("unsupported: '" + path +
                                 "' was written on a big-endian machine");
  }
  auto text = (*zip)->read(models[0]);
  if (!text)
    return std::move(text).status().in(path);
  auto program = readProgram(*text, path);
  if (!program)
    return program.status();
  StringRef name = models[0];
  name.consume_front("models/");
  name.consume_back(".json");
  for (const char *kind : {"weights", "constants"}) {
    std::string folder = std::string("data/") + kind + "/";
    std::string config = (name + "_" + kind + "_config.json").str();
    if ((*zip)->has(folder + config))
      if (Status s = readTensors(**zip, folder, config, *program); !s)
        return std::move(s).in("'" + path + "'");
  }
  return program;
}
