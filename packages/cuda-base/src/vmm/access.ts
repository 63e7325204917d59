import {
  CUmemAccess_flags,
  CUmemAccessDesc,
  CUmemLocation,
  cuMemGetAccess,
  cuMemSetAccess,
} from '@shoal/cuda-sys/driver'
import { NativeMemory } from '@shoal/ffi'
import { describeValue } from '@shoal/types'
import type { Context } from '../context.js'
import { check } from '../errors.js'
import { scratch } from '../native.js'
import { halvesOf, type U64Halves } from '../u64Halves.js'
import { type MemoryPlace, placeKey, type ResolvedPlace, resolvePlace } from './location.js'

/** What a device may do with mapped memory. */
export type MemoryAccess = 'none' | 'read' | 'readWrite'

/** Who gets which access. */
export interface AccessGrant {
  readonly place: MemoryPlace
  readonly access: MemoryAccess
}

const codes: { readonly [A in MemoryAccess]: CUmemAccess_flags } = {
  none: CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_NONE,
  read: CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READ,
  readWrite: CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
}

/** Access with its place resolved: checked, and ready for the driver. */
export interface ResolvedGrant {
  readonly place: ResolvedPlace
  readonly access: MemoryAccess
}

/** @throws TypeError for what is no access or no place. */
export function resolveGrants(grants: readonly AccessGrant[]): ResolvedGrant[] {
  if (!Array.isArray(grants)) throw new TypeError(`access must be a list, not ${describeValue(grants)}`)
  return grants.map((grant: AccessGrant) => {
    if (typeof grant !== 'object' || grant === null) {
      throw new TypeError(`access must hold { place, access }, not ${describeValue(grant)}`)
    }
    return { place: resolvePlace(grant.place, 'place'), access: requireAccess(grant.access) }
  })
}

export function requireAccess(access: MemoryAccess): MemoryAccess {
  if (typeof access === 'string' && Object.hasOwn(codes, access)) return access
  throw new TypeError(`access must be 'none', 'read' or 'readWrite', not ${describeValue(access)}`)
}

interface Written {
  readonly memory: NativeMemory
  readonly words: U64Halves
}

/** The struct of each grant there was: there are few, and each mapping needs one. */
const known = new Map<number, Written>()

function writeGrant({ place, access }: ResolvedGrant): Written {
  const { type, id } = place
  const key = placeKey(place) * 4 + codes[access]
  let written = known.get(key)
  if (written === undefined) {
    const memory = NativeMemory.allocate(CUmemAccessDesc.size)
    memory.bytes.set(CUmemAccessDesc.allocate({ location: { type, id }, flags: codes[access] }))
    written = { memory, words: halvesOf(memory.address) }
    known.set(key, written)
  }
  return written
}

/** Grants as the driver reads them. */
export interface WrittenGrants {
  /** The array of structs. It is shared: nobody writes to it. */
  readonly memory: NativeMemory
  /** Its address. */
  readonly words: U64Halves
  readonly count: number
  /** Contexts of the devices that get access, each once. */
  readonly users: readonly Context[]
}

export function writeGrants(grants: readonly ResolvedGrant[]): WrittenGrants {
  const count = grants.length
  const [first] = grants
  const users = usersOf(grants)
  if (count === 1 && first !== undefined) {
    const { memory, words } = writeGrant(first)
    return { memory, words, count, users }
  }
  const memory = NativeMemory.allocate(count * CUmemAccessDesc.size)
  grants.forEach((grant, index) => {
    memory.bytes.set(writeGrant(grant).memory.bytes, index * CUmemAccessDesc.size)
  })
  return { memory, words: halvesOf(memory.address), count, users }
}

function usersOf(grants: readonly ResolvedGrant[]): readonly Context[] {
  const users: Context[] = []
  for (const { place, access } of grants) {
    const { context } = place
    if (context !== undefined && access !== 'none' && !users.includes(context)) users.push(context)
  }
  return users
}

/** Access as the driver writes it. */
export function readAccess(bits: number): MemoryAccess {
  return bits === codes.readWrite ? 'readWrite' : bits === codes.read ? 'read' : 'none'
}

/** `cuMemSetAccess` for a range of addresses. */
export function setAccess(address: bigint, byteLength: number, { memory, count }: WrittenGrants): void {
  if (count === 0) return
  check(cuMemSetAccess(address, byteLength, memory, count), 'cuMemSetAccess')
}

/** `cuMemGetAccess` at an address. */
export function getAccess(address: bigint, place: ResolvedPlace): MemoryAccess {
  const out = scratch()
  out.u64[0] = 0n
  const location = CUmemLocation.allocate({ type: place.type, id: place.id })
  check(cuMemGetAccess(out, location, address), 'cuMemGetAccess')
  return readAccess(Number(out.u64[0]))
}
