// Loads a module: parses it, places its variables, decodes it, and sets initial values.
#include <algorithm>
#include <cstring>
#include <set>

#include "decoder.h"
#include "module.h"
#include "parser.h"

namespace shoal::ptx {

namespace {

constexpr uint64_t kMostConstantBytes = 65536;
constexpr uint64_t kMostSharedBytes = 232448;
constexpr uint64_t kMostLocalBytes = 512 << 10;

uint64_t aligned(uint64_t at, uint64_t alignment) { return (at + alignment - 1) / alignment * alignment; }

class Loader {
 public:
  std::shared_ptr<Module> load(std::string_view text, const AllocateMemory& allocate, bool hasManaged) {
    return namingVersion(syntax_, [&] { return read(text, allocate, hasManaged); });
  }

 private:
  std::shared_ptr<Module> read(std::string_view text, const AllocateMemory& allocate, bool hasManaged) {
    Parser(text, syntax_).run();
    placeGlobals(allocate);
    for (auto& each : syntax_.functions) placeInFunction(each);
    findCalls();
    placeShared();
    Decoder(syntax_, module_->program).run();
    for (auto& [number, name] : syntax_.files) {
      if (isChecking()) module_->program.files[number] = std::string(name);
    }
    fillGlobals(hasManaged);
    makeKernels();
    module_->ptxVersion = syntax_.version();
    module_->target = syntax_.target;
    return std::move(module_);
  }

  void placeGlobals(const AllocateMemory& allocate) {
    uint64_t sizes[2] = {0, 0}, constants = 0;
    for (Variable* each : syntax_.globals) {
      if (each->isExtern || each->space == Space::shared) continue;
      if (each->isUnsized) refuseSyntax(each->line, "'" + std::string(each->name) + "' has no size");
      uint64_t& size = sizes[each->isManaged ? 1 : 0];
      size = aligned(size, std::max(each->alignment, 16u));
      each->address = size;
      if (__builtin_add_overflow(size, each->bytes, &size) || size > uint64_t{1} << 40)
        throw Refusal{CUDA_ERROR_OUT_OF_MEMORY, each->line, "the variables are too large"};
      if (each->space == Space::constant) {
        constants = aligned(constants, each->alignment) + each->bytes;
        if (constants > kMostConstantBytes)
          refuseSyntax(each->line, "the module has more than 65536 bytes of constants");
      }
    }
    module_->constantBytes = constants;
    uint64_t bases[2] = {0, 0};
    for (const bool isManaged : {false, true}) {
      if (sizes[isManaged] == 0) continue;
      bases[isManaged] = allocate(sizes[isManaged], isManaged);
      if (bases[isManaged] == 0)
        throw Refusal{CUDA_ERROR_OUT_OF_MEMORY, 0, "the device has not enough memory for the module's variables"};
    }
    for (Variable* each : syntax_.globals) {
      if (each->isExtern || each->space == Space::shared) continue;
      each->address += bases[each->isManaged ? 1 : 0];
      module_->globals.push_back({std::string(each->name), each->address, each->bytes, each->isManaged});
    }
  }

  void placeInFunction(Function& function) {
    module_->program.functions.emplace_back();
    CodeOf& code = module_->program.functions.back();
    code.name = std::string(function.name);
    code.isDefined = function.isDefined;
    code.isKernel = function.isKernel;
    uint64_t at = 0;
    for (auto* list : {&function.parameters, &function.results}) {
      for (Variable* each : *list) {
        Passed passed;
        if (each->reg >= 0) {
          passed.isRegister = true;
        } else {
          at = aligned(at, each->alignment);
          each->address = at;
          passed.at = static_cast<uint32_t>(at);
          at += each->bytes;
        }
        passed.bytes = static_cast<uint32_t>(each->bytes);
        if (function.isKernel) {
          if (each->reg >= 0) refuseSyntax(each->line, "a kernel's parameter cannot be a register");
          each->space = Space::kernelParam;
        }
        (list == &function.parameters ? code.parameters : code.results).push_back(passed);
      }
    }
    if (function.isKernel) {
      if (at > 32764) refuseSyntax(function.line, "the parameters of '" + code.name + "' are too large");
      at = 0;
    }
    for (Variable* each : function.locals) {
      if (each->isUnsized) refuseSyntax(each->line, "'" + std::string(each->name) + "' has no size");
      at = aligned(at, each->alignment);
      each->address = at;
      at += each->bytes;
      if (at > kMostLocalBytes) refuseSyntax(each->line, "the function has more than 512 KiB of local memory");
    }
    code.localBytes = static_cast<uint32_t>(aligned(at, 16));
    code.unusedLocalBytes = code.localBytes - static_cast<uint32_t>(aligned(at, 8));
  }

