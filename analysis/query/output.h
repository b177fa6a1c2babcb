// SPDX-License-Identifier: Apache-2.0
// The result of a query as text.
#pragma once

#include <cstdio>
#include <memory>

#include "analysis/query/query.h"

namespace paceline::analysis {

enum class QueryFormat {
  table,  // aligned columns for people; numbers on the right
  csv,    // RFC 4180, with a header; NULL is an empty field
  tsv,    // with a header; tabs, line ends and backslashes in texts are \t, \n, \r and \\.
  json    // an array of objects; integers exactly
};

// Writes to `out` row by row, so that a result may be larger than memory. A table takes its widths from the first
// thousand rows. Throws Error where `out` takes no more.
std::unique_ptr<QuerySink> query_output(QueryFormat format, std::FILE* out);

}  // namespace paceline::analysis
