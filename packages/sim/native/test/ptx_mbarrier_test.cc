// mbarrier, checked against a model.
#include "ptx_cases.h"

using cases::kHead, cases::launch, cases::read;

namespace {

// The behaviour of a barrier according to the PTX specification.
struct Model {
  int64_t pending = 0, expected = 0, bytes = 0;
  int phase = 0;
  void settle() {
    if (pending != 0 || bytes != 0) return;
    pending = expected;
    ++phase;
  }
};

}  // namespace

TEST(barriers_count_as_their_model) {
  check::Primary primary;
  std::mt19937 random(17);
  constexpr int kKernels = 60, kSteps = 120;
  std::string text = kHead;
  std::vector<std::vector<uint32_t>> wanted;
  for (int kernel = 0; kernel < kKernels; ++kernel) {
    text += ".visible .entry k" + std::to_string(kernel) +
            "(.param .u64 po)\n{\n.shared .align 8 .b64 bar;\n.reg .b64 %t, %a, %st, %old; .reg .b32 %r; .reg .pred "
            "%p;\nld.param.u64 %t, [po]; mov.u64 %a, bar; mov.u64 %old, 0;\n";
    const bool isGeneric = kernel % 3 == 0;
    if (isGeneric) text += "cvta.shared.u64 %a, %a;\n";
    const std::string space = isGeneric ? "" : kernel % 3 == 1 ? ".shared" : ".shared::cta";
    const std::string blockSpace = space == ".shared" ? ".shared::cta" : space;
    std::vector<uint32_t> want;
    Model model;
    auto write = [&](const std::string& reg, uint32_t value) {
      text += "st.global.u32 [%t+" + std::to_string(4 * want.size()) + "], " + reg + ";\n";
      want.push_back(value);
    };
    auto number = [&](int64_t most) { return static_cast<int64_t>(random() % static_cast<uint64_t>(most)) + 1; };
    auto isEnded = [&](const std::string& instruction, bool is) {
      text += instruction + " selp.u32 %r, 1, 0, %p;\n";
      write("%r", is ? 1 : 0);
    };
    const int64_t most = kernel % 5 == 0 ? 1048575 : 12;
    model.pending = model.expected = number(most);
    text += "mbarrier.init" + space + ".b64 [%a], " + std::to_string(model.expected) + ";\n";
    int tokenPhase = -1;
    for (int step = 0; step < kSteps && model.expected > 0; ++step) {
      switch (random() % 8) {
        case 0:
        case 1: {
          const int64_t count = number(model.pending);
          const bool isDrop = random() % 8 == 0 && model.expected > count;
          text += std::string(isDrop              ? "mbarrier.arrive_drop"
                              : random() % 2 == 0 ? "mbarrier.arrive.release.cta"
                                                  : "mbarrier.arrive") +
                  space + ".b64 %st, [%a], " + std::to_string(count) + ";\nmbarrier.pending_count.b64 %r, %st;\n";
          write("%r", static_cast<uint32_t>(model.pending));
          tokenPhase = model.phase;
          model.pending -= count;
          if (isDrop) model.expected -= count;
          break;
        }
        case 2: {
          // The last arrival would end the phase, which this operation must not do.
          if (model.pending < 2) continue;
          const int64_t count = number(model.pending - 1);
          text += "mbarrier.arrive.noComplete" + space + ".b64 %st, [%a], " + std::to_string(count) + ";\n";
          tokenPhase = model.phase;
          model.pending -= count;
          break;
        }
        case 3: {
          const int64_t bytes = number(model.bytes > 500000 ? 1 : 4096);
          if (random() % 2 == 0) {
            text += "mbarrier.expect_tx.relaxed.cta" + blockSpace + ".b64 [%a], " + std::to_string(bytes) + ";\n";
            model.bytes += bytes;
          } else {
            text += "mbarrier.arrive.expect_tx" + space + ".b64 %st, [%a], " + std::to_string(bytes) + ";\n";
            tokenPhase = model.phase;
            model.bytes += bytes;
            model.pending -= 1;
          }
          break;
        }
        case 4:
        case 5:
          if (model.bytes == 0) continue;
          {
            const int64_t bytes = random() % 2 == 0 ? model.bytes : number(model.bytes);
            text += "mbarrier.complete_tx.relaxed.cta" + blockSpace + ".b64 [%a], " + std::to_string(bytes) + ";\n";
            model.bytes -= bytes;
          }
          break;
        case 6:
          text += "mbarrier.test_wait.parity" + space + ".b64 %p, [%a], 0;\n";
          isEnded("", model.phase % 2 != 0);
          text += "mbarrier.try_wait.parity" + space + ".b64 %p, [%a], 1" + (random() % 2 == 0 ? ", 100" : "") + ";\n";
          if (model.phase % 2 != 0) text.resize(text.rfind("mbarrier.try_wait"));  // the wait would not end
          else isEnded("", true);
          break;
        default:
          if (tokenPhase < 0 || (tokenPhase != model.phase && tokenPhase + 1 != model.phase)) continue;
          text += "mbarrier.test_wait" + space + ".b64 %p, [%a], %st;\n";
          isEnded("", tokenPhase != model.phase);
      }
      if (model.pending == 0 && model.bytes != 0 && random() % 2 == 0) {
        text += "mbarrier.complete_tx.relaxed.cta" + blockSpace + ".b64 [%a], " + std::to_string(model.bytes) + ";\n";
        model.bytes = 0;
      }
      model.settle();
      if (model.pending == 0) {
        // The bytes must complete before the last arrival.
        text += "mbarrier.complete_tx.relaxed.cta" + blockSpace + ".b64 [%a], " + std::to_string(model.bytes) + ";\n";
        model.bytes = 0;
        model.settle();
      }
    }
    text += "mbarrier.inval" + space + ".b64 [%a];\nret;\n}\n";
    wanted.push_back(std::move(want));
  }
  CUmodule module = cases::load(text);
  CUdeviceptr out = check::memory(4 * 4 * kSteps);
  for (int kernel = 0; kernel < kKernels; ++kernel) {
    OK(launch(module, "k" + std::to_string(kernel), 1, 1, {&out}));
    const auto got = read<uint32_t>(out, wanted[static_cast<size_t>(kernel)].size());
    for (size_t at = 0; at < got.size(); ++at) {
      if (got[at] != wanted[static_cast<size_t>(kernel)][at]) {
        throw check::Failure("kernel " + std::to_string(kernel) + ", result " + std::to_string(at) + ": got " +
                             std::to_string(got[at]) + ", want " +
                             std::to_string(wanted[static_cast<size_t>(kernel)][at]));
      }
    }
  }
  OK(cuMemFree_v2(out));
  OK(cuModuleUnload(module));
}

