// NCCL's parameter registry. Each query reads the environment again.
#include <strings.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "guard.h"
#include "problem.h"

using namespace shoal::nccl;

namespace {

enum class Kind { text, boolean, level, levels, categories };

using Names = std::vector<std::pair<const char*, uint64_t>>;

// The levels of NCCL_DEBUG. The timestamp levels are one bit each.
const Names& levelNames() {
  static const Names* names = new Names{{"VERSION", 1}, {"WARN", 2}, {"INFO", 3}, {"ABORT", 4}, {"TRACE", 5}};
  return *names;
}

const Names& levelBits() {
  static const Names* names =
      new Names{{"VERSION", 1 << 1}, {"WARN", 1 << 2}, {"INFO", 1 << 3}, {"ABORT", 1 << 4}, {"TRACE", 1 << 5}};
  return *names;
}

const Names& categoryBits() {
  static const Names* names = [] {
    auto* made = new Names;
    uint64_t bit = 1;
    for (const char* name : {"INIT", "COLL", "P2P", "SHM", "NET", "GRAPH", "TUNING", "ENV", "ALLOC", "CALL", "PROXY",
                             "NVLS", "BOOTSTRAP", "REG", "PROFILE", "RAS", "DESTROY", "ALLOC_HOST"}) {
      made->push_back({name, bit});
      bit <<= 1;
    }
    return made;
  }();
  return *names;
}

struct Parameter {
  const char* key;
  Kind kind;
  bool isPublished;
  const char* initial;  // in the syntax of the environment
};

// In NCCL's order.
constexpr Parameter kParameters[] = {
    {"NCCL_PARAM_DUMP_ALL", Kind::boolean, false, "0"},
    {"NCCL_DEBUG_FILE", Kind::text, true, ""},
    {"NCCL_DEBUG_TIMESTAMP_FORMAT", Kind::text, true, "[%F %T] "},
    {"NCCL_DEBUG_TIMESTAMP_LEVELS", Kind::levels, true, "WARN"},
    {"NCCL_NO_CACHE", Kind::text, false, ""},
    {"NCCL_SET_THREAD_NAME", Kind::boolean, true, "0"},
    {"NCCL_WARN_ENABLE_DEBUG_INFO", Kind::boolean, false, "0"},
    {"NCCL_DEBUG_SUBSYS", Kind::categories, true, "INIT,ENV,BOOTSTRAP"},
    {"NCCL_DEBUG", Kind::level, true, ""},
};

bool readBits(const Names& names, uint64_t all, const char* text, uint64_t& bits) {
  const bool isInverted = *text == '^';
  std::string rest = text + (isInverted ? 1 : 0);
  bits = 0;
  for (size_t start = 0; start <= rest.size();) {
    const size_t end = std::min(rest.find(',', start), rest.size());
    const std::string word = rest.substr(start, end - start);
    start = end + 1;
    if (strcasecmp(word.c_str(), "ALL") == 0) {
      bits |= all;
      continue;
    }
    const auto found =
        std::find_if(names.begin(), names.end(), [&](auto& each) { return strcasecmp(each.first, word.c_str()) == 0; });
    if (found == names.end()) return false;
    bits |= found->second;
  }
  if (isInverted) bits = ~bits;
  return true;
}

// Returns false for an invalid text. The parameter then has its initial value.
bool parse(const Parameter& parameter, const char* text, uint64_t& value) {
  switch (parameter.kind) {
    case Kind::text: return true;
    case Kind::boolean:
      for (const char* each : {"1", "T", "TRUE"}) {
        if (strcasecmp(text, each) == 0) return value = 1, true;
      }
      for (const char* each : {"0", "F", "FALSE"}) {
        if (strcasecmp(text, each) == 0) return value = 0, true;
      }
      return false;
    case Kind::level:
      for (auto& [name, code] : levelNames()) {
        if (strcasecmp(text, name) == 0) return value = code, true;
      }
      return false;
    case Kind::levels: return readBits(levelBits(), 0x3e, text, value);
    case Kind::categories: return readBits(categoryBits(), ~uint64_t{0}, text, value);
  }
  return false;
}

const char* textOf(const Parameter& parameter) {
  const char* text = getenv(parameter.key);
  return text == nullptr ? parameter.initial : text;
}

uint64_t valueOf(const Parameter& parameter) {
  uint64_t value = 0;
  if (!parse(parameter, textOf(parameter), value)) {
    value = 0;
    parse(parameter, parameter.initial, value);
  }
  return parameter.kind == Kind::levels ? value & 0xffffffff : value;
}

std::string joined(const Names& names, uint64_t value) {
  std::string text;
  for (auto& [name, bit] : names) {
    if ((value & bit) != 0) text += (text.empty() ? "" : ",") + std::string(name);
  }
  return text;
}

// The value as text, for any type.
std::string described(const Parameter& parameter) {
  const uint64_t value = valueOf(parameter);
  switch (parameter.kind) {
    case Kind::text: return textOf(parameter);
    case Kind::boolean: return value != 0 ? "TRUE" : "FALSE";
    case Kind::level:
      for (auto& [name, code] : levelNames()) {
        if (code == value) return name;
      }
      return "<unknown>";
    case Kind::levels: return value == 0x3e ? "ALL" : joined(levelBits(), value);
    case Kind::categories: {
      if (value == ~uint64_t{0}) return "ALL";
      // NCCL lists host allocations next to device allocations.
      Names sorted = categoryBits();
      std::rotate(sorted.begin() + 9, sorted.end() - 1, sorted.end());
      return joined(sorted, value);
    }
  }
  return "";
}

bool tellsAll() {
  uint64_t value = 0;
  const char* text = getenv("NCCL_PARAM_DUMP_ALL");
  return text != nullptr && parse(kParameters[0], text, value) && value != 0;
}

const Parameter* find(const char* key) {
  for (const Parameter& parameter : kParameters) {
    if (key != nullptr && strcmp(parameter.key, key) == 0) return &parameter;
  }
  return nullptr;
}

const Parameter* of(ncclParamHandle_t handle) {
  for (const Parameter& parameter : kParameters) {
    if (reinterpret_cast<const Parameter*>(handle) == &parameter) return &parameter;
  }
  return nullptr;
}

// The caller must ask for the parameter's own type.
template <Kind kind, class Value>
ncclResult_t get(const char* function, ncclParamHandle_t handle, Value* out) {
  const Parameter* parameter = of(handle);
  if (parameter == nullptr || out == nullptr)
    return problem(ncclInvalidArgument, "%s: the handle is none of a parameter, or out is NULL", function);
  if (parameter->kind != kind)
    return problem(ncclInvalidArgument, "%s: %s is of another type", function, parameter->key);
  *out = static_cast<Value>(valueOf(*parameter));
  return ncclSuccess;
}

template <class Value>
ncclResult_t refuse(const char* function, ncclParamHandle_t handle, Value* out) {
  const Parameter* parameter = of(handle);
  if (parameter == nullptr || out == nullptr)
    return problem(ncclInvalidArgument, "%s: the handle is none of a parameter, or out is NULL", function);
  return problem(ncclInvalidArgument, "%s: %s is of another type", function, parameter->key);
}

}  // namespace