  size_t indexOf(const Function* function) const { return indices_.at(function); }

  void visit(size_t index, const Operand& operand) {
    if (operand.kind == OperandKind::variable && operand.variable->space == Space::shared)
      uses_[index].insert(operand.variable);
    if (operand.kind == OperandKind::name) {
      auto found = syntax_.functionNames.find(operand.name);
      if (found != syntax_.functionNames.end()) calls_[index].insert(indexOf(found->second));
    }
    for (const Operand& part : operand.parts) visit(index, part);
  }

  // Finds the functions that each function calls, and the shared variables that it names.
  void findCalls() {
    size_t count = 0;
    for (auto& each : syntax_.functions) indices_[&each] = count++;
    calls_.resize(count);
    uses_.resize(count);
    isIndirect_.resize(count);
    size_t index = 0;
    for (auto& each : syntax_.functions) {
      for (Variable* shared : each.shared) uses_[index].insert(shared);
      for (const Statement& statement : each.statements) {
        for (const Operand& operand : statement.operands) visit(index, operand);
        if (statement.opcode != "call") continue;
        for (const Operand& operand : statement.operands) {
          if (operand.kind == OperandKind::name && (operand.name == "malloc" || operand.name == "free"))
            module_->needsHeap = true;
        }
        const size_t at = !statement.operands.empty() && statement.operands[0].kind == OperandKind::list ? 1 : 0;
        if (at < statement.operands.size() && statement.operands[at].kind == OperandKind::reg)
          isIndirect_[index] = true;
      }
      ++index;
    }
  }

  std::set<size_t> reachedFrom(size_t start) const {
    std::set<size_t> reached;
    std::vector<size_t> open = {start};
    while (!open.empty()) {
      const size_t at = open.back();
      open.pop_back();
      if (!reached.insert(at).second) continue;
      open.insert(open.end(), calls_[at].begin(), calls_[at].end());
      if (!isIndirect_[at]) continue;
      for (auto& each : syntax_.functions) {
        if (!each.isKernel && each.isDefined) open.push_back(indexOf(&each));
      }
    }
    return reached;
  }

  bool mayLaunchGraphs(size_t kernel) const {
    const auto found = syntax_.functionNames.find("cudaGraphLaunch");
    return found != syntax_.functionNames.end() && !found->second->isDefined &&
           reachedFrom(kernel).count(indexOf(found->second)) != 0;
  }

  // Each variable has one address for all kernels. It must not overlap the other variables of any kernel that uses it.
  void placeShared() {
    std::vector<std::pair<size_t, std::set<const Variable*>>> kernels;
    size_t index = 0;
    for (auto& each : syntax_.functions) {
      if (each.isKernel && each.isDefined) {
        std::set<const Variable*> used;
        for (size_t reached : reachedFrom(index)) used.insert(uses_[reached].begin(), uses_[reached].end());
        kernels.emplace_back(index, std::move(used));
      }
      ++index;
    }
    std::vector<uint64_t> ends(kernels.size(), 0);
    auto placeOne = [&](Variable& variable) {
      if (variable.isExtern || variable.space != Space::shared) return;
      if (variable.isUnsized) refuseSyntax(variable.line, "'" + std::string(variable.name) + "' has no size");
      uint64_t at = 0;
      for (size_t kernel = 0; kernel < kernels.size(); ++kernel) {
        if (kernels[kernel].second.count(&variable) != 0) at = std::max(at, ends[kernel]);
      }
      at = aligned(at, variable.alignment);
      variable.address = at;
      if (at + variable.bytes > kMostSharedBytes)
        refuseSyntax(variable.line, "a kernel has more shared memory than the device");
      for (size_t kernel = 0; kernel < kernels.size(); ++kernel) {
        if (kernels[kernel].second.count(&variable) != 0) ends[kernel] = at + variable.bytes;
      }
    };
    for (Variable* each : syntax_.globals) placeOne(*each);
    for (auto& function : syntax_.functions) {
      for (Variable* each : function.shared) placeOne(*each);
    }
    for (size_t kernel = 0; kernel < kernels.size(); ++kernel)
      sharedBytes_[kernels[kernel].first] = static_cast<uint32_t>(ends[kernel]);
  }

