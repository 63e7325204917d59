// Linking device code from host object files and archives: the linker takes only what is needed.
#include <elf.h>

#include <functional>
#include <random>

#include "check.h"

namespace {

template <class T>
void append(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// An uncompressed fat binary with PTX.
std::string fatbin(const std::string& ptx) {
  std::string entry;
  append<uint16_t>(entry, 1);
  append<uint16_t>(entry, 0x101);
  append<uint32_t>(entry, 64);
  std::string text = ptx;
  text.append(8 - text.size() % 8, '\0');
  append<uint64_t>(entry, text.size());
  entry.append(64 - entry.size(), '\0');
  std::string made;
  append<uint32_t>(made, 0xba55ed50);
  append<uint16_t>(made, 1);
  append<uint16_t>(made, 16);
  append<uint64_t>(made, entry.size() + text.size());
  return made + entry + text;
}

// A host object file with one section of this name.
std::string object(const std::string& name, const std::string& content) {
  const std::string names = std::string("\0.shstrtab\0", 11) + name + '\0';
  Elf64_Ehdr header = {};
  memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64, header.e_ident[EI_DATA] = ELFDATA2LSB, header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_REL, header.e_machine = EM_X86_64, header.e_version = EV_CURRENT, header.e_ehsize = sizeof header;
  header.e_shentsize = sizeof(Elf64_Shdr), header.e_shnum = 3, header.e_shstrndx = 1;
  Elf64_Shdr sections[3] = {};
  sections[1].sh_name = 1, sections[1].sh_type = SHT_STRTAB, sections[1].sh_offset = sizeof header,
  sections[1].sh_size = names.size();
  sections[2].sh_name = 11, sections[2].sh_type = SHT_PROGBITS, sections[2].sh_offset = sizeof header + names.size(),
  sections[2].sh_size = content.size();
  header.e_shoff = sizeof header + names.size() + content.size();
  std::string made;
  append(made, header);
  made += names + content;
  for (const Elf64_Shdr& each : sections) append(made, each);
  return made;
}

std::string archive(const std::vector<std::pair<std::string, std::string>>& members) {
  std::string made = "!<arch>\n";
  for (const auto& [name, content] : members) {
    char header[61];
    snprintf(header, sizeof header, "%-16s%-12d%-6d%-6d%-8d%-10zu`\n", (name + "/").c_str(), 0, 0, 0, 644,
             content.size());
    made += header + content;
    if (content.size() % 2 != 0) made += '\n';
  }
  return made;
}

const std::string kHead = ".version 7.0\n.target sm_70\n.address_size 64\n";
// The kernel calls a function of the first member, which uses the second member. A third member, which defines the same
// kernel, must not be linked.
const std::string kKernel =
    kHead +
    ".extern .func (.param .b32 r) times(.param .b32 a);\n.extern .const .align 4 .b8 settings[8];\n"
    ".visible .entry k(.param .u64 p)\n{\n.reg .b64 %p; .reg .b32 %x; .param .b32 in, out;\nld.const.u32 %x, "
    "[settings+4]; st.param.b32 [in], %x;\n"
    "call (out), times, (in);\nld.param.b32 %x, [out]; ld.param.u64 %p, [p]; st.global.u32 [%p], %x;\nret;\n}\n";
const std::string kTimes =
    kHead +
    ".extern .global .u32 factor;\n.visible .func (.param .b32 r) times(.param .b32 a)\n{\n.reg .b32 %x, %y;\n"
    "ld.param.b32 %x, [a]; ld.global.u32 %y, [factor]; mul.lo.u32 %x, %x, %y; st.param.b32 [r], %x;\nret;\n}\n";
const std::string kFactor =
    kHead + ".visible .global .u32 factor = 6;\n.visible .const .align 4 .b8 settings[8] = {1, 0, 0, 0, 7, 0, 0, 0};\n";
const std::string kOther = kHead + ".visible .entry k(.param .u64 p)\n{\nret;\n}\n.extern .func nowhere();\n";

struct Input {
  CUjitInputType type;
  std::string bytes;
};

// Links the inputs and runs the resulting kernel.
CUresult link(const std::vector<Input>& inputs, uint32_t& result, std::string& log) {
  char text[400] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {text, reinterpret_cast<void*>(sizeof text)};
  CUlinkState state = nullptr;
  OK(cuLinkCreate_v2(2, options, values, &state));
  CUresult status = CUDA_SUCCESS;
  for (const Input& each : inputs) {
    if (status == CUDA_SUCCESS)
      status = cuLinkAddData_v2(state, each.type, const_cast<char*>(each.bytes.data()), each.bytes.size(), "input", 0,
                                nullptr, nullptr);
  }
  void* image = nullptr;
  size_t size = 0;
  if (status == CUDA_SUCCESS) status = cuLinkComplete(state, &image, &size);
  log = text;
  CUmodule module = nullptr;
  if (status == CUDA_SUCCESS) status = cuModuleLoadData(&module, image);
  OK(cuLinkDestroy(state));
  if (status != CUDA_SUCCESS) return status;
  CUfunction function = nullptr;
  OK(cuModuleGetFunction(&function, module, "k"));
  CUdeviceptr memory = check::memory(4);
  void* parameters[] = {&memory};
  OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
  OK(cuMemcpyDtoH_v2(&result, memory, 4));
  OK(cuMemFree_v2(memory));
  OK(cuModuleUnload(module));
  return CUDA_SUCCESS;
}

}  // namespace

TEST(members_of_an_archive_come_where_they_are_needed) {
  check::Primary primary;
  const std::string library = archive({{"empty.o", object(".text", "x")},
                                       {"other.o", object(".nv_fatbin", fatbin(kOther))},
                                       {"notes.txt", "odd"},
                                       {"factor.o", object("__nv_relfatbin", fatbin(kFactor))},
                                       {"times.o", object("__nv_relfatbin", fatbin(kTimes))}});
  uint32_t result = 0;
  std::string log;
  OK(link({{CU_JIT_INPUT_PTX, kKernel}, {CU_JIT_INPUT_LIBRARY, library}}, result, log));
  EQUAL(result, 42u);
  result = 0;
  OK(link({{CU_JIT_INPUT_LIBRARY, library}, {CU_JIT_INPUT_PTX, kKernel}}, result, log));
  EQUAL(result, 42u);
  // The error names the undefined symbol.
  const CUresult status =
      link({{CU_JIT_INPUT_PTX, kKernel},
            {CU_JIT_INPUT_LIBRARY, archive({{"factor.o", object("__nv_relfatbin", fatbin(kFactor))}})}},
           result, log);
  CHECK(status != CUDA_SUCCESS);
  if (log.find("times") == std::string::npos) throw check::Failure("the log does not name what is missing: " + log);
}

TEST(objects_are_linked_whole) {
  check::Primary primary;
  uint32_t result = 0;
  std::string log;
  // Two fat binaries in one section, like those of two source files.
  std::string both = fatbin(kTimes);
  both.append(8, '\0');
  both += fatbin(kFactor);
  OK(link({{CU_JIT_INPUT_OBJECT, object("__nv_relfatbin", both)}, {CU_JIT_INPUT_PTX, kKernel}}, result, log));
  EQUAL(result, 42u);
  EQUAL(link({{CU_JIT_INPUT_OBJECT, object(".text", "nothing")}}, result, log), CUDA_ERROR_INVALID_IMAGE);
  // Unlike an archive member, an object is always linked.
  CHECK(link({{CU_JIT_INPUT_OBJECT, object(".nv_fatbin", fatbin(kOther))},
              {CU_JIT_INPUT_OBJECT, object("__nv_relfatbin", both)},
              {CU_JIT_INPUT_PTX, kKernel}},
             result, log) != CUDA_SUCCESS);
}

TEST(broken_archives_are_refused) {
  check::Primary primary;
  const std::string library = archive(
      {{"times.o", object("__nv_relfatbin", fatbin(kTimes))}, {"factor.o", object("__nv_relfatbin", fatbin(kFactor))}});
  uint32_t result = 0;
  std::string log;
  // A truncated library always fails, either when it is added or because something is missing.
  for (size_t length = 8; length < library.size(); length += 3)
    CHECK(link({{CU_JIT_INPUT_PTX, kKernel}, {CU_JIT_INPUT_LIBRARY, library.substr(0, length)}}, result, log) !=
          CUDA_SUCCESS);
  std::mt19937 random(5);
  for (int turn = 0; turn < 3000; ++turn) {
    std::string broken = library;
    for (unsigned change = random() % 4 + 1; change != 0; --change)
      broken[random() % broken.size()] = static_cast<char>(random());
    // Any status is fine if the process survives. Do not run the kernel: a changed kernel may do anything.
    CUlinkState state = nullptr;
    OK(cuLinkCreate_v2(0, nullptr, nullptr, &state));
    void* image = nullptr;
    size_t size = 0;
    if (cuLinkAddData_v2(state, CU_JIT_INPUT_LIBRARY, broken.data(), broken.size(), "broken", 0, nullptr, nullptr) ==
            CUDA_SUCCESS &&
        cuLinkAddData_v2(state, CU_JIT_INPUT_PTX, const_cast<char*>(kKernel.data()), kKernel.size(), "kernel", 0,
                         nullptr, nullptr) == CUDA_SUCCESS) {
      (void)cuLinkComplete(state, &image, &size);
    }
    OK(cuLinkDestroy(state));
  }
}
