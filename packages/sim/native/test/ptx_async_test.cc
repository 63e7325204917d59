// Asynchronous copies, checked against independent references.
#include <sys/wait.h>

#include "ptx_floats.h"

using cases::kBf16, cases::kHalf, cases::kHead, cases::launch, cases::read;

TEST(copies_of_every_size) {
  check::Primary primary;
  // Each thread copies `bytes`. The source provides as many bytes as the thread's number, or all, or none.
  struct Copy {
    std::string instruction;
    unsigned bytes;
    std::function<unsigned(unsigned thread)> given;
  };
  std::vector<Copy> all;
  for (const unsigned bytes : {4u, 8u, 16u}) {
    const std::string size = std::to_string(bytes);
    all.push_back({"cp.async.ca.shared.global [%s], [%g], " + size + ";", bytes, [=](unsigned) { return bytes; }});
    all.push_back({"cp.async.ca.shared::cta.global.L2::128B [%s+0], [%g+0], " + size + ", " + size + ";", bytes,
                   [=](unsigned) { return bytes; }});
    all.push_back({"cp.async.ca.shared.global [%s], [%g], " + size + ", %n;", bytes,
                   [=](unsigned thread) { return thread % (bytes + 1); }});
    all.push_back({"cp.async.ca.shared.global [%s], [%g], " + size + ", 1;", bytes, [](unsigned) { return 1u; }});
    all.push_back({"cp.async.ca.shared.global [%s], [%g], " + size + ", %p;", bytes,
                   [=](unsigned thread) { return thread % 3 == 0 ? 0 : bytes; }});
    all.push_back({"cp.async.ca.shared.global [%s], [%g], " + size + ", !%p;", bytes,
                   [=](unsigned thread) { return thread % 3 != 0 ? 0 : bytes; }});
  }
  all.push_back({"cp.async.cg.shared.global [%s], [%g], 16;", 16, [](unsigned) { return 16u; }});
  all.push_back(
      {"cp.async.cg.shared.global.L2::256B [%s], [%g], 16, %n;", 16, [](unsigned thread) { return thread % 17; }});
  // A false guard leaves the target unchanged.
  all.push_back({"@%p cp.async.cg.shared.global [%s], [%g], 16;", 16,
                 [](unsigned thread) { return thread % 3 == 0 ? 16u : 99u; }});
  std::string text = kHead;
  for (size_t index = 0; index < all.size(); ++index) {
    const unsigned bytes = all[index].bytes;
    text += ".visible .entry k" + std::to_string(index) +
            "(.param .u64 po, .param .u64 pi)\n{\n.shared .align 16 .b8 box[1536];\n.reg .b64 %g, %o, %t; .reg .b32 "
            "%s, %x, %n, %r<4>; .reg .pred %p;\n";
    text +=
        "mov.u32 %x, %tid.x; mad.lo.u32 %s, %x, 16, 0; mul.wide.u32 %o, %x, 16; mov.u32 %n, box; add.u32 %s, %s, %n; "
        "rem.u32 %n, %x, 3; setp.eq.u32 %p, %n, 0; rem.u32 %n, %x, " +
        std::to_string(bytes + 1) + ";\n";
    text +=
        "ld.param.u64 %g, [pi]; add.u64 %g, %g, %o; st.shared.v4.b32 [%s], {0x11111111, 0x11111111, 0x11111111, "
        "0x11111111}; bar.sync 0;\n" +
        all[index].instruction + "\ncp.async.commit_group; cp.async.wait_group 0; cp.async.wait_all; bar.sync 0;\n";
    text +=
        "ld.shared.v4.b32 {%r0, %r1, %r2, %r3}, [%s]; ld.param.u64 %t, [po]; add.u64 %t, %t, %o; st.global.v4.b32 "
        "[%t], {%r0, %r1, %r2, %r3};\nret;\n}\n";
  }
  CUmodule module = cases::load(text);
  std::vector<uint8_t> in(96 * 16);
  for (size_t at = 0; at < in.size(); ++at) in[at] = static_cast<uint8_t>(at * 31 + at / 256);
  CUdeviceptr from = check::memory(in.size()), to = check::memory(in.size());
  OK(cuMemcpyHtoD_v2(from, in.data(), in.size()));
  for (size_t index = 0; index < all.size(); ++index) {
    OK(launch(module, "k" + std::to_string(index), 1, 96, {&to, &from}));
    const auto out = read<uint8_t>(to, in.size());
    for (unsigned thread = 0; thread < 96; ++thread) {
      const unsigned given = all[index].given(thread);
      for (unsigned at = 0; at < 16; ++at) {
        const uint8_t want = at >= all[index].bytes || given == 99 ? 0x11 : at < given ? in[thread * 16 + at] : 0;
        if (out[thread * 16 + at] != want)
          throw check::Failure(all[index].instruction + ": thread " + std::to_string(thread) + ", byte " +
                               std::to_string(at));
      }
    }
  }
  OK(cuMemFree_v2(from));
  OK(cuMemFree_v2(to));
  OK(cuModuleUnload(module));
}

