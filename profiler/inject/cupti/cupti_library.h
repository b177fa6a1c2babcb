// SPDX-License-Identifier: Apache-2.0
// CUPTI, found at run time. One build serves machines with and without CUPTI, and every version that a program brings
// (PyTorch has its own).
#pragma once

#include <cupti.h>

#include <cstddef>
#include <cstdint>

namespace paceline::inject::cupti {

struct CuptiLibrary {
  std::uint32_t version = 0;  // from cuptiGetVersion: 19 for CUDA 12.0, … 28, then 130000 for 13.0
  char path[1024] = "";

  decltype(&cuptiGetVersion) get_version = nullptr;
  decltype(&cuptiGetResultString) get_result_string = nullptr;
  decltype(&cuptiSubscribe) subscribe = nullptr;
  decltype(&cuptiUnsubscribe) unsubscribe = nullptr;
  decltype(&cuptiGetCallbackName) get_callback_name = nullptr;
  decltype(&cuptiSetThreadIdType) set_thread_id_type = nullptr;
  decltype(&cuptiGetTimestamp) get_timestamp = nullptr;
  decltype(&cuptiActivitySetAttribute) set_attribute = nullptr;
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks = nullptr;
  decltype(&cuptiActivityEnable) enable = nullptr;
  decltype(&cuptiActivityDisable) disable = nullptr;
  decltype(&cuptiActivityFlushAll) flush_all = nullptr;
  decltype(&cuptiActivityGetNextRecord) get_next_record = nullptr;
  decltype(&cuptiActivityGetNumDroppedRecords) get_dropped_records = nullptr;
  // All three are present, or names from NVTX cannot be assigned to streams and contexts.
  decltype(&cuptiEnableCallback) enable_callback = nullptr;
  decltype(&cuptiGetContextId) get_context_id = nullptr;
  decltype(&cuptiGetStreamIdEx) get_stream_id = nullptr;
  // From CUDA 12.5 on; otherwise null.
  CUptiResult (*enable_runtime_call)(CUpti_CallbackId, std::uint8_t) = nullptr;
  CUptiResult (*enable_driver_call)(CUpti_CallbackId, std::uint8_t) = nullptr;

  // "CUPTI_ERROR_…", or the number if CUPTI has no name for it.
  const char* name_of(CUptiResult result) const;
};

// What a library is good for.
enum class CuptiVerdict { use, try_another, use_none };

// Loads the first library that `judge` wants to use: the one that PACELINE_CUPTI names and no other, else the one that
// the program has loaded, else by name (LD_LIBRARY_PATH, the system's folders), else from the CUDA toolkit (CUDA_HOME,
// CUDA_PATH, /usr/local/cuda). The library of the driver's own major version is tried before others, because a newer
// CUPTI refuses an older driver. `judge` is called with a whole library of a known version; if it does not want to use
// it it writes the reason to `why`. On failure returns false, and `why` describes the first problem and what to do.
using JudgeCupti = CuptiVerdict (*)(CuptiLibrary& library, char* why, std::size_t capacity);
bool load_cupti(CuptiLibrary& library, JudgeCupti judge, char* why, std::size_t capacity);

}  // namespace paceline::inject::cupti
