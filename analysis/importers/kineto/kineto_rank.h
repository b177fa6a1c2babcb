// SPDX-License-Identifier: Apache-2.0
// Builds a rank of the model from the parsed events of one file.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "analysis/importers/kineto/collectives.h"
#include "analysis/importers/kineto/events.h"
#include "analysis/importers/kineto/header.h"
#include "analysis/importers/kineto/kinds.h"
#include "analysis/importers/reader.h"
#include "analysis/trace/builder.h"

namespace paceline::analysis::kineto {

class KinetoRank {
 public:
  explicit KinetoRank(RankBuilder& rank, Processes processes = Processes::automatic);

  // Adds the piece that the parser holds. Parsers are told apart by their numbers, counted from 0.
  void add(EventParser& parser, std::size_t number);

  // Everything that needs the whole file. `file_name` is for messages.
  void finish(const Header& header);

  // The collectives whose numbers the file does not have; between add() and finish().
  Collectives& collectives() { return collectives_; }
  RankBuilder& builder() { return rank_; }
  std::uint64_t damaged() const { return damaged_; }
  std::uint64_t left_out() const { return left_out_; }
  std::uint64_t endless() const { return endless_; }
  bool of_pytorch() const { return of_pytorch_; }
  // How many processes with ranges became one rank, because their names have no ranks; 0 where there is no other
  // choice, or where the user made it.
  std::size_t joined_processes() const { return joined_processes_; }

 private:
  struct SetInfo {
    std::vector<Argument> arguments;
    std::optional<Collective> collective;
    std::string device;
  };
  struct TrackState {
    TrackBuilder* builder = nullptr;
    std::vector<RecordId> records;  // by set; `unknown` until it is asked for
    std::uint64_t events = 0, iterations = 0;
    std::int64_t first_ns = 0, last_ns = 0;
  };
  struct Bracket {
    std::int64_t time_ns = 0;
    std::uint32_t kind = 0, set = 0;
    std::uint32_t first_value = 0, values = 0;  // of bracket_values_
    bool begins = false;
  };
  struct Thread {
    std::string process, thread;
    TrackState tracks[group_count];
    std::vector<Bracket> brackets;  // events B and E
    std::string name;
  };
  struct Flow {
    std::int64_t time_ns = 0;
    std::uint64_t id = 0;
    std::uint32_t thread = 0;
    NameId key = 0;
  };
  struct Seen {  // what the numbers of one parser are here
    std::vector<std::uint32_t> kinds, threads, sets, counters;
    std::vector<NameId> keys;
  };

  void look_up(EventParser& parser, Seen& seen);
  KindInfo kind_info(std::string_view compound, EventClass event_class);
  SetInfo set_info(std::string_view compound);
  std::uint32_t copy_set(std::uint32_t set, std::uint32_t kind);
  TrackState& track_of(std::uint32_t thread, Group group);
  RecordId record_of(TrackState& track, std::uint32_t set);
  void add_slice(const Event& event, std::uint32_t kind, std::uint32_t thread, std::uint32_t set,
                 std::span<const VaryingValue> values, const Seen& seen);
  void add_mark(const Event& event, std::uint32_t kind, std::uint32_t thread, std::uint32_t set,
                std::span<const VaryingValue> values, const Seen& seen);
  void add_brackets();
  void add_flows();
  using Samples = std::vector<std::pair<std::int64_t, double>>;
  void add_counters();
  void add_own_counter(const std::string& prefix, const std::string& label, const std::string& unit,
                       const Samples& samples);
  void describe_own(Thread& thread, const std::string& prefix);
  void find_ranks();
  std::string prefix_of(const std::string& process) const;
  void label_tracks();

  static constexpr RecordId unknown = ~RecordId{0};

  RankBuilder& rank_;
  std::deque<Seen> seen_;  // by parser
  Interner kinds_, threads_, sets_, counters_;
  std::vector<KindInfo> kind_infos_;
  std::deque<SetInfo> set_infos_;  // the collectives point into it
  std::deque<Thread> thread_infos_;
  std::vector<Samples> samples_;                                // by counter
  std::unordered_map<std::uint64_t, std::uint32_t> copy_sets_;  // by set and kind
  std::vector<VaryingValue> bracket_values_;                    // keys are names of this rank
  std::vector<Flow> flows_;
  std::map<std::string, std::string> process_names_;
  Collectives collectives_;
  std::uint64_t damaged_ = 0, left_out_ = 0, endless_ = 0;
  bool of_pytorch_ = false;
  bool own_ = false;  // Paceline's export
  const Processes processes_;
  std::map<std::string, std::string> prefixes_;  // of the processes that are ranks (own_ranks.h)
  std::size_t joined_processes_ = 0;
  const NameId correlation_, sequence_key_;
};

}  // namespace paceline::analysis::kineto