TEST(copies_arrive_when_they_are_done) {
  check::Primary primary;
  // Each thread copies for another thread and arrives when its copies have completed, either as an expected arrival or
  // as an additional one.
  std::string text = kHead;
  const std::vector<std::string> spaces = {"", ".shared", ".shared::cta"};
  for (size_t index = 0; index < 6; ++index) {
    const std::string space = spaces[index % 3];
    const bool isExpected = index < 3;
    text += ".visible .entry k" + std::to_string(index) +
            "(.param .u64 po, .param .u64 pi)\n{\n.shared .align 8 .b64 bar;\n.shared .align 16 .b8 box[1536];\n.reg "
            ".b64 %t, %o, %g, %a; .reg .b32 %x, %n, %s, %v<4>; .reg .pred %p;\n";
    text += "mov.u32 %x, %tid.x; setp.eq.u32 %p, %x, 0; mov.u64 %a, bar;\n" +
            std::string(space.empty() ? "cvta.shared.u64 %a, %a;\n" : "");
    text += "@%p mbarrier.init" + space +
            ".b64 [%a], 96;\nbar.sync 0;\nmul.wide.u32 %o, %x, 16; ld.param.u64 %g, [pi]; add.u64 %g, %g, %o; mov.u32 "
            "%s, box; mad.lo.u32 %s, %x, 16, %s;\n";
    text +=
        "cp.async.ca.shared.global [%s], [%g], 8; cp.async.ca.shared.global [%s+8], [%g+8], "
        "8;\ncp.async.mbarrier.arrive" +
        std::string(isExpected ? ".noinc" : "") + space + ".b64 [%a];\n";
    if (!isExpected) text += "mbarrier.arrive" + space + ".b64 _, [%a];\n";
    text += "WAIT:\nmbarrier.try_wait.parity" + space + ".b64 %p, [%a], 0;\n@!%p bra WAIT;\n";
    text +=
        "sub.u32 %n, 95, %x; mov.u32 %s, box; mad.lo.u32 %s, %n, 16, %s; ld.shared.v4.b32 {%v0, %v1, %v2, %v3}, [%s]; "
        "ld.param.u64 %t, [po]; add.u64 %t, %t, %o; st.global.v4.b32 [%t], {%v0, %v1, %v2, %v3};\nret;\n}\n";
  }
  CUmodule module = cases::load(text);
  std::mt19937 random(31);
  std::vector<uint32_t> in(96 * 4);
  CUdeviceptr from = check::memory(1536), to = check::memory(1536);
  for (int kernel = 0; kernel < 6; ++kernel) {
    for (uint32_t& value : in) value = random();
    OK(cuMemcpyHtoD_v2(from, in.data(), 1536));
    OK(cuMemsetD8_v2(to, 0, 1536));
    OK(launch(module, "k" + std::to_string(kernel), 1, 96, {&to, &from}));
    const auto out = read<uint32_t>(to, 96 * 4);
    for (size_t at = 0; at < out.size(); ++at) {
      if (out[at] != in[(95 - at / 4) * 4 + at % 4])
        throw check::Failure("kernel " + std::to_string(kernel) + ", word " + std::to_string(at));
    }
  }
  OK(cuMemFree_v2(from));
  OK(cuMemFree_v2(to));
  OK(cuModuleUnload(module));
}

namespace {

double lesser(double x, double y) {
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) ? y : x;
  return x < y || (x == y && std::signbit(x)) ? x : y;
}

}  // namespace

