// Texture and surface objects, through which kernels access arrays and memory.
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
  TexelFormat format;                        // the format of the view, if there is a view
  std::vector<std::weak_ptr<Array>> levels;  // levels of the array; empty for linear memory
};

// Holds textures and surfaces. Each handle is only valid for its own kind.
SHOAL_FOR_ENGINE HandleTable<TextureObject>& textureObjects();

}  // namespace shoal
