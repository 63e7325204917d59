/**
 * What Shoal knows about one native library. Tools and generated sources read it. No other file hard-codes a library.
 */

/** Name of a library in specs, options and reports. */
export type LibraryName = DeviceLibraryName | CompilerName | MathLibraryName | HardwareLibraryName

/** Libraries that work on devices. The software device has a twin of each. */
export type DeviceLibraryName = 'driver' | 'runtime' | 'nccl' | 'nvshmem'

/** Libraries that need neither a GPU nor a driver. */
export type CompilerName = 'nvrtc' | 'nvjitlink'

/** Libraries that compute on devices. The software device has none of them. */
export type MathLibraryName = 'cublas' | 'cublasLt'

/** Libraries that need NVIDIA's driver. The software device has no twin. */
export type HardwareLibraryName = 'nvml'

/** Headers that are distributed together: the driver and the runtime share theirs. */
export type Product = 'cuda' | 'nccl' | 'nvshmem' | 'cublas' | CompilerName | HardwareLibraryName

/** How a library counts versions: CUDA 12080 is 12.8, NCCL 23007 is 2.30.7, NVSHMEM 30405 is 3.4.5. */
export type VersionFormat = 'cuda' | 'nccl' | 'nvshmem'

export interface LibraryRecord {
  readonly id: LibraryName
  /** Name in tables, as in `CUDA driver`. */
  readonly title: string
  /** Name before a version, as in `CUDA 13.0`. */
  readonly versionTitle: string
  /** Specifier of the raw package, or of its entry. */
  readonly module: string
  /** The safe packages, without `@shoal/`. */
  readonly safePackages: readonly string[]
  /** Chapter of the reference for functions whose manual has one page for all. */
  readonly topic?: string
  readonly headers: HeaderRecord
  /** Exported symbols that are the library's interface. */
  readonly symbols: RegExp
  /** Functions of its API in prose and sources. */
  readonly functionNames: string
  /** File names of the library on Linux. */
  readonly file: RegExp
  readonly version: VersionRecord
  /** How a process finds the library: the `LibraryPlaces` of `@shoal/ffi`. */
  readonly places: PlacesRecord
  /** How users can install it. */
  readonly install: InstallRecord
  /** Page of the vendor's manual for a function of a documentation group. Undefined: the function has none. */
  readonly manual: (entry: ManualEntry) => string | undefined
}

export interface ManualEntry {
  readonly name: string
  readonly group: string
  /** The header that declares it. Undefined: none does. */
  readonly header?: string | undefined
}

export interface HeaderRecord {
  readonly product: Product
  /** The header by which a folder is recognized. */
  readonly main: string
  /** Products whose headers this one includes. */
  readonly needs: readonly Product[]
  /** Header with the version. */
  readonly versionFile: string
  /** One expression for the whole version, or one for each part. The parts count in steps of `versionSteps`. */
  readonly versionPatterns: readonly RegExp[]
  readonly versionSteps: readonly number[]
  /** Variables that name the folder of the headers, or a folder above `include`. */
  readonly variables: { readonly include?: string; readonly home?: string }
  /** Folder of the headers below `site-packages`. */
  readonly wheelFolder: string
}

export interface VersionRecord {
  readonly format: VersionFormat
  /** The function that stores the version into `int`s: all parts at once, or the numbered one with `byPart`. */
  readonly function: string
  readonly parts: 1 | 2 | 3
  /** Libraries without this function have this version. */
  readonly without?: number
  /** The function takes the number of a part, from 0, and stores that part. */
  readonly byPart?: boolean
  /** The function returns nothing instead of a status. */
  readonly returnsNothing?: boolean
  /** The oldest version that was examined. Functions dated to it may be older. */
  readonly oldest?: number
}

export interface PlacesRecord {
  /** Short name of the library file, as in `cuda`. */
  readonly id: string
  readonly title: string
  readonly environment: string
  readonly linux: readonly string[]
  readonly win32?: readonly string[]
  readonly wheelFolders?: readonly string[]
  readonly toolkitFolders?: readonly string[]
  /** Absolute folders on Linux. */
  readonly systemFolders?: readonly string[]
  readonly sim?: string
  readonly worksWithoutDevice?: boolean
  readonly companions?: RegExp
  readonly hint: string
  /** Text that the docstring of the library object adds to "Nothing is loaded before the first call." */
  readonly note?: string
  /** The raw package resolves symbols by itself, so it has a `library.ts` of its own. */
  readonly resolvesItself?: boolean
}

export interface InstallRecord {
  readonly wheel?: string
  readonly debian?: string
  readonly conda?: string
  /** Further wheels with headers that its headers include. */
  readonly headerWheels?: readonly string[]
  /** The library below `site-packages`, with the major version in place of `*`. */
  readonly wheelFile?: string
}