TEST(bulk_copies_and_remote_stores) {
  check::Primary primary;
  std::string text = kHead;
  // Two blocks of a cluster. Thread 0 of block 0 copies numbers from memory to both blocks (or each block for itself),
  // and both add them to memory.
  struct Reduction {
    const char* name;
    const char* type;
    std::function<uint64_t(uint64_t, uint64_t)> of;
    unsigned bytes;
  };
  const std::vector<Reduction> reductions = {
      {"add", "u32", [](uint64_t a, uint64_t b) { return a + b; }, 4},
      {"add", "s32", [](uint64_t a, uint64_t b) { return a + b; }, 4},
      {"add", "u64", [](uint64_t a, uint64_t b) { return a + b; }, 8},
      {"min", "u32", [](uint64_t a, uint64_t b) { return a < b ? a : b; }, 4},
      {"max", "u32", [](uint64_t a, uint64_t b) { return a > b ? a : b; }, 4},
      {"min", "s32", [](uint64_t a, uint64_t b) { return static_cast<int32_t>(a) < static_cast<int32_t>(b) ? a : b; },
       4},
      {"max", "s32", [](uint64_t a, uint64_t b) { return static_cast<int32_t>(a) > static_cast<int32_t>(b) ? a : b; },
       4},
      {"min", "s64", [](uint64_t a, uint64_t b) { return static_cast<int64_t>(a) < static_cast<int64_t>(b) ? a : b; },
       8},
      {"max", "u64", [](uint64_t a, uint64_t b) { return a > b ? a : b; }, 8},
      {"inc", "u32", [](uint64_t a, uint64_t b) { return a >= b ? 0 : a + 1; }, 4},
      {"dec", "u32", [](uint64_t a, uint64_t b) { return a == 0 || a > b ? b : a - 1; }, 4},
      {"and", "b32", [](uint64_t a, uint64_t b) { return a & b; }, 4},
      {"or", "b32", [](uint64_t a, uint64_t b) { return a | b; }, 4},
      {"xor", "b64", [](uint64_t a, uint64_t b) { return a ^ b; }, 8},
      {"add", "f32", [](uint64_t a, uint64_t b) { return cases::bitsF32(cases::toF32(a) + cases::toF32(b)); }, 4},
      {"add", "f64", [](uint64_t a, uint64_t b) { return cases::bitsF64(cases::toF64(a) + cases::toF64(b)); }, 8},
      {"add.noftz", "f16", [](uint64_t a, uint64_t b) { return kHalf.round(kHalf.value(a) + kHalf.value(b)); }, 2},
      {"add.noftz", "bf16", [](uint64_t a, uint64_t b) { return kBf16.round(kBf16.value(a) + kBf16.value(b)); }, 2},
      {"min", "f16", [](uint64_t a, uint64_t b) { return kHalf.round(lesser(kHalf.value(a), kHalf.value(b))); }, 2},
      {"max", "bf16", [](uint64_t a, uint64_t b) { return kBf16.round(-lesser(-kBf16.value(a), -kBf16.value(b))); },
       2}};
  for (const bool isMulticast : {false, true}) {
    for (size_t index = 0; index < reductions.size(); ++index) {
      text += ".visible .entry k" + std::to_string(index) + (isMulticast ? "m" : "s") +
              "(.param .u64 po, .param .u64 pi) .reqnctapercluster 2, 1, 1\n{\n.shared .align 128 .b8 "
              "box[512];\n.shared .align 8 .b64 bar;\n";
      text +=
          ".reg .b64 %t, %g, %o; .reg .b32 %x, %c, %r; .reg .b16 %h; .reg .pred %p, %z, %first;\nmov.u32 %x, %tid.x; "
          "setp.eq.u32 %z, %x, 0; mov.u32 %c, %cluster_ctarank; setp.eq.u32 %first, %c, 0;\n";
      text +=
          "@%z mbarrier.init.shared.b64 [bar], 1;\n@%z mbarrier.arrive.expect_tx.shared.b64 _, [bar], "
          "512;\nfence.mbarrier_init.release.cluster;\nbarrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n";
      text +=
          "ld.param.u64 %g, [pi]; ld.param.u64 %t, [po]; mov.u16 %h, 3; mul.wide.u32 %o, %c, 512; add.u64 %t, %t, "
          "%o;\n";
      text += isMulticast
                  ? "and.pred %z, %z, %first;\n@%z "
                    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [box], [%g], "
                    "512, [bar], %h;\n"
                  : "@%z cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [box], [%g], 512, [bar];\n";
      text += "setp.eq.u32 %z, %x, 0;\nW:\nmbarrier.try_wait.parity.shared.b64 %p, [bar], 0;\n@!%p bra W;\n";
      text += std::string("@%z cp.reduce.async.bulk.global.shared::cta.bulk_group.") + reductions[index].name + "." +
              reductions[index].type +
              " [%t], [box], 512;\n@%z cp.async.bulk.commit_group;\n@%z cp.async.bulk.wait_group 0;\nret;\n}\n";
    }
  }
  // Thread t of block 0 writes to block 1: single values, vectors, and additions. Then block 1 copies its data back to
  // block 0.
  text += R"(.visible .entry remote(.param .u64 po, .param .u64 pi) .reqnctapercluster 2, 1, 1
{
.shared .align 128 .b8 box[1024];
.shared .align 8 .b64 bar;
.reg .b64 %t, %o; .reg .b32 %x, %c, %r, %s, %a, %b, %n, %other; .reg .pred %p, %z, %first;
mov.u32 %x, %tid.x; setp.eq.u32 %z, %x, 0; mov.u32 %c, %cluster_ctarank; setp.eq.u32 %first, %c, 0;
xor.b32 %other, %c, 1;
mad.lo.u32 %n, %x, 16, 0; mov.u32 %s, box; add.u32 %s, %s, %n;
st.shared.v4.b32 [%s], {%x, %x, %x, %x}; st.shared.v4.b32 [%s+512], {0, 0, 0, 0};
@%z mbarrier.init.shared.b64 [bar], 1;
@%z mbarrier.arrive.expect_tx.shared.b64 _, [bar], 512;
barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
mov.u32 %b, bar;
mapa.shared::cluster.u32 %a, %s, %other; mapa.shared::cluster.u32 %b, %b, %other;
@!%first bra SECOND;
st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.u32 [%a], {%n, 77}, [%b];
st.async.shared::cluster.mbarrier::complete_tx::bytes.s32 [%a+8], %x, [%b];
red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%a+12], 1000, [%b];
bra WAIT;
SECOND:
mbarrier.try_wait.parity.shared.b64 %p, [bar], 0;
@!%p bra SECOND;
mov.u32 %r, box; mapa.shared::cluster.u32 %a, %r, %other; add.u32 %a, %a, 512;
@%z cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%a], [box], 512, [%b];
bra OUT;
WAIT:
mbarrier.try_wait.parity.shared.b64 %p, [bar], 0;
@!%p bra WAIT;
ld.param.u64 %t, [po]; mul.wide.u32 %o, %x, 16; add.u64 %t, %t, %o;
.reg .b32 %v<4>;
ld.shared.v4.b32 {%v0, %v1, %v2, %v3}, [%s+512]; st.global.v4.b32 [%t], {%v0, %v1, %v2, %v3};
OUT:
barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
ret;
}
)";
  CUmodule module = cases::load(text);
  std::mt19937_64 random(23);
  std::vector<uint64_t> in(64), before(128);
  CUdeviceptr from = check::memory(512), to = check::memory(1024);
  for (const bool isMulticast : {false, true}) {
    for (size_t index = 0; index < reductions.size(); ++index) {
      const Reduction& each = reductions[index];
      for (uint64_t& value : in) value = random() >> random() % 64;
      for (uint64_t& value : before) value = random() >> random() % 64;
      OK(cuMemcpyHtoD_v2(from, in.data(), 512));
      OK(cuMemcpyHtoD_v2(to, before.data(), 1024));
      OK(launch(module, "k" + std::to_string(index) + (isMulticast ? "m" : "s"), 2, 64, {&to, &from}));
      const auto out = read<uint64_t>(to, 128);
      for (size_t at = 0; at < 1024; at += each.bytes) {
        auto value = [&](const std::vector<uint64_t>& words, size_t byte) {
          return cases::masked(words[byte / 8] >> byte % 8 * 8, each.bytes);
        };
        const uint64_t want = cases::masked(each.of(value(before, at), value(in, at % 512)), each.bytes);
        if (value(out, at) != want && !(each.type == std::string("f64") && cases::sameF64(value(out, at), want)))
          throw check::Failure(std::string(each.name) + "." + each.type + " at " + std::to_string(at));
      }
    }
  }
  OK(launch(module, "remote", 2, 32, {&to, &from}));
  const auto out = read<uint32_t>(to, 128);
  for (uint32_t thread = 0; thread < 32; ++thread) {
    EQUAL(out[thread * 4], thread * 16);
    EQUAL(out[thread * 4 + 1], 77u);
    EQUAL(out[thread * 4 + 2], thread);
    EQUAL(out[thread * 4 + 3], thread + 1000);
  }
  OK(cuMemFree_v2(from));
  OK(cuMemFree_v2(to));
  OK(cuModuleUnload(module));
}

