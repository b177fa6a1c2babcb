#include "analysis/importers/pace.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <unordered_map>

#include "analysis/importers/clock_alignment.h"
#include "analysis/importers/pace_cuda.h"
#include "analysis/importers/pace_definitions.h"
#include "analysis/importers/pace_gaps.h"
#include "analysis/importers/pace_nccl.h"
#include "analysis/trace/builder.h"
#include "profiler/format/error.h"
#include "profiler/format/mpi_functions.h"

namespace paceline::analysis {
namespace {

using format::EventType;
using format::Slot;

constexpr std::string_view category_of(format::MpiKind kind) {
  switch (kind) {
    case format::MpiKind::management:
      return "management";
    case format::MpiKind::point_to_point:
      return "point-to-point";
    case format::MpiKind::wait:
      return "wait";
    case format::MpiKind::collective:
      return "collective";
    case format::MpiKind::one_sided:
      return "one-sided";
    case format::MpiKind::file:
      return "file";
  }
  return "";
}

// Bounded, so that the clocks of a damaged file cannot make differences of times overflow.
std::int64_t whole_ns(double ns) { return std::llround(std::clamp(ns, -4e18, 4e18)); }

double number_of(std::uint64_t type, std::uint64_t bits) {
  switch (static_cast<format::PayloadType>(type)) {
    case format::PayloadType::signed_integer:
      return static_cast<double>(static_cast<std::int64_t>(bits));
    case format::PayloadType::floating:
      return std::bit_cast<double>(bits);
    default:
      return static_cast<double>(bits);
  }
}

// Names and classes that all files of a run share.
class Vocabulary {
 public:
  explicit Vocabulary(TraceBuilder& run)
      : run_(run),
        payload(run.names().intern("payload")),
        bytes(run.names().intern("bytes")),
        communicator(run.names().intern("communicator")),
        sequence(run.names().intern("sequence")),
        members(run.names().intern("members")),
        root(run.names().intern("root")),
        peer(run.names().intern("peer")),
        tag(run.names().intern("tag")),
        request(run.names().intern("request")),
        file(run.names().intern("file")),
        offset(run.names().intern("offset")),
        window(run.names().intern("window")),
        unfinished(run.names().intern("unfinished")) {
    for (const format::MpiFunction& function : format::mpi_functions) {
      const auto id = static_cast<std::size_t>(function.id);
      if (mpi_.size() <= id) mpi_.resize(id + 1);
      mpi_[id] = {run.names().intern(function.name), run.class_of("mpi", category_of(function.kind))};
    }
  }

  struct MpiCall {
    NameId name = 0;
    std::uint16_t slice_class = 0;
  };
  // Of a function that this version does not know, the number is its name.
  MpiCall mpi(std::uint32_t function) {
    if (mpi_.size() <= function) mpi_.resize(function + 1);
    MpiCall& call = mpi_[function];
    if (call.name == 0)
      call = {run_.names().intern(fmt::format("MPI function {}", function)), run_.class_of("mpi", "")};
    return call;
  }

  // The text that tells a communicator from all others: its name where only one has that name.
  NameId communicator_text(std::uint64_t identity, std::string_view name) {
    NameId& text = communicators_[identity];
    if (text == 0) {
      const bool free = !name.empty() && communicator_names_.insert(std::string(name)).second;
      text = run_.names().intern(free ? std::string(name)
                                      : fmt::format("{}{}{:016x}", name, name.empty() ? "" : " ", identity));
    }
    return text;
  }

 private:
  TraceBuilder& run_;
  std::vector<MpiCall> mpi_;
  std::unordered_map<std::uint64_t, NameId> communicators_;
  std::set<std::string> communicator_names_;

 public:
  const NameId payload, bytes, communicator, sequence, members, root, peer, tag, request, file, offset, window, unfinished;
};

// Reads the tracks of one file into one rank.
class FileImport {
 public:
  FileImport(TraceBuilder& run, Vocabulary& words, RankBuilder& rank, const PaceDefinitions& definitions,
             const std::vector<PaceGap>& gaps, const PiecewiseLine& clock, double zero)
      : run_(run),
        words_(words),
        rank_(rank),
        definitions_(definitions),
        gaps_(gaps),
        clock_(clock),
        zero_(zero) {
    names_.reserve(definitions.names.size());
    for (const std::string& name : definitions.names) names_.push_back(run.names().intern(name));
    for (const auto& [local, communicator] : definitions.communicators) {
      communicators_[local] = {words.communicator_text(communicator.identity, definitions.name(communicator.name)),
                               communicator.members};
    }
  }

