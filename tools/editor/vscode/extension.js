// Starts tandem-lsp-server for files of the dialect.
const vscode = require("vscode");
const {LanguageClient} = require("vscode-languageclient/node");

let client;

function activate() {
  const settings = vscode.workspace.getConfiguration("tandem");
  client = new LanguageClient(
      "tandem", "Tandem dialect",
      {command: settings.get("server"), args: []}, {
        documentSelector: [{scheme: "file", language: "tandem"}],
        initializationOptions: {tandem: {options: settings.get("options")}},
      });
  return client.start();
}

function deactivate() { return client && client.stop(); }

module.exports = {activate, deactivate};
