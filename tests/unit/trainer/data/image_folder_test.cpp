// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/image_folder.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>

#include "tests/unit/trainer/temporary_directory.h"
#include "trainer/core/error.h"
#include "trainer/data/jpeg.h"
#include "trainer/data/shapes.h"

namespace paceline::train {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using FolderPart = FolderSource::Part;

void add(const fs::path& file, const std::string& content = "") {
  fs::create_directories(file.parent_path());
  put(file, content);
}

std::string grey_jpeg(int side, std::uint8_t value) {
  const std::vector<std::uint8_t> pixels(static_cast<std::size_t>(side * side), value);
  return encode_jpeg({side, side, 1, pixels}, 100);
}

void add_pets(const TemporaryDirectory& directory) {
  add(directory / "train/dog/b.JPEG", grey_jpeg(40, 10));
  add(directory / "train/dog/a.jpg", grey_jpeg(40, 20));
  add(directory / "train/cat/10.jpeg", grey_jpeg(40, 30));
  add(directory / "train/cat/9.jpg", grey_jpeg(40, 40));
  add(directory / "train/cat/notes.txt");
  add(directory / "train/cat/._9.jpg");
  add(directory / "train/.hidden/x.jpg");
  add(directory / "train/README");
  add(directory / "val/dog/z.jpg", grey_jpeg(40, 50));
}

std::vector<std::string> files_of(const FolderSource& source) {
  std::vector<std::string> files;
  for (std::size_t i = 0; i < source.size(); ++i) {
    const fs::path file = source.path(i);
    files.push_back(file.parent_path().filename() / file.filename());
  }
  return files;
}

std::string error_of_listing(const TemporaryDirectory& directory) {
  return message_of<Error>([&] { list_image_folder(directory.path()); });
}

TEST(ImageFolder, NumbersClassesAndPicturesByTheirNames) {
  const TemporaryDirectory directory;
  add_pets(directory);
  ASSERT_TRUE(is_image_folder(directory.path()));
  const std::string listing = list_image_folder(directory.path());
  const FolderSource train(directory.path(), listing, FolderPart::train, 16),
      test(directory.path(), listing, FolderPart::test, 16);
  EXPECT_THAT(files_of(train), ElementsAre("cat/10.jpeg", "cat/9.jpg", "dog/a.jpg", "dog/b.JPEG"));
  EXPECT_EQ(std::vector({train.label(0), train.label(1), train.label(2), train.label(3)}), std::vector({0, 0, 1, 1}));
  EXPECT_EQ(train.classes(), 2);
  EXPECT_THAT(files_of(test), ElementsAre("dog/z.jpg"));
  EXPECT_EQ(test.label(0), 1) << "train's number of the class";
  EXPECT_EQ(test.classes(), 2);
  const FolderSource half(directory.path(), listing, FolderPart::train, 16, 0.5);
  EXPECT_THAT(files_of(half), ElementsAre("cat/10.jpeg", "dog/a.jpg"));
  EXPECT_EQ(half.label(1), 1);
}

TEST(ImageFolder, WalksTheSubfoldersOfAClassAndNamesWhatItIgnores) {
  const TemporaryDirectory directory;
  add_pets(directory);
  add(directory / "train/cat/2019/a.png");
  add(directory / "train/cat/2019/deep/b.webp");
  add(directory / "train/stray.jpg");
  fs::create_directory_symlink(directory / "train/cat", directory / "train/cat/2019/again");
  IgnoredFiles ignored;
  const std::string listing = list_image_folder(directory.path(), &ignored);
  const FolderSource train(directory.path(), listing, FolderPart::train, 16);
  std::vector<std::string> cats;
  for (std::size_t i = 0; i < train.size() && train.label(i) == 0; ++i) {
    cats.push_back(train.path(i).lexically_relative(directory / "train/cat"));
  }
  EXPECT_THAT(cats, ElementsAre("10.jpeg", "2019/a.png", "2019/deep/b.webp", "9.jpg"));
  EXPECT_EQ(ignored.count, 4U) << "notes.txt, README, stray.jpg, and the link to a folder around it";
  EXPECT_THAT(ignored.line(), AllOf(HasSubstr("4 files of the data set are ignored, among them "), HasSubstr(": ")));
}

TEST(ImageFolder, NormalisesLikeTorchvisionFromFilesAndFromMemory) {
  const TemporaryDirectory directory;
  add_pets(directory);
  FolderSource train(directory.path(), list_image_folder(directory.path()), FolderPart::train, 16);
  std::vector<float> out(train.values()), again(train.values());
  train.prepare(1, std::nullopt, out);
  const float mean[] = {0.485f, 0.456f, 0.406f}, deviation[] = {0.229f, 0.224f, 0.225f};
  for (std::size_t c = 0; c < 3; ++c) {
    EXPECT_NEAR(out[c * 256 + 100], (40 / 255.0f - mean[c]) / deviation[c], 0.02f);
  }
  EXPECT_EQ(train.bytes_on_disk(), train.read_all().bytes.size());
  train.keep(train.read_all());
  fs::remove_all(directory / "train");
  train.prepare(1, std::nullopt, again);
  EXPECT_EQ(again, out);
}

TEST(ImageFolder, GivesBytesThatDifferOnlyByRounding) {
  const TemporaryDirectory directory;
  add_pets(directory);
  std::vector<std::uint8_t> pixels;
  for (int i = 0; i < 90 * 70 * 3; ++i) pixels.push_back(static_cast<std::uint8_t>(i / 3 % 90 * 2 + i % 3 * 30));
  put(directory / "train/dog/a.jpg", encode_jpeg({90, 70, 3, pixels}, 95));
  const FolderSource train(directory.path(), list_image_folder(directory.path()), FolderPart::train, 16);
  std::vector<float> expected(train.values());
  std::vector<std::uint8_t> bytes(train.values());
  ASSERT_NE(train.stored(), nullptr);
  const Normalization& normalization = *train.stored();
  for (std::uint64_t epoch = 0; epoch < 6; ++epoch) {
    const std::optional<Draw> draw = epoch < 5 ? std::optional(Draw{1, epoch}) : std::nullopt;
    train.prepare(2, draw, expected);
    const ImageCut cut = train.prepare_stored(2, draw, bytes);
    EXPECT_TRUE(cut.flip == 0 && cut.shift_x == 0 && cut.shift_y == 0) << "it is cut already";
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const float got = (bytes[i] - normalization.mean[i / 256]) * normalization.scale[i / 256];
      ASSERT_NEAR(got, expected[i], 0.5001f * normalization.scale[i / 256]) << epoch << ' ' << i;
    }
    EXPECT_GT(*std::ranges::max_element(bytes) - *std::ranges::min_element(bytes), 30) << "a picture of one colour";
  }
  EXPECT_THAT(message_of<Error>([&] {
                put(directory / "train/cat/9.jpg", "hello");
                train.prepare_stored(1, std::nullopt, bytes);
              }),
              HasSubstr("9.jpg: Not a JPEG file"));
}