  // What the file does not cover, of the rank.
  void gaps() {
    Rank& info = rank_.info();
    for (const PaceGap& gap : gaps_) {
      const std::int64_t start = gap.off == 0 ? info.start_ns : std::max(time(gap.off), info.start_ns);
      const std::int64_t end = std::min(time(gap.on), info.end_ns);
      if (end > start) info.gaps.push_back({start, end, gap.reason});
    }
    for (const auto& trigger : definitions_.triggers)
      info.triggers.push_back({time(trigger.ticks), trigger_text(trigger)});
    for (const auto& [local, communicator] : communicators_) info.communicators.push_back(communicator.text);
  }

  // What CUDA and NCCL did: read before the tracks, which take their threads' calls out of it; the rest makes tracks of
  // its own, after them.
  void read_devices(const format::TraceFile& file) {
    const auto time_of = [this](std::uint64_t ticks) { return time(ticks); };
    cuda_.emplace(run_, file, definitions_, time_of);
    nccl_.emplace(run_, file, definitions_, time_of, [this](std::uint64_t identity, std::string_view name) {
      return words_.communicator_text(identity, name);
    });
  }
  void add_devices(const format::TraceFile& file, const std::string& process = "") {
    nccl_->add_tracks(file, *cuda_, process, rank_);
    cuda_->add_tracks(process, rank_);
    rank_.info().cuda_events += cuda_->events();
    rank_.info().nccl_events += nccl_->events();
  }

  std::int64_t time(std::uint64_t ticks) const {
    return whole_ns(clock_(static_cast<double>(ticks)) - zero_);
  }

  // `process` names a child of the rank's process.
  void track(const format::Track& from, std::uint32_t index, bool main, const std::string& process = "") {
    std::string label = main ? "main thread" : fmt::format("thread {}", from.thread_id);
    if (const auto named = definitions_.thread_names.find(from.thread_id); named != definitions_.thread_names.end()) {
      label = definitions_.name(named->second);
    }
    label = process + label;
    Open open;
    TrackBuilder& track = rank_.add_track(TrackKind::thread, label, from.thread_id, main && process.empty());
    each_event(from.slots, [&](const Slot& head, const Slot* extension) {
      for (; open.gap < gaps_.size() && ticks_of(head) >= gaps_[open.gap].on; ++open.gap)
        cut(track, open, gaps_[open.gap]);
      if (pending_.take(head)) return;
      event(track, index, open, head, extension);
      pending_.forget();
    });
    pending_.forget();
    // A pause ends ranges also where the thread did nothing after it.
    for (; open.gap < gaps_.size(); ++open.gap) {
      if (gaps_[open.gap].paused) cut(track, open, gaps_[open.gap]);
    }
    place_ranges(track, label, from.thread_id, open.ranges);
    if (nccl_) nccl_->add_calls(index, track);
    if (cuda_ && cuda_->events() > 0) cuda_->add_calls(from.thread_id, edges_of(from), track);
  }

  // Submitted events whose time stamps could not be placed on the run's clock.
  std::uint64_t untimed() const { return untimed_; }

  // After all tracks. `process` is put before the device.
  void counters(const std::string& process = "") {
    for (auto& [id, readings] : readings_) {
      const auto known = definitions_.counters.find(id);
      PaceDefinitions::Counter counter;
      if (known != definitions_.counters.end()) counter = known->second;
      std::string name(definitions_.name(counter.name));
      if (name.empty()) name = fmt::format("counter {}", id);  // its definition is lost
      std::string device(definitions_.name(counter.device));
      if (!process.empty()) device = device.empty() ? process : process + ", " + device;
      TrackBuilder& track = rank_.add_counter(std::move(name), std::string(definitions_.name(counter.unit)),
                                              std::move(device), counter.is_sum);
      std::ranges::stable_sort(readings, {}, &Reading::ticks);
      // A sum may stand at any number when the recording begins, and a double has 53 bits.
      const std::uint64_t start = counter.is_sum ? readings.front().value : 0;
      for (const Reading& reading : readings) {
        track.add_sample(time(reading.ticks), static_cast<double>(static_cast<std::int64_t>(reading.value - start)));
      }
    }
  }

