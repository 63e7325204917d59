// Marks the functions of the driver's library that the PTX engine, a separate library, calls.
#pragma once

#define SHOAL_FOR_ENGINE __attribute__((visibility("default")))
