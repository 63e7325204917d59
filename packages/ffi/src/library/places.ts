/** How to find a native library. */
export interface LibraryPlaces {
  /** Short name, such as `cuda` or `nccl`. */
  readonly id: string
  /** Name for people, such as `NVIDIA CUDA driver`. */
  readonly title: string
  /** Environment variable that names the file. */
  readonly environment: string
  /** File names on Linux, the preferred one first. */
  readonly linux: readonly string[]
  /** File names on Windows. */
  readonly win32?: readonly string[]
  /** File names on macOS. */
  readonly darwin?: readonly string[]
  /** Folders below a Python `site-packages`. */
  readonly wheelFolders?: readonly string[]
  /** Folders below a CUDA toolkit. Absent: the library is not part of the toolkit. */
  readonly toolkitFolders?: readonly string[]
  /** Further absolute folders of this platform. */
  readonly systemFolders?: readonly string[]
  /** File of the software device that replaces this library. */
  readonly sim?: string
  /**
   * Whether the library works without a GPU, as a compiler does. Its search then continues even with the software
   * device. Default: false.
   */
  readonly worksWithoutDevice?: boolean
  /**
   * Files in the same folder that the library loads by name only. They are opened first, because the loader does not
   * find them.
   */
  readonly companions?: RegExp
  /** How to get the library. */
  readonly hint: string
}