TEST(ImageFolder, CropsAndMirrorsOnlyOnRequest) {
  const TemporaryDirectory directory;
  add_pets(directory);
  std::vector<std::uint8_t> pixels;
  for (int i = 0; i < 90 * 70 * 3; ++i) pixels.push_back(static_cast<std::uint8_t>(i / 3 % 90 * 2 + i / 270));
  put(directory / "train/dog/a.jpg", encode_jpeg({90, 70, 3, pixels}, 95));
  const FolderSource train(directory.path(), list_image_folder(directory.path()), FolderPart::train, 16);
  const auto prepared = [&](const std::optional<Draw>& draw) {
    std::vector<float> out(train.values());
    train.prepare(2, draw, out);
    return out;
  };
  const auto mirrored = [](const std::vector<float>& image) {
    std::vector<float> out(image.size());
    for (std::size_t i = 0; i < image.size(); ++i) out[i] = image[i / 16 * 16 + 15 - i % 16];
    return out;
  };
  const auto near = [](const std::vector<float>& a, const std::vector<float>& b) {
    return std::ranges::equal(a, b, [](float x, float y) { return std::abs(x - y) < 1e-4f; });
  };
  const std::vector<float> evaluated = prepared(std::nullopt);
  int flips = 0;
  for (std::uint64_t epoch = 0; epoch < 12; ++epoch) {
    const std::vector<float> all = prepared(Draw{1, epoch}), crop = prepared(Draw{1, epoch, true, false});
    const std::vector<float> mirror = prepared(Draw{1, epoch, false, true});
    EXPECT_EQ(prepared(Draw{1, epoch, false, false}), evaluated) << "nothing is drawn";
    const bool flip = all != crop;
    flips += flip;
    EXPECT_TRUE(near(all, flip ? mirrored(crop) : crop)) << "the same part of the picture, epoch " << epoch;
    EXPECT_TRUE(near(mirror, flip ? mirrored(evaluated) : evaluated)) << "evaluation's part, epoch " << epoch;
    EXPECT_FALSE(near(crop, evaluated));
  }
  EXPECT_TRUE(flips > 1 && flips < 11) << flips;
}

