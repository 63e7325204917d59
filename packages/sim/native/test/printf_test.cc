// printf in kernels: as in C, within limits that a kernel cannot exceed.
#include <sys/mman.h>

#include <ctime>

#include "check.h"

using check::Primary;

namespace {

// One thread prints a format from constant memory. The words at the pointer are its arguments.
const char kPrint[] = R"(.version 8.0
.target sm_90
.address_size 64
.extern .func (.param .b32 result) vprintf (.param .b64 format, .param .b64 arguments);
.visible .entry show(.param .u64 format, .param .u64 arguments, .param .u64 counted) {
  .reg .b64 %rd<4>;
  .reg .b32 %r;
  ld.param.u64 %rd1, [format];
  ld.param.u64 %rd2, [arguments];
  ld.param.u64 %rd3, [counted];
  {
    .param .b64 first;
    .param .b64 second;
    .param .b32 back;
    st.param.b64 [first], %rd1;
    st.param.b64 [second], %rd2;
    call.uni (back), vprintf, (first, second);
    ld.param.b32 %r, [back];
  }
  st.global.u32 [%rd3], %r;
  ret;
}
)";

// Runs the kernel and returns its standard output.
std::string printed(const std::string& format, const std::vector<uint64_t>& arguments = {}, int* counted = nullptr) {
  CUmodule module = nullptr;
  CUfunction kernel = nullptr;
  OK(cuModuleLoadData(&module, kPrint));
  OK(cuModuleGetFunction(&kernel, module, "show"));
  CUdeviceptr text = check::memory(format.size() + 1), words = check::memory(arguments.size() * 8 + 8),
              count = check::memory(4);
  OK(cuMemcpyHtoD_v2(text, format.c_str(), format.size() + 1));
  if (!arguments.empty()) OK(cuMemcpyHtoD_v2(words, arguments.data(), arguments.size() * 8));
  fflush(stdout);
  const int file = memfd_create("printed", 0), before = dup(1);
  dup2(file, 1);
  void* parameters[] = {&text, &words, &count};
  const CUresult launched = cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr);
  const CUresult ended = cuCtxSynchronize();
  fflush(stdout);
  dup2(before, 1);
  close(before);
  OK(launched);
  OK(ended);
  std::string out(static_cast<size_t>(lseek(file, 0, SEEK_END)), '\0');
  CHECK(pread(file, out.data(), out.size(), 0) == static_cast<ssize_t>(out.size()));
  close(file);
  int found = 0;
  OK(cuMemcpyDtoH_v2(&found, count, 4));
  if (counted != nullptr) *counted = found;
  for (CUdeviceptr each : {text, words, count}) OK(cuMemFree_v2(each));
  OK(cuModuleUnload(module));
  return out;
}

uint64_t bits(double value) {
  uint64_t word;
  memcpy(&word, &value, sizeof word);
  return word;
}

}  // namespace

TEST(kernels_print_as_c_does) {
  Primary primary;
  int counted = 0;
  CHECK(printed("plain 100%%\n") == "plain 100%\n");
  CHECK(printed("%lld|%5lld|%-5lld|%05lld", {static_cast<uint64_t>(-3), 7, 7, 7}, &counted) == "-3|    7|7    |00007");
  EQUAL(counted, 4);
  CHECK(printed("%.3f %e %g", {bits(1.5), bits(-2), bits(0.1)}) == "1.500 -2.000000e+00 0.1");
  CHECK(printed("%*lld|%-*lld|%.*f", {5, 1, static_cast<uint64_t>(-4) & 0xffffffff, 2, 2, bits(1)}) ==
        "    1|2   |1.00");
  CHECK(printed("%llx %llu %#llo %p", {255, ~uint64_t{0}, 8, 4096}) == "ff 18446744073709551615 010 0x1000");
  CHECK(printed("%s", {0}) == "(null)");
  CHECK(printed("ends in a %") == "ends in a ");
  CHECK(printed("%600lld", {1}) == std::string(599, ' ') + "1");
}

TEST(widths_without_end_are_cut_to_what_c_promises) {
  Primary primary;
  const clock_t start = clock();
  const std::string most = std::string(4094, ' ') + "5";
  for (const char* format : {"%4095lld", "%4096lld", "%99999999999lld", "%2147483647lld", "%00099999lld"}) {
    const std::string found = printed(format, {5});
    EQUAL(found.size(), 4095);
    CHECK(found.back() == '5');
  }
  CHECK(printed("%*lld", {2000000000, 5}) == most);
  CHECK(printed("%.2000000000lld", {5}) == std::string(4094, '0') + "5");
  CHECK(printed("%2000000000s|", {0}).size() == 4096);
  CHECK(clock() - start < 20 * CLOCKS_PER_SEC);
}

TEST(one_call_prints_no_more_than_the_buffer_holds) {
  Primary primary;
  std::string format;
  for (int conversion = 0; conversion < 3000; ++conversion) format += "%4095d";
  EQUAL(printed(format, std::vector<uint64_t>(3000)).size(), 1 << 20);
}
