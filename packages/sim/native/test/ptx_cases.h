// Kernels of one instruction each. Their results for thousands of operands are compared with a reference.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "check.h"

namespace cases {

using Reference = std::function<uint64_t(uint64_t a, uint64_t b, uint64_t c)>;
using Agrees = std::function<bool(uint64_t got, uint64_t want)>;

struct Case {
  std::string text;        // uses %d, %a, %b, %c and the predicate %p
  std::string d, a, b, c;  // types of the registers in loads and stores
  Reference reference;
  Agrees agrees;  // empty: compare the bits
  bool isEmulated =
      false;  // no current GPU has the instruction, and compilers' replacements differ from the specification
};

constexpr int kCount = 3072;

inline float toF32(uint64_t bits) {
  const auto low = static_cast<uint32_t>(bits);
  float v;
  memcpy(&v, &low, 4);
  return v;
}
inline double toF64(uint64_t bits) {
  double v;
  memcpy(&v, &bits, 8);
  return v;
}
inline uint64_t bitsF32(float v) {
  uint32_t b;
  memcpy(&b, &v, 4);
  return std::isnan(v) ? 0x7fffffff : b;
}
inline uint64_t bitsF64(double v) {
  uint64_t b;
  memcpy(&b, &v, 8);
  return b;
}
inline unsigned bytesOf(const std::string& type) { return static_cast<unsigned>(std::stoi(type.substr(1))) / 8; }
inline uint64_t masked(uint64_t bits, unsigned bytes) {
  return bytes == 8 ? bits : bits & ((uint64_t{1} << 8 * bytes) - 1);
}
inline bool sameF64(uint64_t got, uint64_t want) {
  return got == want || (std::isnan(toF64(got)) && std::isnan(toF64(want)));
}

// Half of the operands are corner cases: of integers, and of floats of each size.
inline std::vector<uint64_t> operands(unsigned seed) {
  static const uint64_t corners[] = {0,
                                     1,
                                     2,
                                     3,
                                     5,
                                     7,
                                     8,
                                     15,
                                     16,
                                     31,
                                     32,
                                     33,
                                     63,
                                     64,
                                     65,
                                     127,
                                     128,
                                     255,
                                     256,
                                     0x7fff,
                                     0x8000,
                                     0xffff,
                                     0x10000,
                                     0x7fffffff,
                                     0x80000000,
                                     0x80000001,
                                     0xffffffff,
                                     0xfffffffe,
                                     0x7fffffffffffffff,
                                     0x8000000000000000,
                                     0xffffffffffffffff,
                                     0xfffffffffffffffe,
                                     0x3c00,
                                     0xbc00,
                                     0x7c00,
                                     0xfc00,
                                     0x7bff,
                                     0x0001,
                                     0x03ff,
                                     0x0400,
                                     0x7e00,
                                     0x3f80,
                                     0x7f80,
                                     0xff80,
                                     0x3f800000,
                                     0xbf800000,
                                     0x7f800000,
                                     0xff800000,
                                     0x7fc00000,
                                     0x7f7fffff,
                                     0x00800000,
                                     0x007fffff,
                                     0x80000001,
                                     0x3f000000,
                                     0x40490fdb,
                                     0x4f000000,
                                     0xcf000000,
                                     0x4f7fffff,
                                     0x5f000000,
                                     0x3effffff,
                                     0x3f000001,
                                     0x477fe000,
                                     0x33000000,
                                     0x3ff0000000000000,
                                     0xbff0000000000000,
                                     0x7ff0000000000000,
                                     0xfff0000000000000,
                                     0x7ff8000000000000,
                                     0x000fffffffffffff,
                                     0x0010000000000000,
                                     0x7fefffffffffffff,
                                     0x41dfffffffc00000,
                                     0x41e0000000000000,
                                     0xc1e0000000000000,
                                     0x43e0000000000000,
                                     0x3fe0000000000000,
                                     0x3810000000000000};
  std::mt19937_64 random(seed);
  std::vector<uint64_t> all(kCount);
  for (uint64_t& each : all) {
    const uint64_t kind = random() % 6;
    if (kind < 2) each = corners[random() % (sizeof corners / sizeof *corners)];
    else if (kind == 2) each = random() >> random() % 64;
    else if (kind == 3) each = bitsF32(static_cast<float>(static_cast<int64_t>(random()) >> random() % 60) * 0.37f);
    else if (kind == 4) each = bitsF64(static_cast<double>(static_cast<int64_t>(random()) >> random() % 60) * 0.37);
    else each = random();
  }
  return all;
}

inline std::string kernel(const Case& each, size_t index) {
  const std::string name = "k" + std::to_string(index);
  std::string text = ".visible .entry " + name +
                     "(.param .u64 pd, .param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u32 n)\n{\n";
  text += ".reg .pred %p, %q, %end; .reg .b32 %i, %x, %y, %n, %e; .reg .b64 %at, %offset, %low; .reg .b16 %h;\n";
  text += ".reg ." + each.d + " %d; .reg ." + each.a + " %a; .reg ." + each.b + " %b; .reg ." + each.c + " %c;\n";
  text +=
      "mov.u32 %x, %ctaid.x; mov.u32 %y, %ntid.x; mov.u32 %i, %tid.x; mad.lo.u32 %i, %x, %y, %i; ld.param.u32 %n, "
      "[n];\n";
  text += "setp.ge.u32 %end, %i, %n;\n@%end ret;\nmul.wide.u32 %offset, %i, 8;\n";
  for (const char* operand : {"a", "b", "c"}) {
    const std::string& type = *operand == 'a' ? each.a : *operand == 'b' ? each.b : each.c;
    text += std::string("ld.param.u64 %at, [p") + operand + "]; add.u64 %at, %at, %offset; ld.global." + type + " %" +
            operand + ", [%at];\n";
  }
  return text + each.text + "\nld.param.u64 %at, [pd]; add.u64 %at, %at, %offset; st.global." + each.d +
         " [%at], %d;\nret;\n}\n";
}

struct Loaded {
  CUresult status;
  CUmodule module;
  std::string log;
};

inline Loaded tryLoad(const std::string& text) {
  char log[400] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  CUmodule module = nullptr;
  const CUresult status = cuModuleLoadDataEx(&module, text.c_str(), 2, options, values);
  return {status, module, log};
}

inline CUmodule load(const std::string& text) {
  const Loaded loaded = tryLoad(text);
  if (loaded.status != CUDA_SUCCESS) throw check::Failure("not loaded: " + loaded.log);
  return loaded.module;
}

const std::string kHead = ".version 8.6\n.target sm_90\n.address_size 64\n";

// The module of each kernel. One module for all, or, if a GPU lacks some forms, one per form that it has.
inline std::vector<CUmodule> loadAll(const std::vector<std::string>& kernels) {
  std::string text = kHead;
  for (const std::string& each : kernels) text += each;
  const Loaded whole = tryLoad(text);
  if (whole.status == CUDA_SUCCESS) return std::vector<CUmodule>(kernels.size(), whole.module);
  if (!check::isOnHardware()) throw check::Failure("not loaded: " + whole.log);
  std::vector<CUmodule> modules;
  size_t missing = 0;
  for (const std::string& each : kernels) {
    const Loaded loaded = tryLoad(kHead + each);
    if (loaded.status != CUDA_SUCCESS && loaded.status != CUDA_ERROR_INVALID_PTX)
      throw check::Failure("not loaded: " + loaded.log);
    modules.push_back(loaded.module);
    if (loaded.module == nullptr) ++missing;
  }
  printf("%zu of %zu forms are not of this GPU\n", missing, kernels.size());
  if (missing == kernels.size()) throw check::Skip("this GPU has none of the forms");
  return modules;
}

inline CUresult launch(CUmodule module, const std::string& name, unsigned blocks, unsigned threads,
                       std::vector<void*> parameters) {
  CUfunction function = nullptr;
  OK(cuModuleGetFunction(&function, module, name.c_str()));
  OK(cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, nullptr, parameters.data(), nullptr));
  return cuCtxSynchronize();
}

