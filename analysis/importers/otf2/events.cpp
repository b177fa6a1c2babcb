// SPDX-License-Identifier: Apache-2.0
// The events of an OTF2 archive: the records of a location's file.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "analysis/importers/otf2/location.h"

namespace paceline::analysis {
namespace otf2_events {

// The types of the records that become something. Those without a length have one field, a number.
enum Type : std::uint8_t {
  buffer_flush = 10,
  measurement_on_off = 11,
  enter = 12,  // without a length
  leave = 13,  // without a length
  mpi_send = 14,
  mpi_isend = 15,
  mpi_isend_complete = 16,  // without a length
  mpi_irecv_request = 17,   // without a length
  mpi_recv = 18,
  mpi_irecv = 19,
  mpi_request_test = 20,       // without a length
  mpi_request_cancelled = 21,  // without a length
  mpi_collective_end = 23,
  omp_fork = 24,           // without a length
  omp_task_create = 28,    // without a length
  omp_task_switch = 29,    // without a length
  omp_task_complete = 30,  // without a length
  metric = 31,
  rma_put = 46,
  rma_get = 47,
  program_begin = 83,
  collective_request = 85,
  collective_complete = 86,
  latest_known = 88
};

// Reads one location's file of events.
class EventFile {
 public:
  EventFile(const std::filesystem::path& file, std::uint64_t chunk_bytes, Otf2LocalDefinitions& local,
            Otf2Location& location)
      : chunks_(file, chunk_bytes), local_(local), location_(location) {}

  bool exists() const { return chunks_.exists(); }
  std::uint64_t events() const { return read_; }             // that were read
  std::uint64_t lost() const { return lost_; }               // as far as the chunks' heads say
  std::uint64_t damages() const { return damages_; }         // places where the reading could not go on
  std::uint64_t unknown_events() const { return unknown_; }  // of types of later versions of the format

  void read() {
    bool ended = false;
    std::uint64_t bad_heads = 0;
    while (!ended && chunks_.next()) {
      const std::uint64_t first = chunks_.first_event(), last = chunks_.last_event();
      if (first > number_ + 1) missing_ += first - number_ - 1;
      if (missing_ > 0 || chunks_.bad_heads() > bad_heads) lose();
      bad_heads = chunks_.bad_heads();
      if (first > 0) number_ = first - 1;
      const End end = chunk();
      ended = end == End::file;
      if (end == End::damage || last > number_) lose();
      if (last > number_) missing_ += last - std::exchange(number_, last);
    }
    if (!ended || chunks_.bad_heads() > bad_heads) lose();
    if (location_.losing()) end_loss();
  }

 private:
  enum class End { chunk, file, damage };

  // The events of this chunk.
  End chunk() {
    Otf2Bytes& from = chunks_.bytes();
    Otf2Bytes attributes;
    bool has_attributes = false;
    while (true) {
      std::uint8_t type = from.byte();
      if (type == static_cast<std::uint8_t>(Otf2Mark::time)) {
        const OTF2_TimeStamp time = from.fixed(8);
        if (from.failed()) return End::damage;
        time_ = local_.time(time);
        type = from.byte();
      }
      if (type == enter || type == leave) {
        const OTF2_RegionRef region = local_.global(OTF2_MAPPING_REGION, from.number32());
        if (from.failed()) return End::damage;
        next_event();
        if (type == leave) {
          location_.leave(time_, region);
        } else {
          const std::uint32_t slice = location_.enter(time_, region);
          if (has_attributes && slice != Otf2Location::no_slice) location_.add_attributes(slice, attributes, local_);
        }
        has_attributes = false;
        continue;
      }
      if (type < static_cast<std::uint8_t>(Otf2Mark::first_record)) {
        if (from.failed()) return End::damage;
        if (type == static_cast<std::uint8_t>(Otf2Mark::end_of_chunk)) return End::chunk;
        if (type == static_cast<std::uint8_t>(Otf2Mark::end_of_file)) return End::file;
        if (type != static_cast<std::uint8_t>(Otf2Mark::attributes)) return End::damage;
        attributes = from.record();
        has_attributes = true;
        continue;
      }
      if (!event(type, from, has_attributes ? attributes : Otf2Bytes())) return End::damage;
      has_attributes = false;
    }
  }

  static bool has_length(std::uint8_t type) {
    constexpr std::uint64_t without = 1ULL << mpi_isend_complete | 1ULL << mpi_irecv_request |
                                      1ULL << mpi_request_test | 1ULL << mpi_request_cancelled | 1ULL << omp_fork |
                                      1ULL << omp_task_create | 1ULL << omp_task_switch | 1ULL << omp_task_complete;
    return type >= 64 || (without >> type & 1) == 0;
  }

