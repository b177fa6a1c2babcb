// SPDX-License-Identifier: Apache-2.0
// Arrow's file format (IPC, https://arrow.apache.org/docs/format/Columnar.html), which is Feather version 2: pandas,
// Polars and DuckDB read it. One row for each slice and mark, with texts as dictionaries:
//   id, rank, host, pid, track, kind, name, category, domain, start_ns, duration_ns, depth, args
// The columns are those of the CSV export, with the id of `paceline query` and the domain in columns of their own.
#include <flatbuffers/flatbuffers.h>

#include <bit>
#include <map>
#include <utility>

#include "analysis/exporters/exporter.h"
#include "analysis/exporters/json_arguments.h"
#include "analysis/text/text_output.h"

namespace paceline::analysis {
namespace arrow_writer {

static_assert(std::endian::native == std::endian::little, "the columns are written as they are in memory");

using flatbuffers::FieldIndexToOffset;
using flatbuffers::FlatBufferBuilder;
using TableOffset = flatbuffers::Offset<flatbuffers::Table>;

// Numbers of Arrow's schemas (Schema.fbs, Message.fbs, File.fbs). The comments name the fields by their index.
constexpr std::int16_t version_5 = 4;
enum TypeId : std::uint8_t { type_int = 2, type_utf8 = 5 };
enum HeaderId : std::uint8_t { header_schema = 1, header_dictionary = 2, header_batch = 3 };

struct FieldNode {
  std::int64_t length = 0, null_count = 0;
};
struct BufferPlace {
  std::int64_t offset = 0, length = 0;
};
struct Block {  // of the footer: a message in the file
  std::int64_t offset = 0;
  std::int32_t metadata_length = 0, padding = 0;
  std::int64_t body_length = 0;
};

// Builds one table after its parts: FlatBuffers wants strings and tables inside a table to be finished before it.
class TableBuilder {
 public:
  explicit TableBuilder(FlatBufferBuilder& to) : to_(to), start_(to.StartTable()) {}
  template <class Number>
  TableBuilder& number(flatbuffers::voffset_t field, Number value) {
    to_.AddElement<Number>(FieldIndexToOffset(field), value);
    return *this;
  }
  template <class Of>
  TableBuilder& part(flatbuffers::voffset_t field, flatbuffers::Offset<Of> offset) {
    to_.AddOffset(FieldIndexToOffset(field), offset);
    return *this;
  }
  TableOffset end() { return TableOffset(to_.EndTable(start_)); }

 private:
  FlatBufferBuilder& to_;
  flatbuffers::uoffset_t start_;
};

// A column: integers, texts, or numbers of texts in a dictionary.
struct Column {
  const char* name;
  int bits = 0;  // of its integers, or of the dictionary's numbers; 0: texts
  bool is_signed = true;
  int dictionary = -1;  // its number; -1: none
};
enum ColumnId {
  column_id,
  column_rank,
  column_host,
  column_pid,
  column_track,
  column_kind,
  column_name,
  column_category,
  column_domain,
  column_start,
  column_duration,
  column_depth,
  column_args,
  column_count
};
constexpr Column columns[column_count] = {{.name = "id", .bits = 64},
                                          {.name = "rank", .bits = 32},
                                          {.name = "host", .bits = 32, .dictionary = 0},
                                          {.name = "pid", .bits = 64},
                                          {.name = "track", .bits = 32, .dictionary = 1},
                                          {.name = "kind", .bits = 32, .dictionary = 2},
                                          {.name = "name", .bits = 32, .dictionary = 3},
                                          {.name = "category", .bits = 32, .dictionary = 4},
                                          {.name = "domain", .bits = 32, .dictionary = 5},
                                          {.name = "start_ns", .bits = 64},
                                          {.name = "duration_ns", .bits = 64},
                                          {.name = "depth", .bits = 16, .is_signed = false},
                                          {.name = "args"}};
constexpr int dictionary_count = 6;

// Texts by number, each once.
class Dictionary {
 public:
  std::int32_t add(const std::string& text) {
    const auto [found, fresh] = numbers_.try_emplace(text, static_cast<std::int32_t>(texts_.size()));
    if (fresh) texts_.push_back(&found->first);
    return found->second;
  }
  const std::vector<const std::string*>& texts() const { return texts_; }

 private:
  std::map<std::string, std::int32_t> numbers_;
  std::vector<const std::string*> texts_;
};

// The buffers of a batch, one behind the other, each padded to 8 bytes.
class Body {
 public:
  void clear() { bytes_.clear(), places_.clear(); }
  // A column without missing values has an empty buffer for them.
  void no_nulls() { places_.push_back({static_cast<std::int64_t>(bytes_.size()), 0}); }
  void add(std::string_view bytes) {
    places_.push_back({static_cast<std::int64_t>(bytes_.size()), static_cast<std::int64_t>(bytes.size())});
    bytes_ += bytes;
    bytes_.resize((bytes_.size() + 7) / 8 * 8);
  }
  const std::string& bytes() const { return bytes_; }
  const std::vector<BufferPlace>& places() const { return places_; }