 private:
  // A sample as it is in the file.
  struct Reading {
    std::uint64_t ticks = 0, value = 0;
  };
  // A range by start and end, which need not nest with anything.
  struct Range {
    std::uint64_t start_ticks = 0, end_ticks = 0;
    std::uint64_t scope = 0;
    bool has_payload = false, ended = false, crosses = false;
    double payload = 0;
    DecodedPayloads extended;
  };
  struct Communicator {
    NameId text = 0;
    std::uint32_t members = 0;
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
  std::vector<std::int64_t> edges_of(const format::Track& from) const {
    std::vector<std::int64_t> edges;
    each_event(from.slots, [&](const Slot& head, const Slot*) {
      const EventType type = type_of(head);
      const auto number = static_cast<unsigned>(type);
      const bool is_edge = (number >= 16 && number < 48) || (number >= 64 && number < 96) ||  // NVTX and MPI
                           type == EventType::nccl_call || type == EventType::nccl_end;
      if (is_edge) edges.push_back(time(ticks_of(head)));
    });
    if (!std::ranges::is_sorted(edges)) std::ranges::sort(edges);
    return edges;
  }

  NameId name(std::uint64_t scope) const {
    const auto id = static_cast<std::uint32_t>(scope);
    return id < names_.size() ? names_[id] : 0;
  }

  std::uint16_t slice_class(std::uint64_t scope) {
    const auto key = static_cast<std::uint32_t>(scope >> 32);
    if (key == last_key_) return last_class_;
    const auto [found, fresh] = classes_.try_emplace(key, std::uint16_t{0});
    if (fresh) {
      const std::uint32_t category = key & 0xffff, domain = key >> 16;
      std::string_view domain_name, category_name;
      if (domain < definitions_.domains.size()) domain_name = definitions_.name(definitions_.domains[domain]);
      if (domain < definitions_.categories.size()) {
        const auto named = definitions_.categories[domain].find(category);
        if (named != definitions_.categories[domain].end()) category_name = definitions_.name(named->second);
      }
      found->second = run_.class_of(domain_name, category_name);
    }
    last_key_ = key;
    return last_class_ = found->second;
  }

  void event(TrackBuilder& track, std::uint32_t index, Open& open, const Slot& head, const Slot* extension) {
    const std::uint64_t ticks = ticks_of(head);
    Rank& info = rank_.info();
    switch (type_of(head)) {
      case EventType::push:
      case EventType::push_payload: {
        ++info.nvtx_events;
        const DecodedPayloads payloads = decode(pending_.before(head), head.low >> 48);
        const std::uint32_t slice = track.begin_slice(time(ticks), name(head.low, payloads), slice_class(head.low));
        if (type_of(head) == EventType::push_payload) {
          track.argument(slice, words_.payload, number_of(extension->high, extension->low));
        }
        add_values(track, slice, payloads);
        open.pushes.push_back({slice, static_cast<std::uint16_t>(head.low >> 48), ticks});
        open.nesting.push_back(-1);
        break;
      }
      case EventType::pop:
        pop(track, open, head);
        break;
      case EventType::mark:
      case EventType::mark_payload: {
        ++info.nvtx_events;
        const DecodedPayloads payloads = decode(pending_.before(head), head.low >> 48);
        const std::uint32_t mark = track.add_mark(time(ticks), name(head.low, payloads), slice_class(head.low));
        if (type_of(head) == EventType::mark_payload) {
          track.mark_argument(mark, words_.payload, number_of(extension->high, extension->low));
        }
        add_mark_values(track, mark, payloads);
        break;
      }
      case EventType::submit:
        ++info.nvtx_events;
        submitted(head);
        break;
      case EventType::start:
      case EventType::start_payload:
        ++info.nvtx_events;
        start_range(index, open, head, extension);
        break;
      case EventType::end:
        end_range(open, head.low);
        break;
      case EventType::mpi_begin:
      case EventType::mpi_begin_peer:
      case EventType::mpi_begin_coll:
      case EventType::mpi_begin_file:
      case EventType::mpi_begin_window:
        ++info.mpi_events;
        open.calls.push_back({begin_call(track, head, extension), ticks});
        break;
      case EventType::mpi_posted:
      case EventType::mpi_completed:
        if (!open.calls.empty()) {
          track.argument(open.calls.back().slice, words_.request, static_cast<double>(head.low));
        }
        break;
      case EventType::mpi_end:
        if (open.calls.empty()) break;
        track.end_slice(open.calls.back().slice, time(ticks));
        open.calls.pop_back();
        break;
      case EventType::sample:
        if (head.low > 0xffff) break;  // no counter can have this number: damage
        ++info.counter_events;
        readings_[static_cast<std::uint32_t>(head.low)].push_back({ticks, extension->high});
        break;
      default:
        break;
    }
  }

