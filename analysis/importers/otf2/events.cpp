// The events of one location of an OTF2 archive, as the C library calls them.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "analysis/importers/otf2/process.h"

namespace paceline::analysis {
namespace otf2_events {

constexpr std::uint32_t no_slice = ~std::uint32_t{0};
constexpr std::int64_t latest_time = 4'000'000'000'000'000'000;  // so that no difference overflows

class LocationImport {
 public:
  LocationImport(Otf2Process& process, const Otf2Definitions::Location& location, TrackBuilder& track, bool on_stream,
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

  void enter(OTF2_TimeStamp ticks, OTF2_RegionRef region) {
    const Otf2Process::Kind& kind = process_.kind(region, on_stream_);
    const std::uint32_t slice = kind.skipped ? no_slice : track_.begin_slice(time(ticks), kind.kind);
    mpi_ += kind.mpi;
    cuda_ += kind.cuda;
    open_.push_back({region, slice, kind.mpi || kind.cuda});
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

  void message(std::uint32_t peer, OTF2_CommRef communicator, std::uint32_t tag, std::uint64_t bytes,
               std::uint32_t slice) {
    if (slice == no_slice || track_.has_arguments(slice)) return;  // MPI_Sendrecv: the message that it sends
    track_.set_record(slice, message_record(peer, communicator, tag, bytes));
  }
  // Of a receive that began earlier: after the request.
  void late_message(std::uint32_t peer, OTF2_CommRef communicator, std::uint32_t tag, std::uint64_t bytes,
                    std::uint32_t slice) {
    track_.argument(slice, process_.bytes, bytes);
    track_.text_argument(slice, process_.communicator_key, process_.communicator(communicator).text);
    track_.argument(slice, process_.peer, static_cast<std::int32_t>(peer));
    track_.argument(slice, process_.tag, static_cast<std::int32_t>(tag));
  }

  void collective(OTF2_CommRef communicator, std::uint32_t root, std::uint64_t sent, std::uint64_t received,
                  std::uint32_t slice) {
    if (slice == no_slice) return;
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

  void metric(OTF2_TimeStamp ticks, OTF2_MetricRef metric, std::uint8_t count, const OTF2_Type* types,
              const OTF2_MetricValue* values) {
    if (metric != last_metric_ || counters_ == nullptr) {
      counters_ = &process_.counters(metric, location_);
      last_metric_ = metric;
    }
    const std::int64_t now = time(ticks);
    for (std::size_t i = 0; i < std::min<std::size_t>(count, counters_->size()); ++i) {
      const Otf2Process::Counter& counter = (*counters_)[i];
      if (counter.track == nullptr) continue;
      const double value = types[i] == OTF2_TYPE_DOUBLE  ? values[i].floating_point
                           : types[i] == OTF2_TYPE_INT64 ? static_cast<double>(values[i].signed_int)
                                                         : static_cast<double>(values[i].unsigned_int);
      counter.track->add_sample(now, value * counter.factor);
      ++info_.counter_events;
    }
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

  void program(OTF2_StringRef name, std::uint32_t count, const OTF2_StringRef* arguments,
               OTF2_AttributeList* attributes) {
    const Otf2Definitions& definitions = process_.definitions();
    info_.command = {definitions.string(name)};
    for (std::uint32_t i = 0; i < count; ++i) info_.command.push_back(definitions.string(arguments[i]));
    for (std::uint32_t i = 0; i < OTF2_AttributeList_GetNumberOfElements(attributes); ++i) {
      OTF2_AttributeRef id = 0;
      OTF2_Type type = OTF2_TYPE_NONE;
      OTF2_AttributeValue value;
      if (OTF2_AttributeList_GetAttributeByIndex(attributes, i, &id, &type, &value) != OTF2_SUCCESS) continue;
      const auto known = definitions.attributes.find(id);
      if (known == definitions.attributes.end() || definitions.string(known->second) != "ProcessId") continue;
      if (type == OTF2_TYPE_UINT64) info_.pid = static_cast<std::int64_t>(value.uint64);
      if (type == OTF2_TYPE_UINT32) info_.pid = value.uint32;
    }
  }

  void unknown() { ++unknown_; }
  std::uint64_t unknown_events() const { return unknown_; }
  // The innermost call of MPI or CUDA, or no_slice.
  std::uint32_t call() const {
    for (std::size_t at = open_.size(); at-- > 0;) {
      if (open_[at].is_call || on_stream_) return open_[at].slice;
    }
    return no_slice;
  }
  void finish() {
    info_.mpi_events += mpi_;
    info_.cuda_events += cuda_;
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
  std::uint64_t mpi_ = 0, cuda_ = 0, unknown_ = 0;
};

LocationImport& of(void* user) { return *static_cast<LocationImport*>(user); }

constexpr OTF2_CallbackCode done = OTF2_CALLBACK_SUCCESS;

OTF2_CallbackCode on_enter(OTF2_LocationRef, OTF2_TimeStamp time, std::uint64_t, void* user, OTF2_AttributeList*,
                           OTF2_RegionRef region) {
  return of(user).enter(time, region), done;
}
OTF2_CallbackCode on_leave(OTF2_LocationRef, OTF2_TimeStamp time, std::uint64_t, void* user, OTF2_AttributeList*,
                           OTF2_RegionRef region) {
  return of(user).leave(time, region), done;
}
OTF2_CallbackCode on_send(OTF2_LocationRef, OTF2_TimeStamp, std::uint64_t, void* user, OTF2_AttributeList*,
                          std::uint32_t peer, OTF2_CommRef communicator, std::uint32_t tag, std::uint64_t bytes) {
  return of(user).message(peer, communicator, tag, bytes, of(user).call()), done;
}
OTF2_CallbackCode on_isend(OTF2_LocationRef, OTF2_TimeStamp, std::uint64_t, void* user, OTF2_AttributeList*,
                           std::uint32_t peer, OTF2_CommRef communicator, std::uint32_t tag, std::uint64_t bytes,
                           std::uint64_t request) {
  of(user).message(peer, communicator, tag, bytes, of(user).call());
  return of(user).post(request), done;
}
OTF2_CallbackCode on_request(OTF2_LocationRef, OTF2_TimeStamp, std::uint64_t, void* user, OTF2_AttributeList*,
                             std::uint64_t request) {
  return of(user).post(request), done;
}
OTF2_CallbackCode on_complete(OTF2_LocationRef, OTF2_TimeStamp, std::uint64_t, void* user, OTF2_AttributeList*,
                              std::uint64_t request) {
  return of(user).complete(request), done;
}
OTF2_CallbackCode on_irecv(OTF2_LocationRef, OTF2_TimeStamp, std::uint64_t, void* user, OTF2_AttributeList*,
                           std::uint32_t peer, OTF2_CommRef communicator, std::uint32_t tag, std::uint64_t bytes,
                           std::uint64_t request) {
  const std::uint32_t posted = of(user).complete(request);
  if (posted != no_slice) of(user).late_message(peer, communicator, tag, bytes, posted);
  return done;
}
OTF2_CallbackCode on_collective(OTF2_LocationRef, OTF2_TimeStamp, std::uint64_t, void* user, OTF2_AttributeList*,
                                OTF2_CollectiveOp, OTF2_CommRef communicator, std::uint32_t root, std::uint64_t sent,
                                std::uint64_t received) {
  return of(user).collective(communicator, root, sent, received, of(user).call()), done;
}
OTF2_CallbackCode on_icollective(OTF2_LocationRef, OTF2_TimeStamp, std::uint64_t, void* user, OTF2_AttributeList*,
                                 OTF2_CollectiveOp, OTF2_CommRef communicator, std::uint32_t root, std::uint64_t sent,
                                 std::uint64_t received, std::uint64_t request) {
  const std::uint32_t posted = of(user).complete(request);
  return of(user).collective(communicator, root, sent, received, posted), done;
}
OTF2_CallbackCode on_rma(OTF2_LocationRef, OTF2_TimeStamp, std::uint64_t, void* user, OTF2_AttributeList*,
                         OTF2_RmaWinRef, std::uint32_t remote, std::uint64_t bytes, std::uint64_t) {
  return of(user).one_sided(remote, bytes), done;
}
OTF2_CallbackCode on_metric(OTF2_LocationRef, OTF2_TimeStamp time, std::uint64_t, void* user, OTF2_AttributeList*,
                            OTF2_MetricRef metric, std::uint8_t count, const OTF2_Type* types,
                            const OTF2_MetricValue* values) {
  return of(user).metric(time, metric, count, types, values), done;
}
OTF2_CallbackCode on_flush(OTF2_LocationRef, OTF2_TimeStamp time, std::uint64_t, void* user, OTF2_AttributeList*,
                           OTF2_TimeStamp end) {
  return of(user).pause(time, end, "trace buffer flush"), done;
}
OTF2_CallbackCode on_switch(OTF2_LocationRef, OTF2_TimeStamp time, std::uint64_t, void* user, OTF2_AttributeList*,
                            OTF2_MeasurementMode mode) {
  return of(user).recording(time, mode == OTF2_MEASUREMENT_ON), done;
}
OTF2_CallbackCode on_program(OTF2_LocationRef, OTF2_TimeStamp, std::uint64_t, void* user,
                             OTF2_AttributeList* attributes, OTF2_StringRef name, std::uint32_t count,
                             const OTF2_StringRef* arguments) {
  return of(user).program(name, count, arguments, attributes), done;
}
OTF2_CallbackCode on_unknown(OTF2_LocationRef, OTF2_TimeStamp, std::uint64_t, void* user, OTF2_AttributeList*) {
  return of(user).unknown(), done;
}

using Callbacks = std::unique_ptr<OTF2_EvtReaderCallbacks, void (*)(OTF2_EvtReaderCallbacks*)>;

Callbacks callbacks() {
  Callbacks all(OTF2_EvtReaderCallbacks_New(), OTF2_EvtReaderCallbacks_Delete);
  OTF2_EvtReaderCallbacks_SetEnterCallback(all.get(), on_enter);
  OTF2_EvtReaderCallbacks_SetLeaveCallback(all.get(), on_leave);
  OTF2_EvtReaderCallbacks_SetMpiSendCallback(all.get(), on_send);
  OTF2_EvtReaderCallbacks_SetMpiRecvCallback(all.get(), on_send);
  OTF2_EvtReaderCallbacks_SetMpiIsendCallback(all.get(), on_isend);
  OTF2_EvtReaderCallbacks_SetMpiIrecvRequestCallback(all.get(), on_request);
  OTF2_EvtReaderCallbacks_SetMpiIsendCompleteCallback(all.get(), on_complete);
  OTF2_EvtReaderCallbacks_SetMpiIrecvCallback(all.get(), on_irecv);
  OTF2_EvtReaderCallbacks_SetMpiCollectiveEndCallback(all.get(), on_collective);
  OTF2_EvtReaderCallbacks_SetNonBlockingCollectiveRequestCallback(all.get(), on_request);
  OTF2_EvtReaderCallbacks_SetNonBlockingCollectiveCompleteCallback(all.get(), on_icollective);
  OTF2_EvtReaderCallbacks_SetRmaPutCallback(all.get(), on_rma);
  OTF2_EvtReaderCallbacks_SetRmaGetCallback(all.get(), on_rma);
  OTF2_EvtReaderCallbacks_SetMetricCallback(all.get(), on_metric);
  OTF2_EvtReaderCallbacks_SetBufferFlushCallback(all.get(), on_flush);
  OTF2_EvtReaderCallbacks_SetMeasurementOnOffCallback(all.get(), on_switch);
  OTF2_EvtReaderCallbacks_SetProgramBeginCallback(all.get(), on_program);
  OTF2_EvtReaderCallbacks_SetUnknownCallback(all.get(), on_unknown);
  return all;
}

// Sorted, and those that overlap made one.
void tidy(std::vector<Gap>& gaps) {
  std::ranges::sort(gaps, {}, &Gap::start_ns);
  std::vector<Gap> disjoint;
  for (Gap& gap : gaps) {
    if (!disjoint.empty() && gap.start_ns <= disjoint.back().end_ns) {
      disjoint.back().end_ns = std::max(disjoint.back().end_ns, gap.end_ns);
    } else {
      disjoint.push_back(std::move(gap));
    }
  }
  gaps = std::move(disjoint);
}

// The events in the file cannot be more than its bytes. A wrong number in the definitions must not reserve memory.
std::uint64_t expected_slices(const Otf2Definitions::Location& location) {
  constexpr std::uint64_t most = 1 << 22;
  return std::min(location.events / 2, most);
}

// The number of events that can be read from a location's file, or nothing where the file is whole. The library does
// not return from a chunk that was cut. A chunk begins with a mark, its byte order and the numbers of its first and
// last event, and a whole file ends with the marks of the buffer's and the chunk's end.
std::optional<std::uint64_t> events_of_cut_file(const std::filesystem::path& path, std::uint64_t chunk_bytes) {
  constexpr std::uint64_t head_bytes = 18, last_event_at = 10;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file || chunk_bytes < head_bytes) return std::nullopt;
  const auto size = static_cast<std::uint64_t>(file.tellg());
  char marks[2] = {};
  if (size >= sizeof marks) file.seekg(-2, std::ios::end).read(marks, sizeof marks);
  if (marks[0] == 2 && marks[1] == 1) return std::nullopt;
  const std::uint64_t whole_chunks = size / chunk_bytes;
  if (whole_chunks == 0) return 0;
  unsigned char head[head_bytes] = {};
  file.clear();
  file.seekg(static_cast<std::streamoff>((whole_chunks - 1) * chunk_bytes))
      .read(reinterpret_cast<char*>(head), head_bytes);
  std::uint64_t last = 0;
  for (std::uint64_t i = 0; i < 8; ++i)
    last |= std::uint64_t{head[last_event_at + i]} << 8 * (head[1] == 'B' ? i : 7 - i);
  return last;
}

}  // namespace otf2_events

std::vector<std::string> read_otf2_process(OTF2_Reader* reader, Otf2Process& process,
                                           const std::vector<const Otf2Definitions::Location*>& locations,
                                           OTF2_LocationRef main_location, const std::filesystem::path& event_folder) {
  std::vector<std::string> problems;
  std::uint64_t event_chunk = 0, definition_chunk = 0;
  OTF2_Reader_GetChunkSize(reader, &event_chunk, &definition_chunk);
  const Otf2Definitions& definitions = process.definitions();
  const auto note = [&](const Otf2Definitions::Location& location, std::uint64_t events) {
    const std::string reason = take_otf2_error();
    problems.push_back(fmt::format("location {} after {} events: {}", location.id, events,
                                   reason.empty() ? "the rest cannot be read" : reason));
  };
  // Local definitions bring the numbers of a location to those of the archive, and its clock to that of the archive.
  for (const auto* location : locations) OTF2_Reader_SelectLocation(reader, location->id);
  if (OTF2_Reader_OpenDefFiles(reader) == OTF2_SUCCESS) {
    for (const auto* location : locations) {
      OTF2_DefReader* local = OTF2_Reader_GetDefReader(reader, location->id);
      if (local == nullptr) continue;
      std::uint64_t read = 0;
      if (OTF2_Reader_ReadAllLocalDefinitions(reader, local, &read) != OTF2_SUCCESS) note(*location, 0);
      OTF2_Reader_CloseDefReader(reader, local);
    }
    OTF2_Reader_CloseDefFiles(reader);
  }
  take_otf2_error();
  const otf2_events::Callbacks callbacks = otf2_events::callbacks();
  std::set<std::string> labels;
  std::uint64_t unknown = 0;
  OTF2_Reader_OpenEvtFiles(reader);
  for (const auto* location : locations) {
    if (location->type == OTF2_LOCATION_TYPE_METRIC && location->events == 0) continue;
    OTF2_EvtReader* events = OTF2_Reader_GetEvtReader(reader, location->id);
    if (events == nullptr) {
      if (location->events > 0) note(*location, 0);
      continue;
    }
    const bool on_stream = location->type == OTF2_LOCATION_TYPE_ACCELERATOR_STREAM;
    const bool is_main = location->id == main_location;
    std::string label = definitions.string(location->name);
    if (label.empty() || !labels.insert(label).second) label += fmt::format(" {}", location->id);
    if (is_main) label = "main thread";
    TrackBuilder& track =
        process.rank().add_track(on_stream ? TrackKind::stream : TrackKind::thread, label, location->id + 1, is_main);
    track.reserve(otf2_events::expected_slices(*location));
    otf2_events::LocationImport import(process, *location, track, on_stream, is_main);
    OTF2_Reader_RegisterEvtCallbacks(reader, events, callbacks.get(), &import);
    std::uint64_t read = 0;
    const auto cut = otf2_events::events_of_cut_file(event_folder / fmt::format("{}.evt", location->id), event_chunk);
    const OTF2_ErrorCode result = !cut        ? OTF2_Reader_ReadAllLocalEvents(reader, events, &read)
                                  : *cut == 0 ? OTF2_SUCCESS
                                              : OTF2_Reader_ReadLocalEvents(reader, events, *cut, &read);
    if (cut) {
      problems.push_back(fmt::format("location {} after {} events: its file was cut", location->id, read));
    } else if (result != OTF2_SUCCESS) {
      note(*location, read);
    }
    import.finish();
    unknown += import.unknown_events();
    OTF2_Reader_CloseEvtReader(reader, events);
  }
  OTF2_Reader_CloseEvtFiles(reader);
  otf2_events::tidy(process.rank().info().gaps);
  if (unknown > 0) problems.push_back(fmt::format("{} events have a type that this library does not know", unknown));
  return problems;
}

}  // namespace paceline::analysis
