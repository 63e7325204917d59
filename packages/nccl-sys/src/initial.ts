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

/** Fields of `ncclConfig_t` that a caller may set. Names are strings, or addresses of C strings. */
export type NcclConfigValues = Omit<Settable<ncclConfig_t>, 'netName' | 'commName'> & {
  readonly netName?: string | bigint | null | undefined
  readonly commName?: string | bigint | null | undefined
}

/** Fields of `ncclDevCommRequirements` that a caller may set. */
export type NcclDevCommRequirementsValues = Settable<ncclDevCommRequirements>

/**
 * Creates an `ncclConfig_t` like `NCCL_CONFIG_INITIALIZER` of the loaded NCCL's header, and sets `values`.
 *
 * `ncclCommInitRankConfig` and other functions take it. Omitted fields are unset (`NCCL_CONFIG_UNDEF_INT`, null). A
 * library newer than these bindings receives the newest config that the bindings know, which it accepts. The memory
 * also holds the names. Keep it until the call has returned; then `dispose()` it or leave it to the collector.
 *
 * @param version - NCCL's version number, such as 22809. Default: that of the library, which this function then loads.
 * @param raw - an `ncclConfig_t` of a newer header as the start value, for fields that these bindings do not know. It
 * replaces the initializer, including `size`, `magic` and `version`. `values` overwrite its fields.
 * @throws VersionTooOldError naming the field, its first version and the loaded one; LibraryNotFoundError.
 *
 * @example
 * const config = initialNcclConfig({ blocking: 0, commName: 'gradients' })
 */
export function initialNcclConfig(values: NcclConfigValues = {}, version?: number, raw?: Uint8Array): NativeMemory {
  return makeVersioned(ncclConfig_t_versions, values, version, raw)
}

/** Returns the fields of `ncclConfig_t` that a version of NCCL supports. Default: the loaded library. */
export function ncclConfigFields(version?: number): (keyof NcclConfigValues)[] {
  return fieldsOf(ncclConfig_t_versions, version) as (keyof NcclConfigValues)[]
}

/**
 * Creates an `ncclSimInfo_t` like `NCCL_SIM_INFO_INITIALIZER`, for `ncclGroupSimulateEnd`. @throws as
 * {@link initialNcclConfig}.
 */
export function initialNcclSimInfo(version?: number): NativeMemory {
  return makeVersioned(ncclSimInfo_t_versions, {}, version)
}

/**
 * Creates an `ncclCommProperties` like `NCCL_COMM_PROPERTIES_INITIALIZER`, for `ncclCommQueryProperties`. Read it with
 * {@link readNcclCommProperties}. @throws as {@link initialNcclConfig}.
 */
export function initialNcclCommProperties(version?: number): NativeMemory {
  return makeVersioned(ncclCommProperties_versions, {}, version)
}

/** Reads the result of `ncclCommQueryProperties`. Omits fields that are newer than the version. */
export function readNcclCommProperties(memory: StructMemory, version?: number): Partial<ncclCommProperties> {
  return readVersioned(ncclCommProperties_versions, memory, version)
}

/**
 * Creates an `ncclDevCommRequirements` like `NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER`, for `ncclDevCommCreate`. 2.28 has
 * no such macro and takes zeros. @throws as {@link initialNcclConfig}.
 */
export function initialNcclDevCommRequirements(
  values: NcclDevCommRequirementsValues = {},
  version?: number,
): NativeMemory {
  return makeVersioned(ncclDevCommRequirements_versions, values as Readonly<Record<string, unknown>>, version)
}
