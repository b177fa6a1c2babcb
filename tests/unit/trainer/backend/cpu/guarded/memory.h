// Memory between pages that nobody may touch, and what a program did that touched one.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace paceline::train::guarded {

enum class Side { end, begin };  // which end of the memory lies right at a forbidden page

// Zeroed. It need not be aligned at Side::end, where its address follows from its size.
class Memory {
 public:
  Memory(std::string name, std::size_t bytes, Side side);
  ~Memory();
  Memory(Memory&& other) noexcept;
  Memory& operator=(Memory&&) = delete;

  void* data() const { return data_; }
  std::size_t size() const { return bytes_; }
  // "64 bytes beyond the end of NAME", or nothing where the address is not near this memory.
  std::string place(const void* address) const;

 private:
  std::string name_;
  std::size_t bytes_, mapped_;
  std::byte *region_, *data_;
};

// Ends this process, with status faulted, at its first access to memory that is not there. What happened is first
// written to `told`, 512 bytes that another process shares. `arguments` is the memory in use, and must stay where it
// is.
constexpr int faulted = 77;
void tell_faults(char* told, const std::vector<Memory>* arguments);

}  // namespace paceline::train::guarded
