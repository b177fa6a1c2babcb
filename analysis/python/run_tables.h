// SPDX-License-Identifier: Apache-2.0
// The tables of a run for Python. Slices are read where they are in memory; the other tables are results of queries.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "analysis/python/arrow_stream.h"
#include "analysis/trace/trace.h"

namespace paceline::python {

// A loaded run, with the texts that its tables share.
class LoadedRun {
 public:
  LoadedRun(analysis::Trace trace, std::string path);

  const analysis::Trace& trace() const { return trace_; }
  const std::string& path() const { return path_; }

  // A column of texts: all of them once, and the number of each kind's.
  struct Words {
    std::shared_ptr<Texts> texts = std::make_shared<Texts>();
    std::vector<std::int32_t> of_kind;
  };
  const Words& names() const { return names_; }
  const Words& categories() const { return categories_; }
  const Words& domains() const { return domains_; }

 private:
  Words words(analysis::NameId analysis::Kind::*part) const;

  analysis::Trace trace_;
  std::string path_;
  Words names_, categories_, domains_;
};

// A table that can be read several times.
struct Table {
  std::vector<Field> fields;
  std::int64_t rows = 0;
  std::function<std::unique_ptr<BatchSource>()> open;
};

// One batch for each track. start_ns, duration_ns, depth and kind are the columns of the run itself.
Table slices_table(std::shared_ptr<const LoadedRun> run);

// The result of a SELECT. A column of integers and real numbers is real, one of numbers and texts is text. `check` is
// called now and then, and may throw to end the query. Throws Error.
Table query_table(const LoadedRun& run, const std::string& sql, const std::function<void()>& check);

// All columns of a table of `paceline query`, with the types of its schema also where values are missing.
Table named_table(const LoadedRun& run, const std::string& name, const std::function<void()>& check);

}  // namespace paceline::python
