// SPDX-License-Identifier: Apache-2.0
// Converts CUPTI's activity records to events of the trace. 300 bytes of records for a kernel launch become about 15
// bytes on disk.
//
// It runs on the recorder's own thread, never in the program's calls. It needs CUPTI's functions only for the names of
// calls, so tests can feed it records that they build.
#pragma once

#include <cupti.h>

#include <cstdint>

#include "profiler/inject/cupti/timestamps.h"
#include "profiler/inject/event_sink.h"

namespace paceline::inject::cupti {

class Transcoder {
 public:
  using CallName = const char* (*)(bool driver, std::uint32_t call);  // may return nullptr

  // Both must outlive the transcoder. `call_name` is called once for each function. The transcoder takes 2 MB.
  Transcoder(const paceline_event_sink_v1& sink, const Timestamps& timestamps, CallName call_name);

  // Writes the events for a record, and definitions for numbers that are new. Records of other kinds are ignored. A
  // record without times is counted as lost.
  void take(const CUpti_Activity& record);

  // Leaves out a call (quiet_calls.h), by its number.
  void leave_out(bool driver, std::uint32_t call);

 private:
  static constexpr std::uint32_t most_calls = 2048, most_streams = 4096, kernel_places = 32768;

  struct Stream {
    std::uint32_t context, stream, number;
  };
  // It has no padding, so that its bytes can be compared.
  struct KernelKey {
    std::uint32_t name;
    std::int32_t grid[3], block[3];
    std::int32_t static_shared, dynamic_shared;
    std::uint32_t local, registers;
  };
  struct KernelEntry {
    KernelKey key;
    std::uint32_t number;  // 0 = empty
  };

  bool span(std::uint64_t start, std::uint64_t end, std::uint64_t& at, std::uint64_t& duration) const;
  std::uint32_t stream_number(std::uint32_t device, std::uint32_t context, std::uint32_t stream);
  void define_stream(std::uint32_t number, std::uint32_t device, std::uint32_t context, std::uint32_t stream,
                     std::uint32_t name);
  std::uint32_t kernel_number(const KernelKey& key);
  void take_call(const CUpti_ActivityAPI& call);
  template <class Kernel>
  void take_kernel(const Kernel& kernel);
  template <class Copy>
  void take_copy(const Copy& copy, std::uint32_t from_device, std::uint32_t to_device);

  const paceline_event_sink_v1& sink_;
  const Timestamps& timestamps_;
  CallName call_name_;
  std::uint8_t calls_[2][most_calls] = {};  // 0 = not seen, 1 = defined, 2 = left out
  Stream streams_[most_streams] = {};
  std::uint32_t stream_count_ = 0;
  KernelEntry kernels_[kernel_places] = {};
  std::uint32_t kernel_count_ = 0;
};

}  // namespace paceline::inject::cupti
