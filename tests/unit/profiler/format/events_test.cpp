// SPDX-License-Identifier: Apache-2.0
#include "profiler/format/events.h"

#include <gmock/gmock.h>

#include <random>

#include "tests/unit/profiler/format/streams.h"

namespace paceline::format {
namespace {

using namespace testing;

// The struct's words: each is given back by unpacking and packing, whatever its bits.
template <class Event>
void expect_same_bits_again() {
  std::mt19937_64 random(11);
  for (int round = 0; round < 100; ++round) {
    Packed<Event> slots{};
    for (Slot& slot : slots) slot = {random(), random()};
    slots[0].high = pack_high(round, Event::type);
    EXPECT_EQ(pack(round, unpack<Event>(slots.data())), slots) << event_info(Event::type)->name;
  }
}

TEST(Events, PackAndUnpackWithAnyValues) {
  expect_same_bits_again<events::Push>();          // no extension slot
  expect_same_bits_again<events::MpiBeginPeer>();  // packed
  expect_same_bits_again<events::Enumerator>();    // bit fields
  expect_same_bits_again<events::Lost>();
  expect_same_bits_again<events::CudaKernel>();  // two extension slots
  expect_same_bits_again<events::Name>();        // the head alone: bytes follow
}

// As docs/trace-format.md describes some events, by hand.
TEST(Events, LieInTheDocumentedBits) {
  const auto peer =
      pack(5, events::MpiBeginPeer{.function = 71, .tag = -2, .bytes = 4096, .communicator = 3, .peer = -1});
  EXPECT_EQ(peer[0].high, 5U << 8 | 33);
  EXPECT_EQ(peer[0].low, 71 | std::uint64_t{0xffff'fffe} << 16);
  EXPECT_EQ(peer[1].high, 4096U);
  EXPECT_EQ(peer[1].low, 3 | std::uint64_t{0xffff'ffff} << 32);
  const auto start =
      pack(0, events::StartPayload{
                  .scope = pack_scope(1, 2, 3), .range = 9, .value = 10, .payload_type = PayloadType::floating});
  ASSERT_EQ(start.size(), 3U);
  EXPECT_EQ(start[0].low, 1 | std::uint64_t{2} << 32 | std::uint64_t{3} << 48);
  EXPECT_EQ(start[1], (Slot{9, 10}));
  EXPECT_EQ(start[2], (Slot{3, 0}));
  const auto kernel = unpack<events::CudaKernel>(
      pack(0, events::CudaKernel{.kernel = 1, .grid_x = 2, .grid_y = 3, .grid_z = 4, .block_x = 5, .registers = 6})
          .data());
  EXPECT_EQ(kernel.grid_z, 4U);
  EXPECT_EQ(kernel.registers, 6U);
  const auto file = pack(0, events::MpiBeginFile{.function = 71, .file = 0x1234'5678, .bytes = 9, .offset = -1});
  EXPECT_EQ(file[0].low, 71 | std::uint64_t{0x1234'5678} << 16);
  EXPECT_EQ(file[1], (Slot{9, ~std::uint64_t{0}}));
  EXPECT_EQ(pack(0, events::ThreadName{.name = 3, .thread_id = 4})[0].low, std::uint64_t{3} << 32);
  EXPECT_EQ(pack(0, events::Enumerator{.value = 8, .domain = 2, .is_flag = 1})[1], (Slot{8, 2 | 1 << 16}));
  EXPECT_EQ(pack(0, events::Trigger{.cause = TriggerCause::hang, .number = 5})[0].low, 3U | 5U << 8);
  EXPECT_EQ(pack(1, events::Lost{.cause = 3, .scope = LostScope::any_thread, .events = 7})[0].low,
            3U | 1U << 8 | 7U << 16);
}

TEST(Events, AreOfTheTypesThatTheTestsKnow) {
  std::vector<EventType> types;
  for (const EventInfo& info : event_table) types.push_back(info.type);
  EXPECT_THAT(types, ::testing::UnorderedElementsAreArray(all_types));
}

// What a flight recorder keeps when it drops the events around it, written out so that no type is forgotten.
TEST(Events, ThatLaterEventsReferToOutliveTheRing) {
  constexpr EventType kept[] = {
      EventType::name,         EventType::domain,       EventType::category,       EventType::thread_name,
      EventType::communicator, EventType::clock_pair,   EventType::clock_exchange, EventType::setting,
      EventType::recording,    EventType::trigger,      EventType::process_end,    EventType::lost,
      EventType::resource,     EventType::resource_end, EventType::schema,         EventType::schema_entry,
      EventType::enumeration,  EventType::enumerator,   EventType::scope,          EventType::time_domain,
      EventType::time_sync,    EventType::mpi_file,     EventType::mpi_window,     EventType::cuda_function,
      EventType::cuda_stream,  EventType::cuda_kernel,  EventType::cuda_handle,    EventType::counter,
      EventType::thread_found, EventType::stack};
  for (const EventType type : all_types) {
    const bool expected = std::find(std::begin(kept), std::end(kept), type) != std::end(kept);
    EXPECT_EQ(outlives_ring(type), expected) << static_cast<int>(type);
  }
}

}  // namespace
}  // namespace paceline::format
