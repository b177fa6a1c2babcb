// SPDX-License-Identifier: Apache-2.0
#include "analysis/python/arrow_stream.h"

#include <cerrno>
#include <exception>

namespace paceline::python {
namespace {

const char* format_of(ColumnType type) {
  switch (type) {
    case ColumnType::int64:
      return "l";
    case ColumnType::int32:
    case ColumnType::dictionary:  // of its numbers
      return "i";
    case ColumnType::uint32:
      return "I";
    case ColumnType::uint16:
      return "S";
    case ColumnType::real:
      return "g";
    case ColumnType::text:
      return "U";
  }
  return "n";
}

// A schema or array with all that it points to, which lives until it is released.
struct SchemaNode {
  std::string name;
  std::vector<ArrowSchema> children;
  std::vector<ArrowSchema*> places;
  ArrowSchema dictionary{};
};
struct ArrayNode {
  ColumnValues values;
  std::vector<const void*> buffers;
  std::vector<ArrowArray> children;
  std::vector<ArrowArray*> places;
  ArrowArray dictionary{};
};

// Releases what the reader has not moved away, and the node itself.
template <class Node, class Part>
void release_part(Part* part) {
  auto* node = static_cast<Node*>(part->private_data);
  for (Part& child : node->children) {
    if (child.release != nullptr) child.release(&child);
  }
  if (node->dictionary.release != nullptr) node->dictionary.release(&node->dictionary);
  part->release = nullptr;
  delete node;
}

SchemaNode* start_schema(ArrowSchema& out, const char* format, std::string name) {
  auto* node = new SchemaNode{.name = std::move(name), .children = {}, .places = {}, .dictionary = {}};
  out = {};
  out.format = format;
  out.name = node->name.c_str();
  out.release = release_part<SchemaNode, ArrowSchema>;
  out.private_data = node;
  return node;
}

ArrayNode* start_array(ArrowArray& out, std::int64_t length, ColumnValues values, std::vector<const void*> buffers) {
  auto* node = new ArrayNode{
      .values = std::move(values), .buffers = std::move(buffers), .children = {}, .places = {}, .dictionary = {}};
  out = {};
  out.length = length;
  out.null_count = node->values.nulls;
  out.n_buffers = static_cast<std::int64_t>(node->buffers.size());
  out.buffers = node->buffers.data();
  out.release = release_part<ArrayNode, ArrowArray>;
  out.private_data = node;
  return node;
}

template <class Node, class Part>
void set_children(Node& node, Part& out) {
  for (Part& child : node.children) node.places.push_back(&child);
  out.n_children = static_cast<std::int64_t>(node.places.size());
  out.children = node.places.data();
}

void export_texts(const std::shared_ptr<const Texts>& texts, ArrowArray& out) {
  ColumnValues values;
  values.owner = texts;
  start_array(out, static_cast<std::int64_t>(texts->size()), std::move(values),
              {nullptr, texts->ends.data(), texts->bytes.data()});
}

void export_batch(const std::vector<Field>& fields, Batch batch, ArrowArray& out) {
  ArrayNode& node = *start_array(out, batch.rows, {}, {nullptr});
  node.children.resize(fields.size());
  for (std::size_t c = 0; c < fields.size(); ++c) {
    ColumnValues& column = batch.columns[c];
    std::vector<const void*> buffers{column.validity, column.values};
    if (fields[c].type == ColumnType::text) buffers.push_back(column.bytes);
    const auto dictionary = column.dictionary;
    ArrowArray& child = node.children[c];
    ArrayNode& made = *start_array(child, batch.rows, std::move(column), std::move(buffers));
    if (dictionary) {
      export_texts(dictionary, made.dictionary);
      child.dictionary = &made.dictionary;
    }
  }
  set_children(node, out);
}

struct Stream {
  std::unique_ptr<BatchSource> source;
  std::string error;
};

// Calls `work`; an exception becomes an error of the stream.
template <class Work>
int guarded(ArrowArrayStream* stream, Work&& work) {
  auto& state = *static_cast<Stream*>(stream->private_data);
  try {
    work(*state.source);
    return 0;
  } catch (const std::bad_alloc&) {
    state.error = "not enough memory";
    return ENOMEM;
  } catch (const std::exception& error) {
    state.error = error.what();
    return EIO;
  }
}

}  // namespace

void export_schema(const std::vector<Field>& fields, ArrowSchema& out) {
  constexpr std::int64_t nullable = 2;
  SchemaNode& node = *start_schema(out, "+s", "");
  node.children.resize(fields.size());
  for (std::size_t c = 0; c < fields.size(); ++c) {
    ArrowSchema& child = node.children[c];
    SchemaNode& made = *start_schema(child, format_of(fields[c].type), fields[c].name);
    child.flags = fields[c].nullable ? nullable : 0;
    if (fields[c].type == ColumnType::dictionary) {
      start_schema(made.dictionary, format_of(ColumnType::text), "");
      child.dictionary = &made.dictionary;
    }
  }
  set_children(node, out);
}

void export_stream(std::unique_ptr<BatchSource> source, ArrowArrayStream& out) {
  out = {};
  out.private_data = new Stream{.source = std::move(source), .error = {}};
  out.get_schema = [](ArrowArrayStream* stream, ArrowSchema* schema) {
    return guarded(stream, [&](BatchSource& from) { export_schema(from.fields(), *schema); });
  };
  out.get_next = [](ArrowArrayStream* stream, ArrowArray* array) {
    return guarded(stream, [&](BatchSource& from) {
      *array = {};  // without `release` it is the end of the stream
      if (auto batch = from.next()) export_batch(from.fields(), std::move(*batch), *array);
    });
  };
  out.get_last_error = [](ArrowArrayStream* stream) -> const char* {
    const std::string& error = static_cast<Stream*>(stream->private_data)->error;
    return error.empty() ? nullptr : error.c_str();
  };
  out.release = [](ArrowArrayStream* stream) {
    delete static_cast<Stream*>(stream->private_data);
    stream->release = nullptr;
  };
}

}  // namespace paceline::python
