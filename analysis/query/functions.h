// SPDX-License-Identifier: Apache-2.0
// The SQL functions of `paceline query`, beside SQLite's own.
#pragma once

#include <sqlite3.h>

#include <span>

#include "analysis/query/run_data.h"

namespace paceline::analysis {

struct QueryFunction {
  const char* call;  // "argument(id, key)"
  const char* meaning;
};
std::span<const QueryFunction> query_functions();

// Throws Error. The data must outlive the database.
void add_functions(sqlite3* database, RunData& data);

}  // namespace paceline::analysis