  // What is open when a gap begins has its end in it, or nobody knows where: it ends with the gap's begin, unfinished.
  void cut(TrackBuilder& track, Open& open, const PaceGap& gap) {
    const auto end = [&](std::uint32_t slice, std::uint64_t began) {
      track.end_slice(slice, time(std::max(gap.off, began)));
      track.argument(slice, words_.unfinished, 1.0);
    };
    const auto is_cut = [&](const auto& begun) {
      return begun.ticks <= gap.off || (gap.paused && begun.ticks < gap.on);
    };
    const auto pushes = std::ranges::find_if_not(open.pushes, is_cut);
    for (auto push = open.pushes.begin(); push != pushes; ++push) end(push->slice, push->ticks);
    for (auto left = pushes - open.pushes.begin(); left > 0; --left)
      open.nesting.erase(std::ranges::find(open.nesting, -1));
    open.pushes.erase(open.pushes.begin(), pushes);
    if (!gap.incomplete) return;  // the ends of calls are recorded in a pause
    const auto calls = std::ranges::find_if(open.calls, [&](const Call& call) { return call.ticks > gap.off; });
    for (auto call = open.calls.begin(); call != calls; ++call) end(call->slice, call->ticks);
    open.calls.erase(open.calls.begin(), calls);
  }

  void pop(TrackBuilder& track, Open& open, const Slot& head) {
    const auto domain = static_cast<std::uint16_t>(head.low);
    const auto push = std::find_if(open.pushes.rbegin(), open.pushes.rend(),
                                   [&](const Push& candidate) { return candidate.domain == domain; });
    if (push == open.pushes.rend()) return;  // the end of a range that began before the recording
    track.end_slice(push->slice, time(ticks_of(head)));
    const DecodedPayloads payloads = decode(pending_.before(head), domain);
    if (!payloads.message.empty()) track.rename(push->slice, run_.names().intern(payloads.message));
    add_values(track, push->slice, payloads);
    auto pushes_above = push - open.pushes.rbegin();
    open.pushes.erase(std::next(push).base());
    // Ranges that began inside this push cross its end; pushes of other domains stay.
    auto entry = std::prev(open.nesting.end());
    for (; *entry != -1 || pushes_above-- > 0; --entry) {
      if (*entry == -1) continue;
      open.ranges[static_cast<std::size_t>(*entry)].crosses = true;
      entry = open.nesting.erase(entry);
    }
    open.nesting.erase(entry);
  }

  std::uint32_t begin_call(TrackBuilder& track, const Slot& head, const Slot* extension) {
    const Vocabulary::MpiCall call = words_.mpi(head.low & 0xffff);
    const std::uint32_t slice = track.begin_slice(time(ticks_of(head)), call.name, call.slice_class);
    if (type_of(head) == EventType::mpi_begin) return slice;
    const auto root_or_tag = static_cast<std::int32_t>(static_cast<std::uint32_t>(head.low >> 16));
    if (type_of(head) == EventType::mpi_begin_file || type_of(head) == EventType::mpi_begin_window) {
      object_arguments(track, slice, head, extension);
      return slice;
    }
    track.argument(slice, words_.bytes, static_cast<double>(extension->high));
    const auto communicator = communicators_.find(static_cast<std::uint32_t>(extension->low));
    const bool known = communicator != communicators_.end();
    if (known) track.text_argument(slice, words_.communicator, communicator->second.text);
    if (type_of(head) == EventType::mpi_begin_coll) {
      if (known) track.argument(slice, words_.members, communicator->second.members);
      track.argument(slice, words_.sequence, static_cast<double>(extension->low >> 32));
      if (root_or_tag >= 0) track.argument(slice, words_.root, root_or_tag);
    } else {
      track.argument(slice, words_.peer, static_cast<std::int32_t>(extension->low >> 32));
      track.argument(slice, words_.tag, root_or_tag);
    }
    return slice;
  }

  // Of a call on a file or a window; what is 0 or not there is not said.
  void object_arguments(TrackBuilder& track, std::uint32_t slice, const Slot& head, const Slot* extension) {
    const auto object_or_target = static_cast<std::uint32_t>(head.low >> 16);
    if (extension->high > 0) track.argument(slice, words_.bytes, static_cast<double>(extension->high));
    if (type_of(head) == EventType::mpi_begin_window) {
      const auto target = static_cast<std::int32_t>(object_or_target);
      if (target >= 0) track.argument(slice, words_.peer, target);
      track.argument(slice, words_.window, static_cast<double>(extension->low & 0xffffffff));
      return;
    }
    if (const auto file = definitions_.mpi_files.find(object_or_target); file != definitions_.mpi_files.end()) {
      track.text_argument(slice, words_.file, name(file->second.path));
    }
    const auto offset = static_cast<std::int64_t>(extension->low);
    if (offset >= 0) track.argument(slice, words_.offset, static_cast<double>(offset));
  }

