import { NativeMemory } from '../memory/nativeMemory.js'
import { type PointerArgument, putPointer, putStruct } from './arguments.js'

/** A parameter of a C function: one word, or a structure of integer class passed by value. */
export type LoweredParameter = 'word' | { readonly bytes: number }

/** Where each argument of a function with structures by value goes in the block. */
export interface CallLayout {
  /** Slots the call takes, padding included. */
  readonly slotCount: number
  /** Slot of a word parameter. */
  slot(parameter: number): number
  /** Writes a structure where the platform's calling convention wants it: in words, or as the address of a copy. */
  putStruct(parameter: number, value: ArrayBufferView | NativeMemory, api: string, name: string): void
}

/** How a platform passes integer-class arguments. */
export type CallingConvention = 'sysv' | 'aapcs64' | 'win64'

export function hostConvention(): CallingConvention {
  if (process.platform === 'win32') return 'win64'
  return process.arch === 'arm64' ? 'aapcs64' : 'sysv'
}

interface Placement {
  readonly slot: number
  readonly words: number
  readonly byAddress: boolean
}

function byAddress(bytes: number, convention: CallingConvention): boolean {
  if (convention === 'win64') return ![1, 2, 4, 8].includes(bytes)
  return convention === 'aapcs64' && bytes > 16
}

/** Slots by platform: register words come first, and what does not fit the registers follows on the stack, in order. */
function place(
  parameters: readonly LoweredParameter[],
  convention: CallingConvention,
): { placements: Placement[]; slotCount: number } {
  const registers = convention === 'sysv' ? 6 : convention === 'aapcs64' ? 8 : 4
  const placements: Placement[] = []
  let register = 0
  let stack = registers
  for (const parameter of parameters) {
    const indirect = parameter !== 'word' && byAddress(parameter.bytes, convention)
    const words = parameter === 'word' || indirect ? 1 : Math.ceil(parameter.bytes / 8)
    const fits = register + words <= registers && !(convention === 'sysv' && words > 2)
    placements.push({ slot: fits ? register : stack, words, byAddress: indirect })
    if (fits) register += words
    else {
      stack += words
      // AArch64 uses no further register once an argument went to the stack; System V goes on with smaller ones.
      if (convention === 'aapcs64') register = registers
    }
  }
  return { placements, slotCount: stack > registers ? stack : register }
}

/** Computes the layout of a call once. */
export function lowerCall(
  parameters: readonly LoweredParameter[],
  convention: CallingConvention = hostConvention(),
): CallLayout {
  const { placements, slotCount } = place(parameters, convention)
  const placementOf = (parameter: number): Placement => {
    const placement = placements[parameter]
    if (placement === undefined) throw new RangeError(`the call has no parameter ${parameter}`)
    return placement
  }
  return {
    slotCount,
    slot: (parameter) => placementOf(parameter).slot,
    putStruct(parameter, value, api, name) {
      const { slot, words, byAddress: indirect } = placementOf(parameter)
      const shape = parameters[parameter]
      if (shape === undefined || shape === 'word') throw new TypeError(`${api}: ${name} is not a structure`)
      if (indirect) putPointer(slot, copyOf(value, shape.bytes, api, name), api, name)
      else putStruct(slot, value, shape.bytes, words, api, name)
    },
  }
}

function copyOf(value: ArrayBufferView | NativeMemory, byteLength: number, api: string, name: string): PointerArgument {
  const view = value instanceof NativeMemory ? value.bytes : value
  if (!ArrayBuffer.isView(view) || view.byteLength < byteLength) {
    throw new RangeError(`${api}: ${name} must be a structure of ${byteLength} bytes`)
  }
  const copy = NativeMemory.allocate(byteLength)
  copy.bytes.set(new Uint8Array(view.buffer, view.byteOffset, byteLength))
  return copy
}
