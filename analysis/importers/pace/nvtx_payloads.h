// SPDX-License-Identifier: Apache-2.0
// Decodes the binary payloads of NVTX events into values with the names that their schemas give them.
//
// Schemas and payloads may be hostile. Every offset is checked against the size of the payload. One event gives at most
// most_values values and looks at a bounded number of schema entries.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analysis/trace/records.h"
#include "profiler/format/event_table.h"

namespace paceline::analysis {

struct PayloadValue {
  std::string name;
  Argument number;   // without a key
  std::string text;  // where is_text: strings, arrays, enumerators, addresses
  bool is_text = false;

  Argument argument(NameId key) const { return {key, number.type, number.bits}; }
};

struct DecodedPayloads {
  std::vector<PayloadValue> values;
  std::string message;  // of an entry that is the event's message; else empty
};

class PayloadSchemas {
 public:
  // The file's names by their numbers, and of each domain the names of its categories.
  struct Lookup {
    std::span<const std::string> names;
    std::span<const std::unordered_map<std::uint32_t, std::uint32_t>> categories;
    std::string_view name(std::uint64_t id) const { return id < names.size() ? std::string_view(names[id]) : ""; }
  };

  // Takes a definition (schema, schema_entry, enumeration, enumerator); other events are ignored.
  void take(const format::Slot& head);
  // To be called after the last definition and before the next decode(). Cost: linear in them, times a logarithm.
  void finish();

  static constexpr std::size_t most_values = 64;

  // `events` are the payload and payload_part events of one event of this domain, heads with extension slots. Appends
  // to `out`.
  void decode(std::uint16_t domain, std::span<const format::Slot> events, const Lookup& lookup,
              DecodedPayloads& out) const;

 private:
  friend class PayloadDecoder;
  struct Entry {
    std::uint32_t name = 0, type = 0, flags = 0, index = 0, offset = 0;
    std::uint64_t length = 0;
  };
  struct Schema {
    std::uint32_t name = 0, type = 0, flags = 0, packing = 0, stated_bytes = 0;
    std::vector<Entry> entries;          // by index
    std::uint32_t bytes = 0, align = 0;  // align 0: not computed yet
    bool is_open = false;                // being computed: it holds itself
  };
  struct Enumeration {
    std::uint32_t bytes = 4;
    std::vector<std::pair<std::uint64_t, std::uint32_t>> values, flags;  // value and name
  };

  static std::uint64_t key(std::uint16_t domain, std::uint32_t number);
  void measure(std::uint16_t domain, Schema& schema, int depth);
  // Bytes and alignment of one value of a type, 0 if it has none or is not known. Schemas must have been measured.
  std::pair<std::uint32_t, std::uint32_t> size_of(std::uint16_t domain, std::uint32_t type) const;
  const Schema* schema(std::uint16_t domain, std::uint32_t number) const;
  const Enumeration* enumeration(std::uint16_t domain, std::uint32_t number) const;

  std::unordered_map<std::uint64_t, Schema> schemas_;
  std::unordered_map<std::uint64_t, Enumeration> enumerations_;
};

}  // namespace paceline::analysis
