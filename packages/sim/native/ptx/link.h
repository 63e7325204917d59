// Links several modules into one. Local names are made unique; external names are resolved.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shoal::ptx {

struct LinkInput {
  std::string name, text;
  bool isOptional = false;  // from a library: linked only if another input needs it
};

// Checks one input alone. Throws a Refusal.
void checkInput(const LinkInput& input);

// Links the inputs into one PTX text. Throws a Refusal, for example for an undefined name.
std::string link(const std::vector<LinkInput>& inputs);

}  // namespace shoal::ptx
