// MPI calls of one file.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "analysis/importers/pace/definitions.h"
#include "analysis/importers/pace/vocabulary.h"
#include "analysis/trace/builder.h"
#include "profiler/format/events_mpi.h"

namespace paceline::analysis {

class PaceMpi {
 public:
  PaceMpi(RankBuilder& rank, PaceVocabulary& words, const PaceDefinitions& definitions);

  // The communicators that the rank is a member of.
  void add_communicators();

  // A call that has begun and not ended.
  struct Call {
    std::uint32_t slice = 0;
    std::uint64_t ticks = 0;
  };

  // To be called before the events of another track.
  void start_track() { latest_.fill({}); }

  // The begin of a call, as a slice of `track` that is still open.
  Call begin(TrackBuilder& track, std::int64_t time_ns, const format::Slot& head);

  // An event of a request: the open call posted or completed that operation.
  void request(TrackBuilder& track, const Call& call, const format::events::MpiPosted& posted) {
    track.varying_argument(call.slice, words_.request, posted.request);
  }
  void request(TrackBuilder& track, const Call& call, const format::events::MpiCompleted& completed) {
    track.varying_argument(call.slice, words_.request, completed.request);
  }

 private:
  struct Communicator {
    NameId text = 0;
    std::uint32_t members = 0;
    std::uint64_t identity = 0;
    std::uint32_t rank = 0;  // of this process in it
  };
  // Most calls of a program repeat the arguments of an earlier one.
  struct Latest {
    std::uint64_t what = 0, bytes = 0, rest = 0;  // what = 0: not used
    RecordId record = 0;
  };

  RecordId peer_record(Records& records, const format::events::MpiBeginPeer& call) const;
  RecordId collective_record(Records& records, const format::events::MpiBeginColl& call) const;
  void add_file(TrackBuilder& track, std::uint32_t slice, const format::events::MpiBeginFile& call) const;
  void add_window(TrackBuilder& track, std::uint32_t slice, const format::events::MpiBeginWindow& call) const;
  template <class Make>
  RecordId latest_or(std::uint64_t what, std::uint64_t bytes, std::uint64_t rest, Make&& make);

  RankBuilder& rank_;
  PaceVocabulary& words_;
  const PaceDefinitions& definitions_;
  std::unordered_map<std::uint32_t, Communicator> communicators_;  // by the file's number
  std::array<Latest, 1024> latest_{};
};

}  // namespace paceline::analysis
