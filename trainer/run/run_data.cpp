// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/run_data.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <utility>

#include "trainer/core/error.h"
#include "trainer/data/cifar.h"
#include "trainer/data/image_folder.h"
#include "trainer/data/memory_source.h"
#include "trainer/data/synthetic.h"
#include "trainer/guard/agreement.h"
#include "trainer/guard/rank_check.h"

namespace paceline::train {
namespace {

constexpr std::size_t longest_piece = std::size_t{64} << 20;

// Replaces the values by rank 0's. The other ranks do not have to know their number.
template <typename Values>
void share(Collectives& collectives, Values& values) {
  std::array<std::uint64_t, 1> count{values.size()};
  collectives.broadcast(std::span<std::uint64_t>(count), 0);
  values.resize(count[0]);
  std::span<std::byte> bytes = std::as_writable_bytes(std::span(values));
  for (; !bytes.empty(); bytes = bytes.subspan(std::min(bytes.size(), longest_piece))) {
    collectives.broadcast(bytes.first(std::min(bytes.size(), longest_piece)), 0);
  }
}

std::uint64_t data_hash(const TrainAndTest& data) {
  std::uint64_t hash = 0;
  for (const Dataset* set : {&data.train, &data.test}) {
    hash = XXH3_64bits_withSeed(set->pixels.data(), set->pixels.size(), hash);
    hash = XXH3_64bits_withSeed(set->labels.data(), set->labels.size() * sizeof(set->labels[0]), hash);
  }
  return hash;
}

RunData in_memory(TrainAndTest data, std::string title, std::int64_t image_size = 0) {
  RunData result;
  result.hash = data_hash(data);
  result.title = std::move(title);
  const Normalization normalization = normalization_of(data.train);
  result.train = std::make_unique<MemorySource>(std::move(data.train), normalization, image_size);
  result.test = std::make_unique<MemorySource>(std::move(data.test), normalization, image_size);
  return result;
}

void check_classes(const TrainOptions& options, std::int64_t classes) {
  if (!options.classes || *options.classes == classes) return;
  throw Error(options.data, fmt::format("has {} classes, but ‹classes› is {}", classes, *options.classes),
              "leave ‹classes› out", Status::usage);
}

std::string data_title(const TrainOptions& options, std::int64_t resized) {
  std::string title = options.data;
  if (resized > 0) title += fmt::format(" at {} px", resized);
  if (options.fraction < 1) title += fmt::format(", {:g} %", 100 * options.fraction);
  return title;
}

RunData open_cifar10(const TrainOptions& options, Collectives& collectives) {
  TrainAndTest data;
  std::int64_t resized = options.resize.value_or(0);
  together(collectives, [&] {
    check_classes(options, data.train.classes);
    if (options.image_size && *options.image_size != (resized > 0 ? resized : data.train.image_size)) {
      throw Error(options.data, fmt::format("CIFAR-10's images have {} pixels on each side", data.train.image_size),
                  fmt::format("to enlarge them give ‹resize› {}", *options.image_size), Status::usage);
    }
    if (resized == data.train.image_size) resized = 0;
    if (options.broadcast_data && collectives.rank() != 0) return;
    data = read_cifar10(options.data);
    if (options.fraction < 1) {
      keep_fraction(data.train, options.fraction);
      keep_fraction(data.test, options.fraction);
    }
  });
  if (options.broadcast_data) {
    for (Dataset* set : {&data.train, &data.test}) {
      share(collectives, set->labels);
      share(collectives, set->pixels);
    }
  }
  return in_memory(std::move(data), data_title(options, resized), resized);
}

// Sends rank 0's pictures to all ranks if they fit into memory.
void broadcast_pictures(FolderSource& train, FolderSource& test, bool skip, Collectives& collectives) {
  const bool reads = collectives.rank() == 0;
  std::array<std::uint64_t, 1> bytes{};
  together(collectives, [&] {
    if (reads) bytes[0] = train.bytes_on_disk(skip) + test.bytes_on_disk(skip);
  });
  collectives.broadcast(std::span<std::uint64_t>(bytes), 0);
  together(collectives, [&] {
    const std::uint64_t left = memory_available();
    const auto ranks = static_cast<std::uint64_t>(collectives.local_size());
    if (bytes[0] * ranks > left) {
      throw Error("‹broadcast-data›",
                  fmt::format("the pictures of {} ranks take {} MiB, and this host has {} left", ranks,
                              (bytes[0] * ranks) >> 20, left >> 20),
                  "leave it out, or start fewer ranks on each host");
    }
  });
  for (FolderSource* source : {&train, &test}) {
    FileContents contents;
    together(collectives, [&] {
      if (reads) contents = source->read_all(skip);
    });
    share(collectives, contents.bytes);
    share(collectives, contents.ends);
    source->keep(std::move(contents));
  }
}

RunData open_folder(const TrainOptions& options, const std::string& listing, Collectives& collectives) {
  const std::int64_t image_size = options.image_size.value_or(224);
  std::unique_ptr<FolderSource> train, test;
  together(collectives, [&] {
    if (options.resize) {
      throw Error(options.data, "‹resize› only applies to CIFAR-10's files",
                  "give ‹image-size›, to which pictures are cropped", Status::usage);
    }
    using Part = FolderSource::Part;
    train = std::make_unique<FolderSource>(options.data, listing, Part::train, image_size, options.fraction);
    test = std::make_unique<FolderSource>(options.data, listing, Part::test, image_size, options.fraction);
    check_classes(options, train->classes());
    if (!options.broadcast_data && collectives.rank() != 0) train->check_first();
  });
  if (options.broadcast_data) broadcast_pictures(*train, *test, options.on_bad_image == "skip", collectives);
  RunData data;
  data.hash = XXH3_64bits(listing.data(), listing.size());
  data.title = data_title(options, 0);
  data.train = std::move(train);
  data.test = std::move(test);
  return data;
}

void check_synthetic(const TrainOptions& options, std::int64_t image_size, int ranks) {
  const auto side = static_cast<std::uint64_t>(image_size);
  const std::uint64_t images = synthetic_images(options.train_images) + synthetic_images(options.test_images);
  const std::uint64_t bytes = static_cast<std::uint64_t>(ranks) * images * 3 * side * side, left = memory_available();
  if (bytes <= left) return;
  throw Error(fmt::format("‹image-size› {}", image_size),
              fmt::format("the synthetic images of {} rank(s) take {} MiB, and this host has {} left", ranks,
                          bytes >> 20, left >> 20),
              "ask for smaller or fewer images", Status::usage);
}

}  // namespace

RunData open_data(const TrainOptions& options, Collectives& collectives) {
  if (options.synthetic) {
    const std::int64_t image_size = options.image_size.value_or(32);
    TrainAndTest data;
    together(collectives, [&] {
      check_synthetic(options, image_size, collectives.local_size());
      data = synthetic_data(
          {image_size, options.classes.value_or(10), options.train_images, options.test_images, options.seed});
    });
    return in_memory(std::move(data), fmt::format("synthetic {} px", image_size));
  }
  std::string listing, note;  // listing: empty for CIFAR-10's files
  IgnoredFiles ignored;
  together(collectives, [&] {
    if (collectives.rank() != 0) return;
    require_directory(options.data);  // first, because nothing else is true of a misspelt name
    if (is_image_folder(options.data)) {
      listing = list_image_folder(options.data, &ignored);
      note = ignored.line();
    } else {
      note = check_cifar10(options.data);
    }
  });
  share(collectives, listing);
  RunData data = listing.empty() ? open_cifar10(options, collectives) : open_folder(options, listing, collectives);
  data.note = note;
  return data;
}

}  // namespace paceline::train
