// Runtime of the sweep's C++ programs: finds functions, holds memory for answers, and writes one JSON line per answer.
#pragma once
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

// The name of a function after the header's macros: the ABI symbol that a C program links to.
#define SWEEP_TEXT(name) #name
#define SWEEP_SYMBOL(name) SWEEP_TEXT(name)

namespace sweep {

constexpr unsigned char untouched = 0xa5;
constexpr std::size_t guard_bytes = 64;

template <class F>
struct Signature;
template <class R, class... A>
struct Signature<R (*)(A...)> {
  template <std::size_t N>
  using Parameter = std::tuple_element_t<N, std::tuple<A...>>;
};

/** The type of a function's parameter in the header. */
template <class F, std::size_t N>
using Parameter = typename Signature<F>::template Parameter<N>;

/** Memory with a guard after it. Its address does not change. */
struct Block {
  std::vector<unsigned char> bytes;
  std::size_t size = 0;

  Block() = default;
  explicit Block(std::size_t size_) : bytes(size_ + guard_bytes, untouched), size(size_) {}
  bool guard_intact() const {
    for (std::size_t i = size; i < bytes.size(); i += 1)
      if (bytes[i] != untouched) return false;
    return true;
  }
};

/** Reads the bytes of a kept value as another type of the same or a smaller size. */
template <class T>
T as(const Block& block, long long plus) {
  using Plain = std::remove_cv_t<T>;
  Plain value{};
  if constexpr (sizeof(Plain) == 8) {
    std::uint64_t number = 0;
    std::memcpy(&number, block.bytes.data(), 8);
    number += static_cast<std::uint64_t>(plus);
    std::memcpy(&value, &number, 8);
  } else {
    std::memcpy(&value, block.bytes.data(), sizeof(Plain));
  }
  return value;
}

/** Converts an address to the type of a pointer parameter. */
template <class T>
T pointer_to(const void* address) {
  T value{};
  static_assert(sizeof(T) == 8, "a pointer");
  std::memcpy(&value, &address, 8);
  return value;
}

/** Is true if a parameter may point to memory of type T. `void *` and `char *` may point to anything. */
template <class Pointer, class T>
constexpr bool fits() {
  using Target = std::remove_cv_t<std::remove_pointer_t<Pointer>>;
  if constexpr (std::is_void_v<Target> || sizeof(Pointer) != 8)
    return std::is_pointer_v<Pointer>;
  else
    return std::is_same_v<Target, char> || sizeof(Target) == sizeof(T);
}

template <class T>
void set_bytes(T& field, std::uint64_t number) {
  static_assert(sizeof(T) <= 8, "a number, a handle or a pointer");
  std::memcpy(&field, &number, sizeof(T));
}

class Program {
 public:
  Program(const char* library, const char* kernels, const char* answers) : kernels_(kernels) {
    library_ = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) {
      std::fprintf(stderr, "%s\n", dlerror());
      std::exit(3);
    }
    answers_ = std::fopen(answers, "w");
    if (answers_ == nullptr) {
      std::perror(answers);
      std::exit(3);
    }
  }
  ~Program() { std::fclose(answers_); }

  void* symbol(const char* name) const { return dlsym(library_, name); }
  std::string file(const char* name) const { return kernels_ + "/" + name; }
  Block& kept(const char* name) { return kept_.at(name); }
  bool has(const char* name) const { return kept_.count(name) != 0; }
  /** Replaces the block instead of assigning to it, because assigning moves bytes whose address a library may hold. */
  Block& keep(const char* name, Block&& block) {
    kept_.erase(name);
    return kept_.emplace(name, std::move(block)).first->second;
  }
  void line(const std::string& text) {
    std::fputs(text.c_str(), answers_);
    std::fputc('\n', answers_);
    std::fflush(answers_);
  }

 private:
  void* library_;
  std::string kernels_;
  std::FILE* answers_;
  std::map<std::string, Block> kept_;
};

inline std::string hex(const unsigned char* bytes, std::size_t count) {
  static const char digits[] = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < count; i += 1) {
    text += digits[bytes[i] >> 4];
    text += digits[bytes[i] & 15];
  }
  return text;
}

/** Text as JSON: the hexadecimal digits of its bytes, so that no encoding can make the two sides differ. */
inline std::string quoted(const char* text) {
  if (text == nullptr) return "null";
  return "\"" + hex(reinterpret_cast<const unsigned char*>(text), std::strlen(text)) + "\"";
}

class Step {
 public:
  Step(Program& program, int number) : program_(program), number_(number) {
    program_.line("{\"begin\":" + std::to_string(number) + "}");
  }