ncclResult_t ncclParamBind(ncclParamHandle_t* out, const char* key) {
  const Parameter* parameter = find(key);
  if (out == nullptr || parameter == nullptr) {
    return problem(ncclInvalidArgument, "ncclParamBind: %s is no parameter, or out is NULL",
                   key == nullptr ? "NULL" : key);
  }
  *out = reinterpret_cast<ncclParamHandle_t>(const_cast<Parameter*>(parameter));
  return ncclSuccess;
}

ncclResult_t ncclParamGetI8(ncclParamHandle_t h, int8_t* out) { return refuse("ncclParamGetI8", h, out); }
ncclResult_t ncclParamGetI16(ncclParamHandle_t h, int16_t* out) { return refuse("ncclParamGetI16", h, out); }
ncclResult_t ncclParamGetI32(ncclParamHandle_t h, int32_t* out) { return refuse("ncclParamGetI32", h, out); }
ncclResult_t ncclParamGetI64(ncclParamHandle_t h, int64_t* out) { return refuse("ncclParamGetI64", h, out); }
ncclResult_t ncclParamGetU8(ncclParamHandle_t h, uint8_t* out) { return refuse("ncclParamGetU8", h, out); }
ncclResult_t ncclParamGetU16(ncclParamHandle_t h, uint16_t* out) { return refuse("ncclParamGetU16", h, out); }
ncclResult_t ncclParamGetU32(ncclParamHandle_t h, uint32_t* out) {
  return get<Kind::levels>("ncclParamGetU32", h, out);
}
ncclResult_t ncclParamGetU64(ncclParamHandle_t h, uint64_t* out) {
  return get<Kind::categories>("ncclParamGetU64", h, out);
}

