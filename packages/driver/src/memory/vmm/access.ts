import {
  CUmemAccess_flags,
  CUmemAccessDesc,
  CUmemLocation,
  cuMemGetAccess,
  cuMemSetAccess,
} from '@shoal/cuda-sys/driver'
import { NativeMemory } from '@shoal/ffi'
import { isArray, type OptionKeys, requireKeyOf, requireList, requireOptions } from '@shoal/types'
import type { Context } from '../../core/context/context.js'
import { check } from '../../core/errors.js'
import { scratch } from '../../core/native.js'
import { halvesOf, type U64Halves } from '../../core/u64Halves.js'
import { type MemoryPlace, placeKey, type ResolvedPlace, resolvePlace } from './location.js'

/** A device's access to mapped memory. */
export type MemoryAccess = 'none' | 'read' | 'readWrite'

/** An access right of one place. */
export interface AccessGrant {
  /** The device or host that uses the memory. */
  readonly place: MemoryPlace
  /** The allowed access. */
  readonly access: MemoryAccess
}

const codes: { readonly [A in MemoryAccess]: CUmemAccess_flags } = {
  none: CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_NONE,
  read: CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READ,
  readWrite: CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
}

/** A checked access right, ready for the driver. */
export interface ResolvedGrant {
  readonly place: ResolvedPlace
  readonly access: MemoryAccess
}

const grantKeys: OptionKeys<AccessGrant> = { place: true, access: true }

/** Checks and resolves access rights. @throws TypeError, RangeError; DisposedError for a context that is gone */
export function resolveGrants(grants: readonly AccessGrant[], api: string): ResolvedGrant[] {
  return requireList(grants, api, 'access').map((grant, index) => {
    const name = `access[${index}]`
    const { place, access } = requireOptions<AccessGrant>(grant, api, grantKeys, name)
    return { place: resolvePlace(place, api, `${name}.place`), access: requireAccess(access, api, `${name}.access`) }
  })
}

/** Resolves the same access for one place or several. @throws TypeError, RangeError; DisposedError */
export function resolveSameAccess(
  places: MemoryPlace | readonly MemoryPlace[],
  access: MemoryAccess,
  api: string,
): ResolvedGrant[] {
  requireAccess(access, api, 'access')
  if (!isArray(places)) return [{ place: resolvePlace(places as MemoryPlace, api, 'places'), access }]
  return Array.from(places, (place, index) => ({ place: resolvePlace(place, api, `places[${index}]`), access }))
}

function requireAccess(access: MemoryAccess, api: string, name: string): MemoryAccess {
  requireKeyOf(access, api, name, codes)
  return access
}

interface GrantStruct {
  readonly memory: NativeMemory
  readonly words: U64Halves
}

/** Cached structs of access rights. There are few different ones, and each mapping needs one. */
const grantStructs = new Map<number, GrantStruct>()

function structOf({ place, access }: ResolvedGrant): GrantStruct {
  const { type, id } = place
  const key = placeKey(place) * 4 + codes[access]
  let struct = grantStructs.get(key)
  if (struct === undefined) {
    const memory = NativeMemory.allocate(CUmemAccessDesc.size)
    memory.bytes.set(CUmemAccessDesc.allocate({ location: { type, id }, flags: codes[access] }))
    struct = { memory, words: halvesOf(memory.address) }
    grantStructs.set(key, struct)
  }
  return struct
}

/** Encoded access rights for the driver. */
export interface WrittenGrants {
  /** The array of `CUmemAccessDesc`. It is shared and must not be modified. */
  readonly memory: NativeMemory
  /** Address of the array. */
  readonly words: U64Halves
  readonly count: number
  /** Contexts of the devices with access, without duplicates. */
  readonly users: readonly Context[]
}

export function writeGrants(grants: readonly ResolvedGrant[]): WrittenGrants {
  const count = grants.length
  const [first] = grants
  const users = usersOf(grants)
  if (count === 1 && first !== undefined) {
    const { memory, words } = structOf(first)
    return { memory, words, count, users }
  }
  const memory = NativeMemory.allocate(count * CUmemAccessDesc.size)
  grants.forEach((grant, index) => {
    memory.bytes.set(structOf(grant).memory.bytes, index * CUmemAccessDesc.size)
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

/** Decodes the driver's access flags. */
export function readAccess(bits: number): MemoryAccess {
  return bits === codes.readWrite ? 'readWrite' : bits === codes.read ? 'read' : 'none'
}

/** Sets the access of a range of addresses (`cuMemSetAccess`). */
export function setAccess(address: bigint, byteLength: number, { memory, count }: WrittenGrants): void {
  if (count === 0) return
  check(cuMemSetAccess(address, byteLength, memory, count), 'cuMemSetAccess')
}

/** Returns the access at an address (`cuMemGetAccess`). */
export function getAccess(address: bigint, place: ResolvedPlace): MemoryAccess {
  const out = scratch()
  out.u64[0] = 0n
  const location = CUmemLocation.allocate({ type: place.type, id: place.id })
  check(cuMemGetAccess(out, location, address), 'cuMemGetAccess')
  return readAccess(Number(out.u64[0]))
}
