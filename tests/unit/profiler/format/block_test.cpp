// SPDX-License-Identifier: Apache-2.0
#include "profiler/format/block.h"

#include <gmock/gmock.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>

#include "profiler/format/block_decoder.h"
#include "profiler/format/hash.h"
#include "tests/rounds.h"
#include "tests/unit/profiler/format/reference_columns.h"
#include "tests/unit/profiler/format/streams.h"

namespace paceline::format {

namespace {

using namespace testing;

struct Block {
  BlockHeader header{};
  std::vector<std::byte> payload;
};

Block encode(const std::vector<Slot>& slots, const ChunkHeader& chunk = {}) {
  BlockEncoder encoder;
  const std::span<const std::byte> bytes = encoder.encode(chunk, slots.data(), slots.size());
  Block block;
  if (bytes.size() < sizeof block.header) return block;
  std::memcpy(&block.header, bytes.data(), sizeof block.header);
  block.payload.assign(bytes.begin() + sizeof block.header, bytes.end());
  return block;
}

std::vector<Slot> decode(const Block& block) {
  std::vector<Slot> slots;
  EXPECT_STREQ(BlockDecoder().decode(block.header, block.payload, slots), nullptr);
  return slots;
}

TEST(Block, HeaderTellsTheChunkAndTheSizes) {
  ChunkHeader chunk{};
  chunk.track = 3;
  chunk.sequence = 17;
  chunk.thread_id = 4711;
  const Block block = encode(trainer_stream(1000, 10).slots, chunk);
  EXPECT_EQ(std::memcmp(block.header.magic, "PBLK", 4), 0);
  EXPECT_EQ(block.header.kind, block_kind_summary);
  EXPECT_EQ(block.header.track, 3U);
  EXPECT_EQ(block.header.sequence, 17U);
  EXPECT_EQ(block.header.thread_id, 4711U);
  EXPECT_EQ(block.header.slots, trainer_stream(1000, 10).slots.size());
  EXPECT_EQ(block.header.payload_bytes, block.payload.size());
  EXPECT_EQ(block.header.hash, block_hash(block.header, block.payload.data()));
}

TEST(Block, GivesBackEachTypeAlone) {
  for (const EventType type : all_types) {
    if (has_bytes(type)) continue;
    std::vector<Slot> slots;
    for (const std::uint64_t word : {std::uint64_t{0}, std::uint64_t{1}, ~std::uint64_t{0}, std::uint64_t{1} << 63}) {
      const Slot head{pack_high(5, type), word};
      slots.push_back(head);
      slots.insert(slots.end(), extension_slots(head), Slot{~word, word});
    }
    EXPECT_EQ(decode(encode(slots)), slots) << "type " << static_cast<int>(type);
  }
}

TEST(Block, GivesBackNamesOfAnyLengthAndBytes) {
  std::vector<Slot> slots;
  for (std::uint32_t length = 0; length < 70; ++length) append_name(slots, length, length, std::string(length, '\xe9'));
  append_name(slots, 0, 0xffff'ffff, std::string(60'000, 'x'));
  EXPECT_EQ(decode(encode(slots)), slots);
}

TEST(Block, GivesBackTicksThatJumpAndRunBackwards) {
  std::vector<Slot> slots;
  const std::uint64_t top = (std::uint64_t{1} << 56) - 1;
  for (const std::uint64_t ticks : {std::uint64_t{0}, top, std::uint64_t{0}, top - 1, std::uint64_t{127},
                                    std::uint64_t{128}, std::uint64_t{255}, top / 2, std::uint64_t{1}}) {
    append(slots, ticks, EventType::pop, 0);
  }
  EXPECT_EQ(decode(encode(slots)), slots);
}

TEST(Block, GivesBackRandomChunks) {
  std::mt19937_64 random(20260101);
  for (std::size_t round = 0; round < 500; round += test::stride(10)) {
    std::vector<Slot> slots;
    const std::size_t limit = 1 + random() % slots_per_chunk;
    for (;;) {
      std::vector<Slot> event;
      append_random(event, random);
      if (slots.size() + event.size() > limit) break;
      slots.insert(slots.end(), event.begin(), event.end());
    }
    if (slots.empty()) continue;
    ASSERT_EQ(decode(encode(slots)), slots) << "round " << round;
  }
}

// The encoder must make the columns of the simplest one, whatever the events are.
TEST(Block, HasTheColumnsOfTheSimplestEncoder) {
  std::mt19937_64 random(7);
  std::vector<std::vector<Slot>> chunks = {trainer_stream(slots_per_chunk, 20).slots, {}};
  for (std::uint64_t ticks = 0; chunks[1].size() + 2 <= slots_per_chunk;) {  // a program that polls
    append(chunks[1], ticks += 20 + random() % 200, EventType::mpi_begin, 134);
    append(chunks[1], ticks += 20 + random() % 200, EventType::mpi_end, 134);
  }
  for (int round = 0; round < 200; ++round) {
    // Of few types or of all, so that columns are long or short.
    const std::size_t types = round % 2 == 0 ? 1 + random() % 4 : std::size(all_types);
    const EventType first = all_types[random() % std::size(all_types)];
    std::vector<Slot> slots;
    while (slots.size() < random() % (slots_per_chunk - 20) || slots.empty()) {
      std::vector<Slot> event;
      append_random(event, random);
      const auto wanted = (static_cast<unsigned>(type_of(event[0])) - static_cast<unsigned>(first)) % 256;
      if (wanted < types || random() % 100 == 0) slots.insert(slots.end(), event.begin(), event.end());
    }
    chunks.push_back(std::move(slots));
  }
  for (const std::vector<Slot>& slots : chunks) {
    const Block block = encode(slots);
    std::vector<std::byte> columns(max_raw_bytes);
    const std::size_t bytes =
        ZSTD_decompress(columns.data(), columns.size(), block.payload.data(), block.payload.size());
    ASSERT_EQ(bytes, block.header.raw_bytes);
    columns.resize(bytes);
    ASSERT_EQ(columns, reference_columns(slots));
  }
}

TEST(Block, HoldsTheLargestColumnsThatAChunkCanGive) {
  std::vector<Slot> slots;
  std::mt19937_64 random(1);
  while (slots.size() + 2 <= slots_per_chunk) {
    append(slots, slots.size() % 4 == 0 ? 0 : ~std::uint64_t{0} >> 8, EventType::mpi_begin_coll,
           random() | std::uint64_t{1} << 63, {{random() | std::uint64_t{1} << 63, random() | std::uint64_t{1} << 63}});
  }
  EXPECT_EQ(decode(encode(slots)), slots);
  slots.clear();
  while (slots.size() < slots_per_chunk) append(slots, slots.size() % 2 * 77, EventType::push, ~std::uint64_t{0});
  EXPECT_EQ(decode(encode(slots)), slots);
}

TEST(Block, EndsAtTheFirstEventThatIsNotWhole) {
  std::vector<Slot> whole;
  append(whole, 1, EventType::push, 1);
  append(whole, 2, EventType::push_payload, 2, {{1, 2}});
  const auto followed_by = [&](std::vector<Slot> tail) {
    std::vector<Slot> slots = whole;
    slots.insert(slots.end(), tail.begin(), tail.end());
    return slots;
  };
  const std::vector<Slot> never_written = followed_by({{0, 7}, {pack_high(9, EventType::pop), 0}});
  const std::vector<Slot> unknown_type = followed_by({{pack_high(9, static_cast<EventType>(200)), 0}});
  const std::vector<Slot> without_extension = followed_by({{pack_high(9, EventType::start_payload), 0}, {1, 1}});
  const std::vector<Slot> text_behind_the_end = followed_by({{pack_high(9, EventType::name), 0xffff'ffff'0000'0001}});
  for (const auto& slots : {never_written, unknown_type, without_extension, text_behind_the_end}) {
    EXPECT_EQ(whole_slots(slots.data(), slots.size()), whole.size());
    EXPECT_EQ(decode(encode(slots)), whole);
  }
  const Slot nothing{};
  BlockEncoder encoder;
  EXPECT_TRUE(encoder.encode({}, &nothing, 1).empty());
  EXPECT_TRUE(encoder.encode({}, &nothing, 0).empty());
}

TEST(Block, IsTheSameForTheSameSlots) {
  BlockEncoder encoder;
  const auto a = trainer_stream(slots_per_chunk, 20, 1).slots, b = trainer_stream(slots_per_chunk, 30, 2).slots;
  const auto bytes = [&](const std::vector<Slot>& slots) {
    const auto block = encoder.encode({}, slots.data(), slots.size());
    return std::vector<std::byte>(block.begin(), block.end());
  };
  const auto first = bytes(a);
  EXPECT_NE(bytes(b), first);
  EXPECT_EQ(bytes(a), first);
}

// A range is a push and its pop; a chunk holds some 2000 of them.
TEST(Block, TakesAtMostEightBytesForARange) {
  for (const std::size_t layers : {5, 20, 60}) {
    const TrainerStream stream = trainer_stream(slots_per_chunk, layers);
    const Block block = encode(stream.slots);
    const double bytes = static_cast<double>(sizeof block.header + block.payload.size());
    RecordProperty("bytes_per_range_" + std::to_string(layers), std::to_string(bytes / stream.ranges));
    EXPECT_LE(bytes / static_cast<double>(stream.ranges), 8.0) << layers << " layers";
  }
}

TEST(Block, TakesAtMostFortyBytesForACollective) {
  std::vector<Slot> slots;
  std::mt19937_64 random(3);
  std::uint64_t ticks = 1'000'000'000;
  std::uint64_t collectives = 0;
  for (; slots.size() + 3 <= slots_per_chunk; ++collectives) {
    const std::uint64_t communicator = random() % 4;
    append(slots, ticks += random() % 10'000'000, EventType::mpi_begin_coll, (random() % 9) | 0xffff'ffffULL << 16,
           {{random() % 100'000'000, communicator | collectives << 32}});
    append(slots, ticks += random() % 10'000'000, EventType::mpi_end, random() % 9);
  }
  const Block block = encode(slots);
  EXPECT_LE(static_cast<double>(sizeof block.header + block.payload.size()) / static_cast<double>(collectives), 40.0);
}

// A collective of NCCL as its plugin tells it: the group, the call, the launch, the plan and in it the collective, each
// with its end, some µs apart; gradients of 12 sizes on two communicators.
TEST(Block, TakesAtMostFortyBytesForACollectiveOfNcclWithItsCalls) {
  std::vector<Slot> slots;
  std::mt19937_64 random(4);
  std::uint64_t ticks = 1'000'000'000, id = 1'000'000, collectives = 0, sequence[2] = {};
  const auto now = [&] { return ticks += 1'000 + random() % 5'000; };
  const auto begin = [&](EventType type, std::uint64_t what, std::uint64_t bytes, std::uint64_t numbers,
                         std::uint64_t last) {
    append(slots, now(), type, what, {{bytes, numbers}, {++id, last}});
    return id;
  };
  const auto end = [&](std::uint64_t of) { append(slots, now(), EventType::nccl_end, of); };
  while (slots.size() + 20 <= slots_per_chunk) {
    const std::uint64_t which = random() % 2, bytes = (1 + random() % 12) * 1'048'576;
    const auto call = [&](NcclCall kind, std::uint64_t name, std::uint64_t size) {
      return begin(EventType::nccl_call, name | (0x80001234 + which) << 32, size,
                   static_cast<std::uint64_t>(kind) | 0xffff'ffffULL << 32, 0);
    };
    const std::uint64_t group = call(NcclCall::group_api, 5, 0), api = call(NcclCall::collective_api, 6, bytes);
    end(api);
    const std::uint64_t launch = call(NcclCall::kernel_launch, 7, 0);
    end(launch);
    const std::uint64_t plan = call(NcclCall::group, 8, 0);
    end(begin(EventType::nccl_collective, 9 | (0x80001234 + which) << 32, bytes, sequence[which]++, plan));
    end(plan);
    end(group);
    ticks += 100'000 + random() % 2'000'000;
    ++collectives;
  }
  const Block block = encode(slots);
  const double each =
      static_cast<double>(sizeof block.header + block.payload.size()) / static_cast<double>(collectives);
  std::printf("%.1f bytes a collective with its calls\n", each);
  EXPECT_LE(each, 40.0);
}

// What the recorder takes 20 times a second of a process that computes on two threads, with its noise.
TEST(Block, TakesAtMostFourBytesForASample) {
  std::vector<Slot> slots;
  std::mt19937_64 random(5);
  std::uint64_t ticks = 1'000'000'000, values[16] = {};
  values[8] = 900'000'000;  // memory
  std::uint64_t samples = 0;
  while (slots.size() + 2 * std::size(values) <= slots_per_chunk) {
    ticks += 125'000'000 + random() % 500'000;
    values[0] += 100'000 + random() % 2000 - 1000;  // µs of CPU
    values[1] += random() % 3000;
    values[2] += random() % 20, values[3] += random() % 5, values[4] += random() % 300;  // switches, faults
    values[8] += random() % 8 == 0 ? 4096 * (random() % 100) : 0;
    values[9] += 50'000 - random() % 1000, values[10] += random() % 1000;
    values[11] += random() % 3'000'000, values[12] += random() % 3'000'000;  // bytes of a network
    for (std::uint64_t counter = 0; counter < std::size(values); ++counter, ++samples) {
      append(slots, ticks, EventType::sample, counter + 1, {{values[counter], 0}});
    }
  }
  const Block block = encode(slots);
  EXPECT_EQ(decode(block), slots);
  EXPECT_LE(static_cast<double>(sizeof block.header + block.payload.size()) / static_cast<double>(samples), 4.0);
}

TEST(BlockDecoder, RefusesAnyChangedByteOfHeaderOrPayload) {
  const Block good = encode(trainer_stream(300, 5).slots);
  BlockDecoder decoder;
  std::vector<Slot> slots;
  for (std::size_t i = 0; i < offsetof(BlockHeader, hash) + 8; ++i) {
    Block bad = good;
    reinterpret_cast<unsigned char*>(&bad.header)[i] ^= 0x10;
    EXPECT_NE(decoder.decode(bad.header, bad.payload, slots), nullptr) << "header byte " << i;
  }
  for (std::size_t i = 0; i < good.payload.size(); ++i) {
    Block bad = good;
    bad.payload[i] ^= std::byte{1};
    EXPECT_NE(decoder.decode(bad.header, bad.payload, slots), nullptr) << "payload byte " << i;
  }
  EXPECT_THAT(slots, ::testing::IsEmpty());
}

// A block of one event whose column number `index` holds `number` instead, with a checksum that fits.
Block with_column(const std::vector<Slot>& event, std::size_t index, std::uint64_t number) {
  const std::vector<std::byte> good = reference_columns(event);
  std::vector<std::byte> columns;
  std::size_t at = 0;
  for (std::size_t column = 0; at < good.size(); ++column) {
    std::uint32_t length;
    std::memcpy(&length, &good[at], sizeof length);
    at += sizeof length;
    append_column(columns, column == index ? leb128(number) : std::vector<std::byte>(&good[at], &good[at] + length));
    at += length;
  }
  Block block = encode(event);
  block.payload.resize(ZSTD_compressBound(columns.size()));
  block.payload.resize(ZSTD_compress(block.payload.data(), block.payload.size(), columns.data(), columns.size(), 1));
  block.header.raw_bytes = static_cast<std::uint32_t>(columns.size());
  block.header.payload_bytes = static_cast<std::uint32_t>(block.payload.size());
  block.header.hash = block_hash(block.header, block.payload.data());
  return block;
}

TEST(BlockDecoder, RefusesNumbersThatDoNotFitTheirFields) {
  std::vector<Slot> event;  // its first word has two fields of 32 bits: a plain one and one of differences
  append(event, 1, EventType::cuda_handle, 1 | std::uint64_t{2} << 32, {{3, 4}});
  constexpr std::size_t plain = 9, differences = 10;  // after the types and eight columns of ticks
  constexpr std::uint64_t largest = 0xffff'ffff;
  BlockDecoder decoder;
  std::vector<Slot> slots;
  for (const std::size_t column : {plain, differences}) {
    const auto block_of = [&](std::uint64_t value) {
      return with_column(event, column, column == plain ? value : zigzag(value));
    };
    EXPECT_STREQ(decoder.decode(block_of(largest).header, block_of(largest).payload, slots), nullptr);
    EXPECT_STREQ(decoder.decode(block_of(largest + 1).header, block_of(largest + 1).payload, slots),
                 "a value is out of range");
  }
  EXPECT_THAT(slots, ::testing::SizeIs(4)) << "the two whole events";
}

}  // namespace
}  // namespace paceline::format