TEST(warps_wait_for_warps) {
  check::Primary primary;
  // Warps pass on a number for many rounds. Each warp waits at its own barrier for the previous warp, and one lane
  // arrives for the others of its warp.
  const std::string text = kHead + R"(.visible .entry ring(.param .u64 po)
{
.shared .align 8 .b64 bars[8];
.shared .u32 box;
.reg .b64 %t, %o, %st; .reg .b32 %x, %w, %l, %a, %b, %n, %i, %q; .reg .pred %p, %q0, %q1;
mov.u32 %x, %tid.x; shr.u32 %w, %x, 5; and.b32 %l, %x, 31; mov.u32 %a, bars; mad.lo.u32 %a, %w, 8, %a;
add.u32 %n, %w, 1; and.b32 %n, %n, 7; mov.u32 %b, bars; mad.lo.u32 %b, %n, 8, %b;
setp.eq.u32 %q0, %l, 5;
@%q0 mbarrier.init.shared.b64 [%a], 1;
setp.eq.u32 %q1, %x, 0;
@%q1 st.shared.u32 [box], 0;
bar.sync 0;
@%q1 mbarrier.arrive.shared.b64 _, [%a];
mov.u32 %i, 0;
ROUND:
and.b32 %q, %i, 1;
WAIT:
mbarrier.try_wait.parity.shared.b64 %p, [%a], %q;
@!%p bra WAIT;
@!%q0 bra NEXT;
ld.volatile.shared.u32 %n, [box];
mad.lo.u32 %n, %n, 3, %w;
and.b32 %n, %n, 0xffff;
st.volatile.shared.u32 [box], %n;
mbarrier.arrive.release.cta.shared::cta.b64 _, [%b];
NEXT:
bar.warp.sync 0xffffffff;
add.u32 %i, %i, 1;
setp.lt.u32 %p, %i, 40;
@%p bra ROUND;
bar.sync 0;
ld.param.u64 %t, [po]; ld.shared.u32 %n, [box];
@%q1 st.global.u32 [%t], %n;
ret;
}
)";
  CUmodule module = cases::load(text);
  CUdeviceptr out = check::memory(4);
  OK(launch(module, "ring", 3, 256, {&out}));
  uint32_t want = 0;
  for (int round = 0; round < 40; ++round) {
    for (uint32_t warp = 0; warp < 8; ++warp) want = (want * 3 + warp) & 0xffff;
  }
  EQUAL(read<uint32_t>(out, 1)[0], want);
  OK(cuMemFree_v2(out));
  OK(cuModuleUnload(module));
}
