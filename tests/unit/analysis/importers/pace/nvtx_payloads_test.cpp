// SPDX-License-Identifier: Apache-2.0
// Binary payloads read by their schemas, honest and hostile ones.
#include "analysis/importers/pace/nvtx_payloads.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "profiler/format/events.h"
#include "profiler/format/payload_layout.h"
#include "tests/unit/profiler/format/streams.h"

namespace paceline::analysis {
namespace {

using format::EventType;
using format::Slot;
using namespace format::payload;

constexpr std::uint32_t fixed_array = 1 << 4, zero_terminated = 2 << 4, length_entry = 3 << 4;
constexpr std::uint64_t static_schema = 1, dynamic_schema = 2, a_union = 3;

class NvtxPayloads : public ::testing::Test {
 protected:
  std::uint32_t name(const std::string& text) {
    names_.push_back(text);
    return static_cast<std::uint32_t>(names_.size() - 1);
  }
  void take(EventType type, std::uint64_t low, std::initializer_list<Slot> extension) {
    std::vector<Slot> slots{{format::pack_high(0, type), low}};
    slots.insert(slots.end(), extension);
    schemas_.take(slots.front());
  }
  void schema(std::uint32_t number, std::uint64_t type = static_schema, std::uint64_t bytes = 0,
              std::uint64_t time = 0) {
    take(EventType::schema, number, {{domain_ | type << 16, bytes}, {time, 0}});
    index_ = 0;
  }
  void entry(std::uint32_t number, const std::string& text, std::uint32_t type, std::uint64_t flags = 0,
             std::uint64_t length = 0, std::uint64_t offset = 0) {
    take(EventType::schema_entry, number | std::uint64_t{name(text)} << 32,
         {{type | flags << 32, domain_ | index_++ << 16 | offset << 32}, {length, 0}});
  }
  template <class Data>
  void payload(std::uint32_t number, const Data& data) {
    format::testing::append_bytes(events_, 0, EventType::payload, number,
                                  std::string(reinterpret_cast<const char*>(&data), sizeof data));
  }
  void part(std::uint32_t offset, const std::string& bytes) {
    format::testing::append_bytes(events_, 0, EventType::payload_part, offset, bytes);
  }
  DecodedPayloads decode() {
    schemas_.finish();
    DecodedPayloads decoded;
    schemas_.decode(static_cast<std::uint16_t>(domain_), events_, {names_, categories_}, decoded);
    return decoded;
  }
  // "name=value name=value …"; texts in quotes.
  std::string shown() {
    std::string text;
    for (const PayloadValue& value : decode().values) {
      text += (text.empty() ? "" : " ") + value.name + "=";
      if (value.is_text) {
        text += "'" + value.text + "'";
      } else {
        const Argument& number = value.number;
        text += number.type == ValueType::real               ? fmt::format("{:g}", number.number())
                : number.type == ValueType::unsigned_integer ? std::to_string(number.bits)
                                                             : std::to_string(static_cast<std::int64_t>(number.bits));
      }
    }
    return text;
  }

