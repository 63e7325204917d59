// Kernels of one matrix instruction, and the positions of matrix elements according to the PTX specification.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "ptx_cases.h"

namespace matrices {

struct At {
  int row, column;
};
using Where = std::function<At(int lane, int i)>;

// The operands as in each lane's registers, in 32-bit words. A block has one warp.
struct Run {
  std::string instruction;  // uses {D}, {A}, {B} and {C}
  int d, a, b, c;           // numbers of registers
  bool isWide = false;      // 64-bit elements
};

inline std::string list(const char* name, int count) {
  std::string text = "{";
  for (int index = 0; index < count; ++index)
    text += (index == 0 ? "%" : ", %") + std::string(name) + std::to_string(index);
  return text + "}";
}

inline std::string kernel(const Run& run, size_t index) {
  const std::string type = run.isWide ? "b64" : "b32";
  std::string text = ".visible .entry k" + std::to_string(index) +
                     "(.param .u64 pd, .param .u64 pa, .param .u64 pb, .param .u64 pc)\n{\n";
  text += ".reg .b32 %i, %x, %y; .reg .b64 %at, %o; .reg ." + type + " %d<" + std::to_string(run.d) + ">, %a<" +
          std::to_string(run.a) + ">, %b<" + std::to_string(run.b) + ">, %c<" + std::to_string(run.c) + ">;\n";
  text += "mov.u32 %x, %ctaid.x; mov.u32 %i, %tid.x; mad.lo.u32 %i, %x, 32, %i;\n";
  const int bytes = run.isWide ? 8 : 4;
  auto each = [&](const char* name, int count, bool isStore) {
    text += std::string("ld.param.u64 %at, [p") + name + "]; mul.wide.u32 %o, %i, " + std::to_string(count * bytes) +
            "; add.u64 %at, %at, %o;\n";
    for (int at = 0; at < count; ++at) {
      const std::string reg = "%" + std::string(name) + std::to_string(at),
                        place = "[%at+" + std::to_string(at * bytes) + "]";
      text += isStore ? "st.global." + type + " " + place + ", " + reg + ";\n"
                      : "ld.global." + type + " " + reg + ", " + place + ";\n";
    }
  };
  each("a", run.a, false);
  each("b", run.b, false);
  each("c", run.c, false);
  std::string instruction = run.instruction;
  for (auto& [mark, what] : std::vector<std::pair<std::string, std::string>>{{"{D}", list("d", run.d)},
                                                                             {"{A}", list("a", run.a)},
                                                                             {"{B}", list("b", run.b)},
                                                                             {"{C}", list("c", run.c)}}) {
    const size_t at = instruction.find(mark);
    if (at != std::string::npos) instruction.replace(at, 3, what);
  }
  text += instruction + "\n";
  each("d", run.d, true);
  return text + "ret;\n}\n";
}

// Runs the kernel and returns its results.
inline std::vector<uint32_t> launch(CUmodule module, size_t index, const Run& run, unsigned warps,
                                    const std::vector<uint32_t>& a, const std::vector<uint32_t>& b,
                                    const std::vector<uint32_t>& c) {
  CUfunction function = nullptr;
  OK(cuModuleGetFunction(&function, module, ("k" + std::to_string(index)).c_str()));
  std::vector<uint32_t> out(warps * 32 * static_cast<size_t>(run.d) * (run.isWide ? 2 : 1));
  const std::vector<uint32_t>* inputs[] = {&out, &a, &b, &c};
  CUdeviceptr memory[4];
  void* parameters[4];
  for (int at = 0; at < 4; ++at) {
    memory[at] = check::memory(inputs[at]->size() * 4);
    OK(cuMemcpyHtoD_v2(memory[at], inputs[at]->data(), inputs[at]->size() * 4));
    parameters[at] = &memory[at];
  }
  OK(cuLaunchKernel(function, warps, 1, 1, 32, 1, 1, 0, nullptr, parameters, nullptr));
  OK(cuCtxSynchronize());
  OK(cuMemcpyDtoH_v2(out.data(), memory[0], out.size() * 4));
  for (auto each : memory) OK(cuMemFree_v2(each));
  return out;
}

inline const std::string kHead = ".version 8.7\n.target sm_90a\n.address_size 64\n";

}  // namespace matrices
