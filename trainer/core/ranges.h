// What profilers are told: NVTX ranges and marks of the domain `paceline.trainer`. With no tool attached each call
// costs 1 to 2 ns. Names are registered strings, so that a tool need not copy them.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include <nvtx3/nvToolsExt.h>

namespace paceline::train {

// The number is the NVTX category; its name is the enumerator's, and that of the range too unless a layer's.
enum class Category : std::uint32_t {
  iteration = 1,
  preprocess,
  forward,
  backward,
  allreduce,
  optimizer,
  evaluate,
  checkpoint,
  startup,
  layer,
  run,
  accuracy,
  wait,       // of the communicating thread, for the other ranks: no transfer yet
  staleness,  // of the parameter server
  fault       // made on purpose
};

// A name of its own for a range or mark; made once, used often.
class RangeName {
 public:
  explicit RangeName(const std::string& name);
  nvtxStringHandle_t handle() const { return handle_; }

 private:
  nvtxStringHandle_t handle_;
};

// A range on the calling thread from construction to destruction, named like its category.
class Range {
 public:
  explicit Range(Category category);
  Range(Category category, std::uint64_t payload);  // iteration: its number; allreduce: bytes
  Range(Category category, const RangeName& name, std::uint64_t payload);
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;
  ~Range();
};

// A range that another function ends; Range does both.
void push_range(Category category, const RangeName& name);
void pop_range();

// What this run is, once, as a JSON object; and the test accuracy (0 to 1) after each evaluation.
void mark_run(const std::string& json);
void mark_accuracy(double accuracy);

// Bytes of a bucket whose gradients are ready to be sent; updates that a gradient missed; milliseconds of a fault.
void mark(Category category, const RangeName& name, std::uint64_t payload);

// A fault made on purpose: sleeps in a range of that name with the milliseconds as payload; nothing for 0.
void inject_delay(const RangeName& fault, std::chrono::milliseconds time);

// Names the calling thread in the profile.
void name_this_thread(const char* name);

}  // namespace paceline::train
