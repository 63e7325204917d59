import type { NativeMemory, StructMemory, StructValue } from '@shoal/ffi'
import type { ncclCommProperties, ncclDevCommRequirements } from './generated/structs/deviceApi.gen.js'
import type { ncclConfig_t } from './generated/structs/memory.gen.js'
import {
  ncclCommProperties_versions,
  ncclConfig_t_versions,
  ncclDevCommRequirements_versions,
  ncclSimInfo_t_versions,
} from './generated/versionedStructs.gen.js'
import { fieldsOf, makeVersioned, readVersioned } from './versionedStruct.js'

type Settable<T> = Omit<StructValue<T>, 'size' | 'magic' | 'version'>

/** Fields of `ncclConfig_t` that a caller may set; names as texts or as addresses of C strings. */
export type NcclConfigValues = Omit<Settable<ncclConfig_t>, 'netName' | 'commName'> & {
  readonly netName?: string | bigint | null | undefined
  readonly commName?: string | bigint | null | undefined
}

/** Fields of `ncclDevCommRequirements` that a caller may set. */
export type NcclDevCommRequirementsValues = Settable<ncclDevCommRequirements>

/**
 * An `ncclConfig_t` as `NCCL_CONFIG_INITIALIZER` makes it in the header of the NCCL in use, with `values` set: what
 * `ncclCommInitRankConfig` and others take. Fields left out are unset (`NCCL_CONFIG_UNDEF_INT`, null). For a library
 * that is newer than these bindings it is the newest config they know, which that library takes.
 *
 * The memory also holds the names; keep it until the call has returned, `dispose()` it then or leave it to the
 * collector.
 *
 * @param version - as NCCL counts versions, e.g. 22809. Default: that of the library in use, which this loads.
 * @param raw - an `ncclConfig_t` to start from, as a newer header lays it out, for fields that these bindings do not
 * know. It takes the place of the initializer, its `size`, `magic` and `version` included; `values` are written over
 * it.
 * @throws VersionTooOldError naming the field, the first version that has it and the one in use; LibraryNotFoundError.
 */
export function initialNcclConfig(values: NcclConfigValues = {}, version?: number, raw?: Uint8Array): NativeMemory {
  return makeVersioned(ncclConfig_t_versions, values, version, raw)
}

/** Fields of `ncclConfig_t` that a version of NCCL knows; default: the library in use. */
export function ncclConfigFields(version?: number): (keyof NcclConfigValues)[] {
  return fieldsOf(ncclConfig_t_versions, version) as (keyof NcclConfigValues)[]
}

/**
 * An `ncclSimInfo_t` for `ncclGroupSimulateEnd`, as `NCCL_SIM_INFO_INITIALIZER` makes it. @throws as
 * {@link initialNcclConfig}.
 */
export function initialNcclSimInfo(version?: number): NativeMemory {
  return makeVersioned(ncclSimInfo_t_versions, {}, version)
}

/**
 * An `ncclCommProperties` for `ncclCommQueryProperties`, as `NCCL_COMM_PROPERTIES_INITIALIZER` makes it; read it with
 * {@link readNcclCommProperties}. @throws as {@link initialNcclConfig}.
 */
export function initialNcclCommProperties(version?: number): NativeMemory {
  return makeVersioned(ncclCommProperties_versions, {}, version)
}

/** Reads what `ncclCommQueryProperties` wrote; fields that came after the version in use are left out. */
export function readNcclCommProperties(memory: StructMemory, version?: number): Partial<ncclCommProperties> {
  return readVersioned(ncclCommProperties_versions, memory, version)
}

/**
 * An `ncclDevCommRequirements` for `ncclDevCommCreate`, as `NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER` makes it; 2.28 had
 * no such macro and takes zeros. @throws as {@link initialNcclConfig}.
 */
export function initialNcclDevCommRequirements(
  values: NcclDevCommRequirementsValues = {},
  version?: number,
): NativeMemory {
  return makeVersioned(ncclDevCommRequirements_versions, values as Readonly<Record<string, unknown>>, version)
}