  void start_range(std::uint32_t index, Open& open, const Slot& head, const Slot* extension) {
    Range range;
    range.start_ticks = ticks_of(head);
    range.scope = head.low;
    const std::uint64_t id = extension->high;
    if (type_of(head) == EventType::start_payload) {
      range.has_payload = true;
      range.payload = number_of(extension[1].high, extension->low);
    }
    range.extended = decode(pending_.before(head), head.low >> 48);
    if (const auto more = definitions_.end_payloads.find(id); more != definitions_.end_payloads.end()) {
      definitions_.payloads.decode(static_cast<std::uint16_t>(head.low >> 48), more->second, lookup_, range.extended);
    }
    const auto end = definitions_.range_ends.find(id);
    if (end != definitions_.range_ends.end() && end->second.ticks >= range.start_ticks) {
      range.ended = true;
      range.end_ticks = end->second.ticks;
      range.crosses = end->second.track != index;  // ended by another thread
    }
    if (!range.crosses) {
      open.nesting.push_back(static_cast<std::int64_t>(open.ranges.size()));
      open.range_of_id[id] = open.ranges.size();
    }
    open.ranges.push_back(range);
  }

  void end_range(Open& open, std::uint64_t id) {
    const auto found = open.range_of_id.find(id);
    if (found == open.range_of_id.end()) return;
    const auto range = static_cast<std::int64_t>(found->second);
    open.range_of_id.erase(found);
    const auto at = std::find(open.nesting.rbegin(), open.nesting.rend(), range);
    if (at == open.nesting.rend()) return;  // crossed a pop before
    open.ranges[static_cast<std::size_t>(range)].crosses = at != open.nesting.rbegin();
    open.nesting.erase(std::next(at).base());
  }

  void place_ranges(TrackBuilder& track, const std::string& label, std::uint64_t thread_id,
                    const std::vector<Range>& ranges) {
    TrackBuilder* crossing = nullptr;
    for (const Range& range : ranges) {
      if (range.crosses && crossing == nullptr) {
        crossing = &rank_.add_track(TrackKind::thread, label + ": ranges", thread_id);
      }
      TrackBuilder& to = range.crosses ? *crossing : track;
      const std::uint32_t slice =
          to.begin_slice(time(range.start_ticks), name(range.scope, range.extended), slice_class(range.scope));
      if (range.ended) {
        to.end_slice(slice, time(range.end_ticks));
      } else {
        const auto gap = std::ranges::find_if(gaps_, [&](const PaceGap& g) { return g.on > range.start_ticks; });
        if (gap != gaps_.end()) {
          to.end_slice(slice, time(std::max(gap->off, range.start_ticks)));
          to.argument(slice, words_.unfinished, 1.0);
        }
      }
      if (range.has_payload) to.argument(slice, words_.payload, range.payload);
      add_values(to, slice, range.extended);
    }
  }

  DecodedPayloads decode(std::span<const Slot> payloads, std::uint64_t domain) const {
    DecodedPayloads decoded;
    if (!payloads.empty()) {
      definitions_.payloads.decode(static_cast<std::uint16_t>(domain), payloads, lookup_, decoded);
    }
    return decoded;
  }

  NameId name(std::uint64_t scope, const DecodedPayloads& payloads) {
    return payloads.message.empty() ? name(scope) : run_.names().intern(payloads.message);
  }

  void add_values(TrackBuilder& track, std::uint32_t slice, const DecodedPayloads& payloads) {
    for (const PayloadValue& value : payloads.values) {
      const NameId key = run_.names().intern(value.name);
      if (value.is_text) {
        if (value.text.empty()) continue;  // the model has no empty texts
        track.text_argument(slice, key, run_.names().intern(value.text));
      } else {
        track.argument(slice, key, value.number);
      }
    }
  }
  void add_mark_values(TrackBuilder& track, std::uint32_t mark, const DecodedPayloads& payloads) {
    for (const PayloadValue& value : payloads.values) {
      const NameId key = run_.names().intern(value.name);
      if (value.is_text) {
        if (value.text.empty()) continue;
        track.mark_text_argument(mark, key, run_.names().intern(value.text));
      } else {
        track.mark_argument(mark, key, value.number);
      }
    }
  }

