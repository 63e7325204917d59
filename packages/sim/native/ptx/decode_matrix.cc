// Instructions on matrices and asynchronous copies.
#include "decoder.h"

namespace shoal::ptx {

void Decoder::matrix() { refuse(); }
void Decoder::loadMatrix() { refuse(); }
void Decoder::moveMatrix() { refuse(); }
void Decoder::asyncCopy() { refuse(); }
void Decoder::asyncBarrier() { refuse(); }

}  // namespace shoal::ptx
