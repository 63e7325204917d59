#include "archive.h"

#include <elf.h>

#include <cstdlib>
#include <cstring>

#include "image.h"

namespace shoal {

namespace {

constexpr char kArchiveMagic[] = "!<arch>\n";
constexpr size_t kArchiveMagicBytes = 8, kMemberHeaderBytes = 60, kSizeAt = 48, kSizeBytes = 10;
constexpr uint16_t kCudaMachine = 190;

// True if `count` items of `size` bytes from `offset` fit into `available` bytes.
bool isWithin(uint64_t offset, uint64_t count, uint64_t size, uint64_t available) {
  uint64_t bytes;
  return !__builtin_mul_overflow(count, size, &bytes) && offset <= available && bytes <= available - offset;
}

template <class T>
T read(const char* object, uint64_t offset) {
  T value;
  memcpy(&value, object + offset, sizeof value);
  return value;
}

// A section contains fat binaries one after the other, each at a multiple of 8 bytes.
CUresult readSection(const char* section, uint64_t size, std::vector<std::string>& all, std::string& problem) {
  for (uint64_t at = 0; size - at >= 16;) {
    if (read<uint32_t>(section, at) != kFatbinMagic) {
      at += 8;
      continue;
    }
    const uint64_t bytes = read<uint64_t>(section, at + 8) + read<uint16_t>(section, at + 6);
    if (bytes < 16 || bytes > size - at) return CUDA_ERROR_INVALID_IMAGE;
    // Zeroes replace the missing bytes if the data is shorter than its header.
    std::string fatbin(section + at, bytes), text;
    fatbin.append(64, '\0');
    if (const CUresult status = findPtx(fatbin.data(), fatbin.size(), text, problem)) return status;
    all.push_back(std::move(text));
    at += (bytes + 7) / 8 * 8;
    if (at > size) break;
  }
  return CUDA_SUCCESS;
}

CUresult readObject(const char* object, uint64_t size, std::vector<std::string>& all, std::string& problem) {
  if (size < sizeof(Elf64_Ehdr)) return CUDA_ERROR_INVALID_IMAGE;
  const auto header = read<Elf64_Ehdr>(object, 0);
  if (header.e_shentsize != sizeof(Elf64_Shdr) || !isWithin(header.e_shoff, header.e_shnum, sizeof(Elf64_Shdr), size) ||
      header.e_shstrndx >= header.e_shnum)
    return CUDA_ERROR_INVALID_IMAGE;
  auto section = [&](unsigned index) { return read<Elf64_Shdr>(object, header.e_shoff + index * sizeof(Elf64_Shdr)); };
  const Elf64_Shdr names = section(header.e_shstrndx);
  if (!isWithin(names.sh_offset, names.sh_size, 1, size)) return CUDA_ERROR_INVALID_IMAGE;
  for (unsigned index = 0; index < header.e_shnum; ++index) {
    const Elf64_Shdr each = section(index);
    if (each.sh_name >= names.sh_size) return CUDA_ERROR_INVALID_IMAGE;
    const char* name = object + names.sh_offset + each.sh_name;
    const std::string_view text(name, strnlen(name, names.sh_size - each.sh_name));
    // Relocatable device code uses the second name.
    if (text != ".nv_fatbin" && text != "__nv_relfatbin") continue;
    if (each.sh_type == SHT_NOBITS || !isWithin(each.sh_offset, each.sh_size, 1, size)) return CUDA_ERROR_INVALID_IMAGE;
    if (const CUresult status = readSection(object + each.sh_offset, each.sh_size, all, problem)) return status;
  }
  return CUDA_SUCCESS;
}

bool isObject(const char* bytes, uint64_t size) {
  return size >= sizeof(Elf64_Ehdr) && memcmp(bytes, ELFMAG, SELFMAG) == 0 && bytes[EI_CLASS] == ELFCLASS64 &&
         bytes[EI_DATA] == ELFDATA2LSB && read<Elf64_Ehdr>(bytes, 0).e_machine != kCudaMachine;
}

}  // namespace

bool isArchive(const std::string& bytes) { return bytes.compare(0, kArchiveMagicBytes, kArchiveMagic) == 0; }
bool isHostObject(const std::string& bytes) { return isObject(bytes.data(), bytes.size()); }

CUresult findPtxInObject(const std::string& bytes, std::vector<std::string>& all, std::string& problem) {
  if (const CUresult status = readObject(bytes.data(), bytes.size(), all, problem)) return status;
  if (!all.empty()) return CUDA_SUCCESS;
  problem = "the object has no code for a device";
  return CUDA_ERROR_INVALID_IMAGE;
}

CUresult findPtxInArchive(const std::string& bytes, std::vector<std::string>& all, std::string& problem) {
  for (size_t at = kArchiveMagicBytes; bytes.size() - at >= kMemberHeaderBytes;) {
    char digits[kSizeBytes + 1] = {};
    memcpy(digits, bytes.data() + at + kSizeAt, kSizeBytes);
    char* end = nullptr;
    const uint64_t size = strtoull(digits, &end, 10);
    at += kMemberHeaderBytes;
    if (end == digits || size > bytes.size() - at) return CUDA_ERROR_INVALID_IMAGE;
    if (isObject(bytes.data() + at, size)) {
      if (const CUresult status = readObject(bytes.data() + at, size, all, problem)) return status;
    }
    at += size + size % 2;
    if (at > bytes.size()) break;
  }
  return CUDA_SUCCESS;
}

}  // namespace shoal
