// SPDX-License-Identifier: Apache-2.0
// A piece of the array of events, parsed: fixed-size events whose strings are numbers.
//
// One EventParser per thread. It numbers what it sees (kinds, threads, sets of arguments) for its whole life, so the
// model looks each one up only once (kineto_rank.h).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/importers/kineto/event_walker.h"
#include "analysis/importers/kineto/interner.h"
#include "analysis/importers/kineto/json_tokens.h"
#include "analysis/importers/kineto/kinds.h"

namespace paceline::analysis::kineto {

// An argument that is different in each event.
struct VaryingValue {
  std::uint32_t key = 0;  // of EventParser::keys
  std::uint8_t type = 0;  // a ValueType
  std::uint64_t bits = 0;
};

struct Event {
  std::int64_t time_ns = 0, duration_ns = 0;
  std::uint32_t kind = 0, thread = 0, set = 0;
  std::uint32_t values_end = 0;  // its values are those since the event before
  char phase = 0;
};

struct FlowEvent {
  std::int64_t time_ns = 0;
  std::uint64_t id = 0;
  std::uint32_t kind = 0, thread = 0;
  char phase = 0;
};

struct CounterSample {
  std::int64_t time_ns = 0;
  std::uint32_t counter = 0;  // of EventParser::counters
  double value = 0;
};

// The name of a process or of a thread.
struct MetadataEvent {
  std::uint32_t thread = 0;
  bool of_process = false;
  std::string text;
};

// The fields of a set of arguments or of another compound key, one after the other.
std::vector<std::string_view> fields_of(std::string_view compound);

class EventParser {
 public:
  // What parse() found in its piece.
  struct Piece {
    std::vector<Event> events;
    std::vector<VaryingValue> values;
    std::vector<FlowEvent> flows;
    std::vector<CounterSample> samples;
    std::vector<MetadataEvent> metadata;
    std::uint64_t damaged = 0;   // events that could not be read
    std::uint64_t left_out = 0;  // events of a phase that has no place in the model
    std::uint64_t endless = 0;   // events with a negative duration, read as 0 ns: their end is not known
    std::optional<std::size_t> incomplete = {};  // the place of an event that goes on behind the piece
    std::optional<std::size_t> closed = {};      // the place behind the bracket that closes the array
  };

  // Parses the events of `text`, which begins at an event, at a comma before one, or at the closing bracket. Where
  // `last`, nothing follows: an incomplete event is a damaged one. The piece is valid until the next call.
  void parse(std::string_view text, bool last);
  Piece& piece() { return piece_; }

  // Compound keys, see fields_of().
  const Interner& kinds() const { return kinds_; }        // category, name, and the domain where it has one
  const Interner& threads() const { return threads_; }    // process, thread, as texts
  const Interner& keys() const { return keys_; }          // an argument's name
  const Interner& sets() const { return sets_; }          // for each argument: key, type ('"', '{', '0'), value
  const Interner& counters() const { return counters_; }  // process, name, series, unit

  EventClass event_class(std::uint32_t kind) const { return classes_[kind]; }

  EventParser();

 private:
  std::size_t damaged_from(std::string_view text, std::size_t begin, bool last);
  bool closes(std::string_view text, std::size_t at) const;
  void add(const EventFields& fields);
  void add_counter(const EventFields& fields, std::int64_t time_ns);
  bool add_memory(const EventFields& fields, std::int64_t time_ns);
  void add_metadata(const EventFields& fields);
  std::uint32_t arguments(const EventFields& fields, EventClass event_class);
  std::uint32_t kind_of(const EventFields& fields);
  std::uint32_t thread_of(const EventFields& fields);
  std::uint32_t key_of(std::string_view key);
  std::uint32_t key_at(EventClass event_class, std::size_t place, std::string_view key);
  void begin_compound() { scratch_.clear(); }
  void append(std::string_view field);

  Tokenizer tokenizer_;
  Piece piece_;
  Interner kinds_, threads_, keys_, sets_, counters_;
  std::vector<EventClass> classes_;  // by kind
  std::vector<Role> roles_;          // by key
  // Events of one class mostly have the same arguments in the same order.
  std::array<std::array<std::uint32_t, EventFields::most_arguments>, 12> last_keys_{};  // by class and place
  std::string scratch_;
  EventFields fields_;
  std::vector<std::uint32_t> repaired_;
};

}  // namespace paceline::analysis::kineto
