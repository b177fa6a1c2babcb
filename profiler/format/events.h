// The values of each event type, and their places in its slots: one struct for each row of event_table.h.
//
//   using namespace paceline::format;
//   const auto slots = pack(ticks, events::MpiBeginPeer{.function = 71, .tag = 3, .bytes = 4096, .communicator = 1});
//   if (type_of(head) == EventType::mpi_begin_peer) bytes += unpack<events::MpiBeginPeer>(&head).bytes;
#pragma once

#include <cstddef>
#include <tuple>

#include "profiler/format/events_device.h"
#include "profiler/format/events_mpi.h"
#include "profiler/format/events_nvtx.h"
#include "profiler/format/events_recording.h"

namespace paceline::format::events {

using All =
    std::tuple<Name, Domain, Category, ThreadName, Communicator, Push, PushPayload, Pop, Mark, MarkPayload, Start,
               StartPayload, End, Submit, MpiBegin, MpiBeginPeer, MpiBeginColl, MpiBeginFile, MpiBeginWindow, MpiEnd,
               MpiPosted, MpiCompleted, MpiFile, MpiWindow, ClockPair, ClockExchange, Setting, Recording, Trigger, Lost,
               ProcessEnd, Resource, ResourceEnd, Schema, SchemaEntry, Enumeration, Enumerator, Payload, PayloadPart,
               Scope, TimeDomain, TimeSync, CudaFunction, CudaStream, CudaKernel, CudaCall, CudaKernelRun, CudaCopy,
               CudaSet, CudaWait, CudaGraph, CudaOverhead, CudaClock, CudaHandle, NcclCollective, NcclPeer, NcclApiCall,
               NcclChannel, NcclProxy, NcclEnd, Counter, Sample>;

// The values of an event lie in words that its type has, and in bits of their own.
template <class Event>
constexpr bool values_fit() {
  std::uint64_t covered[event_words] = {};
  bool fit = true;
  const auto look = [&](const auto& placed) {
    const std::uint64_t bits = packing::mask(placed.bits) << placed.shift;
    fit = fit && placed.shift + placed.bits <= 64 && (placed.word + 1) / 2 < packed_slots<Event> &&
          (covered[placed.word] & bits) == 0;
    covered[placed.word] |= bits;
  };
  std::apply([&](const auto&... placed) { (look(placed), ...); }, Event::values());
  return fit;
}

// There is one struct for each row of the table.
template <class... Events>
constexpr bool cover_table(const std::tuple<Events...>*) {
  std::size_t found = 0;
  for (const EventInfo& info : event_table) found += ((Events::type == info.type ? 1U : 0U) + ...);
  return sizeof...(Events) == std::size(event_table) && found == sizeof...(Events) && (values_fit<Events>() && ...);
}
static_assert(cover_table(static_cast<const All*>(nullptr)));

}  // namespace paceline::format::events