  std::uint64_t domain_ = 3, index_ = 0;
  std::vector<std::string> names_{""};
  std::vector<std::unordered_map<std::uint32_t, std::uint32_t>> categories_;
  std::vector<Slot> events_;
  PayloadSchemas schemas_;
};

constexpr std::uint32_t own = first_own_schema;

TEST_F(NvtxPayloads, ANcclReductionHasItsThreeValues) {
  schema(own);
  entry(own, "NCCL communicator ID", type_uint64);
  entry(own, "Message size [bytes]", type_size);
  entry(own, "Reduction operation", own + 24);
  take(EventType::enumeration, own + 24, {{domain_ | 4 << 16, 0}});
  take(EventType::enumerator, (own + 24) | std::uint64_t{name("Max")} << 32, {{2, domain_}});
  const struct {
    std::uint64_t communicator, bytes;
    std::uint32_t operation, padding;
  } data{0xfeedfacecafebeef, 4096, 2, 99};
  payload(own, data);
  EXPECT_EQ(shown(), "NCCL communicator ID=18369614221190020847 Message size [bytes]=4096 Reduction operation='Max'");
}

TEST_F(NvtxPayloads, ASchemaBelongsToItsDomain) {
  schema(own);
  entry(own, "here", type_int);
  payload(own, 5);
  domain_ = 4;
  EXPECT_EQ(shown(), "payload='4 bytes of schema 16777216'");
  domain_ = 3;
  EXPECT_EQ(shown(), "here=5");
}

TEST_F(NvtxPayloads, NestedSchemasAreFlattenedAndPackedOnesRead) {
  schema(2000);
  entry(2000, "x", type_float);
  entry(2000, "y", type_double);
  schema(2001);
  entry(2001, "flag", type_uint8);
  entry(2001, "inner", 2000);
  entry(2001, "pair", 2000, fixed_array, 2);
  entry(2001, "last", type_int16);
  struct Inner {
    float x;
    double y;
  };
  const struct {
    std::uint8_t flag;
    Inner inner, pair[2];
    std::int16_t last;
  } data{1, {2, 3}, {{4, 5}, {6, 7}}, -8};
  payload(2001, data);
  EXPECT_EQ(shown(), "flag=1 inner.x=2 inner.y=3 pair[0].x=4 pair[0].y=5 pair[1].x=6 pair[1].y=7 last=-8");
}

TEST_F(NvtxPayloads, ArraysTextsAndPointersAreRead) {
  schema(2000, dynamic_schema);
  entry(2000, "count", type_uint32, hidden);
  entry(2000, "values", type_uint16, length_entry, 0);
  entry(2000, "text", type_utf8, zero_terminated);
  entry(2000, "after", type_uint8);
  const std::string bytes =
      std::string("\3\0\0\0", 4) + std::string("\7\0\10\0\11\0", 6) + std::string("a\303\244\0", 4) + "\5";
  format::testing::append_bytes(events_, 0, EventType::payload, 2000, bytes);
  EXPECT_EQ(shown(), "values='[7, 8, 9]' text='aä' after=5");

  events_.clear();
  schema(2001);
  entry(2001, "many", type_int32, fixed_array, 20);
  entry(2001, "string", type_cstring);
  entry(2001, "pointer", type_double, pointer | deep_copy);
  entry(2001, "unknown", type_int, pointer);
  entry(2001, "name", type_cstring, event_message, 4);
  struct {
    std::int32_t many[20];
    std::uint64_t addresses[3];
    char name[4];
  } data{};
  for (int i = 0; i < 20; ++i) data.many[i] = i;
  data.addresses[2] = 0xabc;
  std::memcpy(data.name, "name", 4);
  payload(2001, data);
  part(80, "text");
  part(88, std::string("\0\0\0\0\0\0\340\77", 8));
  EXPECT_EQ(shown(), "many='[0, 1, 2, 3, 4, 5, 6, 7, … 20 in all]' string='text' pointer=0.5 unknown='0xabc'");
  EXPECT_EQ(decode().message, "name");
}

TEST_F(NvtxPayloads, PredefinedTypesAndUnionsAreRead) {
  names_ = {"", "registered"};
  payload(type_int, -7);
  payload(type_registered_string, std::uint64_t{1});
  payload(type_float16, std::uint16_t{0x3e00});
  payload(type_bf16, std::uint16_t{0x3fc0});
  payload(type_color, 0x80ff0000U);
  payload(type_raw, std::uint16_t{0x1234});
  payload(type_referenced, 1);
  schema(2000, a_union);
  entry(2000, "whole", type_int);
  entry(2000, "real", type_float);
  schema(2001);
  entry(2001, "which", type_int);
  entry(2001, "value", 2000, 0, 0);
  const struct {
    int which;
    float real;
  } data{1, 2.5F};
  payload(2001, data);
  EXPECT_EQ(shown(),
            "payload=-7 payload='registered' payload=1.5 payload=1.5 payload='#80ff0000' payload='3412' which=1 "
            "value.real=2.5");
}

TEST_F(NvtxPayloads, ACutPayloadGivesWhatIsThere) {
  schema(own, static_schema, 12);
  entry(own, "first", type_int);
  entry(own, "second", type_int64, 0, 0, 4);
  payload(own, 5);
  EXPECT_EQ(shown(), "first=5");
}

TEST_F(NvtxPayloads, ASchemaThatHoldsItselfEnds) {
  schema(2000, static_schema, 1);
  entry(2000, "self", 2000, fixed_array, 8);
  entry(2000, "other", 2001);
  schema(2001);
  entry(2001, "back", 2000, fixed_array, 1U << 31);
  entry(2001, "value", type_int8);
  payload(2000, std::uint64_t{0x0101010101010101});
  EXPECT_LE(decode().values.size(), PayloadSchemas::most_values);
}

// Random definitions and payloads: nothing is read beyond its bytes (which a sanitizer sees), and little is made of it.
TEST_F(NvtxPayloads, HostileSchemasStayWithinBounds) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 300; ++round) {
    PayloadSchemas schemas;
    const auto number = [&] {
      return static_cast<std::uint32_t>(random() % 2 == 0 ? random() % 110 : 2000 + random() % 6);
    };
    for (int i = 0; i < 60; ++i) {
      const EventType types[] = {EventType::schema,       EventType::schema_entry, EventType::schema_entry,
                                 EventType::schema_entry, EventType::enumeration,  EventType::enumerator};
      const auto word = [&] { return random() >> (random() % 64); };
      const Slot extension[2] = {{number() | (random() % 8 << 4 | random() % 16) << 32,
                                  random() % 4 << 16 | (random() % 3 == 0 ? random() % 70 << 32 : 0)},
                                 {random() % 3 == 0 ? word() : random() % 12, 0}};
      const EventType type = types[random() % 6];
      const auto take_with = [&](const Slot(&behind)[2]) {
        const Slot slots[] = {{format::pack_high(0, type), 2000 + random() % 6}, behind[0], behind[1]};
        schemas.take(slots[0]);
      };
      if (type == EventType::schema) {
        const Slot facts[2] = {{random() % 5 << 16, random() % 2 == 0 ? 0 : word()}, {0, 0}};
        take_with(facts);
      } else {
        take_with(extension);
      }
    }
    schemas.finish();
    events_.clear();
    for (int i = 0; i < 8; ++i) {
      std::string bytes(random() % 200, '\0');
      for (char& byte : bytes) byte = static_cast<char>(random() % 3 == 0 ? random() : random() % 4);
      format::testing::append_bytes(events_, 0, i % 3 == 2 ? EventType::payload_part : EventType::payload,
                                    i % 3 == 2 ? static_cast<std::uint32_t>(random() % 64) : number(), bytes);
    }
    DecodedPayloads decoded;
    schemas.decode(0, events_, {names_, categories_}, decoded);
    ASSERT_LE(decoded.values.size(), PayloadSchemas::most_values);
    for (const PayloadValue& value : decoded.values) ASSERT_LT(value.text.size(), 4000u);
  }
}

}  // namespace
}  // namespace paceline::analysis
