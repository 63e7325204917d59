// Makes one module of several: what each declares for itself gets a name of its own, what one defines others find.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shoal::ptx {

struct LinkInput {
  std::string name, text;
  bool isOptional = false;  // of a library: taken where it has what another one lacks
};

// Says what is wrong with one input by itself: throws a Refusal.
void checkInput(const LinkInput& input);

// PTX of all of them. Throws a Refusal, also where something stays undefined.
std::string link(const std::vector<LinkInput>& inputs);

}  // namespace shoal::ptx
