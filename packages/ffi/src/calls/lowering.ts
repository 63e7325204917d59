import { isView, outOfRange } from '@shoal/types'
import { floatSlot, maximumFloats } from '../addon/block.js'
import { NativeMemory } from '../memory/nativeMemory.js'
import { type PointerArgument, putPointer, putStruct } from './arguments.js'

/**
 * Parameter of a C function for {@link lowerCall}.
 *
 * One word (an integer or a pointer), a floating-point number, or a structure of integers and pointers passed by value.
 */
export type LoweredParameter = 'word' | 'float' | { readonly bytes: number }

/** Positions of a function's arguments in the block. */
export interface CallLayout {
  /** Integer words the call takes, padding included. */
  readonly slotCount: number
  /** Floating-point registers the call takes, padding included. */
  readonly floatCount: number
  /** Slot of a word or floating-point parameter. */
  slot(parameter: number): number
  /** Writes a structure as the calling convention requires: in words, or as the address of a copy. */
  putStruct(parameter: number, value: ArrayBufferView | NativeMemory, api: string, name: string): void
}

/** Calling convention of a platform. */
export type CallingConvention = 'sysv' | 'aapcs64' | 'win64'

/** Returns the calling convention of this process's platform. */
export function hostConvention(): CallingConvention {
  if (process.platform === 'win32') return 'win64'
  return process.arch === 'arm64' ? 'aapcs64' : 'sysv'
}

interface Placement {
  readonly slot: number
  readonly words: number
  readonly byAddress: boolean
}

interface Placed {
  readonly placements: readonly Placement[]
  readonly slotCount: number
  readonly floatCount: number
}

function byAddress(bytes: number, convention: CallingConvention): boolean {
  if (convention === 'win64') return ![1, 2, 4, 8].includes(bytes)
  return convention === 'aapcs64' && bytes > 16
}

/** True if the result's address takes the place of the first argument. AArch64 has a dedicated register for it. */
function hasHiddenArgument(resultBytes: number, convention: CallingConvention): boolean {
  if (resultBytes === 0 || convention === 'aapcs64') return false
  return convention === 'win64' ? byAddress(resultBytes, convention) : resultBytes > 16
}

/**
 * Assigns slots: register words first, then the arguments on the stack, in order.
 *
 * Floating-point numbers use separate registers and never the stack, because a call has at most as many as registers.
 */
function place(parameters: readonly LoweredParameter[], convention: 'sysv' | 'aapcs64', hidden: boolean): Placed {
  const registers = convention === 'sysv' ? (hidden ? 5 : 6) : 8
  const placements: Placement[] = []
  let register = 0
  let stack = registers
  let float = 0
  for (const parameter of parameters) {
    if (parameter === 'float') {
      placements.push({ slot: floatSlot + float, words: 1, byAddress: false })
      float += 1
      continue
    }
    const indirect = parameter !== 'word' && byAddress(parameter.bytes, convention)
    const words = parameter === 'word' || indirect ? 1 : Math.ceil(parameter.bytes / 8)
    const fits = register + words <= registers && !(convention === 'sysv' && words > 2)
    placements.push({ slot: fits ? register : stack, words, byAddress: indirect })
    if (fits) register += words
    else {
      stack += words
      // After one argument on the stack, AArch64 uses no further register; System V still uses them for smaller ones.
      if (convention === 'aapcs64') register = registers
    }
  }
  return { placements, slotCount: stack > registers ? stack : register, floatCount: float }
}

/** Assigns slots by position (Windows): four positions have an integer and a floating-point register each. */
function placeByPosition(parameters: readonly LoweredParameter[], hidden: boolean): Placed {
  const first = hidden ? 1 : 0
  let floatCount = 0
  const placements = parameters.map((parameter, index): Placement => {
    const indirect = typeof parameter === 'object' && byAddress(parameter.bytes, 'win64')
    if (parameter !== 'float' || index + first >= 4) return { slot: index, words: 1, byAddress: indirect }
    floatCount = index + first + 1
    return { slot: floatSlot + index + first, words: 1, byAddress: false }
  })
  return { placements, slotCount: parameters.length, floatCount }
}

/**
 * Computes the layout of a call.
 *
 * @param resultBytes size of a structure that the call returns by value; 0 for any other result.
 * @throws RangeError for more floating-point parameters than registers.
 */
export function lowerCall(
  parameters: readonly LoweredParameter[],
  convention: CallingConvention = hostConvention(),
  resultBytes = 0,
): CallLayout {
  const floats = parameters.filter((parameter) => parameter === 'float').length
  if (floats > maximumFloats) {
    throw new RangeError(
      `${floats} floating-point parameters, but there are ${maximumFloats} registers for them and none goes on the stack`,
    )
  }
  const hidden = hasHiddenArgument(resultBytes, convention)
  const { placements, slotCount, floatCount } =
    convention === 'win64' ? placeByPosition(parameters, hidden) : place(parameters, convention, hidden)
  const placementOf = (parameter: number): Placement => {
    const placement = placements[parameter]
    if (placement === undefined) throw new RangeError(`the call has no parameter ${parameter}`)
    return placement
  }
  return {
    slotCount,
    floatCount,
    slot: (parameter) => placementOf(parameter).slot,
    putStruct(parameter, value, api, name) {
      const { slot, words, byAddress: indirect } = placementOf(parameter)
      const shape = parameters[parameter]
      if (typeof shape !== 'object') throw new TypeError(`${api}: ${name} is not a structure`)
      if (indirect) putPointer(slot, copyOf(value, shape.bytes, api, name), api, name)
      else putStruct(slot, value, shape.bytes, words, api, name)
    },
  }
}

function copyOf(value: ArrayBufferView | NativeMemory, byteLength: number, api: string, name: string): PointerArgument {
  const view = value instanceof NativeMemory ? value.bytes : value
  if (!isView(view) || view.byteLength < byteLength) {
    throw outOfRange(api, name, `a structure of ${byteLength} bytes`, value)
  }
  const copy = NativeMemory.allocate(byteLength)
  copy.bytes.set(new Uint8Array(view.buffer, view.byteOffset, byteLength))
  return copy
}
