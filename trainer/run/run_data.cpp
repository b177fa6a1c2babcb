#include "trainer/run/run_data.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "trainer/data/cifar.h"
#include "trainer/data/image_folder.h"
#include "trainer/data/memory_source.h"
#include "trainer/data/synthetic.h"
#include "trainer/error.h"
#include "trainer/run/agreement.h"
#include "trainer/run/rank_check.h"

namespace paceline::train {
namespace {

constexpr std::size_t longest_piece = std::size_t{64} << 20;

// Replaces the values by rank 0's, whose number the other ranks need not know.
template <typename Values>
void share(Communicator& communicator, Values& values) {
  std::array<std::uint64_t, 1> count{values.size()};
  communicator.broadcast(std::span<std::uint64_t>(count), 0);
  values.resize(count[0]);
  std::span<std::byte> bytes = std::as_writable_bytes(std::span(values));
  for (; !bytes.empty(); bytes = bytes.subspan(std::min(bytes.size(), longest_piece))) {
    communicator.broadcast(bytes.first(std::min(bytes.size(), longest_piece)), 0);
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
  throw Error(
      fmt::format("{}: has {} classes, and --classes says {}: leave it out", options.data, classes, *options.classes),
      Status::usage);
}

std::string data_title(const TrainOptions& options, std::int64_t resized) {
  std::string title = options.data;
  if (resized > 0) title += fmt::format(" at {} px", resized);
  if (options.fraction < 1) title += fmt::format(", {:g} %", 100 * options.fraction);
  return title;
}

RunData open_cifar10(const TrainOptions& options, Communicator& communicator) {
  TrainAndTest data;
  std::int64_t resized = options.resize.value_or(0);
  together(communicator, [&] {
    check_classes(options, data.train.classes);
    if (options.image_size && *options.image_size != (resized > 0 ? resized : data.train.image_size)) {
      throw Error(fmt::format("{}: CIFAR-10's images have {} pixels on each side; for others give --resize {}",
                              options.data, data.train.image_size, *options.image_size),
                  Status::usage);
    }
    if (resized == data.train.image_size) resized = 0;
    if (options.broadcast_data && communicator.rank() != 0) return;
    data = read_cifar10(options.data);
    if (options.fraction < 1) {
      keep_fraction(data.train, options.fraction);
      keep_fraction(data.test, options.fraction);
    }
  });
  if (options.broadcast_data) {
    for (Dataset* set : {&data.train, &data.test}) {
      share(communicator, set->labels);
      share(communicator, set->pixels);
    }
  }
  return in_memory(std::move(data), data_title(options, resized), resized);
}

// Rank 0's pictures to all, if they fit.
void broadcast_pictures(FolderSource& train, FolderSource& test, bool skip, Communicator& communicator) {
  const bool reads = communicator.rank() == 0;
  std::array<std::uint64_t, 1> bytes{};
  together(communicator, [&] {
    if (reads) bytes[0] = train.bytes_on_disk(skip) + test.bytes_on_disk(skip);
  });
  communicator.broadcast(std::span<std::uint64_t>(bytes), 0);
  together(communicator, [&] {
    const std::uint64_t left = memory_available();
    const auto ranks = static_cast<std::uint64_t>(communicator.local_size());
    if (bytes[0] * ranks > left) {
      throw Error(fmt::format("--broadcast-data: the pictures of {} ranks take {} MiB, and this host has {} left",
                              ranks, (bytes[0] * ranks) >> 20, left >> 20));
    }
  });
  for (FolderSource* source : {&train, &test}) {
    FileContents contents;
    together(communicator, [&] {
      if (reads) contents = source->read_all(skip);
    });
    share(communicator, contents.bytes);
    share(communicator, contents.ends);
    source->keep(std::move(contents));
  }
}

RunData open_folder(const TrainOptions& options, const std::string& listing, Communicator& communicator) {
  const std::int64_t image_size = options.image_size.value_or(224);
  std::unique_ptr<FolderSource> train, test;
  together(communicator, [&] {
    if (options.resize) {
      throw Error(
          fmt::format("{}: --resize is of CIFAR-10's files; pictures are cropped to --image-size", options.data),
          Status::usage);
    }
    using Part = FolderSource::Part;
    train = std::make_unique<FolderSource>(options.data, listing, Part::train, image_size, options.fraction);
    test = std::make_unique<FolderSource>(options.data, listing, Part::test, image_size, options.fraction);
    check_classes(options, train->classes());
    if (!options.broadcast_data) train->check_first();
  });
  if (options.broadcast_data) broadcast_pictures(*train, *test, options.on_bad_image == "skip", communicator);
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
  throw Error(fmt::format("--image-size {}: the synthetic images of {} rank(s) take {} MiB, and this host has {} left",
                          image_size, ranks, bytes >> 20, left >> 20),
              Status::usage);
}

}  // namespace

RunData open_data(const TrainOptions& options, Communicator& communicator) {
  if (options.synthetic) {
    const std::int64_t image_size = options.image_size.value_or(32);
    TrainAndTest data;
    together(communicator, [&] {
      check_synthetic(options, image_size, communicator.local_size());
      data = synthetic_data(
          {image_size, options.classes.value_or(10), options.train_images, options.test_images, options.seed});
    });
    return in_memory(std::move(data), fmt::format("synthetic {} px", image_size));
  }
  std::string listing;  // empty: CIFAR-10's files
  together(communicator, [&] {
    if (communicator.rank() == 0 && is_image_folder(options.data)) {
      listing = list_image_folder(options.data, options.on_bad_image == "stop");
    }
  });
  share(communicator, listing);
  return listing.empty() ? open_cifar10(options, communicator) : open_folder(options, listing, communicator);
}

}  // namespace paceline::train
