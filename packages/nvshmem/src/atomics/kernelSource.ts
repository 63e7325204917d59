/** PTX instruction of each kernel, for 32-bit and 64-bit elements. */
const instructions = {
  add: 'add.u',
  and: 'and.b',
  or: 'or.b',
  xor: 'xor.b',
  exchange: 'exch.b',
  compareSwap: 'cas.b',
} as const

export type KernelOperation = keyof typeof instructions

export const kernelOperations = Object.keys(instructions) as readonly KernelOperation[]

export const kernelName = (operation: KernelOperation, bits: 32 | 64): string => `shoal_${operation}_${bits}`

/**
 * PTX of a kernel of one thread: `result = atomic(target, value)`, with `expected` for compare and swap.
 *
 * All parameters have 64 bits; a 32-bit element takes the low ones.
 */
function kernel(operation: KernelOperation, bits: 32 | 64): string {
  const operands = operation === 'compareSwap' ? '%expected, %value' : '%value'
  const load = (name: string): string =>
    bits === 64 ? `ld.param.u64 %${name}, [${name}];` : `ld.param.u64 %wide, [${name}];\n  cvt.u32.u64 %${name}, %wide;`
  const store = bits === 64 ? '' : 'cvt.u64.u32 %wide, %before;\n  '
  return `.visible .entry ${kernelName(operation, bits)}(
  .param .u64 target, .param .u64 value, .param .u64 expected, .param .u64 result)
{
  .reg .b64 %target, %result, %wide;
  .reg .b${bits} %value, %expected, %before;
  ld.param.u64 %target, [target];
  ld.param.u64 %result, [result];
  ${load('value')}
  ${load('expected')}
  atom.relaxed.sys.${instructions[operation]}${bits} %before, [%target], ${operands};
  ${store}st.volatile.u64 [%result], ${bits === 64 ? '%before' : '%wide'};
  ret;
}
`
}

/**
 * PTX of all kernels, for every device that NVSHMEM supports.
 *
 * They use system scope, because the element may be on another device and other devices may access it.
 */
export const kernelSource = (): string =>
  [
    '.version 6.2\n.target sm_70\n.address_size 64\n',
    ...kernelOperations.flatMap((operation) => [kernel(operation, 32), kernel(operation, 64)]),
  ].join('\n')
