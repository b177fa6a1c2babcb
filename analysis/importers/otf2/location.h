// SPDX-License-Identifier: Apache-2.0
// One location of an OTF2 archive (a thread, or a stream of a GPU) on its way onto a track.
#pragma once

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "analysis/importers/otf2/local_definitions.h"
#include "analysis/importers/otf2/process.h"

namespace paceline::analysis {

class Otf2Location {
 public:
  static constexpr std::uint32_t no_slice = ~std::uint32_t{0};

  Otf2Location(Otf2Process& process, const Otf2Definitions::Location& location, TrackBuilder& track, bool on_stream,
               bool is_main)
      : process_(process),
        info_(process.rank().info()),
        location_(location),
        track_(track),
        on_stream_(on_stream),
        is_main_(is_main),
        offset_(process.definitions().offset),
        ns_per_tick_(1e9 / static_cast<double>(process.definitions().resolution)),
        ticks_are_ns_(process.definitions().resolution == 1'000'000'000) {}

  // Returns the slice, or no_slice if the region does not become a slice.
  std::uint32_t enter(OTF2_TimeStamp ticks, OTF2_RegionRef region) {
    const Otf2Process::Kind& kind = process_.kind(region, on_stream_);
    const std::uint32_t slice = kind.skipped ? no_slice : track_.begin_slice(time(ticks), kind.kind);
    if (kind.count != nullptr) ++(info_.*kind.count);
    open_.push_back({region, slice, kind.count != nullptr});
    return slice;
  }

  // A leave without its enter is ignored. A leave of an outer region ends the regions inside it.
  void leave(OTF2_TimeStamp ticks, OTF2_RegionRef region) {
    const std::int64_t now = time(ticks);
    std::size_t at = open_.size();
    while (at > 0 && open_[at - 1].region != region) --at;
    if (at == 0) return;
    while (open_.size() >= at) {
      if (open_.back().slice != no_slice) track_.end_slice(open_.back().slice, now);
      open_.pop_back();
    }
  }

  // A call has at most one message. For MPI_Sendrecv it is the one that is sent.
  void message(std::uint32_t peer, OTF2_CommRef communicator, std::uint32_t tag, std::uint64_t bytes,
               std::uint32_t slice) {
    if (slice == no_slice) return;
    if (!track_.has_arguments(slice)) {
      track_.set_record(slice, message_record(peer, communicator, tag, bytes));
    } else {
      late_message(peer, communicator, tag, bytes, slice);
    }
  }
  // Of a receive that began earlier: after the request.
  void late_message(std::uint32_t peer, OTF2_CommRef communicator, std::uint32_t tag, std::uint64_t bytes,
                    std::uint32_t slice) {
    if (track_.has_argument(slice, process_.bytes)) return;
    track_.argument(slice, process_.bytes, bytes);
    track_.text_argument(slice, process_.communicator_key, process_.communicator(communicator).text);
    track_.argument(slice, process_.peer, static_cast<std::int32_t>(peer));
    track_.argument(slice, process_.tag, static_cast<std::int32_t>(tag));
  }

  void collective(OTF2_CommRef communicator, std::uint32_t root, std::uint64_t sent, std::uint64_t received,
                  std::uint32_t slice) {
    if (slice == no_slice) return;
    if (track_.has_argument(slice, process_.communicator_key)) return;
    const Otf2Process::Communicator& of = process_.communicator(communicator);
    // The rank's own part: roots also count the parts of the others, on one of the two sides.
    const std::uint64_t bytes = sent == 0 || received == 0 ? std::max(sent, received) : std::min(sent, received);
    track_.argument(slice, process_.bytes, bytes);
    track_.text_argument(slice, process_.communicator_key, of.text);
    if (of.members > 0) track_.argument(slice, process_.members, of.members);
    if (root < OTF2_COLLECTIVE_ROOT_THIS_GROUP) track_.argument(slice, process_.root, root);
  }

  void one_sided(std::uint32_t remote, std::uint64_t bytes) {
    const std::uint32_t slice = call();
    if (slice == no_slice || track_.has_arguments(slice)) return;
    track_.argument(slice, process_.bytes, bytes);
    if (!on_stream_ && remote < OTF2_COLLECTIVE_ROOT_THIS_GROUP) track_.argument(slice, process_.peer, remote);
  }

  void post(std::uint64_t request) {
    const std::uint32_t slice = call();
    if (slice == no_slice) return;
    track_.varying_argument(slice, process_.request, request);
    posted_[request] = slice;
  }
  // Returns the call that posted the request, or no_slice.
  std::uint32_t complete(std::uint64_t request) {
    const auto found = posted_.find(request);
    if (found == posted_.end()) return no_slice;
    const std::uint32_t slice = found->second;
    posted_.erase(found);
    const std::uint32_t wait = call();
    if (wait != no_slice && wait != slice) track_.varying_argument(wait, process_.request, request);
    return slice;
  }

  // One value for each member of the metric.
  void metric(OTF2_TimeStamp ticks, OTF2_MetricRef metric, Otf2Bytes& values) {
    if (metric != last_metric_ || counters_ == nullptr) {
      counters_ = &process_.counters(metric, location_);
      last_metric_ = metric;
    }
    const std::int64_t now = time(ticks);
    const std::size_t count = std::min<std::size_t>(values.byte(), counters_->size());
    for (std::size_t i = 0; i < count && !values.failed(); ++i) {
      const std::uint8_t type = values.byte();
      const std::uint64_t bits = values.number();
      const Otf2Process::Counter& counter = (*counters_)[i];
      if (counter.track == nullptr || values.failed()) continue;
      const double value = type == OTF2_TYPE_DOUBLE  ? std::bit_cast<double>(bits)
                           : type == OTF2_TYPE_INT64 ? static_cast<double>(static_cast<std::int64_t>(bits))
                                                     : static_cast<double>(bits);
      counter.track->add_sample(now, value * counter.factor);
      ++info_.counter_events;
    }
  }

  // The attributes that an event brings become arguments of its slice. References to other definitions than texts are
  // left out.
  void add_attributes(std::uint32_t slice, Otf2Bytes attributes, const Otf2LocalDefinitions& local) {
    each_attribute(attributes, local, [&](OTF2_AttributeRef id, OTF2_Type type, std::uint64_t bits) {
      const NameId key = process_.attribute(id);
      if (key == 0) return;
      if (type == OTF2_TYPE_STRING) {
        track_.text_argument(slice, key, process_.text(static_cast<OTF2_StringRef>(bits)));
      } else if (type == OTF2_TYPE_DOUBLE) {
        track_.argument(slice, key, std::bit_cast<double>(bits));
      } else if (type == OTF2_TYPE_FLOAT) {
        track_.argument(slice, key, static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits))));
      } else if (type >= OTF2_TYPE_INT8 && type <= OTF2_TYPE_INT64) {
        track_.argument(slice, key, static_cast<std::int64_t>(bits));
      } else if (type < OTF2_TYPE_INT8) {
        track_.argument(slice, key, bits);
      }
    });
  }

  // The program's name and arguments, and its process in an attribute.
  void program(Otf2Bytes& from, Otf2Bytes attributes, const Otf2LocalDefinitions& local) {
    const auto text = [&] { return process_.definitions().string(local.global(OTF2_MAPPING_STRING, from.number32())); };
    std::vector<std::string> command{text()};
    const std::uint32_t count = from.number32();
    for (std::uint32_t i = 0; i < count && !from.failed(); ++i) command.push_back(text());
    if (!from.failed()) info_.command = std::move(command);
    each_attribute(attributes, local, [&](OTF2_AttributeRef id, OTF2_Type type, std::uint64_t bits) {
      const bool is_whole = type == OTF2_TYPE_UINT32 || type == OTF2_TYPE_UINT64;
      const auto known = process_.definitions().attributes.find(id);
      if (!is_whole || known == process_.definitions().attributes.end()) return;
      if (process_.definitions().string(known->second) == "ProcessId") info_.pid = static_cast<std::int64_t>(bits);
    });
  }

  // The recorder wrote its buffer out, or recording was off. Of the main thread this is time that was not recorded.
  void pause(OTF2_TimeStamp from, OTF2_TimeStamp to, const char* reason) {
    const std::int64_t start = time(from), end = time(to);
    if (is_main_ && end > start) info_.gaps.push_back({start, end, reason, false});
  }
  void recording(OTF2_TimeStamp ticks, bool on) {
    if (on && off_since_ != 0) pause(off_since_, ticks, "measurement off");
    off_since_ = on ? 0 : ticks;
  }

  // Events were lost from the latest one on: what is open ends there. The loss ends with the next event.
  void lose(OTF2_TimeStamp latest) {
    if (!losing_) lost_from_ = time(latest);
    losing_ = true;
    for (const Open& open : open_) {
      if (open.slice == no_slice) continue;
      track_.argument(open.slice, process_.unfinished, 1);
      track_.end_slice(open.slice, lost_from_);
    }
    open_.clear();
  }
  bool losing() const { return losing_; }
  // `events`: how many were lost, or 0 where that is not known.
  void end_loss(OTF2_TimeStamp next, std::uint64_t events) {
    losing_ = false;
    track_.add_lost(lost_from_, std::max(time(next), lost_from_), events, "damage");
    if (events > 0) info_.dropped["damage"] += events;
  }

  // The innermost call of MPI or CUDA, or no_slice.
  std::uint32_t call() const {
    for (std::size_t at = open_.size(); at-- > 0;) {
      if (open_[at].is_call || on_stream_) return open_[at].slice;
    }
    return no_slice;
  }

 private:
  struct Open {
    OTF2_RegionRef region = 0;
    std::uint32_t slice = 0;
    bool is_call = false;
  };
  struct Message {
    std::uint32_t peer = 0, communicator = 0, tag = 0;
    std::uint64_t bytes = 0;
    bool operator==(const Message&) const = default;
  };
  struct Latest {
    Message message{};
    RecordId record = 0;
  };

  static constexpr std::int64_t latest_time = 4'000'000'000'000'000'000;  // so that no difference overflows

  // Calls visit(attribute, type, bits). Signed numbers are made 64 bits long.
  template <class Visit>
  static void each_attribute(Otf2Bytes from, const Otf2LocalDefinitions& local, Visit&& visit) {
    const std::uint32_t count = from.number32();
    for (std::uint32_t i = 0; i < count; ++i) {
      const OTF2_AttributeRef id = local.global(OTF2_MAPPING_ATTRIBUTE, from.number32());
      const OTF2_Type type = from.byte();
      std::uint64_t bits = 0;
      if (type == OTF2_TYPE_UINT8 || type == OTF2_TYPE_INT8) {
        bits = from.byte();
      } else if (type == OTF2_TYPE_UINT16 || type == OTF2_TYPE_INT16) {
        bits = from.fixed(2);
      } else if (type == OTF2_TYPE_FLOAT) {
        bits = from.fixed(4);
      } else if (type == OTF2_TYPE_DOUBLE) {
        bits = from.fixed(8);
      } else {
        bits = from.number();
      }
      if (from.failed()) return;
      if (type == OTF2_TYPE_INT8) bits = static_cast<std::uint64_t>(std::int64_t{static_cast<std::int8_t>(bits)});
      if (type == OTF2_TYPE_INT16) bits = static_cast<std::uint64_t>(std::int64_t{static_cast<std::int16_t>(bits)});
      if (type == OTF2_TYPE_INT32) bits = static_cast<std::uint64_t>(std::int64_t{static_cast<std::int32_t>(bits)});
      if (type == OTF2_TYPE_STRING) bits = local.global(OTF2_MAPPING_STRING, static_cast<std::uint32_t>(bits));
      visit(id, type, bits);
    }
  }

  std::int64_t time(OTF2_TimeStamp ticks) const {
    const auto passed = static_cast<std::int64_t>(ticks - offset_);
    if (ticks_are_ns_) return std::clamp(passed, -latest_time, latest_time);
    const double ns = static_cast<double>(passed) * ns_per_tick_;
    constexpr auto bound = static_cast<double>(latest_time);
    return ns > -bound && ns < bound ? static_cast<std::int64_t>(ns + (ns < 0 ? -0.5 : 0.5))
                                     : (ns < 0 ? -latest_time : latest_time);
  }

  RecordId message_record(std::uint32_t peer, OTF2_CommRef communicator, std::uint32_t tag, std::uint64_t bytes) {
    const Message message{peer, communicator, tag, bytes};
    constexpr std::uint64_t odd = 0x9e3779b97f4a7c15;
    const std::uint64_t hash = (((std::uint64_t{peer} << 32 | tag) * odd ^ bytes) * odd ^ communicator) * odd;
    Latest& latest = latest_[hash >> 56];
    if (latest.record != 0 && latest.message == message) return latest.record;
    Records& records = track_.records();
    RecordId made = records.with(0, make_argument(process_.bytes, bytes));
    made = records.with(made, make_text(process_.communicator_key, process_.communicator(communicator).text));
    made = records.with(made, make_argument(process_.peer, static_cast<std::int32_t>(peer)));
    made = records.with(made, make_argument(process_.tag, static_cast<std::int32_t>(tag)));
    if (Records::is_shared(made)) latest = {message, made};
    return made;
  }

  Otf2Process& process_;
  Rank& info_;
  const Otf2Definitions::Location& location_;
  TrackBuilder& track_;
  const bool on_stream_, is_main_;
  const std::uint64_t offset_;
  const double ns_per_tick_;
  const bool ticks_are_ns_;
  std::vector<Open> open_;
  std::unordered_map<std::uint64_t, std::uint32_t> posted_;  // slices, by request
  Latest latest_[256];
  OTF2_MetricRef last_metric_ = 0;
  std::vector<Otf2Process::Counter>* counters_ = nullptr;
  OTF2_TimeStamp off_since_ = 0;
  bool losing_ = false;
  std::int64_t lost_from_ = 0;
};

}  // namespace paceline::analysis
