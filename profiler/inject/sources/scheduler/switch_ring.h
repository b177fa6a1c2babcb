// SPDX-License-Identifier: Apache-2.0
// The context switches of one thread, as the kernel writes them into a small ring in memory (perf_event_open(2)).
#pragma once

#include <linux/perf_event.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace paceline::inject {

// Two pages of memory, and no descriptor: the mapping keeps the kernel's event alive. A forked child does not inherit
// the mapping, and exec removes it.
class SwitchRing {
 public:
  // Starts recording the switches of a thread of this process. Returns 0 or the error number: the system may refuse it
  // (perf_event_paranoid, containers), or the user's memory for such rings may be used up.
  int open(pid_t thread);
  bool is_open() const { return page_ != nullptr; }
  void close();

  enum class Record : std::uint8_t { in, out, preempted, lost };  // preempted: out, and still ready to run

  // Calls visit(record, time) for all records since the last call. `time` is CLOCK_MONOTONIC_RAW in ns; 0 for `lost`,
  // which stands for any number of records that found no room.
  template <class Visit>
  void read(Visit visit) {
    const std::uint64_t head = __atomic_load_n(&page_->data_head, __ATOMIC_ACQUIRE);
    std::uint64_t at = page_->data_tail;
    while (at < head) {
      std::uint64_t words[4];  // every record has 8 bytes of header and a multiple of 8 bytes
      copy(at, words, 1);
      perf_event_header header;
      __builtin_memcpy(&header, words, sizeof header);
      if (header.size < sizeof header || at + header.size > head) break;
      if (header.type == PERF_RECORD_SWITCH) {
        copy(at + 8, words, 1);
        const bool out = (header.misc & PERF_RECORD_MISC_SWITCH_OUT) != 0;
        const bool ready = (header.misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT) != 0;
        visit(out ? ready ? Record::preempted : Record::out : Record::in, static_cast<std::int64_t>(words[0]));
      } else if (header.type == PERF_RECORD_LOST) {
        visit(Record::lost, std::int64_t{0});
      }
      at += header.size;
    }
    __atomic_store_n(&page_->data_tail, head, __ATOMIC_RELEASE);
  }

 private:
  void copy(std::uint64_t at, std::uint64_t* words, std::size_t count) const;

  perf_event_mmap_page* page_ = nullptr;
};

}  // namespace paceline::inject
