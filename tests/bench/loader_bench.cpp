// SPDX-License-Identifier: Apache-2.0
// Images a second that the loader makes of JPEG files, against bare libjpeg-turbo, which decodes the same files,
// already in memory, whole, at the same scales, and throws the pixels away. In rounds, one after the other, so that the
// machine's drift meets both alike; medians over the rounds. Seconds are those of CPU time, all threads together: what
// else runs on the machine takes none of them.
//
//   loader_bench [DIR [WORKERS [ROUNDS]]]      DIR: a folder of JPEGs; default: 100 drawn ones of 400 × 400 pixels
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <span>
#include <thread>
#include <vector>

#include <jpeglib.h>

#include "trainer/data/crop.h"
#include "trainer/data/image_folder.h"
#include "trainer/data/loader.h"
#include "trainer/data/shapes.h"

namespace {

using namespace paceline::train;
namespace fs = std::filesystem;

constexpr std::size_t batch = 32;
constexpr std::int64_t image_size = 224;

double seconds_of(const auto& work) {
  const std::clock_t start = std::clock();
  work();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

// What libjpeg-turbo's own example does. Errors end the program.
void decode(std::span<const std::uint8_t> file, Draw draw, std::uint32_t sample) {
  jpeg_decompress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, file.data(), file.size());
  jpeg_read_header(&info, TRUE);
  const Crop crop = random_resized_crop(draw.seed, draw.epoch, sample, info.image_width, info.image_height);
  info.scale_num = static_cast<unsigned>(eighths_for(crop, image_size));
  info.scale_denom = 8;
  info.out_color_space = JCS_RGB;
  jpeg_start_decompress(&info);
  std::vector<std::uint8_t> row(3 * std::size_t{info.output_width});
  JSAMPROW line = row.data();
  while (info.output_scanline < info.output_height) jpeg_read_scanlines(&info, &line, 1);
  jpeg_finish_decompress(&info);
  jpeg_destroy_decompress(&info);
}

}  // namespace

int main(int argc, char** argv) {
  fs::path directory = argc > 1 ? argv[1] : "";
  const std::size_t workers = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 1;
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 9;
  const bool drawn = directory.empty();
  if (drawn) {
    std::string name = (fs::temp_directory_path() / "paceline-bench-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) return 1;
    directory = name;
    make_jpeg_dataset(directory, 100, 1, 1, 400);
  }
  const FolderSource source(directory, list_image_folder(directory), FolderSource::Part::train, image_size);
  const FileContents files = source.read_all();  // the loader then finds them in the system's cache
  const auto file = [&](std::uint32_t sample) {
    const std::size_t start = sample == 0 ? 0 : files.ends[sample - 1];
    return std::span(files.bytes).subspan(start, files.ends[sample] - start);
  };
  const EpochPlan plan{source.size(), batch, 0, 1};
  if (plan.iterations() == 0) return 1;
  constexpr std::uint64_t iterations = 30;  // of one loader: its first batches are written to memory that is new
  constexpr std::size_t images = iterations * batch;

  std::vector<double> loader_rates, bare_rates, ratios;
  for (int round = 0; round < rounds; ++round) {
    const std::uint64_t first = iterations * static_cast<std::uint64_t>(round);
    const double by_loader = seconds_of([&] {
      Loader loader(source, training_batches(plan, {1}), {first, first + iterations, workers});
      for (std::uint64_t i = 0; i < iterations; ++i) loader.next();
    });
    std::vector<Loader::Work> work;
    Loader::Plan batches = training_batches(plan, {1});
    for (std::uint64_t i = 0; i < iterations; ++i) work.push_back(batches(first + i));
    const double bare = seconds_of([&] {
      std::vector<std::jthread> threads;
      for (std::size_t worker = 0; worker < workers; ++worker) {
        threads.emplace_back([&, worker] {
          for (std::size_t i = worker; i < images; i += workers) {
            const Loader::Work& of_batch = work[i / batch];
            const std::uint32_t sample = of_batch.samples[i % batch];
            decode(file(sample), *of_batch.draw, sample);
          }
        });
      }
    });
    loader_rates.push_back(static_cast<double>(images) / by_loader);
    bare_rates.push_back(static_cast<double>(images) / bare);
    ratios.push_back(bare / by_loader);
  }
  fmt::print("{} pictures of {:.1f} kB on average, crops of {} px, {} worker(s), {} rounds of {} images\n",
             source.size(), static_cast<double>(files.bytes.size()) / static_cast<double>(source.size()) / 1e3,
             image_size, workers, rounds, images);
  fmt::print("loader:             {:7.1f} images/s per core\n", median(loader_rates));
  fmt::print("bare libjpeg-turbo: {:7.1f} images/s per core\n", median(bare_rates));
  fmt::print("ratio:              {:7.3f} (rounds {:.3f} to {:.3f}; at least 0.9 is wanted)\n", median(ratios),
             std::ranges::min(ratios), std::ranges::max(ratios));
  if (drawn) fs::remove_all(directory);
}
