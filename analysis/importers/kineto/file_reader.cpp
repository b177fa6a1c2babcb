// SPDX-License-Identifier: Apache-2.0
#include "analysis/importers/kineto/file_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "analysis/importers/kineto/events.h"
#include "analysis/trace/parallel.h"
#include "profiler/format/error.h"
#include "profiler/format/input_file.h"

namespace paceline::analysis::kineto {
namespace {

constexpr std::size_t largest_head = std::size_t{256} << 20;  // before the array of events
constexpr std::size_t largest_event = std::size_t{64} << 20;  // a longer one is damage
constexpr std::size_t largest_tail = std::size_t{16} << 20;   // behind the array

std::string read_text(const format::InputFile& file, std::uint64_t at, std::size_t bytes) {
  std::string text(bytes, '\0');
  text.resize(file.read(at, text.data(), bytes));
  return text;
}

// The place of the first character that is neither white space nor a byte order mark.
std::size_t first_character(std::string_view text) {
  std::size_t at = text.starts_with("\xef\xbb\xbf") ? 3 : 0;
  while (at < text.size() && Tokens::is_space(text[at])) ++at;
  return at;
}

class FileReading {
 public:
  FileReading(const TraceFile& file, KinetoRank& rank, std::size_t threads, ProgressCounter& progress,
              std::size_t piece_bytes)
      : name_(file.name),
        file_(file.path),
        size_(file_.size()),
        rank_(rank),
        progress_(progress),
        piece_bytes_(piece_bytes) {
    for (std::vector<Worker>& wave : waves_) wave = std::vector<Worker>(std::max<std::size_t>(threads, 1));
  }

  FileSummary run() {
    std::uint64_t at = begin_of_events();
    // While one wave is parsed, the wave before it goes into the model.
    std::vector<Worker>*ready = nullptr, *next = &waves_[0];
    std::size_t ready_count = 0;
    while (at < size_ && !summary_.closed) {
      const std::vector<std::uint64_t> cuts = cuts_from(at);
      const std::size_t pieces = cuts.size() - 1;
      parallel_for(pieces + 1, [&](std::size_t i) {
        if (i < pieces) {
          parse((*next)[i], cuts[i], cuts[i + 1]);
        } else if (ready != nullptr) {
          add(*ready, ready_count);
        }
      });
      ready = next;
      ready_count = accepted(*ready, cuts, at);
      next = next == &waves_[0] ? &waves_[1] : &waves_[0];
    }
    if (ready != nullptr) add(*ready, ready_count);
    if (summary_.closed && at < size_) {
      const std::size_t tail = std::min<std::uint64_t>(size_ - at, largest_tail);
      read_members(read_text(file_, at, tail), summary_.header);
    }
    return std::move(summary_);
  }

 private:
  struct Worker {
    EventParser parser;
    std::string text;
  };

  std::uint64_t begin_of_events() {
    for (std::size_t bytes = 1 << 20;; bytes *= 4) {
      const std::string head = read_text(file_, 0, std::min<std::uint64_t>(bytes, size_));
      const std::size_t first = first_character(head);
      if (first < head.size() && head[first] == '[') return first + 1;
      if (first >= head.size() || head[first] != '{') break;
      Header header;
      std::size_t at = read_members(std::string_view(head).substr(first + 1), header);
      const bool all = head.size() == size_ || bytes >= largest_head;
      if (at != head.npos) {
        at += first + 1;
      } else if (all) {  // the head is damaged
        at = head.find("\"traceEvents\"");
        if (at != head.npos) at = head.find('[', at);
      }
      if (at != head.npos && at < head.size() && head[at] == '[') {
        summary_.header = std::move(header);
        return at + 1;
      }
      if (all) break;
    }
    throw Error(
        fmt::format("{}: has no array of trace events: give a trace that PyTorch's profiler or Chrome wrote", name_));
  }

  // Where the pieces of the next wave begin and end. An event begins at each place if the guess is right: the text
  // might be inside an argument. accepted() finds out.
  std::vector<std::uint64_t> cuts_from(std::uint64_t at) {
    constexpr std::size_t window = 16 << 10;
    std::vector<std::uint64_t> cuts{at};
    while (cuts.size() <= waves_[0].size() && cuts.back() < size_) {
      std::uint64_t cut = cuts.back() + piece_bytes_now_;
      for (std::size_t bytes = window; cut < size_; bytes *= 4) {
        const std::string text = read_text(file_, cut, bytes);
        const std::size_t found = next_event(text, 0, true);
        if (found != text.npos) cut += found;
        if (found != text.npos || bytes >= 64 * window) break;
      }
      cuts.push_back(std::min(cut, size_));
    }
    return cuts;
  }

  void parse(Worker& worker, std::uint64_t from, std::uint64_t to) {
    worker.text.resize(to - from);
    worker.text.resize(file_.read(from, worker.text.data(), to - from));
    worker.parser.parse(worker.text, to >= size_ || to - from >= largest_event);
    progress_.add(to - from);
  }

  void add(std::vector<Worker>& wave, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      rank_.add(wave[i].parser, static_cast<std::size_t>(&wave - waves_) * wave.size() + i);
    }
  }

  // How many pieces of the wave count. A piece whose last event goes on behind it was cut at a wrong place: the pieces
  // behind it are parsed again from that event on. Moves `at` behind what was read.
  std::size_t accepted(std::vector<Worker>& wave, const std::vector<std::uint64_t>& cuts, std::uint64_t& at) {
    piece_bytes_now_ = piece_bytes_;
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
      const EventParser::Piece& piece = wave[i].parser.piece();
      if (piece.closed) {
        summary_.closed = true;
        at = cuts[i] + *piece.closed;
        return i + 1;
      }
      if (piece.incomplete) {
        at = cuts[i] + *piece.incomplete;
        if (*piece.incomplete == 0) piece_bytes_now_ = std::min(2 * (cuts[i + 1] - cuts[i]), largest_event);
        return i + 1;
      }
    }
    at = cuts.back();
    return cuts.size() - 1;
  }

  const std::string name_;
  const format::InputFile file_;
  const std::uint64_t size_;
  KinetoRank& rank_;
  ProgressCounter& progress_;
  const std::size_t piece_bytes_;
  std::size_t piece_bytes_now_ = piece_bytes_;
  std::vector<Worker> waves_[2];
  FileSummary summary_;
};

}  // namespace

FileSummary read_file(const TraceFile& file, KinetoRank& rank, std::size_t threads, ProgressCounter& progress,
                      std::size_t piece_bytes) {
  return FileReading(file, rank, threads, progress, piece_bytes).run();
}

bool looks_like_chrome_trace(const std::filesystem::path& path) {
  try {
    const format::InputFile file(path);
    const std::string text = read_text(file, 0, 1 << 20);
    const std::size_t first = first_character(text);
    if (first >= text.size()) return false;
    if (text[first] == '[') {
      const std::size_t brace = first_character(std::string_view(text).substr(first + 1)) + first + 1;
      return brace < text.size() && text[brace] == '{' && event_begins(text, brace) &&
             text.find("\"ph\"", brace) != text.npos;
    }
    if (text[first] != '{') return false;
    return text.find("\"traceEvents\"") != text.npos ||
           (text.find("\"schemaVersion\"") != text.npos && text.find("\"deviceProperties\"") != text.npos);
  } catch (const Error&) {
    return false;
  }
}

}  // namespace paceline::analysis::kineto
