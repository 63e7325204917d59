#include "image.h"

#include "core/report.h"
#include "module/compression.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

namespace shoal {

namespace {

constexpr uint32_t kElfMagic = 0x464c457f;
constexpr uint32_t kFatbinWrapperMagic = 0x466243b1;
constexpr char kAddPtx[] =
    "the Shoal software device runs PTX, and the image has machine code only: add PTX to it (nvcc -gencode "
    "arch=compute_75,code=compute_75)";

// Skips blanks and comments. A NUL ends the text.
const char* skipBlanks(const char* at) {
  for (;;) {
    if (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\n') {
      ++at;
    } else if (at[0] == '/' && at[1] == '/') {
      while (*at != '\0' && *at != '\n') ++at;
    } else if (at[0] == '/' && at[1] == '*') {
      const char* end = strstr(at + 2, "*/");
      if (end == nullptr) return at;
      at = end + 2;
    } else {
      return at;
    }
  }
}

// The machine that an ELF image names, or 0 if the header is invalid.
unsigned machineOf(const char* elf) {
  if (elf[4] != 2 || elf[5] != 1 || elf[6] != 1) return 0;  // only 64-bit, little-endian, version 1 is supported
  uint16_t machine = 0;
  memcpy(&machine, elf + 18, sizeof machine);
  return machine;
}

template <class T>
T read(const uint8_t* at) {
  T value;
  memcpy(&value, at, sizeof value);
  return value;
}

// Searches the entries of a fat binary. The first entry with readable PTX wins.
CUresult findInFatbin(const uint8_t* fatbin, size_t available, std::string& ptx, std::string& problem) {
  constexpr uint16_t kPtx = 1;
  constexpr uint64_t kLz4 = 0x2000, kZstd = 0x8000;
  constexpr size_t kMost = size_t{1} << 30;
  const uint16_t header = read<uint16_t>(fatbin + 6);
  const uint64_t total = read<uint64_t>(fatbin + 8);
  if (available != SIZE_MAX && (available < header || total > available - header)) return CUDA_ERROR_INVALID_IMAGE;
  for (uint64_t at = 0; at + 64 <= total;) {
    const uint8_t* entry = fatbin + header + at;
    const uint32_t entryHeader = read<uint32_t>(entry + 4);
    const uint64_t size = read<uint64_t>(entry + 8), flags = read<uint64_t>(entry + 40);
    if (entryHeader < 64 || entryHeader > total - at || size > total - at - entryHeader)
      return CUDA_ERROR_INVALID_IMAGE;
    if (read<uint16_t>(entry) == kPtx) {
      const uint64_t packed = read<uint32_t>(entry + 16), whole = read<uint64_t>(entry + 56);
      const uint8_t* content = entry + entryHeader;
      ptx.clear();
      if ((flags & (kZstd | kLz4)) == 0) {
        ptx.assign(reinterpret_cast<const char*>(content), size);
      } else if (packed > size || whole >= kMost) {
        return CUDA_ERROR_INVALID_IMAGE;
      } else if ((flags & kLz4) != 0) {
        if (!unpackLz4(content, packed, ptx, whole)) return CUDA_ERROR_INVALID_IMAGE;
      } else if (!hasZstd()) {
        problem =
            "the PTX of the fat binary is compressed by zstd: install libzstd.so.1, or build with nvcc "
            "--compress-mode=speed";
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
      } else if (!unpackZstd(content, packed, ptx, whole)) {
        return CUDA_ERROR_INVALID_IMAGE;
      }
      ptx.resize(strnlen(ptx.data(), ptx.size()));
      return CUDA_SUCCESS;
    }
    at += entryHeader + size;
  }
  problem = kAddPtx;
  return CUDA_ERROR_NO_BINARY_FOR_GPU;
}

}  // namespace

void writeErrorLog(const JitOptions& options, const std::string& message) {
  char* buffer = nullptr;
  size_t size = 0;
  void** sizeSlot = nullptr;
  for (unsigned index = 0; index < options.count; ++index) {
    if (options.names[index] == CU_JIT_ERROR_LOG_BUFFER) buffer = static_cast<char*>(options.values[index]);
    if (options.names[index] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) {
      size = reinterpret_cast<size_t>(options.values[index]) & 0xffffffffu;
      sizeSlot = &options.values[index];
    }
  }
  if (buffer == nullptr || size == 0) return;
  const int length = snprintf(buffer, size, "%s", message.c_str());
  if (sizeSlot != nullptr) *sizeSlot = reinterpret_cast<void*>(std::min<size_t>(static_cast<size_t>(length), size - 1));
}

CUresult refuse(const JitOptions& options, CUresult status, const std::string& problem) {
  if (problem.empty()) return status;
  writeErrorLog(options, problem);
  logError(problem);
  return status;
}

CUresult findPtx(const void* data, size_t available, std::string& ptx, std::string& problem) {
  constexpr unsigned kCudaMachine = 190;
  const auto* image = static_cast<const char*>(data);
  // Images have no length. Text ends with a NUL, and bytes after the NUL must not be read.
  uint32_t magic = 0;
  if (strnlen(image, sizeof magic) == sizeof magic) memcpy(&magic, image, sizeof magic);
  if (magic == kElfMagic) {
    if (machineOf(image) != kCudaMachine) return CUDA_ERROR_INVALID_IMAGE;
    problem = kAddPtx;
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
  }
  if (magic == kFatbinWrapperMagic) {
    // This header contains a pointer, so it cannot come from a file.
    if (available != SIZE_MAX) return CUDA_ERROR_INVALID_IMAGE;
    const auto* inner = read<const uint8_t*>(reinterpret_cast<const uint8_t*>(image) + 8);
    return inner == nullptr || read<uint32_t>(inner) != kFatbinMagic ? CUDA_ERROR_INVALID_IMAGE
                                                                     : findInFatbin(inner, available, ptx, problem);
  }
  if (magic == kFatbinMagic) return findInFatbin(reinterpret_cast<const uint8_t*>(image), available, ptx, problem);
  if (strncmp(skipBlanks(image), ".version", 8) != 0) return CUDA_ERROR_INVALID_IMAGE;
  ptx = image;
  return CUDA_SUCCESS;
}

CUresult readFile(const char* name, std::string& bytes) {
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::ifstream file(name, std::ios::binary);
  std::stringstream image;
  if (!file || !(image << file.rdbuf())) return CUDA_ERROR_FILE_NOT_FOUND;
  bytes = image.str();
  return CUDA_SUCCESS;
}

CUresult findPtxInFile(const char* name, std::string& ptx, std::string& problem) {
  std::string bytes;
  if (const CUresult status = readFile(name, bytes)) return status;
  // Zeroes replace the missing bytes if the data is shorter than its header.
  bytes.append(64, '\0');
  return findPtx(bytes.data(), bytes.size(), ptx, problem);
}

}  // namespace shoal
