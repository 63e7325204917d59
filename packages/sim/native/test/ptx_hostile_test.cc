// PTX that is truncated, mutated and spliced at random. It is refused or it runs, and nothing else happens. The test
// uses a few thousand inputs; SHOAL_FUZZ_COUNT sets the number, SHOAL_FUZZ_SEED repeats a run.
#include <dirent.h>
#include <sys/resource.h>

#include <chrono>
#include <fstream>
#include <random>
#include <sstream>

#include "check.h"

namespace {

// The device reads this at its start: the time limit of a kernel.
const bool isLimited = setenv("SHOAL_SIM_KERNEL_SECONDS", "0.05", 0) == 0;

std::mt19937_64 engine;
size_t below(size_t count) { return count == 0 ? 0 : engine() % count; }
template <class T>
const T& any(const std::vector<T>& list) {
  return list[below(list.size())];
}

std::vector<std::string> corpus() {
  std::vector<std::string> texts;
  char program[4096] = {};
  if (readlink("/proc/self/exe", program, sizeof program - 1) < 0) return texts;
  // The package is in a folder above the program, for every kind of build.
  std::string package = program;
  do package.resize(package.find_last_of('/'));
  while (!package.empty() && access((package + "/test/ptx/warps.ptx").c_str(), R_OK) != 0);
  for (const std::string folder : {"/test/ptx", "/../../tooling/kernels/ptx", "/../../tooling/kernels/ptx/others"}) {
    DIR* open = opendir((package + folder).c_str());
    if (open == nullptr) continue;
    while (const dirent* entry = readdir(open)) {
      const std::string name = entry->d_name;
      if (name.size() < 4 || name.substr(name.size() - 4) != ".ptx") continue;
      std::ifstream file(package + folder + "/" + name);
      std::stringstream text;
      text << file.rdbuf();
      // Long modules are skipped: one kernel of a long module finds as much and is faster to read.
      if (text.str().size() < 120000) texts.push_back(text.str());
    }
    closedir(open);
  }
  return texts;
}

std::vector<std::string> linesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::stringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}
std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (auto& line : lines) text += line + "\n";
  return text;
}

// Returns the head of a module and one of its functions, with the preceding lines.
std::string shortened(const std::string& text) {
  const auto lines = linesOf(text);
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> bodies;
  bool isInside = false;
  for (auto& line : lines) {
    const bool isStart = line.rfind(".visible .entry", 0) == 0 || line.rfind(".visible .func", 0) == 0;
    if (isStart) bodies.emplace_back(), isInside = true;
    (isInside ? bodies.back() : head).push_back(line);
    if (isInside && !line.empty() && line[0] == '}') isInside = false;
  }
  if (bodies.empty()) return text;
  return joined(head) + joined(any(bodies));
}

