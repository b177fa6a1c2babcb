// SPDX-License-Identifier: Apache-2.0
#include "analysis/importers/kineto/events.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "analysis/importers/kineto/values.h"
#include "analysis/trace/communicators.h"

namespace paceline::analysis::kineto {
namespace {

// The domain that Paceline's export writes as the first argument; no data where the event has none.
std::string_view domain_of(const EventFields& fields) {
  if (fields.argument_count == 0) return {};
  const EventFields::Argument& first = fields.arguments[0];
  return first.type == '"' && same_text(first.key, "domain") ? first.value : std::string_view();
}

// "0x7f10" and other texts as numbers: equal texts have equal numbers.
std::uint64_t id_of(std::string_view text) {
  if (const auto value = number(text); value && value->type != ValueType::real) return value->bits;
  return name_identity(text);
}

}  // namespace

std::vector<std::string_view> fields_of(std::string_view compound) {
  std::vector<std::string_view> fields;
  while (compound.size() >= sizeof(std::uint32_t)) {
    std::uint32_t length = 0;
    std::memcpy(&length, compound.data(), sizeof length);
    fields.push_back(compound.substr(sizeof length, length));
    compound.remove_prefix(sizeof length + length);
  }
  return fields;
}

EventParser::EventParser() { sets_.intern(""); }

void EventParser::append(std::string_view field) {
  const auto length = static_cast<std::uint32_t>(field.size());
  scratch_.append(reinterpret_cast<const char*>(&length), sizeof length);
  scratch_.append(field);
}

void EventParser::parse(std::string_view text, bool last) {
  piece_ = {.events = std::move(piece_.events),
            .values = std::move(piece_.values),
            .flows = std::move(piece_.flows),
            .samples = std::move(piece_.samples),
            .metadata = std::move(piece_.metadata)};
  piece_.events.clear(), piece_.values.clear(), piece_.flows.clear(), piece_.samples.clear(), piece_.metadata.clear();

  const Tokens tokens = tokenizer_.tokens(text);
  const std::size_t count = tokens.at.size();
  std::size_t i = 0, place = 0;  // of what is not read yet
  while (i < count) {
    place = tokens.at[i];
    const char c = tokens.first(i);
    if (c == ',') {
      ++i;
    } else if (c == ']' && closes(text, place)) {
      piece_.closed = place + 1;
      return;
    } else {
      std::size_t next = i;
      if (walk_event(tokens, next, fields_) != Outcome::whole) break;
      add(fields_);
      i = next;
    }
  }
  if (i >= count && count > 0) return;
  damaged_from(text, place, last);
}

// A bracket in the middle of a damaged file closes nothing.
bool EventParser::closes(std::string_view text, std::size_t at) const {
  for (++at; at < text.size() && Tokens::is_space(text[at]);) ++at;
  return at >= text.size() || text[at] == '}' || text[at] == ',';
}

// Reads the events from text[place] on one by one and repairs each. It is slower, and loses only what is damaged. After
// many bytes were read without finding an event, it takes events to be short, so that its time stays linear in the
// text.
std::size_t EventParser::damaged_from(std::string_view text, std::size_t place, bool last) {
  constexpr std::size_t wasted_rounds = 8, short_event = 2048;
  std::size_t wasted = 0;  // bytes that were read and belong to no event
  while (place < text.size()) {
    if (Tokens::is_space(text[place]) || text[place] == ',') {
      ++place;
      continue;
    }
    if (text[place] == ']' && closes(text, place)) {
      piece_.closed = place + 1;
      return place;
    }
    std::size_t end = place;
    Outcome outcome = Outcome::malformed;
    if (text[place] == '{') {
      const std::size_t most = wasted / wasted_rounds < text.size() ? text.size() : short_event;
      outcome = repaired(text, place, most, repaired_, end);
      if (outcome == Outcome::incomplete && !last) {
        piece_.incomplete = place;
        return place;
      }
      std::size_t i = 0;
      if (outcome == Outcome::whole) outcome = walk_event({text, repaired_}, i, fields_);
      if (outcome == Outcome::whole) {
        add(fields_);
        place = end;
        continue;
      }
      wasted += end - place;
    }
    ++piece_.damaged;
    const std::size_t next = next_event(text, place + 1, false);
    place = next == text.npos ? text.size() : next;
  }
  return place;
}

std::uint32_t EventParser::kind_of(const EventFields& fields) {
  begin_compound();
  append(fields.category);
  append(fields.name);
  if (const std::string_view domain = domain_of(fields); domain.data() != nullptr) append(domain);
  const std::uint32_t kind = kinds_.intern(scratch_);
  if (kind == classes_.size()) classes_.push_back(class_of(fields.category));
  return kind;
}

std::uint32_t EventParser::thread_of(const EventFields& fields) {
  begin_compound();
  append(fields.process);
  append(fields.thread);
  return threads_.intern(scratch_);
}

std::uint32_t EventParser::key_of(std::string_view text) {
  const std::uint32_t key = keys_.intern(text);
  if (key == roles_.size()) {
    roles_.push_back(role_of(text));
  }
  return key;
}

std::uint32_t EventParser::key_at(EventClass event_class, std::size_t place, std::string_view text) {
  std::uint32_t& last = last_keys_[static_cast<std::size_t>(event_class)][place];
  if (last >= keys_.size() || !same_text(keys_[last], text)) last = key_of(text);
  return last;
}

void EventParser::add(const EventFields& fields) {
  const char phase = fields.phase.size() == 1 ? fields.phase[0] : '\0';
  if (phase == 'M') return add_metadata(fields);
  const std::optional<std::int64_t> time_ns = nanoseconds(fields.time);
  if (!time_ns || phase == '\0') {
    ++piece_.damaged;
    return;
  }
  switch (phase) {
    case 'X':
    case 'B':
    case 'E':
    case 'i':
    case 'I':
    case 'R': {
      if (phase == 'i' && same_text(fields.name, "[memory]") && add_memory(fields, *time_ns)) return;
      Event event{.time_ns = *time_ns, .phase = phase};
      if (phase == 'X' && !fields.duration.empty()) {
        const std::optional<std::int64_t> duration_ns = nanoseconds(fields.duration);
        if (!duration_ns) {
          ++piece_.damaged;
          return;
        }
        piece_.endless += *duration_ns < 0;
        event.duration_ns = std::max<std::int64_t>(*duration_ns, 0);
      }
      event.kind = kind_of(fields);
      event.thread = thread_of(fields);
      event.set = arguments(fields, classes_[event.kind]);
      event.values_end = static_cast<std::uint32_t>(piece_.values.size());
      piece_.events.push_back(event);
      return;
    }
    case 'C':
      return add_counter(fields, *time_ns);
    case 's':
    case 't':
    case 'f':
      // From a call to the device work that it started: both have the argument "correlation".
      if (same_text(fields.category, "ac2g") || same_text(fields.category, "async_cpu_to_gpu")) return;
      piece_.flows.push_back({*time_ns, id_of(fields.id), kind_of(fields), thread_of(fields), phase});
      return;
    default:
      ++piece_.left_out;
  }
}

std::uint32_t EventParser::arguments(const EventFields& fields, EventClass event_class) {
  begin_compound();
  for (std::size_t i = domain_of(fields).data() != nullptr; i < fields.argument_count; ++i) {
    const EventFields::Argument& argument = fields.arguments[i];
    const std::uint32_t key = key_at(event_class, i, argument.key);
    const Role role = event_class == EventClass::other ? Role::varying : roles_[key];
    if (role == Role::ignored) continue;
    if (role == Role::varying && argument.type == '0') {
      if (const auto value = number(argument.value)) {
        piece_.values.push_back({key, static_cast<std::uint8_t>(value->type), value->bits});
        continue;
      }
    }
    append(argument.key);
    append({&argument.type, 1});
    append(argument.value);
  }
  if (event_class == EventClass::copy || event_class == EventClass::set) {
    append("device");
    append("\"");
    append(fields.process);
  }
  return sets_.intern(scratch_);
}

void EventParser::add_counter(const EventFields& fields, std::int64_t time_ns) {
  for (std::size_t i = 0; i < fields.argument_count; ++i) {
    const auto value = number(fields.arguments[i].value);
    if (!value) continue;
    begin_compound();
    append(fields.process);
    append(fields.name);
    append(fields.arguments[i].key);
    append("");
    piece_.samples.push_back({time_ns, counters_.intern(scratch_), value->number()});
  }
}

// PyTorch's allocator reports each allocation as an instant. They become counters.
bool EventParser::add_memory(const EventFields& fields, std::int64_t time_ns) {
  const auto value_of = [&](std::string_view key) -> std::optional<Argument> {
    for (std::size_t i = 0; i < fields.argument_count; ++i) {
      if (fields.arguments[i].key == key) return number(fields.arguments[i].value);
    }
    return std::nullopt;
  };
  const auto type = value_of("Device Type"), device = value_of("Device Id");
  bool added = false;
  for (const std::string_view key : {"Total Allocated", "Total Reserved"}) {
    const auto value = value_of(key);
    if (!value) continue;
    added = true;
    const bool on_gpu = type && type->whole() != 0;
    if (!on_gpu && value->number() == 0) continue;  // the allocator of the CPU has no totals in most versions
    begin_compound();
    append(on_gpu ? fmt::format("GPU {}", device ? device->whole() : 0) : "CPU");
    append(key == "Total Allocated" ? "memory allocated by PyTorch" : "memory reserved by PyTorch");
    append("");
    append("bytes");
    piece_.samples.push_back({time_ns, counters_.intern(scratch_), value->number()});
  }
  return added;
}

void EventParser::add_metadata(const EventFields& fields) {
  const bool of_process = fields.name == "process_name";
  if (!of_process && fields.name != "thread_name") return;
  for (std::size_t i = 0; i < fields.argument_count; ++i) {
    if (fields.arguments[i].key != "name") continue;
    piece_.metadata.push_back({thread_of(fields), of_process, plain_text(fields.arguments[i].value)});
  }
}

}  // namespace paceline::analysis::kineto
