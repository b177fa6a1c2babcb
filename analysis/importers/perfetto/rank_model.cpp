// SPDX-License-Identifier: Apache-2.0
#include "analysis/importers/perfetto/rank_model.h"

#include <algorithm>

#include "analysis/importers/kineto/values.h"

namespace paceline::analysis::perfetto {

using kineto::EventClass;
using kineto::KindInfo;
using kineto::Role;

RankModel::RankModel(RankBuilder& rank, const Texts& texts)
    : rank_(rank), texts_(texts), collectives_(rank), correlation_(rank.names().intern("correlation")) {}

NameId RankModel::name(TextId text) {
  if (text >= names_.size()) names_.resize(texts_.size(), unknown);
  if (names_[text] == unknown) names_[text] = rank_.names().intern(texts_[text]);
  return names_[text];
}

const KindInfo& RankModel::kind(std::uint32_t number, const KindTexts& texts) {
  if (number >= by_number_.size()) by_number_.resize(number + 1);
  if (by_number_[number] == nullptr) {
    const std::string category(texts_[texts.category]), domain(texts_[texts.domain]);
    const EventClass event_class = texts.own ? EventClass::other : kineto::class_of(category);
    of_pytorch_ = of_pytorch_ || event_class != EventClass::other;
    kinds_.push_back(kineto::kind_info(rank_, event_class, category, std::string(texts_[texts.name]),
                                       texts.domain != 0 ? &domain : nullptr));
    by_number_[number] = &kinds_.back();
  }
  return *by_number_[number];
}

Argument RankModel::argument(const Value& value) {
  if (value.type != ValueType::text) return {name(value.key), value.type, value.bits};
  return make_text(name(value.key), name(static_cast<TextId>(value.bits)));
}

std::string RankModel::text_of(const Value& value) const {
  if (value.type == ValueType::text) return std::string(texts_[static_cast<TextId>(value.bits)]);
  return number_text({0, value.type, value.bits});
}

void RankModel::add_end_arguments(TrackBuilder& track, std::uint32_t slice, std::span<const Value> values) {
  for (const Value& value : values) track.add_argument(slice, argument(value), value.type != ValueType::text);
}

void RankModel::add_mark_arguments(TrackBuilder& track, std::uint32_t mark, std::span<const Value> values) {
  for (const Value& value : values) track.add_mark_argument(mark, argument(value));
}

bool RankModel::add_arguments(Lane& lane, std::uint32_t slice, std::int64_t start_ns, const KindInfo& kind,
                              std::span<const Value> values, std::span<const std::uint64_t> flows) {
  TrackBuilder& track = *lane.builder;
  std::uint64_t correlation = 0;
  std::optional<std::uint64_t> sequence;
  kineto::Collective* described = nullptr;
  if (kind.event_class == EventClass::other) {
    add_end_arguments(track, slice, values);
  } else {
    keys_.resize(texts_.size());
    for (const Value& value : values) {
      if (texts_[value.key] == "Collective name") described = &described_.emplace_back();
    }
    for (const Value& value : values) {
      const std::string_view key = texts_[value.key];
      if (described != nullptr && described->take(key, text_of(value))) continue;
      Key& of_model = keys_[value.key];
      if (!of_model.role) of_model.role = kineto::role_of(key);
      if (of_model.role == Role::ignored) continue;
      const bool is_number = value.type != ValueType::text;
      if (is_number && key == "Seq") {
        sequence = value.bits;
        continue;
      }
      Argument made = argument(value);
      if (of_model.name == unknown) of_model.name = rank_.names().intern(kineto::model_key(key));
      made.key = of_model.name;
      if (is_number && made.key == correlation_) correlation = value.bits;
      if (value.json && (key == "grid" || key == "block")) {
        made = make_text(made.key, rank_.names().intern(kineto::shape_text(text_of(value))));
      }
      track.add_argument(slice, made, is_number && of_model.role == Role::varying);
    }
    if (kind.memory != nullptr) {
      for (const Argument& made : kineto::memory_arguments(rank_.names(), *kind.memory, std::to_string(lane.device)))
        track.add_argument(slice, made);
    }
  }
  if (!flows.empty() && !track.has_argument(slice, correlation_)) {
    for (const std::uint64_t flow : flows) track.varying_argument(slice, rank_.names().intern("flow"), flow);
  }
  const bool kernel = kind.event_class == EventClass::kernel && (kind.nccl || described != nullptr);
  if (!kernel && !(kind.communication && described != nullptr) && !kind.backend_range && !kind.iteration) return true;
  Special special{.call = {start_ns,
                           start_ns,
                           correlation,
                           sequence,
                           described,
                           rank_.vocabulary().kinds[kind.kind].name,
                           {lane.device, kineto::whole_number(lane.stream).value_or(0)}},
                  .kind = &kind,
                  .lane = &lane,
                  .slice = slice};
  specials_.push_back(special);
  return false;
}

void RankModel::finish(std::span<const Lane* const> lanes) {
  if (!of_pytorch_) return;
  for (Special& special : specials_) {
    kineto::Collectives::Call& call = special.call;
    const KindInfo& kind = *special.kind;
    if (!special.lane->builder->is_open(special.slice)) call.end_ns = special.lane->builder->end_ns(special.slice);
    if (kind.event_class == EventClass::kernel) {
      collectives_.add_kernel(call);
      continue;
    }
    if (kind.communication && call.collective != nullptr) collectives_.add_operator(call);
    if (kind.backend_range) {
      collectives_.add_backend_range(call.start_ns, call.end_ns, call.kernel, special.lane->number);
    }
    if (kind.iteration && special.lane->group == kineto::host) {
      const std::string& text = rank_.names()[call.kernel];
      const std::size_t hash = text.rfind('#');
      const auto number =
          hash == text.npos ? std::nullopt : kineto::whole_number(std::string_view(text).substr(hash + 1));
      collectives_.add_step(call.start_ns, call.end_ns, number.value_or(0));
    }
  }
  for (const Lane* lane : lanes) {
    if (lane->group != kineto::host || !collectives_.wants_launches()) continue;
    const Slices& slices = lane->builder->slices();
    for (std::uint32_t i = 0; i < slices.size(); ++i) {
      if (const auto found = slices.argument(i, correlation_)) {
        collectives_.add_launch(found->whole(), slices.start_ns[i], lane->number);
      }
    }
  }
  collectives_.finish({}, rank_.info().rank);
}

}  // namespace paceline::analysis::perfetto
