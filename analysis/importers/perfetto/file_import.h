// SPDX-License-Identifier: Apache-2.0
// Makes ranks of one file. It is read twice: first what describes tracks, processes and clocks, which may stand
// anywhere, then the events.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "analysis/importers/perfetto/clocks.h"
#include "analysis/importers/perfetto/descriptors.h"
#include "analysis/importers/perfetto/packets.h"
#include "analysis/importers/perfetto/rank_model.h"
#include "analysis/importers/perfetto/states.h"
#include "analysis/importers/reader.h"

namespace paceline::analysis::perfetto {

// What was not read, by kind.
struct Losses {
  std::uint64_t damaged = 0;     // packets and events that are damaged, or whose time is out of range
  std::uint64_t stateless = 0;   // events whose texts were lost before the file
  std::uint64_t beginless = 0;   // ends of slices without a begin
  std::uint64_t backward = 0;    // slices that end before they begin, read as 0 ns
  std::uint64_t unplaced = 0;    // events of a type that has no place in the model
  std::uint64_t kernel = 0;      // packets with events of the system's kernel
  std::uint64_t samples = 0;     // of stacks
  std::uint64_t arguments = 0;   // and flows, beyond the 100th of an event
  std::uint64_t compressed = 0;  // packets that hold compressed ones
  std::string end;               // what is wrong with the file's end, "" where nothing is
  std::map<std::uint64_t, std::uint64_t> unrelated_clocks;
};

class FileImport {
 public:
  using AddRank = std::function<RankBuilder&(Rank)>;

  // Adds ranks, with times on the file's trace clock. A rank without events gets no format. Throws Error where the file
  // cannot be read, or has no event that can be.
  FileImport(const TraceFile& file, const AddRank& add_rank, ProgressCounter& progress);

  const Losses& losses() const { return losses_; }
  std::optional<std::int64_t> utc_of_zero_ns() const { return clocks_.utc_of_zero_ns(); }
  // When the process of each rank started, if the file says it; in the order in which the ranks were added.
  const std::vector<std::optional<std::int64_t>>& starts() const { return starts_; }
  // How many processes became one rank, because their names have no ranks; 0 where there is no other choice, or where
  // the user made it.
  std::size_t joined_processes() const { return joined_processes_; }
  std::uint64_t unnumbered() const;

 private:
  struct Open {
    Lane* lane = nullptr;
    std::uint32_t slice = 0;
  };
  // A track of the file. One that is not described is on the first rank.
  struct TrackState {
    const TrackInfo* info = nullptr;
    RankModel* rank = nullptr;
    std::int64_t pid = 0;
    std::uint64_t uuid = 0;
    bool own = false;  // made by Paceline's export, as a track of this kind:
    TrackKind kind = TrackKind::thread;
    Lane* lanes[kineto::group_count] = {};
    std::vector<Open> open;
    std::vector<std::pair<std::int64_t, double>> samples;  // of a counter
    double sum = 0;                                        // of one that has differences
    std::unique_ptr<StateReader> states;                   // where the slices are those
  };
  struct Event {
    std::uint64_t type = 0, track = 0;
    TextId category = 0, name = 0;
    bool has_track = false, has_value = false;
    double value = 0;
    std::uint64_t correlation = 0;
    std::vector<TextId> categories;
    std::vector<std::string_view> annotations;
    std::vector<std::uint64_t> flows, counters, real_counters;
    std::vector<std::int64_t> extra;
    std::vector<double> real_extra;

    void take_list(const Field& field);
  };
  // What an event of these bytes made, where the same bytes make the same again: most events differ only in their
  // times.
  struct Made {
    std::string bytes;
    std::uint64_t state = 0;  // of the sequence
    TrackState* track = nullptr;
    Lane* lane = nullptr;  // of the slice that it began; nullptr where it ended one
    KindId kind = 0;
    RecordId record = 0;
  };

  void describe(const std::filesystem::path& path, ProgressCounter& progress);
  void make_ranks(const AddRank& add_rank);
  void read_events(const std::filesystem::path& path, ProgressCounter& progress);
  void take(const Packet& packet);
  bool parse(std::string_view bytes, const Sequence& sequence);
  void add_event(std::int64_t time_ns, const Sequence& sequence);
  void add_again(const Made& made, std::int64_t time_ns, const Sequence& sequence);
  void begin_slice(TrackState& track, std::int64_t time_ns, const Sequence& sequence);
  void end_slice(TrackState& track, std::int64_t time_ns, const Sequence& sequence);
  void add_mark(TrackState& track, std::int64_t time_ns, const Sequence& sequence);
  void add_sample(std::uint64_t uuid, std::int64_t time_ns, double value);
  void read_values(const Sequence& sequence);
  TextId take_domain();
  TextId category();
  const kineto::KindInfo& kind_of(TrackState& track, TextId domain);
  TrackState& track_of(std::uint64_t uuid);
  Lane& lane_of(TrackState& track, kineto::Group group);
  void finish();
  void add_counters();
  void label(const TrackState& track, bool several_processes);
  std::string process_label(std::int64_t pid) const;

  const std::string file_name_;
  const Processes processes_;
  Losses losses_;
  Descriptors descriptors_;
  Clocks clocks_;
  Texts texts_, kinds_;
  std::unordered_map<std::uint64_t, Sequence> sequences_;
  Sequence* last_sequence_ = nullptr;
  std::uint64_t last_number_ = 0;
  std::deque<RankModel> ranks_;
  std::map<std::int64_t, RankModel*> rank_of_process_;
  std::vector<std::optional<std::int64_t>> starts_;
  std::unordered_map<std::uint64_t, TrackState> tracks_;
  std::vector<TrackState*> in_order_;  // in which they came
  TrackState* latest_ = nullptr;
  std::deque<Lane> lanes_;
  std::map<std::tuple<const RankModel*, kineto::Group, std::string>, Lane*> merged_;
  std::map<const RankModel*, std::vector<const Lane*>> lanes_of_rank_;
  std::uint64_t events_ = 0;
  std::size_t joined_processes_ = 0;
  Event event_;
  Made made_;  // by the current event; without a track where it is to be parsed each time
  std::vector<Made> all_made_ = std::vector<Made>(1 << 12);  // by hash; a later one takes an earlier one's place
  std::uint64_t states_ = 0;                                 // of all sequences
  std::vector<Value> values_;                                // of the current event
  std::span<const Value> arguments_;                         // those but for the domain
  TextId domain_key_ = 0;
  std::set<const RankModel*> threaded_;  // ranks with a track of a thread
};

}  // namespace paceline::analysis::perfetto
