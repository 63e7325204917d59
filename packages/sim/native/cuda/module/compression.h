// The compression formats that nvcc uses in fat binaries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace shoal {

// Unpacks an LZ4 block of at most `most` bytes. Returns false if the data is not valid.
bool unpackLz4(const uint8_t* from, size_t size, std::string& to, size_t most);

// True if libzstd is installed on this machine.
bool hasZstd();

// Unpacks zstd frames, with the same rules.
bool unpackZstd(const uint8_t* from, size_t size, std::string& to, size_t most);

}  // namespace shoal
