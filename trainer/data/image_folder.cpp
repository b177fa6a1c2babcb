// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/image_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "trainer/core/error.h"
#include "trainer/data/picture_input.h"
#include "trainer/data/resample.h"

namespace paceline::train {
namespace {

namespace fs = std::filesystem;

// Means and deviations of ImageNet's training images in bytes (0.485, 0.456, 0.406; 0.229, 0.224, 0.225), which
// torchvision's models use.
const Normalization imagenet{{123.675f, 116.28f, 103.53f}, {1 / 58.395f, 1 / 57.12f, 1 / 57.375f}};

// The kinds of entries of a listing. Each entry is a letter, a text and a zero.
enum EntryKind : char { part_entry = 'P', class_entry = 'C', file_entry = 'F' };

bool is_named_as_picture(const fs::path& file) {
  std::string extension = file.extension().string();
  std::ranges::transform(extension, extension.begin(), [](unsigned char c) { return std::tolower(c); });
  return extension == ".jpg" || extension == ".jpeg" || extension == ".png" || extension == ".webp";
}

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a FIFO";
  return S_ISCHR(mode) || S_ISBLK(mode) ? "a device" : "no regular file";
}

// Calls visit(entry) for each entry whose name does not begin with a dot.
template <typename Visit>
void for_each_entry(const fs::path& folder, Visit visit) {
  std::error_code code;
  for (fs::directory_iterator entry(folder, code), end; !code && entry != end; entry.increment(code)) {
    if (!entry->path().filename().string().starts_with('.')) visit(*entry);
  }
  if (code) throw Error(folder.string(), "cannot be read", code.message());
}

// The folders in a folder, in the order of their names' bytes.
std::vector<std::string> classes_in(const fs::path& part, IgnoredFiles& ignored) {
  std::vector<std::string> names;
  for_each_entry(part, [&](const fs::directory_entry& entry) {
    std::error_code code;
    if (entry.is_directory(code)) {
      names.push_back(entry.path().filename().string());
    } else {
      ignored.add(entry.path(), is_named_as_picture(entry.path()) ? "not in a folder of a class" : "not a picture");
    }
  });
  std::ranges::sort(names);
  return names;
}

// The pictures of a class and of its subfolders, as paths from the folder of the class, in the order of their bytes.
class ClassWalk {
 public:
  ClassWalk(fs::path folder, IgnoredFiles& ignored) : folder_(std::move(folder)), ignored_(ignored) {}

  std::vector<std::string> pictures() {
    walk(folder_, "");
    std::ranges::sort(names_);
    return std::move(names_);
  }

 private:
  void walk(const fs::path& folder, const std::string& prefix) {
    // A link to a folder is followed, as in torchvision, but not a link to a folder that contains it.
    struct stat status {};
    if (stat(folder.c_str(), &status) != 0) throw Error(folder.string(), "cannot be read", std::strerror(errno));
    const std::pair identity{status.st_dev, status.st_ino};
    if (std::ranges::find(open_, identity) != open_.end()) return ignored_.add(folder, "a link to a folder around it");
    open_.push_back(identity);
    for_each_entry(folder, [&](const fs::directory_entry& entry) {
      std::error_code code;
      const std::string name = entry.path().filename().string();
      const bool picture = is_named_as_picture(entry.path());
      if (!picture && entry.is_directory(code)) return walk(entry.path(), prefix + name + '/');
      if (!picture) return ignored_.add(entry.path(), "its name does not end in .jpg, .jpeg, .png or .webp");
      names_.push_back(prefix + name);
    });
    open_.pop_back();
  }