TEST(ImageFolder, NamesThePictureThatIsMissingOrDamaged) {
  const TemporaryDirectory directory;
  add_pets(directory);
  const FolderSource train(directory.path(), list_image_folder(directory.path()), FolderPart::train, 16);
  std::vector<float> out(train.values());
  const auto error_of = [&](std::size_t sample) {
    return message_of<Error>([&] { train.prepare(sample, Draw{1, 0}, out); });
  };
  fs::resize_file(directory / "train/cat/10.jpeg", 300);
  EXPECT_EQ(error_of(0), (directory / "train/cat/10.jpeg").string() + ": Premature end of JPEG file");
  put(directory / "train/cat/9.jpg", "hello");
  EXPECT_THAT(error_of(1), HasSubstr("9.jpg: Not a JPEG file"));
  fs::remove(directory / "train/dog/a.jpg");
  EXPECT_THAT(error_of(2), HasSubstr("a.jpg: cannot be read: No such file"));
  fs::create_directory(directory / "train/dog/a.jpg");
  EXPECT_THAT(error_of(2), HasSubstr("a.jpg: cannot be read: it is a directory"));
  EXPECT_EQ(train.name_of(2), (directory / "train/dog/a.jpg").string());
  EXPECT_THAT(message_of<Error>([&] {
                fs::remove(directory / "train/cat/10.jpeg");
                train.check_first();
              }),
              AllOf(HasSubstr("10.jpeg"), HasSubstr("‹broadcast-data›")));
}

// Reading a FIFO would wait for ever.
TEST(ImageFolder, ReadsOnlyRegularFiles) {
  const TemporaryDirectory directory;
  add_pets(directory);
  const fs::path special = directory / "train/dog/c.jpg";
  const auto read = [&] {
    const FolderSource train(directory.path(), list_image_folder(directory.path()), FolderPart::train, 16);
    std::vector<float> out(train.values());
    return message_of<ImageError>([&] { train.prepare(4, Draw{1, 0}, out); });
  };
  ASSERT_EQ(mkfifo(special.c_str(), 0666), 0);
  EXPECT_EQ(error_of_listing(directory), "");  // the error comes when it is read
  EXPECT_EQ(read(), special.string() + ": cannot be read: it is a FIFO");
  fs::remove(special);
  fs::create_symlink("/dev/zero", special);
  EXPECT_THAT(read(), HasSubstr("it is a device"));
  fs::remove(special);
  fs::create_directory(special);
  EXPECT_THAT(read(), HasSubstr("it is a directory"));
  fs::remove(special);
  put(special, "");
  fs::resize_file(special, std::uintmax_t{1} << 40);  // sparse
  EXPECT_THAT(read(), HasSubstr("c.jpg: cannot be read: it has more than 1 GiB"));
  fs::remove(special);
  fs::create_symlink("nowhere", special);
  EXPECT_THAT(read(), HasSubstr("c.jpg: cannot be read: No such file"));
}