const std::vector<std::string> words = {"0",
                                        "1",
                                        "-1",
                                        "2147483647",
                                        "4294967295",
                                        "4294967296",
                                        "18446744073709551615",
                                        "-9223372036854775808",
                                        "99999999999999999999",
                                        "0x7fffffffffffffff",
                                        "0f7fc00000",
                                        "0d7ff0000000000000",
                                        "0f",
                                        "%r1",
                                        "%rd1",
                                        "%p1",
                                        "%f1",
                                        "%rs1",
                                        "%r999999",
                                        "%tid.x",
                                        "%clock64",
                                        "{",
                                        "}",
                                        "[",
                                        "]",
                                        "(",
                                        ")",
                                        ";",
                                        ",",
                                        ":",
                                        "@",
                                        "!",
                                        "|",
                                        "+",
                                        "-",
                                        "_",
                                        ".reg .b32 %r<4294967295>;",
                                        ".reg .b64 %q<100000>;",
                                        ".local .align 16 .b8 big[1073741824];",
                                        ".local .b8 some[400000];",
                                        ".shared .b8 sh[4294967295];",
                                        ".param .b64 p0;",
                                        ".u8",
                                        ".u64",
                                        ".f16x2",
                                        ".b128",
                                        ".pred",
                                        ".v2",
                                        ".v4",
                                        ".v8",
                                        ".global",
                                        ".shared",
                                        ".local",
                                        ".const",
                                        ".param",
                                        ".shared::cluster",
                                        ".volatile",
                                        ".acq_rel",
                                        ".sat",
                                        ".ftz",
                                        "bra",
                                        "call",
                                        "ret;",
                                        "exit;",
                                        "trap;",
                                        "bar.sync 0;",
                                        "bar.sync %r1, %r2;",
                                        "barrier.cluster.arrive;",
                                        "mbarrier.init.shared.b64 [%r1], %r2;",
                                        "brx.idx %r1, t;",
                                        "setmaxnreg.inc.sync.aligned.u32 240;",
                                        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
                                        "cp.async.bulk.shared::cluster.global",
                                        "shfl.sync.idx.b32 %r1, %r2, %r3, 31, -1;",
                                        ".version 99.9",
                                        ".target sm_999",
                                        ".address_size 32",
                                        ".extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);",
                                        ".global .b8 huge[1099511627776];",
                                        ".global .u64 self = self;",
                                        ".visible .entry again(",
                                        ".func",
                                        "/*",
                                        "//",
                                        "\"",
                                        ".loc 1 1 1",
                                        ".file 1 \"x\"",
                                        ".section .debug {",
                                        ".branchtargets",
                                        "\x01",
                                        "\xff"};

std::string mutated(std::string text, const std::vector<std::string>& texts) {
  for (size_t left = 1 + below(3) * below(2) * below(2); left > 0 && !text.empty(); --left) {
    auto lines = linesOf(text);
    switch (below(11)) {
      case 0: text.resize(below(text.size())); break;
      case 1: text[below(text.size())] = static_cast<char>(1 + below(255)); break;
      case 2: text.insert(below(text.size()), " " + any(words) + " "); break;
      case 3:
        if (!lines.empty()) lines.erase(lines.begin() + static_cast<ptrdiff_t>(below(lines.size())));
        text = joined(lines);
        break;
      case 4:
        if (!lines.empty())
          lines.insert(lines.begin() + static_cast<ptrdiff_t>(below(lines.size())), std::string(any(lines)));
        text = joined(lines);
        break;
      case 5:
        if (!lines.empty()) std::swap(lines[below(lines.size())], lines[below(lines.size())]);
        text = joined(lines);
        break;
      case 6: {  // replace a number
        const size_t at = text.find_first_of("0123456789", below(text.size()));
        if (at == std::string::npos) break;
        const size_t end = text.find_first_not_of("0123456789", at);
        text.replace(at, end == std::string::npos ? end : end - at, any(words).substr(0, 20));
        break;
      }
      case 7: {  // take a line of another module
        const auto others = linesOf(any(texts));
        if (!lines.empty() && !others.empty())
          lines.insert(lines.begin() + static_cast<ptrdiff_t>(below(lines.size())), any(others));
        text = joined(lines);
        break;
      }
      case 8: {  // combine the start of one and the end of another
        const std::string other = shortened(any(texts));
        text = text.substr(0, below(text.size())) + other.substr(below(other.size()));
        break;
      }
      case 9: {  // replace a modifier
        const size_t at = text.find('.', below(text.size()));
        if (at == std::string::npos) break;
        const size_t end = text.find_first_of(" .\t\n,;", at + 1);
        text.replace(at, end == std::string::npos ? end : end - at, any(words));
        break;
      }
      default: text.erase(below(text.size()), below(12)); break;
    }
  }
  return text;
}

CUcontext makeContext() {
  CUcontext context = nullptr;
  CUdevice device = 0;
  OK(cuDeviceGet(&device, 0));
  OK(cuCtxCreate_v2(&context, 0, device));
  return context;
}

}  // namespace

