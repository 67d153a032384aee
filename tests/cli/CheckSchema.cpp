//===- CheckSchema.cpp - JSON as its schema has it ------------------------===//
//
//   check-schema SCHEMA FILE...
//
// Says what in the files is not as in the schema; exit code 1 if anything is.
// Readers of the JSON have to expect new fields, so that the schema lets them
// pass. Here they are errors: what is printed is to be in the schema.
//
//===----------------------------------------------------------------------===//
#include <nlohmann/json.hpp>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include <cstdio>
#include <exception>
#include <fstream>

using nlohmann::json;
using Adapter = valijson::adapters::NlohmannJsonAdapter;

/// Objects whose fields the schema lists have no others.
static void close(json &schema) {
  if (schema.is_object() && schema.contains("properties") &&
      !schema.contains("additionalProperties"))
    schema["additionalProperties"] = false;
  if (schema.is_structured())
    for (json &part : schema)
      close(part);
}

static json read(const char *path) {
  std::ifstream file(path);
  if (!file)
    throw std::runtime_error(std::string("cannot read ") + path);
  return json::parse(file);
}

/// Prints what is wrong with a file; false if something is.
static bool check(const valijson::Schema &schema, const char *path) {
  const json document = read(path);
  valijson::ValidationResults results;
  valijson::Validator validator(valijson::Validator::kStrongTypes);
  if (validator.validate(schema, Adapter(document), &results))
    return true;
  valijson::ValidationResults::Error error;
  while (results.popError(error)) {
    std::string at;
    for (const std::string &part : error.context)
      at += part;
    std::fprintf(stderr, "%s: %s: %s\n", path, at.c_str(),
                 error.description.c_str());
  }
  return false;
}

int main(int argc, char **argv) try {
  if (argc < 3)
    throw std::runtime_error("expected SCHEMA and a FILE");
  json text = read(argv[1]);
  close(text);
  valijson::Schema schema;
  valijson::SchemaParser parser;
  parser.populateSchema(Adapter(text), schema);
  bool isRight = true;
  for (int i = 2; i < argc; ++i)
    isRight &= check(schema, argv[i]);
  return isRight ? 0 : 1;
} catch (const std::exception &error) {
  std::fprintf(stderr, "check-schema: %s\n", error.what());
  return 2;
}