ncclResult_t ncclParamGetStr(ncclParamHandle_t h, const char** out) {
  return guarded([&]() -> ncclResult_t {
    const Parameter* parameter = of(h);
    if (parameter == nullptr || out == nullptr)
      return problem(ncclInvalidArgument, "ncclParamGetStr: the handle is none of a parameter, or out is NULL");
    if (parameter->kind != Kind::text)
      return problem(ncclInvalidArgument, "ncclParamGetStr: %s is no text", parameter->key);
    thread_local std::string text;
    text = textOf(*parameter);
    *out = text.c_str();
    return ncclSuccess;
  });
}

ncclResult_t ncclParamGet(ncclParamHandle_t h, void* out, int maxLen, int* len) {
  return guarded([&]() -> ncclResult_t {
    const Parameter* parameter = of(h);
    if (parameter == nullptr || out == nullptr || len == nullptr || maxLen < 1) {
      return problem(ncclInvalidArgument,
                     "ncclParamGet: the handle is none of a parameter, out or len is NULL, or maxLen %d below 1",
                     maxLen);
    }
    const uint64_t value = valueOf(*parameter);
    const char* text = textOf(*parameter);
    const void* from = &value;
    size_t bytes = 0;
    switch (parameter->kind) {
      case Kind::text: from = text, bytes = strlen(text) + 1; break;
      case Kind::boolean: bytes = 1; break;
      case Kind::level:
      case Kind::levels: bytes = 4; break;
      case Kind::categories: bytes = 8; break;
    }
    *len = 0;
    if (static_cast<size_t>(maxLen) < bytes) {
      return problem(ncclInvalidArgument, "ncclParamGet: %s takes %zu bytes, there is room for %d", parameter->key,
                     bytes, maxLen);
    }
    memcpy(out, from, bytes);
    *len = static_cast<int>(bytes);
    return ncclSuccess;
  });
}

ncclResult_t ncclParamGetParameter(const char* key, const char** value, int* valueLen) {
  return guarded([&]() -> ncclResult_t {
    const Parameter* parameter = find(key);
    if (parameter == nullptr || value == nullptr || valueLen == nullptr) {
      return problem(ncclInvalidArgument, "ncclParamGetParameter: %s is no parameter, or value or valueLen is NULL",
                     key == nullptr ? "NULL" : key);
    }
    thread_local std::string text;
    text = described(*parameter);
    *value = text.c_str();
    *valueLen = static_cast<int>(text.size());
    return ncclSuccess;
  });
}

ncclResult_t ncclParamGetAllParameterKeys(const char*** table, int* tableLen) {
  return guarded([&]() -> ncclResult_t {
    if (table == nullptr || tableLen == nullptr)
      return problem(ncclInvalidArgument, "ncclParamGetAllParameterKeys: table or tableLen is NULL");
    thread_local std::vector<const char*> keys;
    keys.clear();
    for (const Parameter& parameter : kParameters) {
      if (parameter.isPublished || tellsAll()) keys.push_back(parameter.key);
    }
    *table = keys.data();
    *tableLen = static_cast<int>(keys.size());
    return ncclSuccess;
  });
}

void ncclParamDumpAll(void) {
  guarded([] {
    for (const Parameter& parameter : kParameters) {
      if (!parameter.isPublished && !tellsAll()) continue;
      const bool isSet = getenv(parameter.key) != nullptr;
      printf("%s = %s (%s)\n", parameter.key, described(parameter).c_str(),
             isSet ? "from the environment" : "by default");
    }
    fflush(stdout);
    return ncclSuccess;
  });
}

// The software device does not log, so there are no settings to read again.
void ncclResetDebugInit(void) {}
void ncclResetDebugInitInternal(void) {}
