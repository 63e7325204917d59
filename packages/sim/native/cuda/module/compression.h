// How nvcc compresses what is in a fat binary.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace shoal {

// A block of LZ4, of at most `most` bytes when unpacked. False for what is none.
bool unpackLz4(const uint8_t* from, size_t size, std::string& to, size_t most);

// Whether this machine has the library that unpacks zstd.
bool hasZstd();

// The same for frames of zstd.
bool unpackZstd(const uint8_t* from, size_t size, std::string& to, size_t most);

}  // namespace shoal
