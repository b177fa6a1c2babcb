#include "profiler/format/events.h"

#include <gmock/gmock.h>

#include <random>

#include "tests/unit/profiler/format/streams.h"

namespace paceline::format {
namespace {

using namespace testing;

// Calls visit.operator()<Event>() for each event of the table.
template <class Visit>
void for_each_type(Visit&& visit) {
  [&]<class... Events>(const std::tuple<Events...>*) {
    (visit.template operator()<Events>(), ...);
  }(static_cast<const events::All*>(nullptr));
}

// All bits of the event's words that hold values.
template <class Event>
std::array<std::uint64_t, event_words> used_bits() {
  std::array<std::uint64_t, event_words> used{};
  std::apply([&](const auto&... placed) { ((used[placed.word] |= packing::mask(placed.bits) << placed.shift), ...); },
             Event::values());
  return used;
}

TEST(Events, PackAndUnpackEachTypeWithAnyValues) {
  std::mt19937_64 random(11);
  for_each_type([&]<class Event>() {
    const auto used = used_bits<Event>();
    for (int round = 0; round < 100; ++round) {
      Packed<Event> slots{};
      slots[0] = {pack_high(random() >> 8, Event::type), random() & used[0]};
      for (std::size_t i = 1; i < slots.size(); ++i) slots[i] = {random() & used[2 * i - 1], random() & used[2 * i]};
      const auto again = pack(ticks_of(slots[0]), unpack<Event>(slots.data()));
      ASSERT_EQ(again.size(), slots.size());
      for (std::size_t i = 0; i < slots.size(); ++i) EXPECT_EQ(again[i], slots[i]) << event_info(Event::type)->name;
    }
  });
}

TEST(Events, UnpackingIgnoresBitsThatHoldNoValue) {
  for_each_type([]<class Event>() {
    const auto used = used_bits<Event>();
    Packed<Event> full;
    full.fill({~std::uint64_t{0}, ~std::uint64_t{0}});
    full[0].high = pack_high(7, Event::type);
    const auto packed = pack(7, unpack<Event>(full.data()));
    EXPECT_EQ(packed[0].low, used[0]) << event_info(Event::type)->name;
    for (std::size_t i = 1; i < packed.size(); ++i) {
      EXPECT_EQ(packed[i].high, used[2 * i - 1]) << event_info(Event::type)->name;
      EXPECT_EQ(packed[i].low, used[2 * i]) << event_info(Event::type)->name;
    }
  });
}

// What docs/trace-format.md says of some events, by hand.
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
  static_assert(pack(1, events::Lost{.cause = 3, .scope = LostScope::any_thread, .events = 7})[0].low ==
                (3 | 1 << 8 | 7 << 16));
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
      EventType::cuda_stream,  EventType::cuda_kernel,  EventType::cuda_handle,    EventType::counter};
  for (const EventType type : all_types) {
    const bool expected = std::find(std::begin(kept), std::end(kept), type) != std::end(kept);
    EXPECT_EQ(outlives_ring(type), expected) << static_cast<int>(type);
  }
}

}  // namespace
}  // namespace paceline::format