template <class T>
std::vector<T> read(CUdeviceptr from, size_t count) {
  std::vector<T> out(count);
  OK(cuMemcpyDtoH_v2(out.data(), from, count * sizeof(T)));
  return out;
}

inline void run(const std::vector<Case>& all) {
  check::Primary primary;
  std::vector<std::string> kernels;
  for (size_t index = 0; index < all.size(); ++index) kernels.push_back(kernel(all[index], index));
  const std::vector<CUmodule> modules = loadAll(kernels);
  CUdeviceptr memory[4];
  for (auto& each : memory) each = check::memory(kCount * 8);
  const std::vector<uint64_t> inputs[3] = {operands(1), operands(2), operands(3)};
  for (int index = 0; index < 3; ++index) OK(cuMemcpyHtoD_v2(memory[index + 1], inputs[index].data(), kCount * 8));
  std::string wrong;
  int failures = 0, otherwise = 0;
  for (size_t index = 0; index < all.size(); ++index) {
    if (modules[index] == nullptr) continue;
    const Case& each = all[index];
    CUfunction function = nullptr;
    OK(cuModuleGetFunction(&function, modules[index], ("k" + std::to_string(index)).c_str()));
    OK(cuMemsetD8_v2(memory[0], 0, kCount * 8));
    unsigned count = kCount - 5;  // the last warp is incomplete
    void* parameters[] = {&memory[0], &memory[1], &memory[2], &memory[3], &count};
    OK(cuLaunchKernel(function, (kCount + 127) / 128, 1, 1, 128, 1, 1, 0, nullptr, parameters, nullptr));
    OK(cuCtxSynchronize());
    std::vector<uint64_t> out(kCount);
    OK(cuMemcpyDtoH_v2(out.data(), memory[0], kCount * 8));
    unsigned differing = 0;
    std::string first;
    for (unsigned at = 0; at < count; ++at) {
      const uint64_t a = masked(inputs[0][at], bytesOf(each.a)), b = masked(inputs[1][at], bytesOf(each.b)),
                     c = masked(inputs[2][at], bytesOf(each.c));
      const uint64_t want = masked(each.reference(a, b, c), bytesOf(each.d)), got = out[at];
      if (each.agrees ? each.agrees(got, want) : got == want) continue;
      if (++differing > 1) continue;
      char line[400];
      snprintf(line, sizeof line, "\n%s: a %llx b %llx c %llx: got %llx, want %llx", each.text.c_str(),
               static_cast<unsigned long long>(a), static_cast<unsigned long long>(b),
               static_cast<unsigned long long>(c), static_cast<unsigned long long>(got),
               static_cast<unsigned long long>(want));
      first = line;
    }
    if (differing != 0 && each.isEmulated && check::isOnHardware()) ++otherwise;
    else if (differing != 0 && ++failures <= 30)
      wrong += first + "; " + std::to_string(differing) + " of " + std::to_string(count) + " differ";
  }
  for (auto each : memory) OK(cuMemFree_v2(each));
  CUmodule last = nullptr;
  for (CUmodule each : modules) {
    if (each != nullptr && each != last) OK(cuModuleUnload(each));
    last = each;
  }
  if (otherwise != 0)
    printf("%d of %zu forms are not what the instruction set says: the compiler emulates them\n", otherwise,
           all.size());
  if (!wrong.empty()) throw check::Failure(wrong);
}

}  // namespace cases
