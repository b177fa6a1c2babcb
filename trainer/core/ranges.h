// SPDX-License-Identifier: Apache-2.0
// NVTX ranges and marks of the domain `paceline.trainer`, for profilers. Without a profiler each call costs 1 to 2 ns.
// Names are registered strings, so that a profiler does not have to copy them.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include <nvtx3/nvToolsExt.h>

namespace paceline::train {

// The value of an enumerator is the NVTX category, and its name is the category's name. A range without a name of its
// own is named like its category.
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
  wait,        // the communicating thread waits for the other ranks; nothing is transferred yet
  staleness,   // of the parameter server
  fault,       // injected by the user
  stage,       // an iteration's work of one stage of a pipeline; payload: the stage, counted from 0
  microbatch,  // forward or backward of one microbatch; payload: its number, counted from 0
  send,        // to the next or the previous stage; payload: bytes
  receive,     // likewise; most of it is waiting
  part,        // of the network that no stage divides, named by its first layer; payload: its relative cost
  layers       // the costs of layers, a JSON object
};

// Whether a tool receives ranges and marks.
bool is_profiled();

// A registered name for ranges and marks. Make it once and use it often.
class RangeName {
 public:
  explicit RangeName(const std::string& name);
  nvtxStringHandle_t handle() const { return handle_; }

 private:
  nvtxStringHandle_t handle_;
};

// A range on the calling thread that lasts as long as the object.
class Range {
 public:
  explicit Range(Category category);
  Range(Category category, std::uint64_t payload);  // iteration, stage, microbatch: its number; else bytes
  Range(Category category, const RangeName& name, std::uint64_t payload);
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;
  ~Range();
};

// A range that another function ends; Range does both.
void push_range(Category category, const RangeName& name);
void push_range(Category category, const RangeName& name, std::uint64_t payload);  // layer: bytes of its gradient
void pop_range();

// Marks a JSON object: the description of the run, once, and the costs of its layers.
void mark(Category category, const std::string& json);

// Marks the test accuracy (0 to 1) after an evaluation.
void mark_accuracy(double accuracy);

// Marks an event with a number: the bytes of a bucket whose gradients are ready to be sent, the updates that a gradient
// missed, the cost of a part of the network, or the milliseconds of a fault.
void mark(Category category, const RangeName& name, std::uint64_t payload);

// Injects a fault: sleeps for `time` in a range named `fault` whose payload is the whole milliseconds. Does nothing if
// `time` is 0.
void inject_delay(const RangeName& fault, std::chrono::nanoseconds time);

// Names the calling thread in the profile.
void name_this_thread(const char* name);

}  // namespace paceline::train