  /** Is true if every value that the step needs exists. */
  bool ready(std::initializer_list<const char*> names) {
    for (const char* name : names)
      if (!program_.has(name)) return finish("\"unasked\":true"), false;
    return true;
  }

  template <class F>
  F find(const char* symbol) {
    void* address = program_.symbol(symbol);
    if (address == nullptr) {
      finish("\"missing\":true");
      return nullptr;
    }
    F function;
    std::memcpy(&function, &address, sizeof function);
    return function;
  }

  void undeclared() { finish("\"missing\":true"); }

  /** Returns memory for an answer. */
  void* out(std::size_t size) {
    outs_.push_back(std::make_unique<Block>(size));
    return outs_.back()->bytes.data();
  }
  void* out(std::size_t size, std::uint64_t initial) {
    void* memory = out(size);
    std::memcpy(memory, &initial, size < 8 ? size : 8);
    return memory;
  }

  template <class T>
  void answer(const T& result) {
    static_assert(std::is_integral_v<T> || std::is_enum_v<T>, "a number");
    succeeded_ = static_cast<long long>(result) == 0;
    answered_ = "\"status\":" + std::to_string(static_cast<long long>(result));
  }
  void answer(const char* text) {
    succeeded_ = true;
    answered_ = "\"text\":" + quoted(text);
  }
  template <class T>
  void answer_bytes(const T& result) {
    succeeded_ = true;
    answered_ = "\"result\":\"" + hex(reinterpret_cast<const unsigned char*>(&result), sizeof result) + "\"";
  }
  void answer_nothing() {
    succeeded_ = true;
    answered_ = "\"status\":null";
  }

  bool succeeded() const { return succeeded_; }
  void keep(std::size_t index, const char* name) {
    if (!succeeded_) return;
    Block copy = *outs_[index];
    program_.keep(name, std::move(copy));
  }
  void follow(std::size_t index) {
    const char* text = nullptr;
    if (succeeded_) std::memcpy(&text, outs_[index]->bytes.data(), sizeof text);
    texts_.emplace_back(index, quoted(text));
  }
  void follow_all(std::size_t index, std::size_t count_index) {
    std::string all = "[";
    if (succeeded_) {
      const char* const* table = nullptr;
      int count = 0;
      std::memcpy(&table, outs_[index]->bytes.data(), sizeof table);
      std::memcpy(&count, outs_[count_index]->bytes.data(), sizeof count);
      for (int i = 0; i < count; i += 1) all += (i == 0 ? "" : ",") + quoted(table[i]);
    }
    texts_.emplace_back(index, all + "]");
  }

  void write() {
    std::string outs;
    std::string overrun;
    for (std::size_t i = 0; i < outs_.size(); i += 1) {
      std::string value = "\"" + hex(outs_[i]->bytes.data(), outs_[i]->size) + "\"";
      for (const auto& [index, text] : texts_)
        if (index == i) value = text;
      outs += (i == 0 ? "" : ",") + value;
      if (!outs_[i]->guard_intact()) overrun = ",\"overrun\":true";
    }
    finish(answered_ + ",\"outs\":[" + outs + "]" + overrun);
  }

 private:
  void finish(const std::string& fields) {
    program_.line("{\"step\":" + std::to_string(number_) + "," + fields + "}");
  }

  Program& program_;
  int number_;
  bool succeeded_ = false;
  std::string answered_;
  // Held by pointer, because a call holds their addresses while the list grows.
  std::vector<std::unique_ptr<Block>> outs_;
  std::vector<std::pair<std::size_t, std::string>> texts_;
};

using StepFunction = void (*)(Program&);
struct Group {
  const char* name;
  const StepFunction* steps;
  std::size_t count;
};

/** program LIBRARY KERNELS GROUP ANSWERS */
inline int run(const Group* groups, std::size_t count, int argument_count, char** arguments) {
  if (argument_count != 5) {
    std::fprintf(stderr, "usage: %s LIBRARY KERNELS GROUP ANSWERS\n", arguments[0]);
    return 2;
  }
  for (std::size_t i = 0; i < count; i += 1) {
    if (std::strcmp(groups[i].name, arguments[3]) != 0) continue;
    Program program(arguments[1], arguments[2], arguments[4]);
    for (std::size_t step = 0; step < groups[i].count; step += 1) groups[i].steps[step](program);
    program.line("{\"end\":true}");
    return 0;
  }
  std::fprintf(stderr, "there is no group %s\n", arguments[3]);
  return 2;
}

}  // namespace sweep