TEST(ImageFolder, ReadsAllReadableFiles) {
  const TemporaryDirectory directory;
  add_pets(directory);
  FolderSource train(directory.path(), list_image_folder(directory.path()), FolderPart::train, 16);
  fs::remove(directory / "train/cat/9.jpg");
  EXPECT_THAT(message_of<Error>([&] { train.read_all(); }), HasSubstr("9.jpg: cannot be read"));
  FileContents contents = train.read_all(true);
  ASSERT_EQ(contents.ends.size(), 4u);
  EXPECT_EQ(contents.ends[1], contents.ends[0]);
  EXPECT_EQ(contents.bytes.size(), train.bytes_on_disk(true));
  train.keep(std::move(contents));
  std::vector<float> out(train.values());
  EXPECT_THAT(message_of<ImageError>([&] { train.prepare(1, std::nullopt, out); }),
              HasSubstr("9.jpg: Empty input file"));
  train.prepare(2, std::nullopt, out);
}

TEST(ImageFolder, NamesMissingFolders) {
  const TemporaryDirectory directory;
  EXPECT_FALSE(is_image_folder(directory.path()));
  fs::create_directories(directory / "train");
  EXPECT_THAT(error_of_listing(directory), HasSubstr("neither val nor test"));
  fs::create_directories(directory / "test");
  EXPECT_THAT(error_of_listing(directory), HasSubstr("train: no classes"));
  add(directory / "train/cat/1.jpg");
  EXPECT_THAT(error_of_listing(directory), HasSubstr("train: a single class"));
  fs::create_directories(directory / "train/dog");
  EXPECT_THAT(error_of_listing(directory), HasSubstr("test: no classes"));
  add(directory / "test/bird/1.jpg");
  EXPECT_THAT(error_of_listing(directory), HasSubstr("test/bird: a class that "));
  fs::rename(directory / "test/bird", directory / "test/cat");
  EXPECT_THAT(error_of_listing(directory), HasSubstr("train/dog: a class without pictures"));
  add(directory / "train/dog/1.jpg");
  EXPECT_EQ(error_of_listing(directory), "");
}

TEST(MakeJpegDataset, DrawsTheShapesAsPictures) {
  const TemporaryDirectory directory;
  make_jpeg_dataset(directory.path(), 40, 12, 5, 48);
  const std::string listing = list_image_folder(directory.path());
  const FolderSource train(directory.path(), listing, FolderPart::train, 48),
      test(directory.path(), listing, FolderPart::test, 48);
  ASSERT_EQ(train.size(), 40u);
  ASSERT_EQ(test.size(), 12u);
  EXPECT_EQ(train.classes(), 10);
  std::vector<std::uint8_t> drawn(3 * 48 * 48), row(3 * 48);
  double difference = 0;
  for (std::size_t i = 0; i < 40; ++i) {
    const std::uint64_t index = std::stoul(train.path(i).stem().string());
    std::string name = shape_names[draw_shape(5, 0, index, drawn, 48, static_cast<std::uint8_t>(index % 10))];
    std::ranges::replace(name, ' ', '_');
    EXPECT_EQ(train.path(i).parent_path().filename(), name);
    const std::string file = content_of(train.path(i));
    JpegReader jpeg({reinterpret_cast<const std::uint8_t*>(file.data()), file.size()});
    jpeg.start(0, 47, 0);
    for (std::size_t y = 0; y < 48; ++y) {
      jpeg.row(row.data());
      for (std::size_t k = 0; k < row.size(); ++k) {
        difference += std::abs(row[k] - drawn[(k % 3 * 48 + y) * 48 + k / 3]);
      }
    }
  }
  EXPECT_LT(difference / (40 * 3 * 48 * 48), 12) << "of 255, on average: what 4:2:0 leaves of coloured grain";
  EXPECT_THAT(message_of<Error>([&] { make_jpeg_dataset(directory.path(), 40, 12, 5, 48); }),
              HasSubstr("train: exists already"));
}

}  // namespace
}  // namespace paceline::train