  fs::path folder_;
  IgnoredFiles& ignored_;
  std::vector<std::pair<dev_t, ino_t>> open_;  // the folders around the current one
  std::vector<std::string> names_;
};

void add_part(const fs::path& folder, const std::vector<std::string>& classes, std::string& listing,
              IgnoredFiles& ignored) {
  const auto add = [&](EntryKind kind, const std::string& text) {
    listing += static_cast<char>(kind);
    listing += text;
    listing += '\0';
  };
  add(part_entry, folder.filename().string());
  for (const std::string& name : classes) {
    add(class_entry, name);
    const std::vector<std::string> files = ClassWalk(folder / name, ignored).pictures();
    if (files.empty()) {
      throw Error((folder / name).string(), "a class without pictures (*.jpg, *.png, *.webp)",
                  "add some, or remove the folder");
    }
    for (const std::string& file : files) add(file_entry, file);
  }
}

// In one line, whatever the name of the file is.
std::string shown(const fs::path& file) {
  std::string text = file.string();
  std::ranges::replace_if(
      text, [](unsigned char c) { return std::iscntrl(c) != 0; }, '?');
  return text;
}

struct Descriptor {
  int number;
  ~Descriptor() {
    if (number >= 0) close(number);
  }
};

// Appends a file's content.
void append_file(const fs::path& file, std::vector<std::uint8_t>& bytes) {
  constexpr off_t most = off_t{1} << 30;  // no picture is as large
  const auto refuse = [&](const char* why) {
    throw ImageError(fmt::format("{}: cannot be read: {}", shown(file), why));
  };
  const auto fail = [&] { refuse(std::strerror(errno)); };
  struct stat status {};
  const Descriptor descriptor{open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};  // waits for no FIFO's writer
  if (descriptor.number < 0 || fstat(descriptor.number, &status) != 0) fail();
  if (!S_ISREG(status.st_mode)) refuse(fmt::format("it is {}", kind_of(status.st_mode)).c_str());
  if (status.st_size > most) refuse("it has more than 1 GiB");
  std::size_t done = bytes.size();
  bytes.resize(done + static_cast<std::size_t>(status.st_size));
  while (done < bytes.size()) {
    const ssize_t count = read(descriptor.number, bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail();
    if (count == 0) break;  // the file has become shorter
    done += static_cast<std::size_t>(count);
  }
  bytes.resize(done);
}

}  // namespace

bool is_image_folder(const fs::path& directory) {
  std::error_code code;
  return fs::is_directory(directory / "train", code);
}

void IgnoredFiles::add(const fs::path& file, const char* why) {
  if (count++ == 0) first = fmt::format("{}: {}", file.string(), why);
}

std::string IgnoredFiles::line() const {
  if (count == 0) return {};
  if (count == 1) return fmt::format("1 file of the data set is ignored: {}", first);
  return fmt::format("{} files of the data set are ignored, among them {}", count, first);
}

std::string list_image_folder(const fs::path& directory, IgnoredFiles* ignored_files) {
  IgnoredFiles none;
  IgnoredFiles& ignored = ignored_files != nullptr ? *ignored_files : none;
  const fs::path train = directory / "train";
  std::error_code code;
  fs::path test = directory / "val";
  if (!fs::is_directory(test, code)) test = directory / "test";
  if (!fs::is_directory(test, code)) {
    throw Error(directory.string(), "has a folder train, but neither val nor test",
                "move some pictures of each class to val");
  }
  const std::vector<std::string> classes = classes_in(train, ignored);
  if (classes.size() < 2) {
    throw Error(train.string(), classes.empty() ? "no classes" : "a single class",
                "make a folder of pictures for each class in it");
  }
  const std::vector<std::string> tested = classes_in(test, ignored);
  if (tested.empty()) throw Error(test.string(), "no classes", "it needs folders like those of train");
  for (const std::string& name : tested) {
    if (!std::ranges::binary_search(classes, name)) {
      throw Error((test / name).string(), fmt::format("a class that {} does not have", train.string()),
                  "use the same classes for training and evaluation");
    }
  }
  std::string listing;
  add_part(train, classes, listing, ignored);
  add_part(test, tested, listing, ignored);
  return listing;
}

FolderSource::FolderSource(fs::path directory, const std::string& listing, Part part, std::int64_t image_size,
                           double fraction)
    : image_size_(image_size) {
  int parts = 0;
  std::int32_t label = 0;
  for (std::size_t at = 0; at < listing.size();) {
    const std::string_view text = listing.c_str() + at + 1;
    const bool wanted = parts == (part == Part::train ? 1 : 2);
    switch (listing[at]) {
      case part_entry:
        ++parts;
        if (parts == (part == Part::train ? 1 : 2)) directory_ = directory / text;
        break;
      case class_entry:
        if (parts == 1) classes_.emplace_back(text);
        label = static_cast<std::int32_t>(std::ranges::lower_bound(classes_, text) - classes_.begin());
        break;
      default:
        if (!wanted) break;
        labels_.push_back(label);
        starts_.push_back(names_.size());
        names_.append(text.data(), text.size() + 1);
    }
    at += text.size() + 2;
  }
  if (fraction >= 1) return;
  const std::vector<std::uint32_t> kept = first_of_each_class(labels_, fraction);
  for (std::size_t i = 0; i < kept.size(); ++i) {
    labels_[i] = labels_[kept[i]];
    starts_[i] = starts_[kept[i]];
  }
  labels_.resize(kept.size());
  starts_.resize(kept.size());
}

fs::path FolderSource::path(std::size_t sample) const {
  return directory_ / classes_[static_cast<std::size_t>(labels_[sample])] / (names_.c_str() + starts_[sample]);
}

void FolderSource::prepare(std::size_t sample, const std::optional<Draw>& draw, std::span<float> out) const {
  decode(sample, draw, imagenet, out);
}

const Normalization* FolderSource::stored() const { return &imagenet; }

// The image is cropped and mirrored already and only has to be normalised.
ImageCut FolderSource::prepare_stored(std::size_t sample, const std::optional<Draw>& draw,
                                      std::span<std::uint8_t> out) const {
  thread_local std::vector<float> pixels;
  pixels.resize(values());
  decode(sample, draw, {{}, {1, 1, 1}}, pixels);
  round_to_bytes(pixels, out);
  return {};
}

void FolderSource::decode(std::size_t sample, const std::optional<Draw>& draw, const Normalization& normalization,
                          std::span<float> out) const {
  std::vector<std::uint8_t> own;
  std::span<const std::uint8_t> bytes;
  if (contents_.ends.empty()) {
    append_file(path(sample), own);
    bytes = own;
  } else {
    const std::uint64_t start = sample == 0 ? 0 : contents_.ends[sample - 1];
    bytes = std::span(contents_.bytes).subspan(start, contents_.ends[sample] - start);
  }
  try {
    const std::unique_ptr<PictureReader> picture = open_picture(bytes);
    Crop crop = centre_crop(picture->width(), picture->height());
    if (draw) {
      const Crop drawn = random_resized_crop(draw->seed, draw->epoch, sample, picture->width(), picture->height());
      if (draw->crop) crop = drawn;
      crop.flip = draw->mirror && drawn.flip;
    }
    prepare_picture(*picture, crop, image_size_, normalization, out);
  } catch (const PictureError& error) {
    throw ImageError(fmt::format("{}: {}", shown(path(sample)), error.what()));
  }
}

std::uint64_t FolderSource::bytes_on_disk(bool skip_unreadable) const {
  std::uint64_t bytes = 0;
  for (std::size_t sample = 0; sample < size(); ++sample) {
    std::error_code code;
    const std::uint64_t size = fs::file_size(path(sample), code);
    if (!code) bytes += size;
    if (code && !skip_unreadable) throw Error(path(sample).string(), "cannot be read", code.message());
  }
  return bytes;
}

FileContents FolderSource::read_all(bool skip_unreadable) const {
  FileContents all;
  all.bytes.reserve(bytes_on_disk(skip_unreadable));
  for (std::size_t sample = 0; sample < size(); ++sample) {
    const std::size_t before = all.bytes.size();
    try {
      append_file(path(sample), all.bytes);
    } catch (const ImageError&) {
      if (!skip_unreadable) throw;
      all.bytes.resize(before);
    }
    all.ends.push_back(all.bytes.size());
  }
  return all;
}

void FolderSource::keep(FileContents contents) { contents_ = std::move(contents); }

void FolderSource::check_first() const {
  if (access(path(0).c_str(), R_OK) == 0) return;
  throw Error(path(0).string(), fmt::format("rank 0 lists it, but it cannot be read here: {}", std::strerror(errno)),
              "copy the set to all hosts, or give ‹broadcast-data›");
}

}  // namespace paceline::train
