// SPDX-License-Identifier: Apache-2.0
// The samples of stacks in pprof's format (https://github.com/google/pprof/blob/main/proto/profile.proto):
// equal stacks of a thread are one sample, with their number and their time as values and rank and thread as labels.
#include <algorithm>
#include <map>
#include <unordered_map>

#include "analysis/exporters/exporter.h"
#include "analysis/exporters/protobuf.h"
#include "analysis/text/text_output.h"
#include "analysis/trace/stack_frames.h"

namespace paceline::analysis {
namespace pprof_writer {

// The numbers of fields.
namespace profile_fields {
constexpr std::uint32_t sample_type = 1, sample = 2, location = 4, function = 5, text = 6, time_ns = 9,
                        duration_ns = 10, period_type = 11, period = 12;
}
namespace type_fields {
constexpr std::uint32_t type = 1, unit = 2;
}
namespace sample_fields {
constexpr std::uint32_t location = 1, value = 2, label = 3;
}
namespace label_fields {
constexpr std::uint32_t key = 1, text = 2, number = 3;
}
namespace location_fields {
constexpr std::uint32_t id = 1, line = 4;
}
namespace line_fields {
constexpr std::uint32_t function = 1, line = 2;
}
namespace function_fields {
constexpr std::uint32_t id = 1, name = 2, system_name = 3, file = 4;
}

class Writer {
 public:
  explicit Writer(const ExportJob& job) : trace_(job.trace()), job_(job) {}

  std::string_view write() {
    text("");
    type(profile_fields::sample_type, "samples", "count");
    type(profile_fields::sample_type, "time", "nanoseconds");
    std::int64_t first = INT64_MAX, last = INT64_MIN, period = 0;
    for (const Rank* rank : job_.ranks()) {
      for (const Track& track : rank->tracks) {
        std::map<StackId, std::int64_t> counts;
        for (std::size_t i = 0; i < track.stacks.size(); ++i) {
          const std::int64_t time_ns = track.stacks.time_ns[i];
          if (!job_.selection().window().holds(time_ns)) continue;
          ++counts[track.stacks.stack[i]];
          first = std::min(first, time_ns);
          last = std::max(last, time_ns + track.stacks.period_ns);
        }
        period = std::max(period, track.stacks.period_ns);
        for (const auto& [stack, count] : counts) sample(*rank, track, stack, count);
      }
    }
    if (first <= last) {
      if (const auto utc = job_.utc_of_zero_ns()) {
        profile_.integer(profile_fields::time_ns, static_cast<std::uint64_t>(*utc + first));
      }
      profile_.integer(profile_fields::duration_ns, static_cast<std::uint64_t>(last - first));
    }
    type(profile_fields::period_type, "time", "nanoseconds");
    profile_.integer(profile_fields::period, static_cast<std::uint64_t>(period));
    return profile_.bytes();
  }

 private:
  // The number of a text, which is added the first time. Fields of a message may come in any order.
  std::uint64_t text(const std::string& value) {
    const auto [found, fresh] = texts_.try_emplace(value, texts_.size());
    if (fresh) profile_.text(profile_fields::text, valid_utf8(value));
    return found->second;
  }

  void type(std::uint32_t field, const char* name, const char* unit) {
    part_.clear();
    part_.integer(type_fields::type, text(name));
    part_.integer(type_fields::unit, text(unit));
    profile_.message(field, part_);
  }

  std::uint64_t function(const Frame& frame) {
    const auto [found, fresh] = functions_.try_emplace({frame.function, frame.file}, functions_.size() + 1);
    if (fresh) {
      const std::uint64_t name = text(trace_.names[frame.function]);
      part_.clear();
      part_.integer(function_fields::id, found->second);
      part_.integer(function_fields::name, name);
      part_.integer(function_fields::system_name, name);
      part_.integer(function_fields::file, text(trace_.names[frame.file]));
      profile_.message(profile_fields::function, part_);
    }
    return found->second;
  }

  std::uint64_t location(FrameId id) {
    const auto [found, fresh] = locations_.try_emplace(id, locations_.size() + 1);
    if (fresh) {
      const Frame& frame = trace_.stacks[id];
      const std::uint64_t of = function(frame);
      ProtoMessage line;
      line.integer(line_fields::function, of);
      line.integer(line_fields::line, frame.line);
      part_.clear();
      part_.integer(location_fields::id, found->second);
      part_.message(location_fields::line, line);
      profile_.message(profile_fields::location, part_);
    }
    return found->second;
  }

  void sample(const Rank& rank, const Track& track, StackId stack, std::int64_t count) {
    ProtoMessage made, label;
    for (; stack != 0; stack = trace_.stacks.caller(stack)) {
      made.integer(sample_fields::location, location(trace_.stacks.innermost(stack)));
    }
    made.integer(sample_fields::value, static_cast<std::uint64_t>(count));
    made.integer(sample_fields::value, static_cast<std::uint64_t>(count * track.stacks.period_ns));
    label.integer(label_fields::key, text("rank"));
    label.integer(label_fields::number, static_cast<std::uint64_t>(rank.rank));
    made.message(sample_fields::label, label);
    label.clear();
    label.integer(label_fields::key, text("thread"));
    label.integer(label_fields::text, text(track.label));
    made.message(sample_fields::label, label);
    profile_.message(profile_fields::sample, made);
  }

  const Trace& trace_;
  const ExportJob& job_;
  ProtoMessage profile_, part_;
  std::unordered_map<std::string, std::uint64_t> texts_;
  std::map<std::pair<NameId, NameId>, std::uint64_t> functions_;
  std::unordered_map<FrameId, std::uint64_t> locations_;
};

void write(const ExportJob& job, std::FILE* file) {
  Writer writer(job);
  TextOutput out(file);
  out.text(writer.write());
  out.flush();
}

}  // namespace pprof_writer

constexpr Exporter pprof_exporter{.name = "pprof",
                                  .what = "samples of stacks, for pprof",
                                  .target = Exporter::Target::stream,
                                  .write = pprof_writer::write};

}  // namespace paceline::analysis
