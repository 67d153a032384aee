//===- IndexFiles.h - the files of an index, replaced as one --------------===//
//
// The files of NAME.safetensors.index.json are called
// NAME-xxxxxxxx-00001-of-00004.safetensors. The digits after the name are those
// of one save: no file of an earlier one is written again. So the earlier index
// and its files are whole until the new index takes its name, at once
// (AtomicFile), when all its files are on the disk. Then the others are
// removed. What a save left that did not come so far is removed by the next
// one.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_CHECKPOINT_INDEXFILES_H
#define TANDEM_RUNTIME_CHECKPOINT_INDEXFILES_H

#include "runtime/io/Safetensors.h"
#include "runtime/io/TensorIndex.h"

#include <functional>

namespace tandem::checkpoint {

/// Returns 8 digits that no file of the index `path` has.
std::string newGeneration(const std::string &path);

/// Returns the name, without the folder, of file `number` (from 0) of `count`.
std::string fileName(const std::string &path, const std::string &generation,
                     int64_t number, int64_t count);

/// Writes file `file` of the index `path`, and adds its size and its checksums
/// to `index`. `give` as for writeSafetensors.
Status writeFile(const std::string &path, const std::string &file,
                 const std::map<std::string, io::TensorType> &tensors,
                 const std::function<Status(const std::string &,
                                            const io::TakeBytes &)> &give,
                 io::TensorIndex &index);

/// Replaces the index, and removes the files of other generations. Fails, and
/// changes nothing, where this process does not see a file of it as large as it
/// was written: ranks have not one folder then.
Status commit(const std::string &path, const std::string &generation,
              const io::TensorIndex &index);

/// Removes the files of a generation that no index names.
void removeFiles(const std::string &path, const std::string &generation);

} // namespace tandem::checkpoint

#endif