  void fillGlobals(bool hasManaged) {
    for (Variable* each : syntax_.globals) {
      if (each->isExtern || each->space == Space::shared) continue;
      if (each->isManaged && hasManaged) continue;
      auto* to = reinterpret_cast<uint8_t*>(each->address);
      // The memory is zero already. Write only the given values, so that large variables stay untouched.
      std::copy_n(each->bytesAtStart.begin(), std::min<uint64_t>(each->bytesAtStart.size(), each->bytes), to);
      for (auto& reference : each->references) {
        uint64_t address = 0;
        auto variable = syntax_.variableNames.find(reference.symbol);
        auto function = syntax_.functionNames.find(reference.symbol);
        if (variable != syntax_.variableNames.end() && !variable->second->isExtern) address = variable->second->address;
        else if (function != syntax_.functionNames.end() && function->second->isDefined)
          address = Decoder::addressOfFunction(indexOf(function->second));
        else refuseSyntax(reference.line, "'" + std::string(reference.symbol) + "' is not defined");
        address = (address + static_cast<uint64_t>(reference.addend)) >> reference.shift;
        memcpy(to + reference.offset, &address, std::min(reference.bytes, 8u));
      }
    }
  }

  // The local memory of a thread along the deepest call path.
  uint64_t localBytesOf(size_t index, std::vector<int64_t>& known, std::vector<bool>& isOpen, bool& isRecursive,
                        unsigned depth) {
    if (isOpen[index] || depth > 500) {
      isRecursive = true;
      return 0;
    }
    if (known[index] >= 0) return static_cast<uint64_t>(known[index]);
    isOpen[index] = true;
    uint64_t deepest = 0;
    for (size_t called : calls_[index])
      deepest = std::max(deepest, localBytesOf(called, known, isOpen, isRecursive, depth + 1));
    if (isIndirect_[index]) isRecursive = true;
    isOpen[index] = false;
    const uint64_t bytes = module_->program.functions[index].localBytes + deepest;
    known[index] = static_cast<int64_t>(bytes);
    return bytes;
  }

  void makeKernels() {
    unsigned externAlignment = 16;
    for (Variable* each : syntax_.globals) {
      if (each->isExtern && each->space == Space::shared) externAlignment = std::max(externAlignment, each->alignment);
    }
    size_t index = 0;
    for (auto& each : syntax_.functions) {
      const CodeOf& code = module_->program.functions[index];
      if (each.isKernel && each.isDefined) {
        Kernel made;
        made.name = code.name;
        made.function = static_cast<uint32_t>(index);
        for (const Passed& passed : code.parameters) {
          made.parameters.push_back({passed.at, passed.bytes});
          made.parameterBytes = passed.at + passed.bytes;
        }
        made.sharedBytes = sharedBytes_[index];
        made.dynamicBase = static_cast<uint32_t>(aligned(made.sharedBytes, externAlignment));
        std::vector<int64_t> known(syntax_.functions.size(), -1);
        std::vector<bool> isOpen(syntax_.functions.size());
        made.localBytes = static_cast<uint32_t>(
            std::min<uint64_t>(localBytesOf(index, known, isOpen, made.isRecursive, 0), kMostLocalBytes));
        made.launchesGraphs = mayLaunchGraphs(index);
        made.toldLocalBytes = made.localBytes - code.unusedLocalBytes;
        auto threads = [](const unsigned (&numbers)[3]) { return uint64_t{numbers[0]} * numbers[1] * numbers[2]; };
        const auto bound = [&](const unsigned (&numbers)[3]) {
          return threads(numbers) == 0 ? 1024u : static_cast<unsigned>(std::min<uint64_t>(threads(numbers), 1024));
        };
        made.maxThreads = bound(each.maxThreads);
        std::copy(std::begin(each.requiredThreads), std::end(each.requiredThreads), made.requiredThreads);
        std::copy(std::begin(each.cluster), std::end(each.cluster), made.cluster);
        made.mustSetCluster = each.mustSetCluster;
        made.registers = std::min(255u, std::max(16u, code.registerBytes / (4 * kLanes)));
        const unsigned most = std::min(made.maxThreads, bound(each.requiredThreads));
        if (uint64_t{made.registers} * most > 65536) made.registers = 65536 / most;
        module_->kernels.push_back(std::move(made));
      }
      ++index;
    }
  }

  Syntax syntax_;
  std::shared_ptr<Module> module_ = std::make_shared<Module>();
  std::unordered_map<const Function*, size_t> indices_;
  std::vector<std::set<size_t>> calls_;
  std::vector<std::set<const Variable*>> uses_;
  std::vector<bool> isIndirect_;
  std::unordered_map<size_t, uint32_t> sharedBytes_;
};

}  // namespace

std::shared_ptr<Module> loadModule(std::string_view text, const AllocateMemory& allocate, bool hasManaged) {
  return Loader().load(text, allocate, hasManaged);
}

}  // namespace shoal::ptx
