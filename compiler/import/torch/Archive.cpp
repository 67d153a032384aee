//===- Archive.cpp - the files of a torch.export archive ------------------===//
#include "compiler/import/torch/Archive.h"
#include "compiler/import/JsonReader.h"
#include "compiler/import/torch/ElementTypes.h"
#include "compiler/import/torch/SavedTensors.h"
#include "compiler/import/torch/Zip.h"

#include "llvm/ADT/StringExtras.h"

#include <limits>

using namespace tandem;
using namespace tandem::torch;
using llvm::StringRef;

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

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

/// Expects the members of `json` to be true or false where they are there.
static Status expectFlags(const Json &json,
                          std::initializer_list<const char *> keys) {
  for (const char *key : keys)
    if (auto found = json.find(key);
        found != json.end() && !found->is_boolean())
      return Status::failed("expected '" + std::string(key) +
                            "' to be true or false, but got " +
                            artifact::printable(found->dump()));
  return Status::success();
}

/// A tensor of the archive; or why there is none.
static Result<TensorPtr> readTensor(const Zip &zip, const std::string &folder,
                                    const std::string &name,
                                    const Json &entry) {
  if (Status status = expectFlags(entry, {"use_pickle", "is_param"}); !status)
    return status;
  if (entry.value("use_pickle", false))
    return Status::unsupported("is pickled, and pickles are not read");
  auto meta = entry.find("tensor_meta");
  auto path = entry.find("path_name");
  if (meta == entry.end() || !meta->is_object() || path == entry.end() ||
      !path->is_string())
    return Status::failed("expected 'tensor_meta' and 'path_name'");
  if (Status status = expectFlags(*meta, {"requires_grad"}); !status)
    return status;
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
    if (auto number = at->find("as_int"); number != at->end()) {
      if (!number->is_number_integer())
        return Status::failed("expected 'storage_offset' to be an integer");
      offset = number->get<int64_t>();
    }
  auto bytes = zip.read(folder + path->get<std::string>());
  if (!bytes)
    return bytes.status();
  auto dense = denseOf(*bytes, *shape, *strides, offset, byteSize(data->kind));
  if (!dense)
    return Status::failed("expected its elements to lie in the " +
                          std::to_string(bytes->size()) +
                          " bytes that are stored");
  data->bytes = *std::move(dense);
  return TensorPtr(std::move(data));
}

static Status showsDifferently(const std::string &name,
                               const std::string &owner) {
  return Status::unsupported("unsupported: '" + artifact::printable(name) +
                             "' and '" + artifact::printable(owner) +
                             "' are parameters that show one storage in "
                             "different ways");
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
          return showsDifferently(name, owner->second);
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

/// Weights of the layout before PyTorch 2.8: dictionaries that torch.save
/// wrote.
static Status readSaved(const Zip &zip, const std::string &member,
                        Program &to) {
  auto bytes = zip.read(member);
  if (!bytes)
    return bytes.status();
  auto saved = readSavedFile(*bytes);
  if (!saved)
    return std::move(saved).status().in("'" + member + "'");
  std::map<std::string, std::string> owners; ///< parameters by their storage
  for (SavedTensor &tensor : *saved) {
    if (!tensor.data) {
      to.unread[tensor.name] = tensor.why;
      continue;
    }
    if (tensor.requiresGrad) {
      auto [owner, isNew] = owners.emplace(tensor.storage, tensor.name);
      if (!isNew && to.values.at(owner->second) != tensor.data)
        return showsDifferently(tensor.name, owner->second);
    }
    to.values[tensor.name] = tensor.data;
    to.storage[tensor.name] = member + tensor.storage;
    to.requiresGrad[tensor.name] = tensor.requiresGrad;
  }
  return Status::success();
}

static Result<Program> readOld(const Zip &zip, const std::string &path) {
  auto text = zip.read("serialized_exported_program.json");
  if (!text)
    return std::move(text).status().in(path);
  auto program = readProgram(*text, path);
  if (!program)
    return program.status();
  for (const char *member :
       {"serialized_state_dict.pt", "serialized_constants.pt"})
    if (Status s = readSaved(zip, member, *program); !s)
      return std::move(s).in("'" + path + "'");
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
