// Texture and surface objects: how kernels look at arrays and at memory.
#pragma once

#include <memory>
#include <vector>

#include "array.h"

namespace shoal {

struct TextureObject {
  CUDA_RESOURCE_DESC resource{};
  CUDA_TEXTURE_DESC texture{};
  CUDA_RESOURCE_VIEW_DESC view{};
  bool hasView = false;
  bool isSurface = false;
  std::shared_ptr<Context> context;
  TexelFormat format;                        // with the view's
  std::vector<std::weak_ptr<Array>> levels;  // of an array one; none for linear memory
};

// Both kinds: their numbers are told apart by the kind.
SHOAL_FOR_ENGINE HandleTable<TextureObject>& textureObjects();

}  // namespace shoal
