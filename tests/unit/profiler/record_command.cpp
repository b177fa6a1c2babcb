// `paceline` with the one subcommand `record`, for record_test.cpp.
#include <cstdio>

#include "profiler/record/record.h"

int main(int argc, char** argv) {
  CLI::App app("record", "paceline");
  app.require_subcommand(1);
  std::function<int()> chosen;
  paceline::record::add_record(app, chosen);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return chosen();
}