 private:
  std::string bytes_;
  std::vector<BufferPlace> places_;
};

// A column of texts: where each begins, and all of them.
struct Texts {
  std::string ends = std::string(4, '\0'), bytes;  // the first text begins at 0
  void add(std::string_view text) {
    bytes += text;
    const auto end = static_cast<std::int32_t>(bytes.size());
    ends.append(reinterpret_cast<const char*>(&end), 4);
  }
  void clear() { ends.assign(4, '\0'), bytes.clear(); }
};

class ArrowWriter {
 public:
  ArrowWriter(const ExportJob& job, std::FILE* file) : job_(job), out_(file), arguments_(job.trace()) {}

  void write() {
    collect_texts();
    out_.text(std::string_view("ARROW1\0\0", 8));
    FlatBufferBuilder head;
    const TableOffset schema_part = schema(head);
    message(head, header_schema, schema_part, Body());
    for (int number = 0; number < dictionary_count; ++number) dictionary(number);
    for (const Rank* rank : job_.ranks()) {
      for (const Track& track : rank->tracks) {
        const auto number = job_.first_track(*rank) + static_cast<TrackNumber>(&track - rank->tracks.data());
        rows(*rank, track, track.slices, number, false);
        rows(*rank, track, track.marks, number, true);
      }
    }
    batch();
    footer();
    out_.flush();
  }

 private:
  Dictionary& dictionary_of(ColumnId column) { return dictionaries_[columns[column].dictionary]; }

  // Everything that the dictionaries hold, because they come before the rows.
  void collect_texts() {
    kinds_[0] = dictionary_of(column_kind).add("slice");
    kinds_[1] = dictionary_of(column_kind).add("mark");
    CleanNames texts(job_.trace());
    for (const Kind& kind : job_.trace().kinds) {
      words_.push_back({dictionary_of(column_name).add(texts[kind.name]),
                        dictionary_of(column_category).add(texts[kind.category]),
                        dictionary_of(column_domain).add(texts[kind.domain])});
    }
    for (const Rank* rank : job_.ranks()) {
      dictionary_of(column_host).add(valid_utf8(rank->host));
      for (const Track& track : rank->tracks) dictionary_of(column_track).add(valid_utf8(track.label));
    }
  }

  static TableOffset int_type(FlatBufferBuilder& to, int bits, bool is_signed) {
    return TableBuilder(to).number<std::int32_t>(0, bits).number<std::uint8_t>(1, is_signed ? 1 : 0).end();  // Int
  }

  static TableOffset schema(FlatBufferBuilder& to) {
    to.ForceDefaults(true);
    std::vector<TableOffset> fields;
    for (const Column& column : columns) {
      const auto name = to.CreateString(column.name);
      const bool text = column.bits == 0 || column.dictionary >= 0;
      const TableOffset type = text ? TableBuilder(to).end() : int_type(to, column.bits, column.is_signed);
      TableOffset encoding;
      if (column.dictionary >= 0) {
        const TableOffset numbers = int_type(to, column.bits, true);
        encoding = TableBuilder(to).number<std::int64_t>(0, column.dictionary).part(1, numbers).end();
      }
      const auto children = to.CreateVector(std::vector<TableOffset>());
      TableBuilder field(to);  // 0 name, 1 nullable, 2 type's number, 3 type, 4 dictionary, 5 children
      field.part(0, name).number<std::uint8_t>(1, 0).number<std::uint8_t>(2, text ? type_utf8 : type_int).part(3, type);
      if (column.dictionary >= 0) field.part(4, encoding);
      fields.push_back(field.part(5, children).end());
    }
    const auto all = to.CreateVector(fields);
    return TableBuilder(to).number<std::int16_t>(0, 0).part(1, all).end();  // 0 endianness, 1 fields
  }

  // RecordBatch: 0 length, 1 nodes, 2 buffers.
  static TableOffset record_batch(FlatBufferBuilder& to, std::int64_t rows, std::size_t columns_of, const Body& body) {
    const std::vector<FieldNode> nodes(columns_of, FieldNode{rows, 0});
    const auto node_part = to.CreateVectorOfStructs(nodes);
    const auto buffer_part = to.CreateVectorOfStructs(body.places());
    return TableBuilder(to).number<std::int64_t>(0, rows).part(1, node_part).part(2, buffer_part).end();
  }

  // Message: 0 version, 1 header's number, 2 header, 3 length of the body. In the file: a mark, the length of the
  // metadata with its padding, the metadata, the body.
  Block message(FlatBufferBuilder& to, HeaderId id, TableOffset header, const Body& body) {
    to.Finish(TableBuilder(to)
                  .number<std::int16_t>(0, version_5)
                  .number<std::uint8_t>(1, id)
                  .part(2, header)
                  .number<std::int64_t>(3, static_cast<std::int64_t>(body.bytes().size()))
                  .end());
    const std::size_t padded = (to.GetSize() + 7) / 8 * 8;
    const Block block{static_cast<std::int64_t>(out_.size()), static_cast<std::int32_t>(padded + 8), 0,
                      static_cast<std::int64_t>(body.bytes().size())};
    number(0xFFFFFFFF);
    number(static_cast<std::uint32_t>(padded));
    out_.text({reinterpret_cast<const char*>(to.GetBufferPointer()), to.GetSize()});
    out_.text(std::string_view("\0\0\0\0\0\0\0", padded - to.GetSize()));
    out_.text(body.bytes());
    out_.line_done();
    return block;
  }