TEST(broken_ptx_is_refused_or_runs) {
  const char* asked = getenv("SHOAL_FUZZ_COUNT");
  const char* given = getenv("SHOAL_FUZZ_SEED");
  const size_t count = asked == nullptr ? 2000 : static_cast<size_t>(atoll(asked));
  const uint64_t seed = given == nullptr
                            ? static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count())
                            : static_cast<uint64_t>(atoll(given));
  const auto texts = corpus();
  CHECK(texts.size() > 3);
  OK(cuInit(0));
  CUcontext context = makeContext();
  CUdeviceptr memory = 0;
  OK(cuMemAlloc_v2(&memory, 1 << 16));
  size_t refused = 0, loaded = 0, ran = 0, failed = 0;
  for (size_t index = 0; index < count; ++index) {
    engine.seed(seed + index);
    const std::string text = mutated(shortened(any(texts)), texts);
    // Keeps the input for the analysis of a crash.
    if (const char* file = getenv("SHOAL_FUZZ_LAST")) std::ofstream(file) << text;
    char log[256];
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
    CUmodule module = nullptr;
    const CUresult status = cuModuleLoadDataEx(&module, text.c_str(), 2, options, values);
    if (status != CUDA_SUCCESS) {
      const bool isKnown = status == CUDA_ERROR_INVALID_PTX || status == CUDA_ERROR_NO_BINARY_FOR_GPU ||
                           status == CUDA_ERROR_INVALID_IMAGE || status == CUDA_ERROR_OUT_OF_MEMORY ||
                           status == CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
      if (!isKnown)
        fprintf(stderr, "seed %llu: a status of %d\n", static_cast<unsigned long long>(seed + index),
                static_cast<int>(status));
      CHECK(isKnown);
      ++refused;
      continue;
    }
    ++loaded;
    unsigned functions = 0;
    OK(cuModuleGetFunctionCount(&functions, module));
    // A kernel's output would mix with the lines of the report.
    if (functions > 0 && below(2) == 0 && text.find("vprintf") == std::string::npos) {
      std::vector<CUfunction> all(functions);
      OK(cuModuleEnumerateFunctions(all.data(), functions, module));
      CUfunction function = any(all);
      // Addresses, lengths and random words, for each of the parameters.
      std::vector<std::vector<uint64_t>> arguments;
      size_t offset = 0, size = 0;
      for (size_t at = 0; cuFuncGetParamInfo(function, at, &offset, &size) == CUDA_SUCCESS; ++at) {
        arguments.emplace_back(size / 8 + 1, below(6) == 0 ? engine()
                                             : size == 8   ? memory + below(1 << 14) * 4
                                                           : below(300));
      }
      std::vector<void*> pointers;
      for (auto& each : arguments) pointers.push_back(each.data());
      const unsigned block = 1 + static_cast<unsigned>(below(96));
      ran += cuLaunchKernel(function, 1 + static_cast<unsigned>(below(3)), 1, 1, block, 1, 1,
                            static_cast<unsigned>(below(2) * 1024), nullptr, pointers.data(), nullptr) == CUDA_SUCCESS;
    }
    if (cuCtxSynchronize() == CUDA_SUCCESS) {
      OK(cuModuleUnload(module));
      continue;
    }
    // Only the context is lost.
    ++failed;
    OK(cuCtxDestroy_v2(context));
    context = makeContext();
    OK(cuMemAlloc_v2(&memory, 1 << 16));
  }
  OK(cuCtxDestroy_v2(context));
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  if (asked != nullptr) {
    printf("seed %llu: %zu refused, %zu loaded, %zu run, %zu contexts lost, %ld MiB at most\n",
           static_cast<unsigned long long>(seed), refused, loaded, ran, failed, usage.ru_maxrss >> 10);
  }
  CHECK(refused > 0 && loaded > 0 && ran > 0);
  CHECK(usage.ru_maxrss < 3 << 20);
}
