// Device code in object files for the host, and in archives of those (libcudadevrt.a, libnvshmem_device.a).
#pragma once

#include <string>
#include <vector>

#include "shoal/cuda.h"

namespace shoal {

bool isArchive(const std::string& bytes);
bool isHostObject(const std::string& bytes);

// The PTX of each fat binary in them. An archive may have none, an object not: `problem` says so.
CUresult findPtxInArchive(const std::string& bytes, std::vector<std::string>& all, std::string& problem);
CUresult findPtxInObject(const std::string& bytes, std::vector<std::string>& all, std::string& problem);

}  // namespace shoal
