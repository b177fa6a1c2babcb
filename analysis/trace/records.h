// SPDX-License-Identifier: Apache-2.0
// The arguments of slices: keys and typed values, each different set of arguments stored once.
//
// A slice carries a 32-bit record. A million sends with one size, peer, tag and communicator share one record, so
// their arguments cost four bytes each. Arguments that differ from call to call (a sequence number, a correlation id)
// would make every set a different one. They are `varying`: the set holds their keys and types, and the record of a
// slice holds a reference to the set followed by the varying values, 4 or 8 bytes each.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "analysis/trace/kinds.h"

namespace paceline::analysis {

using RecordId = std::uint32_t;  // 0: no arguments

enum class ValueType : std::uint8_t { signed_integer, unsigned_integer, real, text };

// One argument. Keys: "payload", "bytes", "communicator" (a text: equal on all members of one communicator, different
// for different ones), "members", "sequence", "root", "peer", "tag", "unfinished" (1: the process ended inside, and the
// slice ends with the rank), ….
struct Argument {
  NameId key = 0;
  ValueType type = ValueType::unsigned_integer;
  std::uint64_t bits = 0;  // the value's own bits; of a text its NameId

  bool operator==(const Argument&) const = default;
  bool is_text() const { return type == ValueType::text; }
  NameId text() const { return is_text() ? static_cast<NameId>(bits) : 0; }  // 0 where it is a number
  // The nearest double, which is exact for integers below 2^53; 0 for a text.
  double number() const {
    if (type == ValueType::real) return std::bit_cast<double>(bits);
    if (type == ValueType::text) return 0;
    return type == ValueType::signed_integer ? static_cast<double>(static_cast<std::int64_t>(bits))
                                             : static_cast<double>(bits);
  }
  // The exact value of an integer that is not negative; a negative one and a text give 0, a real number is cut.
  std::uint64_t whole() const {
    if (type == ValueType::unsigned_integer) return bits;
    if (type == ValueType::text) return 0;
    const double value = number();
    if (type == ValueType::signed_integer) return value > 0 ? bits : 0;
    return value > 0 && value < 0x1p63 ? static_cast<std::uint64_t>(value) : 0;
  }
};

template <std::integral Number>
constexpr Argument make_argument(NameId key, Number value) {
  return {key, std::is_signed_v<Number> ? ValueType::signed_integer : ValueType::unsigned_integer,
          static_cast<std::uint64_t>(static_cast<std::int64_t>(value))};
}
inline Argument make_argument(NameId key, double value) {
  return {key, ValueType::real, std::bit_cast<std::uint64_t>(value)};
}
inline Argument make_text(NameId key, NameId text) { return {key, ValueType::text, text}; }

// The number for people: every digit of an integer, up to 15 significant digits of a real number.
std::string number_text(const Argument& argument);

class Records {
 public:
  // The record that has the arguments of `record` and one more at the end. `record` belongs to the caller's slice alone
  // where it has varying arguments, and is not valid afterwards. A key with more than 65,536 different values becomes
  // varying by itself. O(1) for the arguments of a usual call. Throws Error after 2^31 sets or words.
  RecordId with(RecordId record, const Argument& argument, bool varying = false);

  // Calls visit(const Argument&) for each argument, in the order in which they were added.
  template <class Visit>
  void each(RecordId record, Visit&& visit) const {
    if (record == 0) return;
    const std::uint32_t* values = nullptr;
    for (const Stored& stored : set_of(record, values)) visit(read(stored, values));
  }

  // The first argument with this key. Linear in the record's arguments.
  std::optional<Argument> find(RecordId record, NameId key) const;

  // True of a record without varying arguments, which any number of slices can have.
  static bool is_shared(RecordId record) { return (record & own_values) == 0; }

  // Replaces the names' ids by those in `names`, where each one's place is the old id.
  void rename(std::span<const NameId> names);

  // Frees what only with() needs.
  void finish();

  std::size_t bytes() const;

 private:
  // Where a value is: in the set, or in the record that refers to the set. As a number: the words that it takes there.
  enum class Place : std::uint8_t { set, one_word, two_words };
  struct Stored {
    Argument argument;  // without its value where that is in the record
    Place place = Place::set;
    bool operator==(const Stored&) const = default;
  };
  struct Set {
    std::uint32_t first = 0, count = 0;
  };
  struct Step {  // from one set to the next
    std::uint32_t set = 0;
    Stored added;
    bool operator==(const Step&) const = default;
  };
  struct StepHash {
    std::size_t operator()(const Step& step) const;
  };
  struct Recent {
    Step step;
    std::uint32_t to = 0;  // 0: none
  };
  static constexpr RecordId own_values = RecordId{1} << 31;  // the other bits are a place in words_, else a set

  std::span<const Stored> set_of(RecordId record, const std::uint32_t*& values) const {
    std::uint32_t set = record;
    if ((record & own_values) != 0) {
      values = words_.data() + (record & ~own_values);
      set = *values++;
    }
    return {stored_.data() + sets_[set].first, sets_[set].count};
  }
  static Argument read(const Stored& stored, const std::uint32_t*& values) {
    Argument argument = stored.argument;
    if (stored.place == Place::set) return argument;
    argument.bits = *values++;
    if (stored.place == Place::two_words) argument.bits |= std::uint64_t{*values++} << 32;
    return argument;
  }
  // 0 where the value would be one too many of its key.
  std::uint32_t next_set(std::uint32_t set, const Stored& added);

  std::vector<Set> sets_{Set{}};
  std::vector<Stored> stored_;
  std::vector<std::uint32_t> words_;
  std::unordered_map<Step, std::uint32_t, StepHash> steps_;
  std::vector<Recent> recent_;                               // of steps_, by hash; looked up faster
  std::unordered_map<NameId, std::uint32_t> values_of_key_;  // how many sets were made by adding it
};

}  // namespace paceline::analysis
