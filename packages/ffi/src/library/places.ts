/** How one native library is found. */
export interface LibraryPlaces {
  /** Short name, as in `cuda`, `nccl`. */
  readonly id: string
  /** Name for people, as in `NVIDIA CUDA driver`. */
  readonly title: string
  /** Environment variable that names the file. */
  readonly environment: string
  /** File names by platform, the preferred one first. */
  readonly linux: readonly string[]
  /** The same on Windows. */
  readonly win32?: readonly string[]
  /** The same on macOS. */
  readonly darwin?: readonly string[]
  /** Folders below a Python `site-packages`. */
  readonly wheelFolders?: readonly string[]
  /** Folders below a CUDA toolkit. Absent: the library is no part of the toolkit. */
  readonly toolkitFolders?: readonly string[]
  /** Further absolute folders of this platform. */
  readonly systemFolders?: readonly string[]
  /** File of the software device that stands in for this library. */
  readonly sim?: string
  /**
   * It runs without a GPU, a compiler for instance: it is searched for on the software device as well. Default `false`.
   */
  readonly worksWithoutDevice?: boolean
  /**
   * Files beside the library that it looks for by name alone, where its loader does not find them: they are opened
   * first.
   */
  readonly companions?: RegExp
  /** How to get the library. */
  readonly hint: string
}