namespace {

struct Wrong {
  const char* body;
  CUresult status;
  // The PTX specification leaves it undefined. An H200 continues, or its compiler crashes.
  bool isSoftwareOnly = false;
};
const Wrong kWrong[] = {
    {"mbarrier.init.shared.b64 [bar], 0;", CUDA_ERROR_ILLEGAL_INSTRUCTION, true},
    {"mbarrier.init.shared.b64 [bar], 1048576;", CUDA_ERROR_ILLEGAL_INSTRUCTION, true},
    {"mbarrier.init.shared.b64 [bar], 1; mbarrier.arrive.shared.b64 _, [bar], 2;", CUDA_ERROR_ILLEGAL_INSTRUCTION,
     true},
    {"mbarrier.init.shared.b64 [bar+4], 1;", CUDA_ERROR_MISALIGNED_ADDRESS},
    {"mbarrier.init.b64 [%g], 1;", CUDA_ERROR_ILLEGAL_INSTRUCTION},
    {"mbarrier.init.shared.b64 [bar+4096], 1;", CUDA_ERROR_ILLEGAL_ADDRESS},
    {"cp.async.ca.shared.global [box], [%g+4], 8;", CUDA_ERROR_MISALIGNED_ADDRESS},
    {"cp.async.ca.shared.global [box+4], [%g], 8;", CUDA_ERROR_MISALIGNED_ADDRESS},
    {"add.u64 %g, %g, 0x4000000000; cp.async.ca.shared.global [box], [%g], 8;", CUDA_ERROR_ILLEGAL_ADDRESS},
    {"cp.async.cg.shared.global [box+65536], [%g], 16;", CUDA_ERROR_ILLEGAL_ADDRESS},
    {".reg .b32 %n; mov.b32 %n, 24; cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [box], [%g], %n, "
     "[bar];",
     CUDA_ERROR_MISALIGNED_ADDRESS, true},
    {"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [box], [%g], 4096, [bar];",
     CUDA_ERROR_ILLEGAL_ADDRESS},
    {"cp.async.bulk.global.shared::cta.bulk_group [%g], [box+8], 16;", CUDA_ERROR_MISALIGNED_ADDRESS}};

// Frees nothing, because the process ends.
std::string launchWrong(const Wrong& each) {
  new check::Primary;
  CUdeviceptr memory = check::memory(4096);
  const std::string text = kHead +
                           ".visible .entry k(.param .u64 p)\n{\n.shared .align 16 .b8 box[64];\n.shared .align 8 .b64 "
                           "bar;\n.reg .b64 %g;\nld.param.u64 %g, [p];\n";
  const cases::Loaded loaded = cases::tryLoad(text + each.body + "\nret;\n}\n");
  if (loaded.status != CUDA_SUCCESS) return "not loaded: " + loaded.log;
  const CUresult status = launch(loaded.module, "k", 1, 1, {&memory});
  return status == each.status ? "" : "status " + std::to_string(status) + ", want " + std::to_string(each.status);
}
// A driver promises nothing after a context is lost, so each case has its own process.
[[maybe_unused]] const bool isChildSet = [] {
  check::child = [](int, char** arguments) -> int {
    std::string wrong;
    try {
      wrong = launchWrong(kWrong[atoi(arguments[0])]);
    } catch (const std::exception& error) {
      wrong = error.what();
    }
    if (!wrong.empty()) printf("\n%s: %s", kWrong[atoi(arguments[0])].body, wrong.c_str());
    fflush(stdout);
    _exit(wrong.empty() ? 0 : 1);
  };
  return true;
}();

}  // namespace

TEST(what_goes_wrong_ends_the_kernel) {
  int failures = 0;
  for (size_t index = 0; index < sizeof kWrong / sizeof *kWrong; ++index) {
    if (kWrong[index].isSoftwareOnly && check::isOnHardware()) continue;
    const std::string argument = std::to_string(index);
    const pid_t process = fork();
    if (process == 0) {
      execl("/proc/self/exe", "test", "--child", argument.c_str(), nullptr);
      _exit(127);
    }
    int status = 0;
    waitpid(process, &status, 0);
    if (WIFSIGNALED(status)) printf("\n%s: ended by signal %d", kWrong[index].body, WTERMSIG(status));
    if (status != 0) ++failures;
  }
  if (failures != 0)
    throw check::Failure(std::to_string(failures) + " of " + std::to_string(sizeof kWrong / sizeof *kWrong) +
                         " ended otherwise");
}