  // An event with time stamps of the program's own: a range where it has two, else a mark. On a track of its domain's.
  void submitted(const Slot& head) {
    const auto domain = static_cast<std::uint16_t>(head.low >> 48);
    const DecodedPayloads payloads = decode(pending_.before(head), domain);
    std::optional<std::int64_t> begin, end;
    for (const PayloadTime& stamp : payloads.times) {
      const std::optional<double> ticks = definitions_.nvtx_clocks.ticks(domain, stamp.time_domain, stamp.value);
      if (!ticks) continue;
      const std::int64_t at = whole_ns(clock_(*ticks) - zero_);
      if (at >= rank_.info().start_ns && at <= rank_.info().end_ns) (stamp.is_end ? end : begin) = at;
    }
    if (!begin) {
      ++untimed_;
      return;
    }
    TrackBuilder*& track = submitted_[domain];
    if (track == nullptr) {
      std::string_view of = domain < definitions_.domains.size() ? definitions_.name(definitions_.domains[domain]) : "";
      if (of.empty()) of = "default domain";
      track = &rank_.add_track(TrackKind::thread, fmt::format("submitted: {}", of));
    }
    const NameId title = name(head.low, payloads);
    if (end) {
      add_values(*track, track->add_slice(*begin, *end, title, slice_class(head.low)), payloads);
    } else {
      add_mark_values(*track, track->add_mark(*begin, title, slice_class(head.low)), payloads);
    }
  }

