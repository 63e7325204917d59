/** What an atomic kernel does with the element: the instruction of PTX, for elements of 32 and of 64 bits. */
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
 * One thread, one operation: `result = atomic(target, value)`, with `expected` for compare and swap. All parameters
 * have 64 bits, of which an element of 32 takes the lower ones.
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
 * The kernels as PTX for every device that NVSHMEM runs on. The scope is the system: the element may be another
 * device's, and others may work on it.
 */
export const kernelSource = (): string =>
  [
    '.version 6.2\n.target sm_70\n.address_size 64\n',
    ...kernelOperations.flatMap((operation) => [kernel(operation, 32), kernel(operation, 64)]),
  ].join('\n')
