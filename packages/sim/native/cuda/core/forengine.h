// Marks what the PTX engine, a library of its own, uses of the driver's library.
#pragma once

#define SHOAL_FOR_ENGINE __attribute__((visibility("default")))