  TraceBuilder& run_;
  Vocabulary& words_;
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
  std::unordered_map<std::uint32_t, std::uint16_t> classes_;  // by the upper half of a scope
  std::map<std::uint32_t, std::vector<Reading>> readings_;    // by counter
  std::uint32_t last_key_ = 0xffffffff;
  std::uint16_t last_class_ = 0;
};

int setting(const PaceDefinitions& definitions, const char* key, int from_header) {
  if (from_header >= 0) return from_header;
  const auto found = definitions.settings.find(key);
  int value = -1;
  if (found != definitions.settings.end()) {
    std::from_chars(found->second.data(), found->second.data() + found->second.size(), value);
  }
  return value;
}

void refuse_mixed_jobs(const std::vector<format::TraceFile>& files) {
  const format::TraceFile* first = nullptr;
  for (const format::TraceFile& file : files) {
    if (file.job.empty()) continue;
    if (first == nullptr) first = &file;
    if (file.job != first->job) {
      throw Error(
          fmt::format("{} and {} are of different runs (jobs {} and {}): give the files of one run, or record each "
                      "run into a directory of its own",
                      first->path.string(), file.path.string(), first->job, file.job));
    }
  }
}

// One process of the run: its file and what is known of it.
struct Process {
  format::TraceFile file;
  PaceDefinitions definitions;
  int rank = -1, world_size = -1, local_rank = -1;
  std::uint32_t child_of = 0;  // process id of the rank whose events these are as well; 0 = its own
};

bool same_machine(const Process& a, const Process& b) {
  return a.file.host == b.file.host && a.file.boot_id == b.file.boot_id;
}

// The recorded process that this one is a child of, if its file is here; the last of a line of grandparents.
const Process* root_of(const Process& process, const std::vector<Process>& processes) {
  const Process* root = &process;
  for (std::size_t step = 0; step < processes.size() && !root->file.parent.empty(); ++step) {
    const auto parent = std::ranges::find_if(processes, [&](const Process& candidate) {
      return same_machine(candidate, process) && std::to_string(candidate.file.header.pid) == root->file.parent;
    });
    if (parent == processes.end()) break;
    root = &*parent;
  }
  return root == &process ? nullptr : root;
}

// Takes out the processes whose events belong to another one's rank.
std::vector<Process> take_children(std::vector<Process>& processes) {
  std::vector<std::uint32_t> roots;  // process ids, 0 = nobody's child
  for (const Process& process : processes) {
    const Process* root = root_of(process, processes);
    roots.push_back(root != nullptr ? root->file.header.pid : 0);
  }
  std::vector<Process> children, others;
  for (std::size_t p = 0; p < processes.size(); ++p) {
    processes[p].child_of = roots[p];
    (roots[p] != 0 ? children : others).push_back(std::move(processes[p]));
  }
  processes = std::move(others);
  return children;
}

// Of several processes of one rank, keeps the one with the most events.
void keep_one_a_rank(std::vector<Process>& processes, std::vector<std::string>& notes) {
  std::ranges::stable_sort(processes, [](const Process& a, const Process& b) {
    if (a.rank != b.rank) return a.rank < b.rank;
    return a.definitions.events > b.definitions.events;
  });
  for (std::size_t i = 1; i < processes.size();) {
    const Process &kept = processes[i - 1], &other = processes[i];
    if (other.rank < 0 || other.rank != kept.rank) {
      ++i;
      continue;
    }
    notes.push_back(fmt::format("{} left out: process {} is rank {} too, and recorded fewer events than process {}",
                                other.file.path.string(), other.file.header.pid, other.rank, kept.file.header.pid));
    processes.erase(processes.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

void number_the_rest(std::vector<Process>& processes) {
  std::set<int> taken;
  for (const Process& process : processes) taken.insert(process.rank);
  std::vector<Process*> unnumbered;
  for (Process& process : processes) {
    if (process.rank < 0) unnumbered.push_back(&process);
  }
  std::ranges::stable_sort(unnumbered, {}, [](const Process* process) { return process->file.header.start_utc_ns; });
  int next = 0;
  for (Process* process : unnumbered) {
    while (taken.contains(next)) ++next;
    process->rank = next++;
  }
}

ClockReadings readings_of(const Process& process) {
  const format::FileHeader& header = process.file.header;
  ClockReadings readings;
  readings.rank = process.rank;
  readings.ticks_are_ns = header.clock_source == format::ClockSource::monotonic_raw;
  readings.domain = fmt::format("{}\n{}\n{}", process.file.boot_id, process.file.host, readings.ticks_are_ns);
  readings.ticks_per_second = header.ticks_per_second;
  readings.start_ticks = header.start_ticks;
  readings.end_ticks = header.start_ticks + process.definitions.last_ticks;
  readings.start_utc_ns = header.start_utc_ns;
  readings.process_start_utc_ns = header.process_start_utc_ns;
  readings.utc_error_us = process.file.utc_error_us;
  readings.pairs = process.definitions.pairs;
  readings.exchanges = process.definitions.exchanges;
  return readings;
}

std::map<std::string, std::uint64_t> dropped_of(const format::TraceFile& file) {
  constexpr const char* causes[] = {"no_free_chunk", "too_long", "too_many_names", "disk",
                                    "ring",          "device",   "payload_cut"};
  std::map<std::string, std::uint64_t> dropped;
  for (std::size_t i = 0; i < format::drop_causes; ++i) {
    if (file.header.dropped[i] == 0) continue;
    dropped[i < std::size(causes) ? causes[i] : "other"] += file.header.dropped[i];
  }
  return dropped;
}

// Says of each host that only UTC puts on the run's clock how good that is.
void note_utc(const std::vector<Process>& processes, const std::vector<AlignedClock>& clocks,
              std::vector<std::string>& notes) {
  std::set<std::string> noted;
  for (std::size_t p = 0; p < processes.size(); ++p) {
    const format::TraceFile &file = processes[p].file, &reference = processes.front().file;
    if (!clocks[p].by_utc || !noted.insert(file.host + '\n' + file.boot_id).second) continue;
    std::string how_good = fmt::format("good to {:.1f} ms, by their systems' own word", clocks[p].error_ns * 1e-6);
    if (file.utc_error_us < 0 || reference.utc_error_us < 0) {
      how_good = fmt::format("which nobody keeps right on {}: run NTP or PTP there, or record under mpirun",
                             file.utc_error_us < 0 ? file.host : reference.host);
    }
    notes.push_back(fmt::format("no recorder compared the clocks of {} and {}: aligned by UTC alone, {}", file.host,
                                reference.host, how_good));
  }
}

Rank facts_of(const Process& process, const AlignedClock& clock, int processes) {
  const format::TraceFile& file = process.file;
  Rank rank;
  rank.rank = process.rank;
  rank.world_size = process.world_size >= 0 ? process.world_size : processes;
  rank.local_rank = std::max(process.local_rank, 0);
  rank.path = file.path.string();
  rank.format = "pace";
  rank.host = file.host;
  rank.boot_id = file.boot_id;
  rank.pid = file.header.pid;
  rank.command = file.command;
  rank.set = file.set;
  rank.dropped = dropped_of(file);
  rank.facts = process.definitions.settings;
  for (const char* said_elsewhere : {"rank", "world_size"}) rank.facts.erase(said_elsewhere);
  rank.damaged = file.damaged;
  rank.damage = file.damage;
  rank.clock_source = clock.by_utc                                           ? "utc"
                      : file.header.clock_source == format::ClockSource::tsc ? "tsc"
                                                                             : "monotonic_raw";
  rank.clock_error_ns = clock.error_ns;
  return rank;
}

// The threads of a child, as threads of its parent's rank.
void add_child(TraceBuilder& run, Vocabulary& words, RankBuilder& rank, Process& child, const AlignedClock& clock,
               double zero) {
  const std::vector<PaceGap> gaps = gaps_of(child.definitions, child.file.header.kept_from);
  FileImport import(run, words, rank, child.definitions, gaps, clock.time, zero);
  rank.info().end_ns = std::max(rank.info().end_ns, import.time(child.definitions.last_ticks));
  for (const auto& [cause, lost] : dropped_of(child.file)) rank.info().dropped[cause] += lost;
  const std::string name = fmt::format("process {}: ", child.file.header.pid);
  import.read_devices(child.file);
  for (std::uint32_t t = 0; t < child.file.tracks.size(); ++t) {
    const bool main = child.file.tracks[t].thread_id == child.file.header.pid;
    import.track(child.file.tracks[t], t, main, name);
    child.file.tracks[t].slots = {};
  }
  import.add_devices(child.file, name);
  import.counters(fmt::format("process {}", child.file.header.pid));
}

}  // namespace

Trace import_pace(std::vector<format::TraceFile> files, const Progress& progress) {
  refuse_mixed_jobs(files);
  std::vector<Process> processes;
  std::vector<std::string> notes;
  for (format::TraceFile& file : files) {
    Process process{std::move(file), {}};
    process.definitions = definitions_of(process.file);
    process.rank = setting(process.definitions, "rank", process.file.header.rank);
    process.world_size = setting(process.definitions, "world_size", process.file.header.world_size);
    process.local_rank = setting(process.definitions, "local_rank", process.file.header.local_rank);
    processes.push_back(std::move(process));
  }
  std::vector<Process> children = take_children(processes);
  keep_one_a_rank(processes, notes);
  number_the_rest(processes);
  std::ranges::stable_sort(processes, {}, &Process::rank);

  std::vector<ClockReadings> readings;
  for (const Process& process : processes) readings.push_back(readings_of(process));
  for (const Process& child : children) readings.push_back(readings_of(child));
  const std::vector<AlignedClock> clocks = align_clocks(readings);
  note_utc(processes, clocks, notes);
  double zero = clocks.empty() ? 0 : clocks.front().process_start_ns;
  for (const AlignedClock& clock : clocks) zero = std::min(zero, clock.process_start_ns);

  TraceBuilder run;
  Vocabulary words(run);
  std::string iteration_name;
  for (std::size_t p = 0; p < processes.size(); ++p) {
    Process& process = processes[p];
    const AlignedClock& clock = clocks[p];
    RankBuilder& rank = run.add_rank(facts_of(process, clock, static_cast<int>(processes.size())));
    const std::vector<PaceGap> gaps = gaps_of(process.definitions, process.file.header.kept_from);
    FileImport import(run, words, rank, process.definitions, gaps, clock.time, zero);
    rank.info().start_ns = whole_ns(clock.process_start_ns - zero);
    rank.info().end_ns = import.time(process.definitions.last_ticks);
    import.gaps();
    if (const auto named = process.definitions.settings.find("iteration_name");
        named != process.definitions.settings.end()) {
      iteration_name = named->second;
    }
    const auto is_main = [&](const format::Track& track) { return track.thread_id == process.file.header.pid; };
    const auto main = std::ranges::find_if(process.file.tracks, is_main);
    const std::size_t main_index =
        main == process.file.tracks.end() ? 0 : static_cast<std::size_t>(main - process.file.tracks.begin());
    import.read_devices(process.file);
    for (std::uint32_t t = 0; t < process.file.tracks.size(); ++t) {
      import.track(process.file.tracks[t], t, t == main_index);
      process.file.tracks[t].slots = {};
    }
    import.add_devices(process.file);
    if (import.untimed() > 0) {
      notes.push_back(fmt::format("{}: {} submitted NVTX events left out: no clock of theirs is tied to the recorder's",
                                  process.file.path.string(), import.untimed()));
    }
    for (std::size_t c = 0; c < children.size(); ++c) {
      Process& child = children[c];
      if (child.child_of != process.file.header.pid || !same_machine(child, process)) continue;
      add_child(run, words, rank, child, clocks[processes.size() + c], zero);
    }
    import.counters();
    if (progress && !progress(static_cast<double>(p + 1) / static_cast<double>(processes.size()))) {
      throw Error("loading was stopped");
    }
  }
  Trace trace = run.finish();
  trace.notes = std::move(notes);
  trace.iteration_name = std::move(iteration_name);
  return trace;
}

}  // namespace paceline::analysis