  // An event that neither enters nor leaves a region. False where it is damaged.
  bool event(std::uint8_t type, Otf2Bytes& chunk, const Otf2Bytes& attributes) {
    if (!has_length(type)) {
      const std::uint64_t number = chunk.number();
      if (chunk.failed()) return false;
      next_event();
      if (type == mpi_irecv_request) location_.post(number);
      if (type == mpi_isend_complete) location_.complete(number);
      return true;
    }
    Otf2Bytes from = chunk.record();
    if (chunk.failed()) return false;
    next_event();
    switch (type) {
      case buffer_flush:
        location_.pause(time_, local_.time(from.fixed(8)), "trace buffer flush");
        break;
      case measurement_on_off:
        location_.recording(time_, from.byte() == OTF2_MEASUREMENT_ON);
        break;
      case mpi_send:
      case mpi_recv:
      case mpi_isend:
      case mpi_irecv:
        message(type, from);
        break;
      case mpi_collective_end:
      case collective_complete:
        collective(type, from);
        break;
      case collective_request:
        location_.post(from.number());
        break;
      case rma_put:
      case rma_get: {
        from.number();  // the window
        const std::uint32_t remote = from.number32();
        const std::uint64_t bytes = from.number();
        if (!from.failed()) location_.one_sided(remote, bytes);
        break;
      }
      case metric: {
        const OTF2_MetricRef id = local_.global(OTF2_MAPPING_METRIC, from.number32());
        location_.metric(time_, id, from);
        break;
      }
      case program_begin:
        location_.program(from, attributes, local_);
        break;
      default:
        unknown_ += type > latest_known;
    }
    if (from.failed()) ++damages_;
    return true;
  }

  void message(std::uint8_t type, Otf2Bytes& from) {
    const std::uint32_t peer = from.number32();
    const OTF2_CommRef communicator = local_.global(OTF2_MAPPING_COMM, from.number32());
    const std::uint32_t tag = from.number32();
    const std::uint64_t bytes = from.number();
    const std::uint64_t request = type == mpi_isend || type == mpi_irecv ? from.number() : 0;
    if (from.failed()) return;
    if (type == mpi_irecv) {
      const std::uint32_t posted = location_.complete(request);
      if (posted != Otf2Location::no_slice) location_.late_message(peer, communicator, tag, bytes, posted);
      return;
    }
    location_.message(peer, communicator, tag, bytes, location_.call());
    if (type == mpi_isend) location_.post(request);
  }

  void collective(std::uint8_t type, Otf2Bytes& from) {
    from.byte();  // the operation, which the region names
    const OTF2_CommRef communicator = local_.global(OTF2_MAPPING_COMM, from.number32());
    const std::uint32_t root = from.number32();
    const std::uint64_t sent = from.number(), received = from.number();
    const std::uint64_t request = type == collective_complete ? from.number() : 0;
    if (from.failed()) return;
    location_.collective(communicator, root, sent, received,
                         type == collective_complete ? location_.complete(request) : location_.call());
  }

  void next_event() {
    ++number_;
    ++read_;
    if (location_.losing()) end_loss();
  }
  void lose() {
    ++damages_;
    location_.lose(time_);
  }
  void end_loss() {
    location_.end_loss(time_, missing_);
    lost_ += std::exchange(missing_, 0);
  }

  Otf2Chunks chunks_;
  Otf2LocalDefinitions& local_;
  Otf2Location& location_;
  OTF2_TimeStamp time_ = 0;    // of the latest event
  std::uint64_t number_ = 0;   // of the latest event, from 1 on
  std::uint64_t missing_ = 0;  // events before the next one
  std::uint64_t read_ = 0, lost_ = 0, damages_ = 0, unknown_ = 0;
};

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

}  // namespace otf2_events

std::vector<std::string> read_otf2_process(const Otf2Files& files, Otf2Process& process,
                                           const std::vector<const Otf2Definitions::Location*>& locations,
                                           OTF2_LocationRef main_location) {
  std::vector<std::string> problems;
  const Otf2Definitions& definitions = process.definitions();
  std::set<std::string> labels;
  std::uint64_t unknown = 0;
  for (const auto* location : locations) {
    if (location->type == OTF2_LOCATION_TYPE_METRIC && location->events == 0) continue;
    Otf2LocalDefinitions local(files.definitions_of(location->id), files.definition_chunk_bytes);
    if (!local.complete()) problems.push_back(fmt::format("location {}: its definitions are damaged", location->id));
    const bool on_stream = location->type == OTF2_LOCATION_TYPE_ACCELERATOR_STREAM;
    const bool is_main = location->id == main_location;
    std::string label = definitions.string(location->name);
    if (label.empty() || !labels.insert(label).second) label += fmt::format(" {}", location->id);
    if (is_main) label = "main thread";
    TrackBuilder& track =
        process.rank().add_track(on_stream ? TrackKind::stream : TrackKind::thread, label, location->id + 1, is_main);
    Otf2Location import(process, *location, track, on_stream, is_main);
    otf2_events::EventFile events(files.events_of(location->id), files.event_chunk_bytes, local, import);
    if (!events.exists()) {
      if (location->events > 0)
        problems.push_back(fmt::format("location {}: its file of events is missing", location->id));
      continue;
    }
    track.reserve(otf2_events::expected_slices(*location));
    events.read();
    unknown += events.unknown_events();
    if (events.damages() > 0) {
      problems.push_back(fmt::format(
          "location {} after {} events: {}", location->id, events.events(),
          events.lost() > 0 ? fmt::format("{} could not be read", events.lost()) : "some could not be read"));
    }
  }
  otf2_events::tidy(process.rank().info().gaps);
  if (unknown > 0) problems.push_back(fmt::format("{} events have a type that is not known here", unknown));
  return problems;
}

}  // namespace paceline::analysis
