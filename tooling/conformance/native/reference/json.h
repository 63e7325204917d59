// Reads the part of JSON that the list of cases uses, and writes the answers as JSON.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

class Json {
 public:
  static Json parse(const std::string& text) {
    const char* at = text.c_str();
    return value(at);
  }

  explicit operator bool() const { return kind_ != Null; }
  // Reads a number. Numbers that are too large for JSON are text.
  unsigned long long integer() const {
    if (kind_ == Text) return strtoull(text_.c_str(), nullptr, 0);
    if (kind_ != Number) throw std::runtime_error("the list has no number here");
    return static_cast<unsigned long long>(static_cast<long long>(number_));
  }
  unsigned long long integer(unsigned long long otherwise) const { return kind_ == Null ? otherwise : integer(); }
  double number() const { return number_; }
  bool isTrue() const { return kind_ == True; }
  const std::string& text() const {
    if (kind_ != Text) throw std::runtime_error("the list has no text here");
    return text_;
  }
  bool isText() const { return kind_ == Text; }
  const std::vector<Json>& items() const { return items_; }
  size_t size() const { return items_.size(); }
  const Json& operator[](size_t index) const { return index < items_.size() ? items_[index] : none(); }
  // Missing members are null.
  const Json& operator[](const char* name) const {
    for (size_t index = 0; index < names_.size(); ++index)
      if (names_[index] == name) return items_[index];
    return none();
  }
  const std::vector<std::string>& names() const { return names_; }
  std::vector<unsigned char> bytes() const {
    std::vector<unsigned char> found;
    for (size_t at = 0; at + 1 < text().size(); at += 2)
      found.push_back(static_cast<unsigned char>(strtoul(text_.substr(at, 2).c_str(), nullptr, 16)));
    return found;
  }

 private:
  enum Kind { Null, True, False, Number, Text, List, Object } kind_ = Null;
  double number_ = 0;
  std::string text_;
  std::vector<Json> items_;
  std::vector<std::string> names_;

  static const Json& none() {
    static const Json nothing;
    return nothing;
  }
  static void skip(const char*& at) {
    while (*at == ' ' || *at == '\n') ++at;
  }
  static Json value(const char*& at) {
    Json json;
    skip(at);
    if (*at == '{' || *at == '[') {
      json.kind_ = *at == '{' ? Object : List;
      const char end = *at == '{' ? '}' : ']';
      for (skip(++at); *at != end; skip(at)) {
        if (json.kind_ == Object) {
          json.names_.push_back(string(at));
          skip(at);
          ++at;
        }
        json.items_.push_back(value(at));
        skip(at);
        if (*at == ',') ++at;
        else if (*at != end) throw std::runtime_error("the list is no JSON");
      }
      ++at;
    } else if (*at == '"') {
      json.kind_ = Text;
      json.text_ = string(at);
    } else if (*at == 't' || *at == 'f' || *at == 'n') {
      json.kind_ = *at == 't' ? True : *at == 'f' ? False : Null;
      at += *at == 'f' ? 5 : 4;
    } else {
      char* end;
      json.kind_ = Number;
      json.number_ = strtod(at, &end);
      if (end == at) throw std::runtime_error("the list is no JSON");
      at = end;
    }
    return json;
  }
  static std::string string(const char*& at) {
    skip(at);
    std::string text;
    for (++at; *at != '"'; ++at) {
      if (*at == 0) throw std::runtime_error("the list is no JSON");
      if (*at != '\\') text += *at;
      else text += *++at == 'n' ? '\n' : *at == 't' ? '\t' : *at;
    }
    ++at;
    return text;
  }
};

// Writes a value as JSON. An integer that a double cannot hold becomes text.
inline std::string json(const std::string& text) {
  std::string quoted = "\"";
  for (const char one : text) {
    if (one == '"' || one == '\\') quoted += '\\';
    quoted += one;
  }
  return quoted + '"';
}
inline std::string json(const char* text) { return json(std::string(text)); }
inline std::string json(bool value) { return value ? "true" : "false"; }
template <class Integer, std::enable_if_t<std::is_integral_v<Integer> || std::is_enum_v<Integer>, int> = 0>
std::string json(Integer value) {
  char text[40];
  const auto wide = static_cast<long long>(value);
  if (wide < (1LL << 53) && (wide >= 0 || std::is_signed_v<Integer>)) snprintf(text, sizeof text, "%lld", wide);
  else snprintf(text, sizeof text, "\"0x%llx\"", static_cast<unsigned long long>(value));
  return text;
}

// A list of values in order.
class Items {
 public:
  template <class Value>
  Items& add(const Value& value) {
    return raw(json(value));
  }
  Items& raw(const std::string& text) {
    text_ += (text_.empty() ? "" : ",") + text;
    return *this;
  }
  std::string str() const { return "[" + text_ + "]"; }

 private:
  std::string text_;
};

// Values by name.
class Fields {
 public:
  template <class Value>
  Fields& add(const std::string& name, const Value& value) {
    return raw(name, json(value));
  }
  Fields& raw(const std::string& name, const std::string& text) {
    text_ += (text_.empty() ? "" : ",") + json(name) + ":" + text;
    return *this;
  }
  std::string str() const { return "{" + text_ + "}"; }

 private:
  std::string text_;
};

inline std::string hex(const void* bytes, size_t count) {
  std::string text;
  char pair[3];
  for (size_t at = 0; at < count; ++at) {
    snprintf(pair, sizeof pair, "%02x", static_cast<const unsigned char*>(bytes)[at]);
    text += pair;
  }
  return json(text);
}
