// SPDX-License-Identifier: Apache-2.0
// A rank that is being made of a file: the file's texts and kinds as the rank's own, the arguments of its slices, and
// what PyTorch's events mean.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/importers/kineto/collectives.h"
#include "analysis/importers/kineto/kinds.h"
#include "analysis/importers/perfetto/arguments.h"
#include "analysis/trace/builder.h"

namespace paceline::analysis::perfetto {

// Category, name and domain of an event.
struct KindTexts {
  TextId category = 0, name = 0, domain = 0;
  bool own = false;  // Paceline's export: the category means nothing of PyTorch's
};

// A row of the model, of one or more tracks of the file that are merged.
struct Lane {
  TrackBuilder* builder = nullptr;
  TrackKind kind = TrackKind::thread;
  kineto::Group group = kineto::host;
  std::uint32_t number = 0;  // in the rank
  std::int64_t device = 0;   // of a stream, and the number of the stream
  std::string stream;
  std::uint64_t events = 0;
};

class RankModel {
 public:
  RankModel(RankBuilder& rank, const Texts& texts);

  RankBuilder& builder() { return rank_; }
  NameId name(TextId text);

  // The rank's kind for the file's kind of that number. The reference stays good.
  const kineto::KindInfo& kind(std::uint32_t number, const KindTexts& texts);

  // Gives the slice its arguments. `flows`: the numbers of its flows. False where the slice is more than that to the
  // rank: a collective or an iteration.
  bool add_arguments(Lane& lane, std::uint32_t slice, std::int64_t start_ns, const kineto::KindInfo& kind,
                     std::span<const Value> values, std::span<const std::uint64_t> flows);
  void add_mark_arguments(TrackBuilder& track, std::uint32_t mark, std::span<const Value> values);
  void add_end_arguments(TrackBuilder& track, std::uint32_t slice, std::span<const Value> values);

  // Makes the tracks of collectives.
  void finish(std::span<const Lane* const> lanes);

  bool of_pytorch() const { return of_pytorch_; }
  std::uint64_t unnumbered() const { return collectives_.unnumbered(); }

 private:
  // A slice that says something about communication or iterations, once its end is known.
  struct Special {
    kineto::Collectives::Call call;
    const kineto::KindInfo* kind = nullptr;
    const Lane* lane = nullptr;
    std::uint32_t slice = 0;
  };
  static constexpr NameId unknown = ~NameId{0};
  struct Key {  // of PyTorch's arguments
    std::optional<kineto::Role> role;
    NameId name = unknown;  // in the model
  };

  Argument argument(const Value& value);
  std::string text_of(const Value& value) const;

  RankBuilder& rank_;
  const Texts& texts_;
  std::vector<NameId> names_;                       // by TextId
  std::vector<const kineto::KindInfo*> by_number_;  // of the file's kinds
  std::deque<kineto::KindInfo> kinds_;
  std::vector<Key> keys_;  // by TextId
  std::deque<kineto::Collective> described_;
  std::vector<Special> specials_;
  kineto::Collectives collectives_;
  const NameId correlation_;
  bool of_pytorch_ = false;
};

}  // namespace paceline::analysis::perfetto
