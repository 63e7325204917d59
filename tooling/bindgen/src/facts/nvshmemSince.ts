/** Functions of releases up to this one carry its number: older headers were not compared function by function. */
export const oldestNvshmem = 30006

/**
 * First NVSHMEM version of each function by family and type, as NVSHMEM counts versions (30405 is 3.4.5); the first
 * pattern that fits counts. The headers do not say.
 *
 * Where it comes from: the host headers of the releases 2.10.1, 2.11.0, 3.0.6 and 3.2.5 (an archive of NVIDIA's source
 * packages) and of 3.4.5 (NVIDIA's wheel), the Python bindings in the source package 3.3.9, and what libnvshmem_host 3.4.5
 * exports.
 *
 * - 2.11.0 has unique ids and the entry points of the host library, 2.10.1 has neither.
 * - 3.0.6 has no `nvshmemx_mc_ptr`, no reduce-scatter and neither `half` nor `bfloat16`; 3.2.5 has them. For
 *   `nvshmemx_mc_ptr` and the two types that follows from the lengths of its files, which are those of 3.4.5 less what was
 *   added since; reduce-scatters are in its sources and its release notes.
 * - 3.2.5 has none of what is dated 3.3.9 and 3.4.5.
 *
 * No headers were seen of 3.1.7, 3.3.20 and 3.3.24, and those of 3.3.9 only as far as its bindings go: what is dated 3.2.5
 * or 3.4.5 may be a release older.
 */
const families: readonly [pattern: RegExp, since: number][] = [
  [/^nvshmemx_(team_init|team_get_uniqueid|buffer_(un)?register_symmetric|culibrary_(init|finalize))$/, 30405],
  [/^nvshmemx_set_attr_mpi_comm_args$/, 30309],
  [/^nvshmemx_mc_ptr$/, 30205],
  [/^nvshmemx?_(half|bfloat16)_/, 30205],
  [/^nvshmemx?_[a-z0-9]+_(and|or|xor|min|max|sum|prod)_reducescatter(_on_stream)?$/, 30205],
  [/^nvshmemx_(get_uniqueid|set_attr_uniqueid_args|hostlib_init_attr|hostlib_finalize)$/, 21100],
  // setup, queries, memory
  [
    /^nvshmem_(my_pe|n_pes|info_get_(version|name)|query_thread|global_exit|ptr|malloc|calloc|align|free)$/,
    oldestNvshmem,
  ],
  [/^nvshmemx_(init_status|vendor_get_version_info|cumodule_(init|finalize))$/, oldestNvshmem],
  [/^nvshmemx_buffer_(register|unregister|unregister_all)$/, oldestNvshmem],
  [/^nvshmemid_(init_status|hostlib_(init_attr|finalize))$/, oldestNvshmem],
  // put, get and atomics: typed, by size in bits, of bytes
  [/^nvshmem_[a-z0-9]+_(p|g|i?put|i?get|put_nbi|get_nbi)$/, oldestNvshmem],
  [/^nvshmemx_[a-z0-9]+_(p|g|i?put|i?get|put_nbi|get_nbi|put_signal|put_signal_nbi)_on_stream$/, oldestNvshmem],
  [/^nvshmem_(put|get)(8|16|32|64|128|mem)(_nbi)?$|^nvshmem_i(put|get)(8|16|32|64|128)$/, oldestNvshmem],
  [/^nvshmemx_(put|get)(8|16|32|64|128|mem)(_nbi)?_on_stream$/, oldestNvshmem],
  [/^nvshmemx_i(put|get)(8|16|32|64|128)_on_stream$/, oldestNvshmem],
  [/^nvshmemx_put(8|16|32|64|128|mem)_signal(_nbi)?_on_stream$/, oldestNvshmem],
  [/^nvshmem_[a-z0-9]+_atomic_((fetch_)?(inc|add|and|or|xor)|fetch|set|swap|compare_swap)$/, oldestNvshmem],
  // order and signals
  [/^nvshmem_(quiet|fence|signal_fetch)$/, oldestNvshmem],
  [/^nvshmemx_(quiet|signal_op|signal_wait_until)_on_stream$/, oldestNvshmem],
  [/^nvshmemx_[a-z0-9]+_wait_until(_all|_all_vector)?_on_stream$/, oldestNvshmem],
  // teams and collectives
  [/^nvshmem_team_(my_pe|n_pes|get_config|translate_pe|split_strided|split_2d|destroy|sync)$/, oldestNvshmem],
  [
    /^nvshmem_(barrier|barrier_all|sync_all)$|^nvshmemx_(barrier|barrier_all|sync_all|team_sync)_on_stream$/,
    oldestNvshmem,
  ],
  [/^nvshmem_(alltoall|broadcast|fcollect)mem$|^nvshmemx_(alltoall|broadcast|fcollect)mem_on_stream$/, oldestNvshmem],
  [/^nvshmem_[a-z0-9]+_(alltoall|broadcast|fcollect|(and|or|xor|min|max|sum|prod)_reduce)$/, oldestNvshmem],
  [/^nvshmemx_[a-z0-9]+_(alltoall|broadcast|fcollect|(and|or|xor|min|max|sum|prod)_reduce)_on_stream$/, oldestNvshmem],
]

/** @throws Error for a function of no family: nothing is taken to be as old as the headers that declare it */
export function nvshmemSinceOf(name: string): number {
  const since = families.find(([pattern]) => pattern.test(name))?.[1]
  if (since === undefined) throw new Error(`the facts do not tell since which NVSHMEM version there is ${name}`)
  return since
}
