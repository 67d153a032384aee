//===- tandem-lsp-server.cpp - the dialect in an editor -------------------===//
//
// MLIR's language server has no door for more than a dialect. So it runs in a
// process of its own, and what an editor and it say to each other is relayed:
// to what it answers, what Tandem knows is added (Relay.h).
//
//===----------------------------------------------------------------------===//
#include "ir/Dialect.h"
#include "tools/tandem-lsp-server/Relay.h"

#include "mlir/InitAllDialects.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"
#include "llvm/Support/FileSystem.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <sys/wait.h>
#include <unistd.h>

namespace {

/// Both ends of a pipe.
struct Pipe {
  Pipe() {
    int ends[2];
    if (::pipe(ends) != 0) {
      std::perror("tandem-lsp-server: error: cannot make a pipe");
      std::exit(1);
    }
    read = ends[0], write = ends[1];
  }
  int read, write;
};

} // namespace

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  registry.insert<tandem::TandemDialect>();

  Pipe toServer, fromServer;
  pid_t server = ::fork();
  if (server < 0) {
    std::perror("tandem-lsp-server: error: cannot start the server of MLIR");
    return 1;
  }
  if (server == 0) {
    ::dup2(toServer.read, STDIN_FILENO);
    ::dup2(fromServer.write, STDOUT_FILENO);
    for (int end :
         {toServer.read, toServer.write, fromServer.read, fromServer.write})
      ::close(end);
    return mlir::failed(mlir::MlirLspServerMain(argc, argv, registry));
  }
  ::close(toServer.read);
  ::close(fromServer.write);
  std::signal(SIGPIPE, SIG_IGN); // the editor, or the server, may be gone
  std::FILE *answers = ::fdopen(fromServer.read, "r");
  if (!answers) {
    std::perror("tandem-lsp-server: error: cannot read from a pipe");
    return 1;
  }
  std::string self = llvm::sys::fs::getMainExecutable(
      argv[0], reinterpret_cast<void *>(&main));
  tandem::editor::relay(registry, self, stdin, toServer.write, answers,
                        STDOUT_FILENO);
  int status = 0;
  while (::waitpid(server, &status, 0) < 0 && errno == EINTR)
    ;
  std::fflush(stdout);
  // Without destructors: the editor may still hold the pipe that is read.
  ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}
