import {
  type CUdeviceptr,
  CUmemRangeFlags,
  CUmemRangeHandleType,
  cuMemGetHandleForAddressRange,
} from '@shoal/cuda-sys/driver'
import { closeDescriptor } from '@shoal/ffi'
import {
  type MemoryLike,
  type OptionKeys,
  optionalOptions,
  requireKeyOf,
  requireMade,
  toMemoryRange,
} from '@shoal/types'
import { contextOf, type DeviceOrContext } from '../../core/context/context.js'
import { forgetLeak, Resource, watchForLeak } from '../../core/lifetime.js'
import { scratch } from '../../core/native.js'

/** Options of a dma-buf. */
export interface DmaBufOptions {
  /** `'pcie'` uses PCIe even if a faster path to the memory exists (CUDA 12.8). Default: the driver's choice. */
  readonly mapping?: 'default' | 'pcie' | undefined
}

const dmaBufKeys: OptionKeys<DmaBufOptions> = { mapping: true }
const mappings = { default: 0, pcie: CUmemRangeFlags.CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE }

/**
 * A Linux dma-buf of device memory, through which network cards and other devices access the memory.
 *
 * `ibv_reg_dmabuf_mr` of libibverbs takes such a descriptor. The dma-buf does not own the memory, so do not free the
 * memory while another device uses it.
 *
 * @example
 * using buffer = DmaBuf.export(device, memory)
 * registerWithNetworkCard(buffer.descriptor, buffer.byteLength) // such as ibv_reg_dmabuf_mr
 */
export class DmaBuf extends Resource {
  protected readonly kind = 'DmaBuf'
  /** Size of the memory in bytes. */
  readonly byteLength: number
  readonly #descriptor: number

  private constructor(descriptor: number, byteLength: number) {
    requireMade(byteLength, 'DmaBuf', 'DmaBuf.export', 'number')
    super()
    this.#descriptor = descriptor
    this.byteLength = byteLength
    watchForLeak(this, `DmaBuf ${descriptor}`, () => {
      closeDescriptor(descriptor)
      return 'its descriptor is closed'
    })
  }

  /**
   * Exports memory that starts and ends at host page boundaries, usually 4 KiB (`cuMemGetHandleForAddressRange`).
   * @throws TypeError; StatusError: `CUDA_ERROR_NOT_SUPPORTED` when the device's attribute `DMA_BUF_SUPPORTED` is 0,
   * `CUDA_ERROR_INVALID_VALUE` for a part of a page; VersionTooOldError before CUDA 11.7
   */
  static export(owner: DeviceOrContext, memory: MemoryLike, options?: DmaBufOptions): DmaBuf {
    const api = 'DmaBuf.export'
    const context = contextOf(owner, api)
    const { mapping = 'default' } = optionalOptions<DmaBufOptions>(options, api, dmaBufKeys)
    const flags = requireKeyOf(mapping, api, 'mapping', mappings)
    const { address, byteLength } = toMemoryRange(memory, api)
    const out = scratch()
    const type = CUmemRangeHandleType.CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD
    context._callDriver('cuMemGetHandleForAddressRange', () =>
      cuMemGetHandleForAddressRange(out, address as CUdeviceptr, byteLength, type, flags),
    )
    return new DmaBuf(out.i32[0] as number, byteLength)
  }

  /** The number of the descriptor. @throws DisposedError */
  get descriptor(): number {
    this._requireAlive()
    return this.#descriptor
  }

  protected override inspectFacts(): { readonly [fact: string]: unknown } {
    return { byteLength: this.byteLength, descriptor: this.#descriptor }
  }

  protected release(): void {
    forgetLeak(this)
    closeDescriptor(this.#descriptor)
  }
}
