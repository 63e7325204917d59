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
  /** How to get the library. */
  readonly hint: string
}