  void number(std::uint32_t value) { out_.text({reinterpret_cast<const char*>(&value), 4}); }

  void dictionary(int number) {
    Texts texts;
    for (const std::string* text : dictionaries_[number].texts()) texts.add(*text);
    Body body;
    body.no_nulls();
    body.add(texts.ends);
    body.add(texts.bytes);
    FlatBufferBuilder to;
    to.ForceDefaults(true);
    const TableOffset data = record_batch(to, static_cast<std::int64_t>(dictionaries_[number].texts().size()), 1, body);
    const TableOffset header = TableBuilder(to)  // DictionaryBatch: 0 id, 1 data, 2 isDelta
                                   .number<std::int64_t>(0, number)
                                   .part(1, data)
                                   .number<std::uint8_t>(2, 0)
                                   .end();
    dictionary_blocks_.push_back(message(to, header_dictionary, header, body));
  }

  void rows(const Rank& rank, const Track& track, const Slices& slices, TrackNumber number, bool marks) {
    const std::int32_t host = dictionary_of(column_host).add(valid_utf8(rank.host)),
                       label = dictionary_of(column_track).add(valid_utf8(track.label)), what = kinds_[marks ? 1 : 0];
    job_.each(slices, [&](const SelectedSlice& slice) {
      put<std::int64_t>(column_id, marks ? mark_id(number, slice.index) : slice_id(number, slice.index));
      put<std::int32_t>(column_rank, rank.rank);
      put<std::int32_t>(column_host, host);
      put<std::int64_t>(column_pid, rank.pid);
      put<std::int32_t>(column_track, label);
      put<std::int32_t>(column_kind, what);
      const Words& words = words_[slices.kind[slice.index]];
      put<std::int32_t>(column_name, words.name);
      put<std::int32_t>(column_category, words.category);
      put<std::int32_t>(column_domain, words.domain);
      put<std::int64_t>(column_start, slice.start_ns);
      put<std::int64_t>(column_duration, slice.duration_ns);
      put<std::uint16_t>(column_depth, slices.depth[slice.index]);
      args_.add(arguments_(slices, slice));
      if (++rows_ == rows_of_a_batch || args_.bytes.size() > most_text) batch();
    });
  }

  template <class Number>
  void put(ColumnId column, Number value) {
    data_[column].append(reinterpret_cast<const char*>(&value), sizeof(value));
  }

  void batch() {
    if (rows_ == 0) return;
    body_.clear();
    for (int column = 0; column < column_count; ++column) {
      body_.no_nulls();
      if (column == column_args) {
        body_.add(args_.ends);
        body_.add(args_.bytes);
      } else {
        body_.add(data_[column]);
      }
      data_[column].clear();
    }
    args_.clear();
    FlatBufferBuilder to;
    to.ForceDefaults(true);
    const TableOffset header = record_batch(to, std::exchange(rows_, 0), column_count, body_);
    batch_blocks_.push_back(message(to, header_batch, header, body_));
  }

  // Footer: 0 version, 1 schema, 2 dictionaries, 3 record batches.
  void footer() {
    number(0xFFFFFFFF);
    number(0);
    FlatBufferBuilder to;
    const TableOffset schema_part = schema(to);
    const auto dictionaries = to.CreateVectorOfStructs(dictionary_blocks_);
    const auto batches = to.CreateVectorOfStructs(batch_blocks_);
    to.Finish(TableBuilder(to)
                  .number<std::int16_t>(0, version_5)
                  .part(1, schema_part)
                  .part(2, dictionaries)
                  .part(3, batches)
                  .end());
    out_.text({reinterpret_cast<const char*>(to.GetBufferPointer()), to.GetSize()});
    number(to.GetSize());
    out_.text("ARROW1");
  }

  static constexpr std::int64_t rows_of_a_batch = 1 << 16;
  static constexpr std::size_t most_text = 1 << 30;  // offsets have 31 bits
  struct Words {                                     // of a kind, as numbers in the dictionaries
    std::int32_t name = 0, category = 0, domain = 0;
  };

  const ExportJob& job_;
  TextOutput out_;
  JsonArguments arguments_;
  Dictionary dictionaries_[dictionary_count];
  std::int32_t kinds_[2] = {};
  std::vector<Words> words_;  // by kind
  std::string data_[column_count];
  Texts args_;
  Body body_;
  std::int64_t rows_ = 0;
  std::vector<Block> dictionary_blocks_, batch_blocks_;
};

}  // namespace arrow_writer

constexpr Exporter arrow_exporter{
    .name = "arrow",
    .what = "Arrow IPC (Feather) for pandas, Polars and DuckDB",
    .target = Exporter::Target::stream,
    .write = [](const ExportJob& job, std::FILE* out) { arrow_writer::ArrowWriter(job, out).write(); }};

}  // namespace paceline::analysis
