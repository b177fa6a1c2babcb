// SPDX-License-Identifier: Apache-2.0
#include "analysis/trace/records.h"

#include <fmt/format.h>

#include "profiler/format/error.h"

namespace paceline::analysis {

std::string number_text(const Argument& argument) {
  if (argument.type == ValueType::signed_integer) return std::to_string(static_cast<std::int64_t>(argument.bits));
  if (argument.type == ValueType::unsigned_integer) return std::to_string(argument.bits);
  return fmt::format("{:.15g}", argument.number());
}

std::size_t Records::StepHash::operator()(const Step& step) const {
  constexpr std::uint64_t odd = 0x9e3779b97f4a7c15;
  std::uint64_t hash = (std::uint64_t{step.set} << 32 | step.added.argument.key) * odd;
  hash ^= static_cast<std::uint64_t>(step.added.place) << 8 | static_cast<std::uint64_t>(step.added.argument.type);
  hash = (hash ^ hash >> 31 ^ step.added.argument.bits) * odd;
  return static_cast<std::size_t>(hash ^ hash >> 32);
}

std::uint32_t Records::next_set(std::uint32_t set, const Stored& added) {
  constexpr std::uint32_t most_values = 65536;
  const Step step{set, added};
  constexpr std::size_t slots = 64;  // a constant, as divisions by others are slow
  if (recent_.empty()) recent_.resize(slots);
  Recent& recent = recent_[StepHash()(step) % slots];
  if (recent.to != 0 && recent.step == step) return recent.to;
  const auto [found, fresh] = steps_.try_emplace(step, static_cast<std::uint32_t>(sets_.size()));
  if (!fresh) {
    recent = {step, found->second};
    return found->second;
  }
  if (added.place == Place::set && ++values_of_key_[added.argument.key] > most_values) {
    steps_.erase(found);
    return 0;
  }
  if (sets_.size() >= own_values) throw Error("more than 2,147,483,648 different sets of arguments in a track");
  const Set from = sets_[set];
  sets_.push_back({static_cast<std::uint32_t>(stored_.size()), from.count + 1});
  for (std::uint32_t i = 0; i < from.count; ++i) stored_.push_back(Stored(stored_[from.first + i]));
  stored_.push_back(added);
  return found->second;
}

RecordId Records::with(RecordId record, const Argument& argument, bool varying) {
  const bool had_values = (record & own_values) != 0;
  const std::uint32_t from = record & ~own_values;  // a place in words_, or the set itself
  const std::uint32_t set = had_values ? words_[from] : record;
  if (!varying) {
    const std::uint32_t next = next_set(set, {argument, Place::set});
    if (next != 0 && !had_values) return next;
    if (next != 0) {
      words_[from] = next;
      return record;
    }
  }

  const bool small = argument.bits >> 32 == 0;
  Stored added{argument, small ? Place::one_word : Place::two_words};
  added.argument.bits = 0;
  const std::uint32_t next = next_set(set, added);
  std::uint32_t count = 0;  // of words with values so far
  if (had_values) {
    for (std::uint32_t i = 0; i < sets_[set].count; ++i) {
      count += static_cast<std::uint32_t>(stored_[sets_[set].first + i].place);
    }
  }
  // Records follow each other: the last one grows in place, another one moves to the end.
  if (words_.size() + count + 3 >= own_values) throw Error("more than 8 GiB of arguments in a track");
  RecordId result = record;
  if (had_values && from + 1 + count == words_.size()) {
    words_[from] = next;
  } else {
    result = static_cast<RecordId>(words_.size()) | own_values;
    words_.push_back(next);
    for (std::uint32_t i = 0; i < count; ++i) words_.push_back(std::uint32_t(words_[from + 1 + i]));
  }
  words_.push_back(static_cast<std::uint32_t>(argument.bits));
  if (!small) words_.push_back(static_cast<std::uint32_t>(argument.bits >> 32));
  return result;
}

std::optional<Argument> Records::find(RecordId record, NameId key) const {
  if (record == 0) return std::nullopt;
  const std::uint32_t* values = nullptr;
  for (const Stored& stored : set_of(record, values)) {
    const Argument argument = read(stored, values);
    if (argument.key == key) return argument;
  }
  return std::nullopt;
}

void Records::rename(std::span<const NameId> names) {
  for (Stored& stored : stored_) {
    stored.argument.key = names[stored.argument.key];
    if (stored.argument.is_text() && stored.place == Place::set) stored.argument.bits = names[stored.argument.bits];
  }
  // Texts that vary are in the records, which follow each other.
  for (std::size_t at = 0; at < words_.size();) {
    const Set set = sets_[words_[at++]];
    for (std::uint32_t i = 0; i < set.count; ++i) {
      const Stored& stored = stored_[set.first + i];
      if (stored.place == Place::set) continue;
      if (stored.argument.is_text()) words_[at] = names[words_[at]];
      at += stored.place == Place::one_word ? 1 : 2;
    }
  }
}

void Records::finish() {
  steps_ = {};
  recent_ = {};
  values_of_key_ = {};
  words_.shrink_to_fit();
}

std::size_t Records::bytes() const {
  return sets_.capacity() * sizeof(Set) + stored_.capacity() * sizeof(Stored) + words_.capacity() * sizeof(words_[0]);
}

}  // namespace paceline::analysis
