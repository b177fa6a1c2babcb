// SPDX-License-Identifier: Apache-2.0
// Tables as streams of Arrow's C data interface (https://arrow.apache.org/docs/format/CDataInterface.html), which
// pandas, Polars, DuckDB and pyarrow read without a copy and without a library in between.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// The structures of the interface, as its specification prints them.
extern "C" {
#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE
struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  int64_t flags;
  int64_t n_children;
  struct ArrowSchema** children;
  struct ArrowSchema* dictionary;
  void (*release)(struct ArrowSchema*);
  void* private_data;
};
struct ArrowArray {
  int64_t length;
  int64_t null_count;
  int64_t offset;
  int64_t n_buffers;
  int64_t n_children;
  const void** buffers;
  struct ArrowArray** children;
  struct ArrowArray* dictionary;
  void (*release)(struct ArrowArray*);
  void* private_data;
};
#endif
#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE
struct ArrowArrayStream {
  int (*get_schema)(struct ArrowArrayStream*, struct ArrowSchema* out);
  int (*get_next)(struct ArrowArrayStream*, struct ArrowArray* out);
  const char* (*get_last_error)(struct ArrowArrayStream*);
  void (*release)(struct ArrowArrayStream*);
  void* private_data;
};
#endif
}

namespace paceline::python {

// Texts without gaps: text i is from ends[i] to ends[i + 1].
struct Texts {
  std::vector<std::int64_t> ends{0};
  std::string bytes;

  void add(std::string_view text) {
    bytes += text;
    ends.push_back(static_cast<std::int64_t>(bytes.size()));
  }
  std::size_t size() const { return ends.size() - 1; }
};

enum class ColumnType : std::uint8_t { int64, int32, uint32, uint16, real, text, dictionary };

struct Field {
  std::string name;
  ColumnType type = ColumnType::int64;
  bool nullable = false;
};

// The values of one column in one batch. `owner` keeps them alive, so that they can be those of the run itself.
struct ColumnValues {
  std::shared_ptr<const void> owner;
  const void* values = nullptr;            // of texts their ends
  const void* bytes = nullptr;             // of texts
  const std::uint8_t* validity = nullptr;  // a bit for each row; nullptr: no value is missing
  std::int64_t nulls = 0;
  std::shared_ptr<const Texts> dictionary;  // of a dictionary, whose values are int32
};

struct Batch {
  std::int64_t rows = 0;
  std::vector<ColumnValues> columns;
};

// Makes the batches of one pass over a table.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  virtual const std::vector<Field>& fields() const = 0;
  // The next batch, or nothing after the last one.
  virtual std::optional<Batch> next() = 0;
};

void export_schema(const std::vector<Field>& fields, ArrowSchema& out);
void export_stream(std::unique_ptr<BatchSource> source, ArrowArrayStream& out);

}  // namespace paceline::python
