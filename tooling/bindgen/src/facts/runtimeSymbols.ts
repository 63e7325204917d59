import type { UnboundSpec } from '../spec/types.js'

const helper = 'driver_functions.h defines it: it fills a struct, which the codec of that struct does'

/** Symbols that libcudart exports or a header defines for C, and that are not bound. */
export const unboundRuntime: readonly UnboundSpec[] = [
  { symbol: 'make_cudaPitchedPtr', exported: false, nature: 'inline', reason: helper },
  { symbol: 'make_cudaPos', exported: false, nature: 'inline', reason: helper },
  { symbol: 'make_cudaExtent', exported: false, nature: 'inline', reason: helper },
]
