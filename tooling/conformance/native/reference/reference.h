// Shared by the parts of the program. Each part returns the values of a case as the fields of a JSON object.
#pragma once

#include <cuda.h>

#include <map>
#include <string>

#include "json.h"

// Thrown when the driver refuses a call.
struct Refused {
  CUresult code;
};

inline void check(CUresult code) {
  if (code != CUDA_SUCCESS) throw Refused{code};
}

inline std::string refusal(CUresult code) {
  const char* name = nullptr;
  if (cuGetErrorName(code, &name) != CUDA_SUCCESS) name = "unknown";
  return Fields().add("refused", name).str();
}

// Returns the JSON of `ask`'s result, or of the driver's refusal.
template <class Ask>
std::string attempt(Ask ask) {
  try {
    return ask();
  } catch (const Refused& refused) {
    return refusal(refused.code);
  }
}

template <class Get>
std::string attemptInt(Get get) {
  return attempt([&] {
    int value = 0;
    check(get(&value));
    return json(value);
  });
}

inline CUdevice device = 0;

// Returns a kernel of PTX. Each PTX is loaded once.
CUfunction kernelOf(const std::string& ptx, const std::string& name);

// Returns the value of a name in the header of this build. Throws if the header lacks the name.
int codeOf(const char* what, const std::string& name);

std::string graphCase(const Json& given);
std::string kernelCase(const Json& given);
std::string occupancyCase(const Json& given);
std::string textureCase(const Json& given);
std::string tensorMapCase(const Json& given);
std::string splitCase(const Json& given);
std::string deviceCase(const Json& given);
std::string streamCase(const Json& given);
std::string poolCase(const Json& given);
