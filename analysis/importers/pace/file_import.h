// Reads the tracks of one .pace file into one rank of the model.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "analysis/clocks/alignment.h"
#include "analysis/importers/pace/cuda.h"
#include "analysis/importers/pace/definitions.h"
#include "analysis/importers/pace/gaps.h"
#include "analysis/importers/pace/nccl.h"
#include "analysis/importers/pace/vocabulary.h"
#include "analysis/trace/builder.h"

namespace paceline::analysis {

// Bounded, so that the clocks of a damaged file cannot make differences of times overflow.
std::int64_t whole_ns(double ns);

class PaceFileImport {
 public:
  PaceFileImport(PaceVocabulary& words, RankBuilder& rank, const PaceDefinitions& definitions,
                 const std::vector<PaceGap>& gaps, const PiecewiseLine& clock, double zero);

  // What the file does not cover, of the rank.
  void gaps();

  // What CUDA and NCCL did: read before the tracks, which take their threads' calls out of it; the rest makes tracks of
  // its own, after them.
  void read_devices(const format::TraceFile& file);
  void add_devices(const format::TraceFile& file, const std::string& process = "");

  std::int64_t time(std::uint64_t ticks) const;

  // `process` names another process of the rank. `onto` takes the events; without it they make a track of their own.
  TrackBuilder& track(const format::TraceFile& file, std::uint32_t index, bool main, const std::string& process = "",
                      TrackBuilder* onto = nullptr);

  // Where events were lost of threads of which nothing else is there, or which are not known. After the tracks.
  void lost_elsewhere(const format::TraceFile& file, const std::string& process = "");

  // Why NCCL's calls cannot be matched with other ranks', or "". After add_devices().
  std::string nccl_missing() const { return nccl_ ? nccl_->missing() : ""; }
  // Submitted events whose time stamps could not be placed on the run's clock.
  std::uint64_t untimed() const { return untimed_; }

  // After all tracks. `process` is put before the device.
  void counters(const std::string& process = "");

 private:
  // Adds the numbers of the events that a summary left out.
  void count_left_out(const format::TraceFile& file);

  std::vector<PaceGap> with_damage(std::uint32_t track, const format::TraceFile& file) const;
  std::int64_t recorder_wait_ns(const format::Track& from) const;
  void add_lost(TrackBuilder& track, const format::LostStretch& lost) const;

  // A sample as it is in the file.
  struct Reading {
    std::uint64_t ticks = 0, value = 0;
  };
  // A range by start and end, which need not nest with anything.
  struct Range {
    std::uint64_t start_ticks = 0, end_ticks = 0;
    std::uint64_t scope = 0;
    bool ended = false, crosses = false;
    std::optional<Argument> payload;
    DecodedPayloads extended;
  };
  struct Communicator {
    NameId text = 0;
    std::uint32_t members = 0;
    std::uint64_t identity = 0;
  };
  struct Push {
    std::uint32_t slice = 0;
    std::uint16_t domain = 0;  // each NVTX domain pushes and pops on its own
    std::uint64_t ticks = 0;
  };
  struct Call {
    std::uint32_t slice = 0;
    std::uint64_t ticks = 0;
  };
  struct Open {
    std::size_t gap = 0;  // the first that is not over
    std::vector<Call> calls;
    std::vector<Push> pushes;
    std::vector<Range> ranges;
    // What is open, the innermost last: ranges by index, and pushes as -1. A range that is not the innermost when it
    // ends, or that is around an end it began inside of, crosses its neighbours.
    std::vector<std::int64_t> nesting;
    std::unordered_map<std::uint64_t, std::size_t> range_of_id;
  };

  // When the thread's own ranges and calls begin and end.
  std::vector<std::int64_t> edges_of(const format::Track& from) const;

  NameId name(std::uint64_t scope) const;

  KindId kind(std::uint64_t scope);
  KindId kind(std::uint64_t scope, const DecodedPayloads& payloads);

  void event(TrackBuilder& track, std::uint32_t index, Open& open, const format::Slot& head,
             const format::Slot* extension);

  // What is open when a gap begins has its end in it, or nobody knows where: it ends with the gap's begin, unfinished.
  void cut(TrackBuilder& track, Open& open, const PaceGap& gap);

  void pop(TrackBuilder& track, Open& open, const format::Slot& head);

  std::uint32_t begin_call(TrackBuilder& track, const format::Slot& head, const format::Slot* extension);

  // Of a call on a file or a window; what is 0 or not there is not said.
  void object_arguments(TrackBuilder& track, std::uint32_t slice, const format::Slot& head,
                        const format::Slot* extension);

  void start_range(std::uint32_t index, Open& open, const format::Slot& head, const format::Slot* extension);

  void end_range(Open& open, std::uint64_t id);

  void place_ranges(TrackBuilder& track, const std::string& label, std::uint64_t thread_id,
                    const std::vector<Range>& ranges);

  DecodedPayloads decode(std::span<const format::Slot> payloads, std::uint64_t domain) const;

  std::optional<Argument> argument_of(const PayloadValue& value);
  void add_values(TrackBuilder& track, std::uint32_t slice, const DecodedPayloads& payloads);
  void add_mark_values(TrackBuilder& track, std::uint32_t mark, const DecodedPayloads& payloads);

  // An event with time stamps of the program's own: a range where it has two, else a mark. On a track of its domain's.
  void submitted(const format::Slot& head);

  PaceVocabulary& words_;
  RankBuilder& rank_;
  const PaceDefinitions& definitions_;
  const std::vector<PaceGap>& gaps_;
  const PiecewiseLine& clock_;  // ticks to ns
  double zero_;
  std::optional<PaceCuda> cuda_;
  std::optional<PaceNccl> nccl_;
  std::vector<NameId> names_;
  PayloadSchemas::Lookup lookup_{definitions_.names, definitions_.categories};
  PendingPayloads pending_;
  std::map<std::uint16_t, TrackBuilder*> submitted_;  // by domain
  std::uint64_t untimed_ = 0;
  std::unordered_map<std::uint32_t, Communicator> communicators_;
  std::unordered_map<std::uint64_t, KindId> kinds_;         // by scope
  std::map<std::uint32_t, std::vector<Reading>> readings_;  // by counter
  std::uint64_t last_scope_ = ~std::uint64_t{0};
  KindId last_kind_ = 0;
};

}  // namespace paceline::analysis
